"""The one training loop, against hand computations."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from denspu.exceptions import CompileWarning, DensPUError
from denspu.training import (
    Hook,
    Plateau,
    Step,
    TensorBatches,
    TrainingConfig,
    train,
)
from denspu.training.hooks import PlateauStop, TrainState
from denspu.training.loop import _Runner

CPU = torch.device("cpu")
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


def run(module, *, loss=squared_error, batch_size=4, hooks=(), seed=0, **settings):
    settings = {"epochs": 1, "optimizer": "sgd", "lr": 0.1, **settings}
    return train(
        module,
        TensorBatches(torch.tensor(A), torch.tensor(B), batch_size=batch_size),
        loss,
        TrainingConfig(**settings),
        device=CPU,
        generator=torch.Generator().manual_seed(seed),
        hooks=hooks,
    )


def weights(module):
    return module.weight.detach().numpy().copy(), module.bias.detach().numpy().copy()


def gradient(W, b):
    """Return the gradient of the mean squared error, in NumPy."""
    residual = A @ W.T + b - B
    return 2 * residual.T @ A / len(A), 2 * residual.mean(axis=0)


# --- steps ----------------------------------------------------------------------------


def test_loss_falls_on_a_toy_problem():
    module = linear()
    loss = run(module, epochs=100, lr=0.05).column("loss")
    assert loss[-1] < 0.2 * loss[0]
    solution = np.linalg.lstsq(np.c_[A, np.ones(4)], B, rcond=None)[0].ravel()
    assert np.allclose([*module.weight.detach()[0], module.bias.item()], solution,
                       atol=0.2)  # fmt: skip


@pytest.mark.parametrize("decay", [0.0, 0.3])
def test_one_sgd_step_by_hand(decay):
    """Coupled decay adds decay·W to the matrix's gradient, nothing to the bias's."""
    module = linear()
    run(module, weight_decay=decay)
    dW, db = gradient(W0, B0)
    W, b = weights(module)
    assert np.allclose(W, W0 - 0.1 * (dW + decay * W0), atol=1e-12)
    assert np.allclose(b, B0 - 0.1 * db, atol=1e-12)


def test_sgd_momentum_by_hand():
    module = linear()
    run(module, epochs=3, momentum=0.9)
    W, b, mW, mb = W0, B0, 0.0, 0.0
    for _ in range(3):
        dW, db = gradient(W, b)
        mW, mb = 0.9 * mW + dW, 0.9 * mb + db
        W, b = W - 0.1 * mW, b - 0.1 * mb
    assert np.allclose(weights(module)[0], W, atol=1e-12)
    assert np.allclose(weights(module)[1], b, atol=1e-12)


def test_adam_first_step_has_the_length_of_the_learning_rate():
    """Adam's first step is lr·g/(|g| + ε) in each coordinate."""
    module = linear()
    run(module, optimizer="adam", lr=0.01)
    dW, db = gradient(W0, B0)
    assert np.allclose(weights(module)[0], W0 - 0.01 * np.sign(dW), atol=1e-8)
    assert np.allclose(weights(module)[1], B0 - 0.01 * np.sign(db), atol=1e-8)


def test_same_seed_same_weights():
    one, two, other = linear(), linear(), linear()
    run(one, optimizer="adam", batch_size=1, epochs=3, seed=1)
    run(two, optimizer="adam", batch_size=1, epochs=3, seed=1)
    run(other, optimizer="adam", batch_size=1, epochs=3, seed=2)
    assert torch.equal(one.weight, two.weight)
    assert not torch.equal(one.weight, other.weight)


def test_clip_norm_bounds_the_step():
    module = linear()
    run(module, clip_norm=0.01, lr=1.0)
    W, b = weights(module)
    step = np.r_[(W - W0).ravel(), b - B0]
    assert np.linalg.norm(step) == pytest.approx(0.01, rel=1e-3)
    dW, db = gradient(W0, B0)
    direction = np.r_[dW.ravel(), db]
    assert np.allclose(step, -0.01 * direction / np.linalg.norm(direction), atol=1e-6)


def test_schedule_moves_the_learning_rate_every_step():
    module = linear()
    history = run(module, epochs=2, schedule="linear", lr=0.1)
    assert history.column("lr") == pytest.approx([0.1, 0.05])
    W, b = W0, B0
    for lr in (0.1, 0.05):
        dW, db = gradient(W, b)
        W, b = W - lr * dW, b - lr * db
    assert np.allclose(weights(module)[0], W, atol=1e-12)


def test_ema_equals_its_twin():
    module = linear()
    run(module, epochs=4, ema_decay=0.8)
    W, b = W0, B0
    mean_W, mean_b = W0, B0
    for _ in range(4):
        dW, db = gradient(W, b)
        W, b = W - 0.1 * dW, b - 0.1 * db
        mean_W, mean_b = 0.8 * mean_W + 0.2 * W, 0.8 * mean_b + 0.2 * b
    assert np.allclose(weights(module)[0], mean_W, atol=1e-12)
    assert np.allclose(weights(module)[1], mean_b, atol=1e-12)


