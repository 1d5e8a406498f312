"""Weight initialisation shared by the paper's networks."""

from __future__ import annotations

from torch import nn


def keras_defaults(module: nn.Module) -> None:
    """Give layers Keras's start: Glorot uniform weights and zero biases.

    The paper was implemented in Keras and names no other initialisation.
    """
    for layer in module.modules():
        if isinstance(layer, nn.Conv2d | nn.ConvTranspose2d | nn.Linear):
            nn.init.xavier_uniform_(layer.weight)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
