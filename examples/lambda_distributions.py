"""Where new points fall between two positives: the weight λ of each densifier.

A new point is λ·z_i + (1-λ)·z_j. Mixup stays near the two ends, the paper's proposal
near the midpoint (k sets how near), and the printed variance of eq. 3, taken
literally, is nearly uniform.

    python examples/lambda_distributions.py --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from denspu.density import LiteralVariance, Midpoint, Mixup
from denspu.report import lambda_distributions, save

OUT = Path(__file__).parent / "out"

K = 0.2
OTHER_K = (0.1, 0.2, 0.5, 0.9)


def main(out: Path = OUT, n: int = 200_000, random_state: int = 0) -> Path:
    three = {
        "mixup, Beta(0.2, 0.2)": Mixup(alpha=0.2),
        f"midpoint, k = {K}": Midpoint(k=K),
        f"literal variance, k = {K}": LiteralVariance(k=K),
    }
    spread = {f"midpoint, k = {k}": Midpoint(k=k) for k in OTHER_K}
    panels = {}
    for title, densifiers in (
        ("λ of three densifiers", three),
        ("A small k pulls λ to the middle", spread),
    ):
        rng = np.random.default_rng(random_state)
        panels[title] = {
            name: densifier.sample_lambda((n,), rng)
            for name, densifier in densifiers.items()
        }
        for name, weights in panels[title].items():
            low, high = np.quantile(weights, (0.05, 0.95))
            print(f"{name:<28} nine in ten between {low:.2f} and {high:.2f}")
    path = save(lambda_distributions(panels), out / "lambda-distributions.png")
    print(path)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the picture")
    main(parser.parse_args().out)
