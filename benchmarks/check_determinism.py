"""Fit the paper's networks twice with one seed on this machine and compare.

python benchmarks/check_determinism.py --device cuda
"""

from __future__ import annotations

import argparse
import time

import numpy as np

from denspu import DensPU, make_pu
from denspu.classifiers import VGG16Classifier
from denspu.detectors import IsolationForest
from denspu.encoders import CAEEncoder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="auto")
    args = parser.parse_args()
    rng = np.random.default_rng(0)
    X = rng.integers(0, 256, (400, 32, 32, 3), dtype=np.uint8)
    y = np.arange(len(X)) % 2
    pu = make_pu(X, y, n_labeled=100, random_state=0)
    answers = []
    for _ in range(2):
        start = time.perf_counter()
        model = DensPU(
            preset="paper",
            encoder=CAEEncoder(epochs=3),
            detector=IsolationForest(n_estimators=50),
            classifier=VGG16Classifier(epochs=3, lr=1e-2, momentum=0.9),
            device=args.device,
            random_state=0,
        ).fit(pu.X, pu.y)
        answers.append(model.decision_function(X))
        print(f"fit {time.perf_counter() - start:.1f} s on {model.device_}")
    same = np.array_equal(*answers)
    print("identical" if same else f"differ by {np.abs(np.subtract(*answers)).max()}")
    raise SystemExit(0 if same else 1)


if __name__ == "__main__":
    main()
