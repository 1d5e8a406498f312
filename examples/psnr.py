"""Can reconstruction tell the classes apart? PSNR of an autoencoder.

The paper's autoencoder is trained on the whole positive class and then redraws all
images, positive (blue) and negative (red). If the peak signal-to-noise ratios overlap
much, no threshold on them separates the classes, although a Mann-Whitney test calls
them different; that is the paper's point about CIFAR-10. On digits they overlap less.
Training images are among the positives, as in the paper; the second line printed
judges the test images alone. AUC: how often a positive is redrawn better than a
negative.

    python examples/psnr.py                       digits, under a minute
    python examples/psnr.py --dataset cifar10     the paper's figure: GPU, or hours
    python examples/psnr.py --dataset cifar10 --limit 2000 --epochs 5
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu

from denspu import load_dataset
from denspu.encoders import CAEEncoder
from denspu.report import new_figure, save, styled
from denspu.report.charts import draw_density
from denspu.report.style import legend_below

OUT = Path(__file__).parent / "out"

BLUE, RED = "#0072b2", "#c8102e"
SETTINGS = {
    "digits": {"epochs": 12, "image_size": 16, "lr": 1e-3, "weight_decay": 0.0},
    "fashion-mnist": {"epochs": 50},  # the paper's numbers are the encoder's defaults
    "cifar10": {"epochs": 50},
}


def main(
    out: Path = OUT,
    dataset: str = "digits",
    epochs: int | None = None,
    limit: int | None = None,
    device: str = "auto",
    random_state: int = 0,
) -> Path:
    X, positive, unseen = _images(dataset, limit, random_state)
    settings = dict(SETTINGS[dataset])
    if epochs is not None:
        settings["epochs"] = epochs
    encoder = CAEEncoder(
        **settings, device=device, random_state=random_state, verbose=1
    )
    encoder.fit(X[positive & ~unseen])
    psnr = encoder.psnr(X).astype(np.float64)

    auc, p = _compare(psnr[positive], psnr[~positive])
    print(f"all images:         {_words(auc, p)}")
    print(
        "unseen images only: "
        + _words(*_compare(psnr[positive & unseen], psnr[~positive & unseen]))
    )
    figure = _draw(psnr[positive], psnr[~positive], f"{dataset}: {_words(auc, p)}")
    path = save(figure, out / f"psnr-{dataset}.png")
    print(path)
    return path


def _images(dataset, limit, random_state):
    """Return images, which are positive, and which the autoencoder never sees."""
    data = load_dataset(dataset)
    X = np.concatenate([data.X_train, data.X_test])
    positive = np.isin(np.concatenate([data.y_train, data.y_test]), data.positive)
    unseen = np.arange(len(X)) >= len(data.X_train)
    if limit is not None and limit < len(X):
        rows = np.random.default_rng(random_state).permutation(len(X))[:limit]
        X, positive, unseen = X[rows], positive[rows], unseen[rows]
    if len(np.unique(2 * positive + unseen)) < 4:
        raise SystemExit(f"--limit {limit} is too few to have images of every kind.")
    return X, positive, unseen


def _compare(positive, negative):
    """Return how often a positive has the higher PSNR, and the test's p-value."""
    test = mannwhitneyu(positive, negative)
    return test.statistic / (len(positive) * len(negative)), test.pvalue


def _words(auc, p):
    value = "p < 0.001" if p < 0.001 else f"p = {p:.3f}"
    return f"Mann-Whitney {value}, AUC {auc:.2f}"


def _draw(positive, negative, title):
    figure = new_figure(5.2, 3.4)
    edges = np.linspace(*np.quantile(np.r_[positive, negative], (0.001, 0.999)), 41)
    with styled():
        axes = figure.subplots()
        draw_density(axes, positive, edges, BLUE, f"positive ({len(positive):,})")
        draw_density(axes, negative, edges, RED, f"negative ({len(negative):,})")
        axes.set_title(title)
        axes.set(xlabel="PSNR of the reconstruction, dB", yticks=[])
        axes.spines["left"].set_visible(False)
        legend_below(axes, 36, ncols=2, handlelength=1.2)
    return figure


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the picture")
    parser.add_argument("--dataset", choices=SETTINGS, default="digits")
    parser.add_argument("--epochs", type=int, help="training epochs")
    parser.add_argument("--limit", type=int, help="use only this many images")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda")
    options = parser.parse_args()
    main(**vars(options))
