"""The one training loop and its settings, against hand computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch import nn

from denspu.exceptions import CompileWarning, DensPUError
from denspu.training import (
    Hook,
    KeepBest,
    Plateau,
    Step,
    TensorBatches,
    TrainingConfig,
    train,
)
from denspu.training.hooks import PlateauStop, TrainState
from denspu.training.loop import Runner

A = np.array([[1.0, 2.0], [-1.0, 0.5], [0.0, 3.0], [2.0, -1.0]])
B = np.array([[3.0], [0.0], [2.0], [1.0]])
W0, B0 = np.array([[0.5, -0.25]]), np.array([0.1])


def linear():
    layer = nn.Linear(2, 1).double()
    layer.load_state_dict({"weight": torch.tensor(W0), "bias": torch.tensor(B0)})
    return layer


def squared_error(module, batch):
    inputs, targets = batch
    return ((module(inputs) - targets) ** 2).mean()


def run(
    module, *, loss=squared_error, batch_size=4, hooks=(), seed=0, verbose=0, **settings
):
    settings = {"epochs": 1, "optimizer": "sgd", "lr": 0.1, **settings}
    return train(
        module,
        TensorBatches(torch.tensor(A), torch.tensor(B), batch_size=batch_size),
        loss,
        TrainingConfig(**settings),
        device=torch.device("cpu"),
        generator=torch.Generator().manual_seed(seed),
        hooks=hooks,
        verbose=verbose,
        name="toy",
    )


def weights(module):
    return np.r_[module.weight.detach().numpy().ravel(), module.bias.detach().numpy()]


START = np.r_[W0.ravel(), B0]


def gradient(w):
    """Return the gradient of the mean squared error at weights and bias, in NumPy."""
    residual = A @ w[:2] + w[2] - B.ravel()
    return 2 * np.r_[residual @ A, residual.sum()] / len(A)


# --- steps ----------------------------------------------------------------------------


def test_loss_falls_on_a_toy_problem_and_the_seed_decides():
    module, same, other = linear(), linear(), linear()
    settings = {"epochs": 100, "lr": 0.05, "batch_size": 2}
    loss = run(module, **settings).column("loss")
    assert loss[-1] < 0.2 * loss[0]
    solution = np.linalg.lstsq(np.c_[A, np.ones(4)], B, rcond=None)[0].ravel()
    assert np.allclose(weights(module), solution, atol=0.2)
    run(same, **settings)
    run(other, **settings, seed=1)
    assert np.array_equal(weights(same), weights(module))
    assert not np.array_equal(weights(other), weights(module))


def test_sgd_by_hand():
    """Coupled decay adds decay·W to the matrix's gradient, nothing to the bias's."""
    module = linear()
    history = run(
        module, epochs=3, momentum=0.9, weight_decay=0.3, schedule="linear", lr=0.1
    )
    assert history.column("lr") == pytest.approx([0.1, 0.2 / 3, 0.1 / 3])
    w, speed = START, 0.0
    for lr in history.column("lr"):
        speed = 0.9 * speed + gradient(w) + 0.3 * w * [1, 1, 0]
        w = w - lr * speed
    assert np.allclose(weights(module), w, atol=1e-12)


def test_adam_first_step_has_the_length_of_the_learning_rate():
    """Adam's first step is lr·g/(|g| + ε) in each coordinate."""
    module = linear()
    run(module, optimizer="adam", lr=0.01)
    assert np.allclose(weights(module), START - 0.01 * np.sign(gradient(START)))


def test_clip_norm_bounds_the_step():
    module = linear()
    run(module, clip_norm=0.01, lr=1.0)
    direction = gradient(START) / np.linalg.norm(gradient(START))
    assert np.allclose(weights(module) - START, -0.01 * direction, atol=1e-6)


def test_ema_averages_weights_and_running_statistics():
    module = linear()
    run(module, epochs=4, ema_decay=0.8)
    w = mean = START
    for _ in range(4):
        w = w - 0.1 * gradient(w)
        mean = 0.8 * mean + 0.2 * w
    assert np.allclose(weights(module), mean, atol=1e-12)
    plain, averaged = (
        nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)).double() for _ in range(2)
    )
    averaged.load_state_dict(plain.state_dict())
    start = {k: v.clone() for k, v in plain.state_dict().items()}
    run(plain)
    run(averaged, ema_decay=0.9)
    end = plain.state_dict()
    for name, value in averaged.state_dict().items():
        counts = name.endswith("num_batches_tracked")
        expected = end[name] if counts else 0.9 * start[name] + 0.1 * end[name]
        assert torch.allclose(value, expected, atol=1e-12), name


# --- memory ---------------------------------------------------------------------------


