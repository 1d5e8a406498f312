"""uPU: the unbiased PU risk.

Du Plessis, Niu and Sugiyama, "Analysis of Learning from Positive and Unlabeled Data",
NeurIPS 2014, and "Convex Formulation for Learning from Positive and Unlabeled Data",
ICML 2015.
"""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from torch import Tensor

from denspu._parameters import Number, OneOf
from denspu._typing import RandomState
from denspu.base import Rules
from denspu.losses import risk_parts, unbiased
from denspu.methods._deep import Auto, DeepPU, Task
from denspu.methods._prior import Scenario
from denspu.training import Hook, TrainState


class StopBelow(Hook):
    """End training once the mean risk of an epoch is below a limit."""

    def __init__(self, limit: float) -> None:
        self.limit = limit

    def on_epoch_end(self, state: TrainState) -> None:
        """Compare the epoch that has ended."""
        risk = state.history.last["loss"]
        if risk < self.limit:
            state.stop = f"risk {risk:.3g} below {self.limit:g}"


class UPU(DeepPU):
    """Descend on π E_P[l(f)] + E_U[l(-f)] - π E_P[l(-f)], with the sigmoid loss l.

    The estimate is unbiased, and a flexible network drives it far below zero by
    learning P by heart: training ends where that shows. nnPU mends it.

    Parameters
    ----------
    stop_below : float or None, default=0.0
        Training ends after an epoch whose mean risk is below this: a true risk cannot
        be negative. ``None`` takes all epochs.
    lr : float or "auto", default=1e-4
        Low, so that the network learns what is common to P before it learns P by heart.
    prior, scenario, encoder, network, epochs, batch_size, weight_decay
        As in :class:`denspu.methods._deep.DeepPU`.
    max_seconds, random_state, device, verbose
        As everywhere.
    """

    _rules: ClassVar[Rules] = {
        **DeepPU._rules,
        "stop_below": (OneOf(None), Number()),
    }

    def __init__(
        self,
        *,
        stop_below: float | None = 0.0,
        prior: float | Literal["estimate"] = "estimate",
        scenario: Scenario = "one-sample",
        encoder: Any = None,
        network: Any = "auto",
        epochs: int | Auto = "auto",
        batch_size: int | Auto = "auto",
        lr: float | Auto = 1e-4,
        weight_decay: float = 5e-3,
        max_seconds: float | None = None,
        random_state: RandomState = None,
        device: str = "auto",
        verbose: int = 0,
    ) -> None:
        super().__init__(
            prior=prior,
            scenario=scenario,
            encoder=encoder,
            network=network,
            epochs=epochs,
            batch_size=batch_size,
            lr=lr,
            weight_decay=weight_decay,
            max_seconds=max_seconds,
            random_state=random_state,
            device=device,
            verbose=verbose,
        )
        self.stop_below = stop_below

    def _learn(self, task: Task) -> None:
        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            return unbiased(*risk_parts(positive, pool, task.prior))

        hooks = [] if self.stop_below is None else [StopBelow(self.stop_below)]
        self.module_ = task.network()
        self.history_ = task.train(self.module_, task.loss(risk), "upu", hooks=hooks)
