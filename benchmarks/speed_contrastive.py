"""How fast contrastive training runs, against the chip's own matrix rate.

    python benchmarks/speed_contrastive.py --out benchmarks/records/speed.jsonl

ResNet-18 at 32×32, 1,024 samples (2,048 views) a step. Operations are counted layer by
layer (a multiplication and an addition are two), three passes a view: forward, and two
on the way back. The rate of a large bf16 matrix product is measured in the same run.
Each variant is trained by the library's own loop on random pictures.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from denspu._random import Randomness
from denspu.augment import PRESETS, ImageAugment
from denspu.benchmark import Record, device_name, read_records, write_record
from denspu.encoders.contrastive import ContrastiveLoss, ContrastiveModel
from denspu.networks.pixels import unpack
from denspu.networks.resnet import resnet18
from denspu.training import TensorBatches, TrainingConfig, train

RECORDS = Path(__file__).parent / "records" / "speed.jsonl"
VARIANTS = {
    "eager": {"compile": False, "capture": False},
    "captured": {"compile": False, "capture": True},
    "compiled": {"compile": True, "capture": False},
    "compiled and captured": {"compile": True, "capture": True},
    "compiled and captured, free choice of kernels": {
        "compile": True,
        "capture": True,
        "deterministic": False,
    },
}


def operations_a_view(size: int = 32) -> float:
    """Return the operations of one forward pass of convolutions and projections."""
    model = ContrastiveModel(resnet18(3, size), 128).eval()
    total = 0.0

    def count(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        nonlocal total
        if isinstance(layer, nn.Conv2d):
            kernel = layer.weight[0].numel()
            total += 2 * kernel * output[0].numel()
        elif isinstance(layer, nn.Linear):
            total += 2 * layer.weight.numel()

    for layer in model.modules():
        layer.register_forward_hook(count)
    with torch.inference_mode():
        model(torch.zeros(1, 3, size, size))
    return total


def matrix_rate(device: torch.device, size: int = 8192) -> float:
    """Return the operations a second of a bf16 product of random matrices."""
    a, b = (torch.randn(size, size, device=device).bfloat16() for _ in range(2))
    for _ in range(3):
        a @ b
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(20):
        a @ b
    torch.cuda.synchronize()
    return 20 * 2 * size**3 / (time.perf_counter() - start)


def views_a_second(device: torch.device, steps: int, **options: bool) -> float:
    """Return the rate of the last of three epochs."""
    randomness = Randomness(0)
    with randomness.torch_scope("speed", device):
        n = 1024 * steps
        pixels = torch.randint(256, (n, 3, 32, 32), dtype=torch.uint8, device=device)
        model = ContrastiveModel(resnet18(3, 32), 128)
        views = ImageAugment(PRESETS["natural"])
        compiled = options.get("compile", False)
        loss = ContrastiveLoss(unpack, views, 0.2, 0.5, compile=compiled)
        labelled = torch.arange(n, device=device) % 50 == 0
        config = TrainingConfig(
            epochs=3, optimizer="sgd", lr=0.1, momentum=0.9, nesterov=True
        )
        history = train(
            model,
            TensorBatches(pixels, labelled, batch_size=1024),
            loss,
            replace(config, **options),
            device=device,
            generator=randomness.generator("batches", device),
        )
    return 2 * n / history.last["seconds"]


def run(args: argparse.Namespace) -> None:
    device = torch.device("cuda")
    rate = matrix_rate(device)
    operations = 3 * operations_a_view()
    for name, options in VARIANTS.items():
        views = views_a_second(device, args.steps, **options)
        torch._dynamo.reset()
        record = Record(
            dataset="random pictures, 32×32",
            method="contrastive training, resnet18",
            variant=name,
            n_labeled=0,
            seed=0,
            metrics={},
            estimates={},
            seconds={"total": 1024 * 2 * args.steps / views},
            device=device_name("cuda"),
            extra={
                "views_a_second": views,
                "operations_a_view": operations,
                "matrix_operations_a_second": rate,
                "share_of_matrix_rate": views * operations / rate,
            },
        )
        write_record(record, args.out)
        print(name, f"{views:,.0f} views/s", f"{views * operations / rate:.1%}")


def table(out: Path) -> str:
    """Return the Markdown table of the records."""
    lines = [
        "| training step | views a second | share of the bf16 matrix rate |",
        "|---|---|---|",
    ]
    for record in read_records(out):
        extra = record.extra
        lines.append(
            f"| {record.variant} | {extra['views_a_second']:,.0f} "
            f"| {extra['share_of_matrix_rate']:.0%} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=40, help="steps an epoch")
    parser.add_argument("--out", type=Path, default=RECORDS)
    parser.add_argument("--table", action="store_true", help="only print the table")
    args = parser.parse_args()
    if not args.table:
        run(args)
    print(table(args.out))


if __name__ == "__main__":
    main()
