"""Self-PU: two students at different paces, and their slow teachers.

Chen, Chen, Chen, Yuan, Gong, Chen and Wang, "Self-PU: Self Boosted and Calibrated
Positive-Unlabeled Training", ICML 2020.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor, nn

from denspu._parameters import About, Number, OneOf, setting
from denspu.exceptions import InvalidParameterError
from denspu.losses import agreeing, disagreement, self_paced_risk
from denspu.methods._deep import Auto, DeepPriorPU, Task, follow, frozen
from denspu.methods._evidence import DECAY, SMALLEST
from denspu.training import Hook, TrainState
from denspu.training.loop import Batch

REBUILDS = 4
"""How often trusted sets are chosen anew, each time larger."""


class SelfPU(DeepPriorPU):
    """Two students that trust the surest rows of U, and slow teachers.

    Trust the surest rows of U step by step; two students and their means agree.

    Both students start with nnPU. Then each takes the rows of U it is surest of, as
    many positives as negatives, out of the PU risk and into a cross-entropy; the sets
    are chosen anew four times and grow, faster for the second student. In the end
    the students are also held to each other and to the slow means of themselves.
    """

    about = About(
        key="self_pu",
        paper="Chen et al. 2020, Self-PU",
        reference_licence="MIT, parts CC BY-NC 4.0",
    )

    paces: Sequence[float] = setting(
        (0.08, 0.12), doc="Share of U that each student trusts on either side."
    )
    labels: Literal["soft", "hard"] = setting(
        "soft",
        OneOf("soft", "hard"),
        doc="Trusted rows are taught the probability at their choice, or 0 and 1.",
    )
    warmup: float = setting(0.05, Number(0, 1), doc="Share of epochs without a choice.")
    growing: float = setting(
        0.2, Number(0, 1), doc="Share of epochs until trusted sets are whole."
    )
    alpha: float = setting(
        10.0,
        Number(0),
        doc="Students agree where their loss is over α times their squared difference.",
    )
    consistency: float = setting(1.0, Number(0), doc="Weight of agreement.")
    teacher_decay: float = setting(0.999, DECAY, doc="How slowly teachers follow.")
    epochs: int | Auto = setting(120)
    batch_size: int | Auto = setting(256)
    lr: float | Auto = setting(5e-4)

    def _learn(self, task: Task) -> None:
        paces = checked_paces(self.paces)
        school = School(
            [task.network(f"student {i}") for i in (1, 2)],
            [task.network(f"student {i}") for i in (1, 2)],
            len(task.rows),
            task.prior,
        )
        lessons = Lessons(self, task, school, paces)
        self.history_ = task.train(school, lessons, "self_pu")
        self.module_ = MeanLogit(school.teachers)
        self.trusted_ = [int(n) for n in school.trusted.sum(1)]


def checked_paces(paces: Any) -> tuple[float, float]:
    """Return the two paces, or raise."""
    half = Number(0, 0.5)
    values = tuple(paces) if isinstance(paces, tuple | list) else ()
    if len(values) != 2 or not all(half.allows(value) for value in values):
        raise InvalidParameterError(
            f"paces={paces!r} must be two numbers in [0, 0.5]: the shares of U that "
            "either student trusts as positive, and as negative. Pass (0.08, 0.12)."
        )
    return float(values[0]), float(values[1])


class School(nn.Module):
    """Students, teachers, and whom each student trusts: one network for the loop."""

    def __init__(
        self,
        students: list[nn.Module],
        teachers: list[nn.Module],
        n_rows: int,
        prior: float,
    ) -> None:
        super().__init__()
        self.students = nn.ModuleList(students)
        self.teachers = nn.ModuleList([frozen(teacher) for teacher in teachers])
        n = len(students)
        self.trusted = nn.Buffer(torch.zeros(n, n_rows))
        self.target = nn.Buffer(torch.zeros(n, n_rows))
        self.prior = nn.Buffer(torch.full((n,), prior))
        self.together = nn.Buffer(torch.zeros(()))

    def train(self, mode: bool = True) -> School:
        """Switch the students; teachers always answer as they would in the end."""
        super().train(mode)
        self.teachers.eval()
        return self

    def forward(self, x: Tensor) -> Tensor:
        """Return a row of logits for each student."""
        answers = [student(x) for student in self.students]
        return torch.stack(answers)

    def taught(self, x: Tensor) -> Tensor:
        """Return a row of logits for each teacher."""
        with torch.no_grad():
            answers = [teacher(x) for teacher in self.teachers]
        return torch.stack(answers)


class MeanLogit(nn.Module):
    """The mean answer of several networks."""

    def __init__(self, networks: nn.ModuleList) -> None:
        super().__init__()
        self.networks = networks

    def forward(self, x: Tensor) -> Tensor:
        """Return one logit a row."""
        answers = [network(x) for network in self.networks]
        return torch.stack(answers).mean(0)


class Lessons(Hook):
    """The sum of the students' losses, and how far they are from each other.

    Also when trusted sets are chosen, and when students and teachers begin to agree.
    """

    def __init__(
        self, method: SelfPU, task: Task, school: School, paces: tuple[float, float]
    ) -> None:
        self.method, self.task, self.school = method, task, school
        self.paces = paces
        self.choices: dict[int, float] = {}
        self.first_together = 0
        self.steps_together = 0
        unknown = ~np.isin(task.unlabeled, task.known_negative)
        self.candidates = task.unlabeled[unknown]

    def __call__(self, module: nn.Module, batch: Batch) -> Mapping[str, Tensor]:
        """Return the loss of one batch and its terms."""
        school = cast(School, module)
        positive, pool, _, numbers = batch
        x = self.task.as_float(torch.cat([positive, pool]))
        logits = school(x).float()
        taught = school.taught(x).float()
        own, apart, behind = [], [], []
        for i, (first, second) in enumerate(zip(logits, logits.flip(0), strict=True)):
            of_p, of_pool = first[: len(positive)], first[len(positive) :]
            trusted, target = school.trusted[i][numbers], school.target[i][numbers]
            own.append(self_paced_risk(of_p, of_pool, target, trusted, school.prior[i]))
            difference = disagreement(first, second)
            apart.append(agreeing(own[i], difference, self.method.alpha))
            behind.append(disagreement(first, taught[i]))
        risk = torch.stack(own).sum()
        students, teachers = torch.stack(apart).sum(), torch.stack(behind).sum()
        agreement = school.together * self.method.consistency * (students + teachers)
        return {
            "loss": risk + agreement,
            "risk": risk,
            "students": students,
            "teachers": teachers,
        }

    def on_train_start(self, state: TrainState) -> None:
        """Settle the epochs of the choices, and trust what is known."""
        epochs = state.config.epochs
        first = round(self.method.warmup * epochs)
        if self.method.warmup > 0:  # an untrained network chooses nothing
            first = max(1, first)
        last = max(first, round((self.method.warmup + self.method.growing) * epochs))
        self.choices = {
            first + (last - first) * k // REBUILDS: (k + 1) / REBUILDS
            for k in range(REBUILDS)
        }
        self.first_together = last
        nobody = torch.empty(0, dtype=torch.long, device=self.school.trusted.device)
        for student in range(len(self.paces)):
            self._trust(student, nobody, nobody)

    def on_epoch_start(self, state: TrainState) -> None:
        """Choose anew, and let the teachers begin where the students are."""
        if state.epoch in self.choices:
            answers = self.task.look(
                self.school, self.candidates, lambda x: self.school(x).T
            ).T
            for student, pace in enumerate(self.paces):
                self._choose(student, pace * self.choices[state.epoch], answers)
        if state.epoch == self.first_together:
            self._teach(0.0)
            self.school.together.fill_(1.0)

    def on_step_end(self, state: TrainState) -> None:
        """Let teachers follow; the first steps count alike."""
        if state.epoch >= self.first_together:
            self.steps_together += 1
            self._teach(min(1 - 1 / self.steps_together, self.method.teacher_decay))

    def on_train_end(self, state: TrainState) -> None:
        """Let the teachers be the students where there was no time to agree."""
        if self.steps_together == 0:
            self._teach(0.0)

    def _teach(self, decay: float) -> None:
        for teacher, student in zip(
            self.school.teachers, self.school.students, strict=True
        ):
            follow(teacher, student, decay)

    def _choose(self, student: int, share: float, answers: Tensor) -> None:
        """Trust the rows of U at both ends of a student's ranking."""
        k = int(share * len(self.candidates))
        order = answers[student].argsort()
        rows = self.task.index(self.candidates).to(order.device)
        negative, positive = rows[order[:k]], rows[order[len(order) - k :]]
        self._trust(student, positive, negative)
        chosen = torch.cat([order[:k], order[len(order) - k :]])
        soft = torch.sigmoid(answers[student][chosen])
        if self.method.labels == "soft":
            self.school.target[student, rows[chosen]] = soft

    def _trust(self, student: int, positive: Tensor, negative: Tensor) -> None:
        """Write down a trusted set, and the prior of the pool without it."""
        school, pool = self.school, len(self.task.pool)
        known = self.task.index(self.task.known_negative).to(school.trusted.device)
        school.trusted[student] = 0.0
        school.target[student] = 0.0
        for rows in (positive, negative, known):
            school.trusted[student, rows] = 1.0
        school.target[student, positive] = 1.0
        left = pool - len(positive) - len(negative) - len(known)
        share = (self.task.prior * pool - len(positive)) / max(left, 1)
        school.prior[student] = min(max(share, SMALLEST), 1 - SMALLEST)