def test_ema_averages_the_running_statistics_and_leaves_counts_alone():
    """One step: 0.9 · start + 0.1 · end, for weights and for buffers of floats."""

    def net():
        return nn.Sequential(nn.Linear(2, 1), nn.BatchNorm1d(1)).double()

    plain, averaged = net(), net()
    averaged.load_state_dict(plain.state_dict())
    start = {k: v.clone() for k, v in plain.state_dict().items()}
    run(plain)
    run(averaged, ema_decay=0.9)
    end = plain.state_dict()
    for name, value in averaged.state_dict().items():
        if name.endswith("num_batches_tracked"):
            assert value == 1
        else:
            expected = 0.9 * start[name] + 0.1 * end[name]
            assert torch.allclose(value, expected, atol=1e-12), name
            assert "1." not in name or not torch.equal(value, end[name])


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


@pytest.mark.parametrize("in_backward", [False, True])
@pytest.mark.parametrize("failures", [0, 1, 3])
def test_a_loss_that_can_take_less_memory_is_tried_again(failures, in_backward):
    loss = Hungry(failures, in_backward)
    module, plain = linear(), linear()
    history = run(module, loss=loss, epochs=2)
    assert loss.asked == failures
    assert torch.equal(module.weight, run_and_return(plain, epochs=2).weight)
    assert len(history) == 2


def run_and_return(module, **settings):
    run(module, **settings)
    return module


def test_a_loss_that_cannot_take_less_raises():
    module = linear()
    with pytest.raises(torch.OutOfMemoryError, match="too much"):
        run(module, loss=Hungry(9))
    assert np.array_equal(weights(module)[0], W0)


def test_an_ordinary_loss_raises_at_once():
    def loss(module, batch):
        seen.append(1)
        raise torch.OutOfMemoryError("too much")

    seen = []
    with pytest.raises(torch.OutOfMemoryError):
        run(linear(), loss=loss)
    assert len(seen) == 1


# --- several losses -------------------------------------------------------------------


