"""Training that can be cut off: everything a later run needs to go on as if it had not.

A checkpoint is one safetensors file: weights, the optimiser's memory, averages, random
states and the history as text beside them, with a sum of it all. It is written whole or
not at all, and the one before is kept: a damaged one falls back to it. One that belongs
to another training is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
import warnings
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from denspu._files import new_file
from denspu.exceptions import DensPUError, DensPUWarning
from denspu.training.hooks import TrainingConfig

FILE, BEFORE = "training.safetensors", "training.before.safetensors"

State = tuple[dict[str, Any], dict[str, Tensor]]


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
        self.before = Path(folder) / BEFORE
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
        plain = {k: v.detach().cpu().contiguous().clone() for k, v in tensors.items()}
        about = {"denspu": json.dumps(facts)}
        about["sha256"] = _sum(about["denspu"], plain)
        with new_file(self.path) as work:
            save_file(plain, work, metadata=about)
            if self.path.exists():
                os.replace(self.path, self.before)

    def load(
        self,
        module: nn.Module,
        optimizers: list[torch.optim.Optimizer],
        average: list[Tensor],
        generators: dict[str, torch.Generator],
        config: TrainingConfig,
    ) -> tuple[int, list[dict[str, float]]]:
        """Restore a state; return the epochs done and their history."""
        found = self._newest()
        if found is None:
            return 0, []
        facts, tensors = found
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
        found = self._newest()
        return None if found is None else int(found[0]["config"]["epochs"])

    def _newest(self) -> State | None:
        """Return the newest state that can be read, if there is one."""
        for path in (self.path, self.before):
            if not path.is_file():
                continue
            try:
                return _read(path)
            except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
                older = self.before if path == self.path else None
                begin = "Training begins anew"
                if older is not None and older.is_file():
                    begin = f"The one before is taken, {older.name}"
                warnings.warn(
                    f"The checkpoint {path} cannot be read ({error}). {begin}.",
                    DensPUWarning,
                    stacklevel=3,
                )
        return None

    def discard(self) -> None:
        """Delete the files: the training has ended."""
        for path in (self.path, self.before):
            path.unlink(missing_ok=True)


def _read(path: Path) -> State:
    """Return facts and tensors of a checkpoint, or raise if it is damaged."""
    with safe_open(path, framework="pt") as file:
        about = file.metadata()
        tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    if about.get("sha256", "") not in ("", _sum(about["denspu"], tensors)):
        raise ValueError("its sum is another than when it was written")
    return json.loads(about["denspu"]), tensors


def _sum(facts: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(facts.encode())
    for name in sorted(tensors):
        digest.update(name.encode())
        digest.update(tensors[name].reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


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