class Hungry:
    """A loss that does not fit the first times, and takes less when asked to."""

    def __init__(self, failures, in_backward=False):
        self.failures = failures
        self.in_backward = in_backward
        self.asked = 0

    def __call__(self, module, batch):
        loss = squared_error(module, batch)
        if self.asked < self.failures:
            if not self.in_backward:
                raise torch.OutOfMemoryError("too much")
            loss.register_hook(self._fail)
        return loss

    def _fail(self, gradient):
        raise torch.OutOfMemoryError("too much on the way back")

    def use_less_memory(self):
        self.asked += 1
        return self.asked <= 3


@pytest.mark.parametrize(("failures", "in_backward"), [(1, False), (3, True)])
def test_a_loss_that_can_take_less_memory_is_tried_again(failures, in_backward):
    loss, module, plain = Hungry(failures, in_backward), linear(), linear()
    assert len(run(module, loss=loss, epochs=2)) == 2
    assert loss.asked == failures
    run(plain, epochs=2)
    assert np.array_equal(weights(module), weights(plain))


def test_a_loss_that_cannot_take_less_raises():
    module = linear()
    with pytest.raises(torch.OutOfMemoryError, match="too much"):
        run(module, loss=Hungry(9))
    with pytest.raises(torch.OutOfMemoryError, match="too much"):
        run(module, loss=lambda module, batch: Hungry(1)(module, batch))
    assert np.array_equal(weights(module), START)


# --- several losses -------------------------------------------------------------------


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = linear(), linear()

    def forward(self, x):
        return self.a(x) + self.b(x)


def test_steps_move_their_own_parameters_in_turn():
    """The second loss is computed after the first has moved its weights."""
    module = Two()
    only_b = Step(squared_error, lambda m: m.b.parameters())
    first = Step(lambda m, batch: squared_error(m.a, batch), lambda m: m.a.parameters())
    run(module, loss=[only_b])
    assert np.array_equal(weights(module.a), START)
    module = Two()
    run(module, loss=[first, only_b])
    moved = START - 0.1 * gradient(START)
    assert np.allclose(weights(module.a), moved, atol=1e-12)
    expected = START - 0.1 * gradient(moved + START)
    assert np.allclose(weights(module.b), expected, atol=1e-12)


def test_logged_terms_are_means_over_batches_and_sums_over_steps():
    def half(module, batch):
        loss = squared_error(module, batch)
        return {"loss": loss, "half": loss / 2}

    start = np.mean((A @ W0.T + B0 - B) ** 2)
    history = run(linear(), loss=[Step(half)] * 2, lr=1e-12, epochs=3, batch_size=1)
    assert history.last["loss"] == pytest.approx(2 * start, rel=1e-5)
    assert history.last["half"] == pytest.approx(start, rel=1e-5)
    assert set(history.last) == {"epoch", "loss", "half", "lr", "seconds"}
    assert history.column("epoch") == [1, 2, 3]
    assert (len(history), history.stopped) == (3, "all epochs done")
    assert all(seconds > 0 for seconds in history.column("seconds"))


# --- hooks and stopping ---------------------------------------------------------------


class Diary(Hook):
    def __init__(self):
        self.seen = []

    def on_train_start(self, state):
        self.seen.append("start")

    def on_epoch_start(self, state):
        self.seen.append(f"epoch {state.epoch}")

    def on_step_end(self, state):
        assert state.module.training
        self.seen.append(f"step {state.step}")

    def on_epoch_end(self, state):
        self.seen.append(f"rows {len(state.history)}")
        state.module.eval()  # which the next epoch undoes
        if state.epoch == 1:
            state.stop = "enough"

    def on_train_end(self, state):
        self.seen.append("end")


def test_hooks_are_called_in_order_and_can_stop():
    diary, module = Diary(), linear().eval()
    history = run(module, epochs=9, batch_size=2, hooks=[diary])
    assert diary.seen == [
        "start",
        "epoch 0", "step 1", "step 2", "rows 1",
        "epoch 1", "step 3", "step 4", "rows 2",
        "end",
    ]  # fmt: skip
    assert history.stopped == "enough"
    assert not module.training


@pytest.mark.parametrize(
    ("values", "patience", "epoch"),
    [
        ([1.0, 1.0, 1.0, 1.0], 2, 3),  # no gain in epochs 2 and 3
        ([1.0, 0.9995, 0.9985, 0.998, 0.998], 2, 5),  # 0.05 % is no gain, 0.15 % is
        ([-1.0, -2.0, -2.0, -2.0], 2, 4),  # a loss below 0 improves downwards too
    ],
)
def test_plateau_stops_at_the_right_epoch(values, patience, epoch):
    hook = PlateauStop(Plateau(patience=patience, min_improvement=1e-3))
    state, stopped = TrainState(linear(), TrainingConfig(epochs=9)), None
    for i, value in enumerate(values, start=1):
        state.history.add(loss=value)
        hook.on_epoch_end(state)
        if state.stop and stopped is None:
            stopped = i
            assert state.stop == f"plateau of {patience} epochs"
    assert stopped == epoch


