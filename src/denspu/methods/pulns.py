"""PULNS: a selector learns which rows of U serve as negatives.

Luo, Zhao, Zhang and others, "PULNS: Positive-Unlabeled Learning with Effective Negative
Sample Selector", AAAI 2021.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F

from denspu._folds import hold_out
from denspu._parameters import About, Number, Whole, setting
from denspu._typing import BoolArray
from denspu.losses import chosen_risk, pu_accuracy, reinforce
from denspu.methods._deep import Auto, DeepPriorPU, Task
from denspu.methods._evidence import POSITIVE
from denspu.training import Hook, TrainState
from denspu.training.loop import Batch

JUDGES = 256
"""Held-out rows of P, and of the pool, that judge one draw."""


class PULNS(DeepPriorPU):
    """A selector learns by reward which rows of U serve as negatives.

    A selector draws negatives from U; a classifier learns from them and P.

    Each batch is an episode. The selector draws a few choices of negatives; for each
    the classifier takes a trial step and is judged on held-out rows; the selector is
    moved towards choices that did better than the others (REINFORCE), and the
    classifier takes a step on the first choice.

    Attributes
    ----------
    selector_ : nn.Module
        Logits of being a good negative.
    held_out_ : int
        Rows that judged; 0 where P or the groups could not be parted, and the training
        rows had to judge.
    chosen_ : array of int
        Rows of U that the final classifier took for negatives.
    selector_history_ : History
    """

    about = About(key="pulns", paper="Luo et al. 2021, PULNS")

    draws: int = setting(4, Whole(2), doc="Choices tried in an episode.")
    trial_step: float = setting(0.1, POSITIVE, doc="Length of the trial step.")
    warmup: float = setting(
        0.05, Number(0, 1), doc="Share of epochs that teach the selector U from P."
    )
    held_out: float = setting(
        0.2, Number(0, 0.5, "right"), doc="Share of P and U that judges."
    )
    final_epochs: int = setting(
        20,
        Whole(1),
        doc="Epochs of the classifier that answers, on P and the selector's best.",
    )
    epochs: int | Auto = setting(60)
    batch_size: int | Auto = setting(256)
    lr: float | Auto = setting(5e-4)

    def _learn(self, task: Task) -> None:
        positive = np.zeros(len(task.rows), dtype=bool)
        positive[task.positive] = True
        rng = task.randomness.numpy("held out")
        judges = hold_out(positive, task.groups, self.held_out, rng)
        learns = ~judges if judges.any() else np.ones_like(judges)
        judge = judges if judges.any() else learns
        both = Pair(task.network("classifier"), task.network("selector"))
        self.selector_history_ = task.train(
            both,
            EpisodeLoss(self, task, judge),
            "selector",
            share=0.8,
            batches=task.batches(
                task.positive[learns[task.positive]],
                task.unlabeled[learns[task.unlabeled]],
            ),
            capture=False,
        )
        self.selector_, self.held_out_ = both.selector, int(judges.sum())
        self._finish(task)

    def _finish(self, task: Task) -> None:
        """Train a fresh classifier on all of P and the best rows of the selector."""
        scores = task.logits(self.selector_, task.unlabeled)
        scores[np.isin(task.unlabeled, task.known_negative)] = np.inf
        n_negative = round((1 - task.prior_in_unlabeled) * len(scores))
        n_chosen = max(1, n_negative, len(task.known_negative))
        order = np.argsort(-scores, kind="stable")
        self.chosen_ = np.sort(task.unlabeled[order[:n_chosen]])

        def risk(positive: Tensor, pool: Tensor) -> Tensor:
            return chosen_risk(positive, pool, torch.ones_like(pool), task.prior)

        self.module_ = task.network("final classifier")
        self.history_ = task.train(
            self.module_,
            task.loss(risk),
            "classifier",
            batches=task.batches(pool=self.chosen_),
            epochs=self.final_epochs,
        )


class Pair(nn.Module):
    """A classifier and a selector: one network for the loop."""

    def __init__(self, classifier: nn.Module, selector: nn.Module) -> None:
        super().__init__()
        self.classifier = classifier
        self.selector = selector


class EpisodeLoss(Hook):
    """One episode: choices, trial steps, rewards, and a step of both networks."""

    exploring = True

    def __init__(self, method: PULNS, task: Task, judge: BoolArray) -> None:
        self.method, self.task = method, task
        self.judges = [
            task.rows[task.index(rows[judge[rows]])]
            for rows in (task.positive, task.pool)
        ]
        # 1 for known negatives, which are always chosen.
        self.known = torch.zeros(len(task.rows), device=task.device)
        self.known[task.index(task.known_negative).to(task.device)] = 1.0

    def on_epoch_start(self, state: TrainState) -> None:
        """Let the selector draw once it can tell U from P."""
        warm = self.method.warmup * state.config.epochs
        self.exploring = state.epoch >= warm

    def __call__(self, module: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Return the loss of one batch and its terms."""
        pair = cast(Pair, module)
        positive, pool, _, numbers = batch
        n = len(positive)
        x = self.task.as_float(torch.cat([positive, pool]))
        scores = pair.selector(x).float()
        if not self.exploring:
            logits = pair.classifier(x).float()
            everything = torch.ones_like(logits[n:])
            risk = chosen_risk(logits[:n], logits[n:], everything, self.task.prior)
            told = F.softplus(scores[:n]).mean() + F.softplus(-scores[n:]).mean()
            return {"loss": risk + told, "chosen": everything.mean()}
        chance = torch.sigmoid(scores[n:].detach())
        chosen = torch.bernoulli(chance.expand(self.method.draws, -1))
        chosen = torch.maximum(chosen, self.known[numbers].expand_as(chosen))
        named = pair.classifier.named_parameters()
        weights = {name: weight for name, weight in named if weight.requires_grad}
        logits = pair.classifier(x).float()
        of_p, of_pool, prior = logits[:n], logits[n:], self.task.prior
        risks = [chosen_risk(of_p, of_pool, draw, prior) for draw in chosen]
        judges = self._judges()
        rewards = torch.stack(
            [self._reward(pair.classifier, weights, risk, judges) for risk in risks]
        )
        policy = reinforce(scores[n:], chosen, rewards)
        return {
            "loss": risks[0] + policy,
            "reward": rewards.mean(),
            "chosen": chance.mean(),
        }

    def _judges(self) -> tuple[Tensor, int]:
        """Return random held-out rows, and how many of them are of P."""
        drawn = []
        for rows in self.judges:
            n = min(JUDGES, len(rows))
            drawn.append(rows[torch.randint(len(rows), (n,), device=rows.device)])
        return self.task.as_float(torch.cat(drawn).to(self.known.device)), len(drawn[0])

    def _reward(
        self,
        classifier: nn.Module,
        weights: Mapping[str, Tensor],
        risk: Tensor,
        judges: tuple[Tensor, int],
    ) -> Tensor:
        """Return the PU accuracy after a trial step down a risk."""
        slopes = torch.autograd.grad(risk, list(weights.values()), retain_graph=True)
        with torch.no_grad():
            moved = {
                name: weight - self.method.trial_step * slope
                for (name, weight), slope in zip(weights.items(), slopes, strict=True)
            }
            kept = {name: held.clone() for name, held in classifier.named_buffers()}
            x, n = judges
            logits = functional_call(classifier, {**moved, **kept}, (x,))
        return pu_accuracy(logits[:n].float(), logits[n:].float(), self.task.prior)
