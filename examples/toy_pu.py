"""What PU learning is: the same points with all labels, and with some of one kind.

Left, ordinary supervised learning: every point has a label. Right, what a PU learner
is given: some positives carry a label, everything else is unlabelled.

    python examples/toy_pu.py --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import make_moons

from denspu import make_pu
from denspu.report import new_figure, save, styled
from denspu.report.style import BLUE, GREY, ORANGE, bare, legend_below

OUT = Path(__file__).parent / "out"


def main(out: Path = OUT, n: int = 400, random_state: int = 0) -> Path:
    X, side = make_moons(n, noise=0.12, random_state=random_state)
    truth = 1 - side  # the upper moon is positive
    pu = make_pu(X, truth, n_labeled=0.15, random_state=random_state)

    figure = new_figure(8, 3.3)
    with styled():
        left, right = figure.subplots(1, 2, sharex=True, sharey=True)
        left.set_title("Supervised learning: every label is known")
        _points(left, X[truth == 1], BLUE, "o", "positive")
        _points(left, X[truth == 0], ORANGE, "x", "negative")
        right.set_title("PU learning: some positives are known")
        _points(right, X[pu.unlabeled_index], GREY, "o", "unlabelled", alpha=0.6)
        _points(right, X[pu.labeled_index], BLUE, "o", "labelled positive")
        for axes in (left, right):
            bare(axes)
            legend_below(axes, 6, ncols=2, handletextpad=0.2)
    path = save(figure, out / "toy-pu.png")
    share = np.mean(truth[pu.unlabeled_index])
    print(f"{pu.n_labeled} labelled, {len(pu.unlabeled_index)} unlabelled,")
    print(f"of which {share:.0%} are positive, which the learner is not told.")
    print(path)
    return path


def _points(axes, X, color, marker, label, alpha=0.9):
    axes.scatter(
        *X.T,
        s=14,
        c=color,
        marker=marker,
        linewidths=1 if marker == "x" else 0,
        alpha=alpha,
        label=f"{label} ({len(X)})",
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the picture")
    main(parser.parse_args().out)
