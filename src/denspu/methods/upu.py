"""uPU: the unbiased PU risk.

Du Plessis, Niu and Sugiyama, "Analysis of Learning from Positive and Unlabeled Data",
NeurIPS 2014, and "Convex Formulation for Learning from Positive and Unlabeled Data",
ICML 2015.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, Literal

from torch import Tensor, nn

from denspu._parameters import InstanceOf, Number, OneOf, Whole
from denspu._typing import RandomState
from denspu.base import Rules, forget
from denspu.losses import risk_parts, unbiased
from denspu.methods._deep import Auto, DeepPU
from denspu.methods._kernel import fit_kernel
from denspu.methods._prior import Scenario
from denspu.methods._task import Task
from denspu.networks.backbones import BACKBONES
from denspu.training import Hook, TrainState

SMALL_IMAGE = 16
"""Images up to this many pixels a side are taken as vectors by ``network="auto"``."""


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
    """Lower π E_P[l(f)] + E_U[l(-f)] - π E_P[l(-f)], which has no bias.

    Tables and embeddings take the convex form: the squared loss on Gaussian bumps, in
    closed form. Images take a network and the sigmoid loss. A flexible network drives
    the estimate far below zero by learning P by heart: training ends where that shows.
    nnPU mends it.

    Parameters
    ----------
    network : {"auto", "kernel", "mlp", "cnn", "resnet18", "vgg16", "linear"} or module
        ``"kernel"``: Gaussian bumps. ``"auto"``: these for tables, embeddings and
        images up to 16 pixels a side, else the papers' network.
    n_centres : int, default=500
        Bumps, around rows drawn at random; their width and the ridge are chosen by the
        PU 0-1 risk on held-out rows.
    stop_below : float or None, default=0.0
        Training of a network ends after an epoch whose mean risk is below this: a true
        risk cannot be negative. ``None`` takes all epochs.
    lr : float or "auto", default=1e-4
        Low, so that the network learns what is common to P before it learns P by heart.
    prior, scenario, encoder, epochs, batch_size, weight_decay
        As in :class:`denspu.methods._deep.DeepPU`.
    max_seconds, random_state, device, verbose
        As everywhere.

    Attributes
    ----------
    choice_ : Choice
        The width and the ridge of the kernel, and their risk on held-out rows.
    """

    uses_known_negatives: ClassVar[bool] = False
    _rules: ClassVar[Rules] = {
        **DeepPU._rules,
        "network": (OneOf("auto", "kernel", *BACKBONES), InstanceOf(nn.Module)),
        "n_centres": (Whole(1),),
        "stop_below": (OneOf(None), Number()),
    }

    def __init__(
        self,
        *,
        n_centres: int = 500,
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
        self.n_centres = n_centres
        self.stop_below = stop_below

    def _learn(self, task: Task) -> None:
        for name in ("choice_", "history_"):
            forget(self, name)
        if self._wants_kernel(task):
            kernel, self.choice_ = fit_kernel(task, self.n_centres)
            self.module_: nn.Module = kernel
            return

        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            return unbiased(*risk_parts(positive, pool, task.prior))

        hooks = [] if self.stop_below is None else [StopBelow(self.stop_below)]
        self.module_ = task.network()
        self.history_ = task.train(self.module_, task.loss(risk), "upu", hooks=hooks)

    def _wants_kernel(self, task: Task) -> bool:
        if self.network != "auto":
            return isinstance(self.network, str) and self.network == "kernel"
        shape = task.rows.shape[1:]
        return len(shape) == 1 or max(shape[1:]) <= SMALL_IMAGE

    def _builder(self, shape: tuple[int, ...]) -> Callable[[], nn.Module]:
        if isinstance(self.network, str) and self.network == "kernel":
            return nn.Identity  # not asked for: the kernel is no network
        return super()._builder(shape)