@pytest.mark.parametrize(
    ("measures", "best"),
    [
        ([3.0, 1.0, 2.0], 1),
        ([float("nan"), 2.0, 3.0], 1),
        ([3.0, 1.0, 2.0, 2.0, 0.0], 1),  # patience ends before the last
    ],
    ids=str,
)
def test_the_best_weights_come_back(measures, best):
    seen, told = [], iter(measures)

    def measure(network):
        seen.append(weights(network))
        return next(told)

    module = linear()
    plateau = KeepBest.patience(2)
    hooks = [KeepBest(measure)]
    history = run(module, epochs=len(measures), hooks=hooks, plateau=plateau)
    assert np.array_equal(weights(module), seen[best])
    np.testing.assert_array_equal(history.column("held_out"), measures[: len(seen)])
    assert len(seen) == min(len(measures), 4)
    assert KeepBest.patience(None) is None


def test_nan_loss_raises_and_names_the_epoch():
    def loss(module, batch):
        seen.append(1)
        return (float("nan") if len(seen) > 1 else 1.0) * squared_error(module, batch)

    seen = []
    with pytest.raises(DensPUError, match=r"NaN in epoch 2\. Lower the learning rate"):
        run(linear(), loss=loss, epochs=5)


# --- precision and compiling ----------------------------------------------------------


@pytest.mark.parametrize(
    ("precision", "device", "bf16"),
    [("auto", "cpu", False), ("auto", "cuda", True), ("float32", "cuda", False)],
)
def test_auto_asks_for_bf16_on_cuda_only(precision, device, bf16):
    config = TrainingConfig(epochs=1, precision=precision)
    assert Runner(linear(), [], config, torch.device(device), 1).bf16 is bf16


@pytest.mark.parametrize(
    ("precision", "dtype"), [("auto", torch.float32), ("bf16", torch.bfloat16)]
)
def test_precision_reaches_the_forward_pass(precision, dtype):
    seen = []

    def loss(module, batch):
        out = module(batch[0].float())
        seen.append(out.dtype)
        return out.float().mean()

    module = nn.Linear(2, 1)
    run(module, loss=loss, precision=precision)
    assert seen == [dtype]
    assert module.weight.dtype == torch.float32


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own
def test_training_goes_on_where_torch_cannot_compile(monkeypatch):
    """A machine without a compiler: the same weights, and a word about it."""
    from torch._inductor import config as inductor

    monkeypatch.setattr(inductor.cpp, "cxx", ("/no/such/compiler",))
    found, wanted = linear(), linear()
    with pytest.warns(CompileWarning, match="compile=False") as told:
        run(found, compile=True, epochs=3)
    assert [w.category for w in told].count(CompileWarning) == 1
    run(wanted, epochs=3)
    assert np.array_equal(weights(found), weights(wanted))


def test_other_errors_of_a_compiled_network_are_raised(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda module, **_: nn.Sequential(module))

    def broken(module, batch):
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        run(linear(), loss=broken, compile=True)


# --- settings -------------------------------------------------------------------------


def cosine(steps, low=0.0):
    fall = [0.5 * (1 + math.cos(math.pi * step / steps)) for step in range(steps)]
    return [low + (1 - low) * factor for factor in fall]


@pytest.mark.parametrize(
    ("settings", "wanted"),
    [
        ({"schedule": "cosine", "lr_floor": 0.7}, cosine(12, 0.7)),
        ({"schedule": "cosine", "warmup_epochs": 0.5}, [0.5, 1.0, *cosine(10)]),
        ({"schedule": "linear"}, [1 - step / 12 for step in range(12)]),
        ({"warmup_epochs": 3}, [step / 12 for step in range(1, 13)]),
    ],
    ids=str,
)
def test_schedules(settings, wanted):
    factor = TrainingConfig(epochs=3, **settings).lr_factor(4)
    assert [factor(step) for step in range(12)] == pytest.approx(wanted)
    if settings.get("schedule") and "lr_floor" not in settings:
        assert factor(12) == factor(100) == pytest.approx(0)


@pytest.mark.parametrize(
    ("name", "cls"),
    [
        ("adam", torch.optim.Adam),
        ("sgd", torch.optim.SGD),
    ],
)
def test_optimizers_decay_matrices_only(name, cls):
    net = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.Linear(2, 1))
    net[0].weight.requires_grad_(False)
    config = TrainingConfig(
        epochs=1, optimizer=name, lr=0.5, weight_decay=0.1, betas=(0.5, 0.9),
        momentum=0.9, nesterov=True,
    )  # fmt: skip
    optimizer = config.build_optimizer(net.parameters())
    assert type(optimizer) is cls
    decay = {p: g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    assert decay == {
        p: 0.1 if p.ndim > 1 else 0.0 for p in net.parameters() if p.requires_grad
    }
    for group in optimizer.param_groups:
        assert group["lr"] == 0.5
        if name == "sgd":
            assert (group["momentum"], group["nesterov"]) == (0.9, True)
        else:
            assert group["betas"] == (0.5, 0.9)
