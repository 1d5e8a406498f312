"""Weights that do best on rows kept out of training."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from denspu.training.config import Plateau
from denspu.training.hooks import Hook, TrainState

COLUMN = "held_out"
"""Name of the measure beside the loss in the history."""


class KeepBest(Hook):
    """Measure a network after each epoch, and hand back the weights of the best.

    ``measure`` looks at rows held out, less being better; no true label of U is known
    to it.
    """

    def __init__(self, measure: Callable[[nn.Module], float]) -> None:
        self.measure = measure
        self.best = float("inf")
        self.kept: dict[str, Tensor] = {}

    @staticmethod
    def patience(epochs: int | None) -> Plateau | None:
        """Return the rule that ends training after epochs without a better one."""
        return None if epochs is None else Plateau(epochs, 0.0, COLUMN)

    def on_epoch_end(self, state: TrainState) -> None:
        """Write the measure beside the loss, and remember the weights if it is best."""
        value = self.measure(state.module)
        state.history.rows[-1][COLUMN] = value
        if not self.kept or value < self.best or self.best != self.best:  # NaN
            self.best = value
            weights = state.module.state_dict().items()
            self.kept = {name: tensor.detach().clone() for name, tensor in weights}

    def on_train_end(self, state: TrainState) -> None:
        """Put the best weights back."""
        state.module.load_state_dict(self.kept)
