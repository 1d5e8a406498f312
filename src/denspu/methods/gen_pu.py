"""GenPU: generators of positives and negatives, and a classifier on what they make.

Hou, Chaib-draa, Li and Zhao, "Generative Adversarial Positive-Unlabeled Learning",
IJCAI 2018.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from denspu._machine import Deadline
from denspu._parameters import About, Number, Whole, setting
from denspu.losses import (
    discriminator_loss,
    negative_generator_loss,
    positive_generator_loss,
)
from denspu.methods._deep import Auto, DeepPriorPU, Task
from denspu.methods._evidence import POSITIVE
from denspu.training import Hook, Step, TensorBatches, TrainState
from denspu.training.loop import Batch, Loss


class GenPU(DeepPriorPU):
    """Generators of positives and negatives; a network on what they make.

    Two generators make up U; then made positives and negatives are told apart.

    D_u tells U from the mixture of both generators, D_p tells P from made positives,
    D_n tells P from made negatives. Generators fool D_u and D_p, and the generator of
    negatives helps D_n: what it makes is not P. They work on flattened rows, or on the
    embedding of ``encoder``.

    Attributes
    ----------
    generators_ : nn.Module
        ``generators_.positive`` and ``generators_.negative``: noise in, rows out.
    gan_history_ : History
    """

    about = About(
        key="gen_pu", paper="Hou et al. 2018, GenPU", uses_known_negatives=False
    )

    lambda_p: float = setting(1.0, Number(0), doc="How much D_p counts.")
    lambda_u: float = setting(1.0, Number(0), doc="The same of D_u.")
    lambda_n: float = setting(1.0, Number(0), doc="The same of D_n.")
    gan_epochs: int = setting(200, Whole(1), doc="Passes over U of the game.")
    gan_lr: float = setting(1e-3, POSITIVE, doc="Learning rate of the game.")
    n_noise: int = setting(32, Whole(1), doc="Numbers that a row is made of.")
    width: int = setting(128, Whole(1), doc="Units of the hidden layers of the game.")
    smear: float = setting(
        0.1, Number(0), doc="Gaussian noise on rows, for columns of variance 1."
    )
    n_made: int = setting(5000, Whole(4), doc="Rows made for the classifier.")
    epochs: int | Auto = setting(10)
    batch_size: int | Auto = setting(256)
    lr: float | Auto = setting(5e-4)

    def _learn(self, task: Task) -> None:
        scale = Scale.of(task)
        with task.randomness.torch_scope("players", task.device):
            game = Game(self, scale, task)
        self.gan_history_ = task.train(
            game,
            [
                Step(cast(Loss, Game.tell_apart), lambda _: game.judges.parameters()),
                Step(cast(Loss, Game.fool), lambda _: game.generators.parameters()),
            ],
            "generators",
            hooks=[EndInTime(task.deadline)],
            epochs=self.gan_epochs,
            lr=self.gan_lr,
            weight_decay=0.0,
            betas=(0.5, 0.999),
            schedule="constant",
            ema_decay=min(0.99, 1 - 5 / max(10, self.gan_epochs * len(task.batches()))),
        )
        rows, labels = self._made(task, game.generators.to(task.device), scale)
        self.generators_ = game.generators.cpu()
        self.module_ = task.network("classifier")
        batches = TensorBatches(
            rows, labels, batch_size=task.batch_size, drop_last=True
        )
        self.history_ = task.train(
            self.module_, made_loss, "classifier", batches=batches
        )

    def _made(
        self, task: Task, generators: Generators, scale: Scale
    ) -> tuple[Tensor, Tensor]:
        """Return made rows in the form of the user's, and their labels."""
        n = min(max(round(task.prior * self.n_made), 1), self.n_made - 1)
        labels = (torch.arange(self.n_made, device=task.device) < n).float()
        with task.randomness.torch_scope("made", task.device), torch.no_grad():
            made = [
                scale.back(smeared(generators.make(generator, count), self.smear))
                for generator, count in (
                    (generators.positive, n),
                    (generators.negative, self.n_made - n),
                )
            ]
        return torch.cat(made), labels


@dataclass(eq=False)
class Scale:
    """Flattened rows around 0 with a mean variance of 1, and the way back."""

    mean: Tensor
    spread: float
    shape: tuple[int, ...]

    @classmethod
    def of(cls, task: Task) -> Scale:
        """Learn the scale of all rows."""
        shape, n = tuple(task.rows.shape[1:]), len(task.rows)

        def mean_of(term: Callable[[Tensor], Tensor]) -> Tensor:
            parts = (
                task.as_float(x).flatten(1).double() for x in task.rows.split(4096)
            )
            return torch.stack([term(part).sum(0) for part in parts]).sum(0) / n

        mean = mean_of(lambda part: part)
        square = mean_of(lambda part: (part - mean) ** 2)
        spread = float(square.mean().sqrt().clamp_min(1e-6))
        return cls(mean.float().to(task.device), spread, shape)

    @property
    def size(self) -> int:
        """Return the number of columns."""
        return len(self.mean)

    def flat(self, x: Tensor) -> Tensor:
        """Return scaled vectors."""
        return (x.flatten(1) - self.mean) / self.spread

    def back(self, z: Tensor) -> Tensor:
        """Return rows in their own form; pixels stay between black and white."""
        x = (z * self.spread + self.mean).view(-1, *self.shape)
        return x.clamp(0, 1) if len(self.shape) > 1 else x


