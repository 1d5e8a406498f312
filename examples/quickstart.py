"""The README's example: find the even digits, given a few of them.

Load, hide most labels, fit, predict, and look at what happened.

    python examples/quickstart.py --out pictures
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from denspu import DensPU, load_dataset, make_pu
from denspu.metrics import oracle_metrics
from denspu.report import latent_map, roles_of, save

OUT = Path(__file__).parent / "out"


def main(out: Path = OUT) -> Path:
    digits = load_dataset("digits")
    X, y, even = digits.X_train, digits.y_train, digits.positive  # even: 0, 2, 4, 6, 8
    pu = make_pu(X, y, positive=even, n_labeled=0.2, random_state=0)

    model = DensPU(random_state=0).fit(pu.X, pu.y)  # y: 1 = known positive, 0 = unknown
    print(model.stages_)

    found = model.predict(digits.X_test) == 1
    print(f"{found.sum()} of {len(found)} new images are called even")

    scores = model.decision_function(digits.X_test)
    for name, value in oracle_metrics(np.isin(digits.y_test, even), scores).items():
        print(f"{name:<18} {value:.3f}")

    picture = latent_map(model.encoder_.transform(pu.X), roles_of(model, pu.y))
    path = save(picture, out / "quickstart.png")
    print(path)
    return path


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the picture")
    main(parser.parse_args().out)
