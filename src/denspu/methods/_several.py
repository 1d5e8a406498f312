"""What methods of several networks share: averages that follow, looks in between."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import torch
from torch import Tensor, nn

from denspu._typing import IntArray
from denspu.methods._task import Task
from denspu.training.inference import LOOK, looking


def frozen(module: nn.Module) -> nn.Module:
    """Return the network itself; no step moves it any more."""
    return module.requires_grad_(False)


def follow(average: nn.Module, source: nn.Module, decay: float) -> None:
    """Move the weights and statistics of an average towards those of its source."""
    with torch.no_grad():
        held, new = _numbers(average), _numbers(source)
        torch._foreach_lerp_(held, new, 1 - decay)


def _numbers(module: nn.Module) -> list[Tensor]:
    tensors = [*module.parameters(), *module.buffers()]
    return [tensor for tensor in tensors if tensor.is_floating_point()]


def look(
    module: nn.Module, task: Task, rows: IntArray, answer: Callable[[Tensor], Tensor]
) -> Tensor:
    """Return answers for some rows in the middle of a training."""
    with looking(module):
        found = [
            answer(task.as_float(task.rows[part].to(task.device))).float()
            for part in task.index(rows).split(LOOK)
        ]
    return torch.cat(found)


class MeanLogit(nn.Module):
    """The mean answer of several networks."""

    def __init__(self, networks: nn.ModuleList) -> None:
        super().__init__()
        self.networks = networks

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a row."""
        answers = [cast(Tensor, network(x)) for network in self.networks]
        return torch.stack(answers).mean(0)