class Generators(nn.Module):
    """Noise in, rows out: one network for each class."""

    def __init__(self, n_columns: int, n_noise: int, width: int) -> None:
        super().__init__()
        self.n_noise = n_noise
        self.positive = _generator(n_columns, n_noise, width)
        self.negative = _generator(n_columns, n_noise, width)

    def make(self, generator: nn.Module, n: int) -> Tensor:
        """Return n made rows."""
        device = next(generator.parameters()).device
        noise = torch.randn(n, self.n_noise, device=device)
        return generator(noise).float()


def smeared(rows: Tensor, smear: float) -> Tensor:
    """Return rows with Gaussian noise on them."""
    return rows + smear * torch.randn_like(rows)


def _generator(n_columns: int, n_noise: int, width: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_inputs in (n_noise, width):
        layers += [nn.Linear(n_inputs, width), nn.BatchNorm1d(width), nn.ReLU()]
    return nn.Sequential(*layers, nn.Linear(width, n_columns))


def _judge(n_columns: int, width: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    for n_inputs in (n_columns, width):
        layers += [nn.Linear(n_inputs, width), nn.LeakyReLU(0.2)]
    return nn.Sequential(*layers, nn.Linear(width, 1), nn.Flatten(0))


class Game(nn.Module):
    """All players, one network for the loop, and what each side descends on."""

    def __init__(self, method: GenPU, scale: Scale, task: Task) -> None:
        super().__init__()
        self.method, self.scale = method, scale
        self.prior, self.as_float = task.prior, task.as_float
        self.generators = Generators(scale.size, method.n_noise, method.width)
        self.judges = nn.ModuleDict(
            {name: _judge(scale.size, method.width) for name in ("p", "u", "n")}
        )

    def judged(self, name: str, rows: Tensor) -> Tensor:
        """Return a discriminator's logits; above 0 it takes rows for real."""
        return self.judges[name](rows).float()

    def drawn(self, n: int) -> tuple[Tensor, Tensor]:
        """Return made positives and negatives."""
        made, n = self.generators, max(2, n)  # statistics need two rows
        positive, negative = made.make(made.positive, n), made.make(made.negative, n)
        smear = self.method.smear
        return smeared(positive, smear), smeared(negative, smear)

    def tell_apart(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the loss of the discriminators."""
        real_p, real_u = (
            smeared(self.scale.flat(self.as_float(rows)), self.method.smear)
            for rows in batch[:2]
        )
        with torch.no_grad():
            made_p, made_n = self.drawn(len(real_u))
        of_p = discriminator_loss(self.judged("p", real_p), self.judged("p", made_p))
        of_n = discriminator_loss(self.judged("n", real_p), self.judged("n", made_n))
        real, p, n = (self.judged("u", rows) for rows in (real_u, made_p, made_n))
        of_u = discriminator_loss(real, p, n, self.prior)
        return {"loss": of_p + of_u + of_n, "d_p": of_p, "d_u": of_u, "d_n": of_n}

    def fool(self, batch: Batch) -> Mapping[str, Tensor]:
        """Return the loss of the generators."""
        lambda_p, lambda_u = self.method.lambda_p, self.method.lambda_u
        made_p, made_n = self.drawn(len(batch[1]))
        by_p, by_n = self.judged("p", made_p), self.judged("n", made_n)
        u_of_p, u_of_n = self.judged("u", made_p), self.judged("u", made_n)
        of_p = positive_generator_loss(by_p, u_of_p, self.prior, lambda_p, lambda_u)
        of_n = negative_generator_loss(
            by_n, u_of_n, self.prior, self.method.lambda_n, lambda_u
        )
        return {"loss": of_p + of_n, "g_p": of_p, "g_n": of_n}


class EndInTime(Hook):
    """End the game when half of the time is gone: the classifier needs some too."""

    def __init__(self, deadline: Deadline) -> None:
        self.deadline = deadline
        self.enough = deadline.left() / 2

    def on_epoch_end(self, state: TrainState) -> None:
        """Stop when less than half of the time is left."""
        if self.deadline.left() < self.enough:
            state.stop = "time"


def made_loss(module: nn.Module, batch: Batch) -> Tensor:
    """Return the cross-entropy of made rows."""
    rows, labels = batch
    return F.binary_cross_entropy_with_logits(module(rows).float(), labels)
