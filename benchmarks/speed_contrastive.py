"""How fast contrastive training runs, against the chip's own matrix rate.

    python benchmarks/speed_contrastive.py --out benchmarks/records/speed.jsonl

ResNet-18 at 32×32, 1,024 samples (2,048 views) a step. Operations are counted layer by
layer (a multiplication and an addition are two), three passes a view: forward, and two
on the way back. The rate of a large bf16 matrix product is measured in the same run.
Each variant is trained by the library's own loop on random pictures; its first epoch,
in which torch compiles, is recorded apart. ``profile`` in the record is the share of
the GPU's time by kind of kernel in a second training.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile

from _shared import finish, grid, options
from denspu._random import Randomness
from denspu.augment import PRESETS, ImageAugment
from denspu.benchmark import Record, device_name, read_records, write_record
from denspu.encoders.contrastive import ContrastiveLoss
from denspu.networks.backbones import ContrastiveModel, resnet18, unpack
from denspu.training import History, TensorBatches, TrainingConfig, train

RECORDS = Path(__file__).parent / "records" / "speed.jsonl"


@dataclass(frozen=True)
class Variant:
    """What is done to make a step fast."""

    capture: bool = True
    compile: bool = True
    deterministic: bool = True


VARIANTS = {
    "eager": Variant(capture=False, compile=False),
    "captured": Variant(compile=False),
    "compiled": Variant(capture=False),
    "captured and compiled (default)": Variant(),
    "captured and compiled, free choice of kernels": Variant(deterministic=False),
}
PROFILED_STEPS = 10
"""Steps of an epoch under the profiler, which takes its time over every kernel."""

KINDS = {
    "convolutions and projections": (
        "conv",
        "cudnn",
        "xmma",
        "cutlass",
        "gemm",
        "nvjet",
    ),
    "fused point-wise": ("triton",),
    "resampling": ("grid_sampler", "affine"),
    "normalisation": ("batch_norm", "bn_"),
    "optimiser": ("multi_tensor", "fused_sgd"),
    "random numbers": ("distribution", "philox"),
    "copies": ("memcpy", "memset", "copy"),
}
"""Words in the names of kernels, the first that matches counts."""


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


def training(
    device: torch.device, steps: int, variant: Variant
) -> Callable[[], History]:
    """Return a function that trains three epochs of a fresh network."""
    randomness = Randomness(0)
    with randomness.torch_scope("speed", device):
        n = 1024 * steps
        pixels = torch.randint(256, (n, 3, 32, 32), dtype=torch.uint8, device=device)
        labelled = torch.arange(n, device=device) % 50 == 0
        model = ContrastiveModel(resnet18(3, 32), 128)
    views = ImageAugment(PRESETS["natural"])
    loss = ContrastiveLoss(unpack, views, 0.2, 0.5)
    config = TrainingConfig(
        epochs=3,
        optimizer="sgd",
        lr=0.1,
        momentum=0.9,
        nesterov=True,
        compile=variant.compile,
        capture=variant.capture,
        deterministic=variant.deterministic,
    )

    def run() -> History:
        with randomness.torch_scope("training", device):
            return train(
                model,
                TensorBatches(pixels, labelled, batch_size=1024),
                loss,
                config,
                device=device,
                generator=randomness.generator("batches", device),
            )

    return run


def shares_of_time(run: Callable[[], History]) -> dict[str, float]:
    """Return the share of the GPU's time by kind of kernel, and of idle time."""
    seconds: Counter[str] = Counter()
    with profile(activities=[ProfilerActivity.CUDA]) as profiler:
        history = run()
    for event in profiler.key_averages():
        name = event.key.lower()
        kind = next(
            (k for k, words in KINDS.items() if any(w in name for w in words)), "other"
        )
        seconds[kind] += event.self_device_time_total / 1e6
    total = len(history.rows) * history.last["seconds"]  # the first one compiles
    found = {kind: value / total for kind, value in seconds.most_common()}
    return {**found, "idle": 1 - sum(found.values())}


def run(args: argparse.Namespace) -> None:
    device = torch.device("cuda")
    rate = matrix_rate(device)
    operations = 3 * operations_a_view()
    done = {record.variant for record in read_records(args.out)}
    for name, variant in VARIANTS.items():
        if name in done:
            continue
        history = training(device, args.steps, variant)()
        views = 2 * 1024 * args.steps / history.last["seconds"]
        shares = shares_of_time(training(device, PROFILED_STEPS, variant))
        torch._dynamo.reset()
        record = Record(
            dataset="random pictures, 32×32",
            method="contrastive training, resnet18",
            variant=name,
            n_labeled=0,
            seed=0,
            metrics={},
            estimates={},
            seconds={
                "total": history.last["seconds"],
                "first_epoch": history.rows[0]["seconds"],
            },
            device=device_name("cuda"),
            extra={
                "views_a_second": views,
                "operations_a_view": operations,
                "matrix_operations_a_second": rate,
                "share_of_matrix_rate": views * operations / rate,
                "profile": shares,
            },
        )
        write_record(record, args.out)
        print(name, f"{views:,.0f} views/s", f"{views * operations / rate:.1%}")
        print({kind: round(share, 3) for kind, share in shares.items()}, flush=True)


def table(out: Path) -> str:
    """Return the Markdown table of the records."""
    lines = []
    for record in read_records(out):
        extra = record.extra
        largest = sorted(extra["profile"].items(), key=lambda item: -item[1])[:4]
        lines.append(
            [
                record.variant,
                f"{extra['views_a_second']:,.0f}",
                f"{extra['share_of_matrix_rate']:.0%}",
                f"{record.seconds['first_epoch']:.1f}",
                ", ".join(f"{kind} {share:.0%}" for kind, share in largest),
            ]
        )
    header = "training step|views a second|share of the bf16 matrix rate|"
    return grid(
        [*header.split("|")[:-1], "first epoch, s", "where the time goes"], lines
    )


if __name__ == "__main__":
    parser = options(__doc__, RECORDS)
    parser.add_argument("--steps", type=int, default=40, help="steps an epoch")
    finish(parser, run, table)
