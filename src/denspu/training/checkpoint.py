"""Training that can be cut off: everything a later run needs to go on as if it had not.

A checkpoint is one safetensors file: weights, the optimiser's memory, averages, random
states and the history as text beside them. It is written whole or not at all, and one
that belongs to another training is refused.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from denspu.exceptions import DensPUError
from denspu.training.config import TrainingConfig

FILE = "training.safetensors"


class Checkpoint:
    """Keep the state of a training in a folder.

    Parameters
    ----------
    folder : str or Path
    every : int
        Epochs between two writings.
    identity : str
        What else must be the same to go on: the data, the seed.
    """

    def __init__(self, folder: str | Path, every: int = 10, identity: str = "") -> None:
        self.path = Path(folder) / FILE
        self.every = every
        self.identity = identity

    def save(
        self,
        epoch: int,
        module: nn.Module,
        optimizers: list[torch.optim.Optimizer],
        average: list[Tensor],
        generators: dict[str, torch.Generator],
        rows: list[dict[str, float]],
        config: TrainingConfig,
    ) -> None:
        """Write the state after an epoch."""
        tensors = {f"module/{k}": v for k, v in module.state_dict().items()}
        for i, optimizer in enumerate(optimizers):
            tensors |= _memory(optimizer, f"optimizer/{i}")
        tensors |= {f"average/{i}": value for i, value in enumerate(average)}
        tensors |= {f"random/{k}": g.get_state() for k, g in generators.items()}
        facts = {
            "epoch": epoch,
            "rows": rows,
            "config": asdict(config),
            "identity": self.identity,
        }
        self.path.parent.mkdir(parents=True, exist_ok=True)
        partial = self.path.with_suffix(f".{os.getpid()}.part")
        plain = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
        save_file(plain, partial, metadata={"denspu": json.dumps(facts)})
        os.replace(partial, self.path)

    def load(
        self,
        module: nn.Module,
        optimizers: list[torch.optim.Optimizer],
        average: list[Tensor],
        generators: dict[str, torch.Generator],
        config: TrainingConfig,
    ) -> tuple[int, list[dict[str, float]]]:
        """Restore a state; return the epochs done and their history."""
        if not self.path.is_file():
            return 0, []
        with safe_open(self.path, framework="pt") as file:
            facts: dict[str, Any] = json.loads(file.metadata()["denspu"])
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
        prefix = "module/"
        state = {
            key.removeprefix(prefix): value
            for key, value in tensors.items()
            if key.startswith(prefix)
        }
        same = (
            _shapes(state) == _shapes(module.state_dict())
            and facts["config"] == json.loads(json.dumps(asdict(config)))
            and facts["identity"] == self.identity
        )
        if not same:
            raise DensPUError(
                f"{self.path} belongs to another training (other network, settings, "
                "data or random_state). Choose another folder or delete the file."
            )
        module.load_state_dict(state)
        for i, optimizer in enumerate(optimizers):
            _remember(optimizer, tensors, f"optimizer/{i}")
        with torch.no_grad():
            for i, value in enumerate(average):
                value.copy_(tensors[f"average/{i}"])
        for name, generator in generators.items():
            generator.set_state(tensors[f"random/{name}"])
        return int(facts["epoch"]), list(facts["rows"])

    def planned_epochs(self) -> int | None:
        """Return how many epochs the training kept here was to take, if there is one.

        Epochs that came from a deadline are decided once, not again when going on.
        """
        if not self.path.is_file():
            return None
        with safe_open(self.path, framework="pt") as file:
            return int(json.loads(file.metadata()["denspu"])["config"]["epochs"])

    def discard(self) -> None:
        """Delete the file: the training has ended."""
        self.path.unlink(missing_ok=True)


def _shapes(state: Mapping[str, Tensor]) -> dict[str, torch.Size]:
    return {name: value.shape for name, value in state.items()}


def _memory(optimizer: torch.optim.Optimizer, prefix: str) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {
        f"{prefix}/{index}/{name}": torch.as_tensor(value)
        for index, values in state.items()
        for name, value in values.items()
        if value is not None
    }


def _remember(
    optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor], prefix: str
) -> None:
    whole = optimizer.state_dict()
    weights = [p for group in optimizer.param_groups for p in group["params"]]
    memory: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        if key.startswith(prefix + "/"):
            index, name = key.removeprefix(prefix + "/").split("/")
            like = weights[int(index)]
            if value.shape == like.shape:  # fused updates want the weights' layout
                value = torch.empty_like(like, device=value.device).copy_(value)
            memory.setdefault(int(index), {})[name] = value
    optimizer.load_state_dict({**whole, "state": memory})
