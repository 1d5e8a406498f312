"""Applying a network so that a row's answer never depends on its neighbours.

Every chunk has the same number of rows (the last one is padded), so the same kernels
run whatever the caller's batch, and results are equal bit for bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from denspu._typing import FloatArray

LOOK = 1024
"""Rows looked at in one go between two epochs."""


@contextmanager
def looking(module: nn.Module) -> Iterator[None]:
    """Look at a network in the middle of its training, in evaluation mode.

    It stays on its device: a captured step goes on to find its weights where they were.
    """
    was_training = module.training
    module.eval()
    with torch.no_grad():
        yield
    module.train(was_training)


def in_fixed_batches(
    module: nn.Module,
    X: Any,
    to_tensor: Callable[[Any], Tensor],
    *,
    device: torch.device,
    batch_size: int = 256,
) -> FloatArray:
    """Apply ``module`` in evaluation mode to slices of ``X`` made into its input.

    It is left on the CPU afterwards, as fitted state is kept there.
    """
    module.eval().to(device)
    outputs = []
    with torch.inference_mode():
        for start in range(0, len(X), batch_size):
            inputs = to_tensor(X[start : start + batch_size])
            rows = len(inputs)
            if rows < batch_size:
                padding = inputs.new_zeros((batch_size - rows, *inputs.shape[1:]))
                inputs = torch.cat([inputs, padding])
            outputs.append(module(inputs.to(device))[:rows].float().cpu().numpy())
    module.cpu()
    return np.concatenate(outputs)