class Two(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = linear(), linear()

    def forward(self, x):
        return self.a(x) + self.b(x)


def test_each_step_moves_its_own_parameters_only():
    def nothing_for_a(module, batch):
        return 0.0 * squared_error(module, batch)

    module = Two()
    only_b = Step(squared_error, lambda m: m.b.parameters())
    run(module, loss=[only_b])
    assert np.array_equal(weights(module.a)[0], W0)
    assert not np.array_equal(weights(module.b)[0], W0)

    module = Two()
    run(module, loss=[Step(nothing_for_a, lambda m: m.a.parameters()), only_b])
    assert np.array_equal(weights(module.a)[0], W0)
    assert not np.array_equal(weights(module.b)[0], W0)


def test_steps_are_taken_in_turn_and_see_each_other():
    """The second loss is computed after the first has moved its weights."""
    module = Two()
    steps = [
        Step(lambda m, batch: squared_error(m.a, batch), lambda m: m.a.parameters()),
        Step(lambda m, batch: squared_error(m, batch), lambda m: m.b.parameters()),
    ]
    run(module, loss=steps)
    dW, db = gradient(W0, B0)
    W1, b1 = W0 - 0.1 * dW, B0 - 0.1 * db
    sum_dW, _ = gradient(W1 + W0, b1 + B0)
    assert np.allclose(weights(module.a)[0], W1, atol=1e-12)
    assert np.allclose(weights(module.b)[0], W0 - 0.1 * sum_dW, atol=1e-12)


def test_logged_terms_of_several_steps_add_up():
    def half(module, batch):
        loss = squared_error(module, batch)
        return {"loss": loss, "half": loss / 2}

    module = linear()
    start = squared_error(module, (torch.tensor(A), torch.tensor(B))).item()
    history = run(module, loss=[Step(half), Step(half)], lr=1e-12)
    assert history.last["loss"] == pytest.approx(2 * start, rel=1e-5)
    assert history.last["half"] == pytest.approx(start, rel=1e-5)


# --- history, hooks, stopping ---------------------------------------------------------


def test_history_has_one_row_an_epoch():
    history = run(linear(), epochs=3, batch_size=2)
    assert [set(row) for row in history.rows] == [
        {"epoch", "loss", "lr", "seconds"}
    ] * 3
    assert history.column("epoch") == [1, 2, 3]
    assert len(history) == 3
    assert history.last is history.rows[-1]
    assert history.stopped == "all epochs done"
    assert all(seconds > 0 for seconds in history.column("seconds"))


def test_logged_loss_is_the_mean_over_the_batches():
    history = run(linear(), batch_size=1, lr=1e-12)
    assert history.last["loss"] == pytest.approx(np.mean((A @ W0.T + B0 - B) ** 2))


class Diary(Hook):
    def __init__(self):
        self.seen = []

    def on_train_start(self, state):
        self.seen.append("start")

    def on_epoch_start(self, state):
        self.seen.append(f"epoch {state.epoch}")

    def on_step_end(self, state):
        self.seen.append(f"step {state.step}")

    def on_epoch_end(self, state):
        self.seen.append(f"rows {len(state.history)}")

    def on_train_end(self, state):
        self.seen.append("end")


def test_hooks_are_called_in_order():
    diary = Diary()
    run(linear(), epochs=2, batch_size=2, hooks=[diary])
    assert diary.seen == [
        "start",
        "epoch 0", "step 1", "step 2", "rows 1",
        "epoch 1", "step 3", "step 4", "rows 2",
        "end",
    ]  # fmt: skip


def test_a_hook_can_stop_the_training():
    class Enough(Hook):
        def on_epoch_end(self, state):
            if state.epoch == 1:
                state.stop = "enough"

    history = run(linear(), epochs=9, hooks=[Enough()])
    assert len(history) == 2
    assert history.stopped == "enough"


@pytest.mark.parametrize(
    ("values", "patience", "epoch"),
    [
        ([1.0, 1.0, 1.0, 1.0], 2, 3),  # no gain in epochs 2 and 3
        ([1.0, 0.9995, 0.9985, 0.998, 0.998], 2, 5),  # 0.05 % is no gain, 0.15 % is
        ([1.0, 2.0, 0.5, 0.5, 0.5, 0.5], 3, 6),
        ([-1.0, -2.0, -2.0, -2.0], 2, 4),  # a loss below 0 improves downwards too
        ([3.0, 2.0, 1.0], 1, None),
    ],
)
def test_plateau_stops_at_the_right_epoch(values, patience, epoch):
    hook = PlateauStop(Plateau(patience=patience, min_improvement=1e-3))
    state = TrainState(linear(), TrainingConfig(epochs=9))
    for i, value in enumerate(values, start=1):
        state.history.add(loss=value)
        hook.on_epoch_end(state)
        if state.stop:
            assert i == epoch
            assert state.stop == f"plateau of {patience} epochs"
            return
    assert epoch is None


def test_plateau_watches_the_named_term():
    def loss(module, batch):
        value = squared_error(module, batch)
        return {"loss": value, "flat": torch.ones(())}

    history = run(linear(), loss=loss, epochs=50, plateau=Plateau(3, monitor="flat"))
    assert len(history) == 4
    assert history.stopped == "plateau of 3 epochs"


def test_nan_loss_raises_and_names_the_epoch():
    def loss(module, batch):
        factor = float("nan") if seen else 1.0
        seen.append(1)
        return factor * squared_error(module, batch)

    seen = []
    with pytest.raises(DensPUError, match=r"NaN in epoch 2\. Lower the learning rate"):
        run(linear(), loss=loss, epochs=5)


# --- state left behind ----------------------------------------------------------------


class Moody(nn.Module):
    """Notes whether it ran in training mode."""

    def __init__(self):
        super().__init__()
        self.layer = linear()
        self.modes = []

    def forward(self, x):
        self.modes.append(self.training)
        return self.layer(x)


def test_trains_in_training_mode_and_comes_back_in_evaluation_mode():
    module = Moody().eval()
    run(module)
    assert module.modes == [True]
    assert not module.training
    assert {p.device.type for p in module.parameters()} == {"cpu"}


def test_a_hook_that_evaluates_does_not_end_training_mode():
    class Evaluate(Hook):
        def on_epoch_end(self, state):
            state.module.eval()

    module = Moody()
    run(module, epochs=2, hooks=[Evaluate()])
    assert module.modes == [True, True]


@pytest.mark.parametrize(
    ("precision", "device", "bf16"),
    [
        ("auto", "cpu", False),
        ("auto", "cuda", True),
        ("float32", "cuda", False),
        ("bf16", "cpu", True),
    ],
)
def test_auto_asks_for_bf16_on_cuda_only(precision, device, bf16):
    config = TrainingConfig(epochs=1, precision=precision)
    runner = _Runner(linear(), [], config, torch.device(device), 1)
    assert runner.bf16 is bf16


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


def test_verbose_names_the_training(capsys):
    run(linear(), epochs=2)
    assert capsys.readouterr().err == ""
    train(
        linear(),
        TensorBatches(torch.tensor(A), torch.tensor(B), batch_size=4),
        squared_error,
        TrainingConfig(epochs=2),
        device=CPU,
        generator=torch.Generator(),
        verbose=1,
        name="toy",
    )
    lines = capsys.readouterr().err.splitlines()
    assert lines[-1].startswith("toy")
    assert "2/2 loss" in lines[-1]


# --- compiling ------------------------------------------------------------------------


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
    assert all(map(np.array_equal, weights(found), weights(wanted)))


def test_other_errors_of_a_compiled_network_are_raised(monkeypatch):
    monkeypatch.setattr(torch, "compile", lambda module, **_: nn.Sequential(module))

    def broken(module, batch):
        raise RuntimeError("shapes do not fit")

    with pytest.raises(RuntimeError, match="shapes do not fit"):
        run(linear(), loss=broken, compile=True)
