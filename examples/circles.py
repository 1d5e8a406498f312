"""Mixup against the paper's densification on two circles.

Left, the data: some points of the inner circle are labelled positive (green), all
others are unlabelled (black). Middle, mixup (magenta) stays near the segments' ends,
so the circle stays mostly hollow. Right, the proposed augmentation (cyan) fills it:
one dense region that a boundary can be drawn around.

    python examples/circles.py --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import make_circles

from denspu import make_pu
from denspu.density import Midpoint, Mixup
from denspu.report import new_figure, save, styled
from denspu.report.style import bare, legend_below

OUT = Path(__file__).parent / "out"

POSITIVE, UNLABELED = "#2ca02c", "#111111"
MIXUP, PROPOSED = "#d900d9", "#00b7c7"


def main(out: Path = OUT, n: int = 400, random_state: int = 0) -> Path:
    X, inner = make_circles(n, factor=0.5, noise=0.04, random_state=random_state)
    pu = make_pu(X, inner, n_labeled=0.3, random_state=random_state)
    P, U = X[pu.labeled_index], X[pu.unlabeled_index]
    panels = (
        ("Positive and unlabelled", None, ""),
        ("Mixup", Mixup(n_pairs=200, s=11), MIXUP),
        ("Proposed (midpoint, k = 0.2)", Midpoint(k=0.2, n_pairs=200, s=11), PROPOSED),
    )

    figure = new_figure(8, 3.3)
    with styled():
        row = figure.subplots(1, 3, sharex=True, sharey=True)
        for axes, (title, densifier, color) in zip(row, panels, strict=True):
            axes.set_title(title)
            _points(axes, U, UNLABELED, 7, 0.55, "unlabelled")
            if densifier is not None:
                new = densifier.densify(P, np.random.default_rng(random_state))
                _points(axes, new, color, 5, 0.4, "new points")
                _tell(title, P, new)
            _points(axes, P, POSITIVE, 14, 1, "positive")
            axes.set_aspect("equal")
            bare(axes)
            legend = legend_below(axes, 4, handletextpad=0.2)
            for handle in legend.legend_handles:
                handle.set(alpha=1, sizes=[14])
    path = save(figure, out / "circles.png")
    print(path)
    return path


def _points(axes, X, color, size, alpha, label):
    label = f"{label} ({len(X):,})"
    axes.scatter(*X.T, s=size, c=color, alpha=alpha, linewidths=0, label=label)


def _tell(title, P, new):
    """Print how far from the centre the new points lie, in radii of the circle."""
    radius = np.linalg.norm(P, axis=1).mean()
    depth = np.median(np.linalg.norm(new, axis=1)) / radius
    print(f"{title}: {len(new)} new points, half within {depth:.2f} of the radius")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the picture")
    main(parser.parse_args().out)
