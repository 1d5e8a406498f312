"""How fast a folder of image files is read, and in how much memory.

    python benchmarks/read_images.py --n 60000
    python benchmarks/read_images.py --n 60000 --predict

Fashion-MNIST (digits where it is absent) is written out as PNG files, one in a hundred
corrupt, some copied from the positives into the unlabelled folder; then both folders
are read, joined and searched for copies. With ``--predict`` all files go through a
small saved network instead, chunk by chunk, as by ``denspu predict``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
from PIL import Image

from _shared import peak_memory
from denspu.benchmark import Record, device_name, write_record
from denspu.data import (
    find_duplicates,
    find_shortcuts,
    join,
    load_dataset,
    read_items,
    read_pair,
)
from denspu.exceptions import DataNotFoundError
from denspu.methods.nnpu import NNPU
from denspu.persistence import save
from denspu.runs import Reading, predict_files

RECORDS = Path(__file__).parent / "records" / "read_images.jsonl"
IN_A_FOLDER = 1000
POSITIVES = 1000
COPIES = 17


def pictures(n: int) -> tuple[str, np.ndarray]:
    """Return ``n`` grey pictures, repeated from the start where there are fewer."""
    for name in ("fashion-mnist", "digits"):
        try:
            images = load_dataset(name).X_train
        except DataNotFoundError:
            continue
        grey = np.asarray(images).reshape(len(images), *images.shape[1:3])
        if grey.dtype != np.uint8:
            grey = (255 * (grey / grey.max())).astype(np.uint8)
        return name, grey[np.arange(n) % len(grey)]
    raise DataNotFoundError("neither Fashion-MNIST nor digits is here")


def write(top: Path, images: np.ndarray) -> None:
    """Write P and U; one file in a hundred is cut short."""
    n_positive = min(POSITIVES, len(images) // 10)
    for i, pixels in enumerate(images):
        side = "confirmed" if i < n_positive else "archive"
        folder = top / side / f"{i // IN_A_FOLDER:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{i:06d}.png"
        Image.fromarray(pixels).save(path)
        if i % 100 == 99:
            path.write_bytes(path.read_bytes()[:-40])
        elif i < COPIES:
            copy = top / "archive" / "copies"
            copy.mkdir(parents=True, exist_ok=True)
            (copy / path.name).write_bytes(path.read_bytes())


def save_model(top: Path) -> Path:
    """Keep a small network that has seen the positives and one folder of the others."""
    P = read_items(top / "confirmed")
    U = read_items(sorted((top / "archive").rglob("*.png"))[:IN_A_FOLDER], like=P)
    X, y, _ = join(P, U)
    model = NNPU(prior=0.3, network="mlp", epochs=1, device="cpu", random_state=0)
    model.fit(X, y)
    return save(model, top / "model", extra={"input": {"plan": dict(P.plan)}})


def measure_predict(top: Path, chosen: argparse.Namespace) -> tuple[dict, dict]:
    """Return seconds and facts of all files through the model."""
    model = save_model(top)
    memory: dict[str, float] = {}
    with peak_memory(memory):
        found = predict_files(
            model,
            top / "archive",
            top / "answers.csv",
            chunk=chosen.chunk,
            reading=Reading(workers=chosen.workers),
        )
    print(found.summary())
    extra = {
        "images": found.n_items,
        "skipped": found.n_skipped,
        "chunk": chosen.chunk,
        "images_per_second": round(found.per_second, 1),
        "workers": chosen.workers or "all",
        **memory,
    }
    return found.seconds, extra


def measure_read(top: Path, chosen: argparse.Namespace) -> tuple[dict, dict]:
    """Return seconds and facts of reading all files at once."""
    memory: dict[str, float] = {}
    with peak_memory(memory):
        start = time.perf_counter()
        P, U = read_pair(
            top / "confirmed",
            top / "archive",
            workers=chosen.workers,
            image_size=chosen.image_size,
        )
        read = time.perf_counter()
        copies = find_duplicates(P, U)
        warnings = find_shortcuts(P, U)
        found = time.perf_counter()
        X, _, _ = join(P, U)
        end = time.perf_counter()
    seconds = {
        "read": read - start,
        "duplicates": found - read,
        "join": end - found,
        "total": end - start,
    }
    extra = {
        "files": chosen.n + COPIES,
        "images": len(X),
        "shape": list(X.shape[1:]),
        "skipped": len(P.skipped) + len(U.skipped),
        "exact_copies": len(copies.exact),
        "near_copies": len(copies.near),
        "shortcuts": warnings,
        "images_per_second": round(len(X) / seconds["read"], 1),
        "workers": chosen.workers or "all",
        **memory,
    }
    print(P.summary(), U.summary(), sep="\n")
    return seconds, extra


def main() -> None:
    """Write, read or predict, report."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--n", type=int, default=6000)
    parser.add_argument("--workers", type=int, default=None)
    parser.add_argument("--image-size", type=int, default=None)
    parser.add_argument("--predict", action="store_true")
    parser.add_argument("--chunk", type=int, default=1024)
    parser.add_argument("--records", type=Path, default=RECORDS)
    chosen = parser.parse_args()
    dataset, images = pictures(chosen.n)
    n_positive = min(POSITIVES, len(images) // 10)
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder), images)
        del images
        measure = measure_predict if chosen.predict else measure_read
        seconds, extra = measure(Path(folder), chosen)
    print(seconds, extra, sep="\n")
    write_record(
        Record(
            dataset=f"{dataset}-png",
            method="predict_images" if chosen.predict else "read_images",
            variant=f"{chosen.n} files",
            n_labeled=n_positive,
            seed=0,
            metrics={},
            estimates={},
            seconds=seconds,
            device=device_name("cpu"),
            extra=extra,
        ),
        chosen.records,
    )


if __name__ == "__main__":
    main()
