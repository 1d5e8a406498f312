"""What every registered method promises, whatever it does inside."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from tests.small import METHODS, small, takes

from denspu import make_pu
from denspu._registry import registry
from denspu.exceptions import DegenerateFitWarning
from denspu.priors import estimate as estimate_module
from denspu.refinement import EmbeddingRefiner

pytestmark = pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
every_method = pytest.mark.parametrize("key", METHODS)

CHEAP = EmbeddingRefiner(rounds=0, folds=2, n_bags=2)
CLASSICAL = [key for key in METHODS if not registry().get(key).deep]
PRIOR = [key for key in METHODS if takes(registry().get(key), "prior")]
QUICKER = {"epochs": 40, "gan_epochs": 60, "n_made": 1000, "refiner": CHEAP}
"""Enough to learn; the defaults take seconds."""


def blobs(seed=0, n=240, columns=6, distance=3.0):
    """Return rows of two kinds and their true labels."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 2 == 0).astype(int)
    X = rng.normal(size=(n, columns))
    X[:, :3] += distance / 2 * (2 * y - 1)[:, None]
    return X, y


@every_method
def test_it_learns(key):
    """Near its defaults, new rows are told apart."""
    entry = registry().get(key)
    settings = {name: v for name, v in QUICKER.items() if takes(entry, name)}
    if takes(entry, "lr"):
        settings["lr"] = 2e-3
    if entry.needs_prior:
        settings["prior"] = 0.5
    pu = make_pu(*blobs(), n_labeled=0.4, random_state=0)
    model = entry.build(random_state=0, device="cpu", **settings).fit(pu.X, pu.y)
    X, y = blobs(1)
    assert roc_auc_score(y, model.decision_function(X)) > 0.95
    assert np.mean(model.predict(X) == y) > 0.8


def without_gap(seed, kinds, n=240):
    """Return rows of one cloud, true labels, and PU labels for rows of some kinds."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 12))
    y = (X[:, 0] > 0).astype(int)
    labels = np.zeros(n, dtype=int)
    for kind in kinds:
        rows = np.flatnonzero(y == kind)
        labels[rng.choice(rows, n // 5 // len(kinds), replace=False)] = 1
    return X, y, labels


@pytest.mark.parametrize("key", ["dens_pu", "nnpu", *CLASSICAL])
def test_labels_given_at_random_teach_nothing(key):
    """As many labels given to positives alone teach the same method a good deal."""
    longer = {"epochs": 30} if takes(registry().get(key), "epochs") else {}

    def reached(seed, kinds):
        X, y, labels = without_gap(seed, kinds)
        model = small(key, random_state=0, **longer).fit(X, labels)
        return roc_auc_score(y, model.decision_function(X))

    at_random = np.mean([reached(seed, (0, 1)) for seed in (3, 4)])
    assert 0.37 < at_random < 0.63
    assert reached(3, (1,)) > 0.64


@pytest.mark.parametrize(
    "key", ["dens_pu", "nnpu", *sorted(set(PRIOR) & set(CLASSICAL))]
)
def test_the_prior_is_estimated_and_used(key, monkeypatch):
    """Fewer than a third are positive; the estimate does what the number would do."""
    monkeypatch.setattr(estimate_module, "TREES", 10)
    rng = np.random.default_rng(0)
    y = (np.arange(200) % 10 < 3).astype(int)
    X = rng.normal(size=(200, 4)) + 3 * y[:, None]
    pu = make_pu(X, y, n_labeled=0.5, random_state=0)
    scenario = {"scenario": "two-sample"} if key == "elkan_noto" else {}
    truth = y[pu.y == 0].mean() if scenario else y.mean()

    def fitted(prior):
        return small(key, random_state=0, prior=prior, **scenario).fit(pu.X, pu.y)

    estimated = fitted("estimate")
    assert estimated.prior_ == pytest.approx(truth, abs=0.04)
    answers, same, other = (
        model.decision_function(pu.X)
        for model in (estimated, fitted(estimated.prior_), fitted(0.6))
    )
    np.testing.assert_allclose(answers, same, rtol=1e-3, atol=1e-3)
    assert not np.allclose(answers, other, rtol=1e-3, atol=1e-3)


@every_method
def test_answers_depend_on_seed_and_row_alone(key):
    """Bit for bit, with columns enough for products of matrices to differ in shape."""
    X, y = blobs(n=300, columns=50, distance=1.0)
    pu = make_pu(X, y, n_labeled=0.4, random_state=0)
    model = small(key, random_state=7).fit(pu.X, pu.y)
    together = model.decision_function(X)
    for rows in (slice(0, 1), slice(3, 8), slice(7, 150), slice(1, 300)):
        assert np.array_equal(model.decision_function(X[rows]), together[rows])
    again = clone(model).fit(pu.X, pu.y)
    assert np.array_equal(again.decision_function(X), together)
    assert len(np.unique(together)) > 10
    probability = model.predict_proba(X)
    assert probability.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(model.predict(X), (probability[:, 1] > 0.5).astype(int))


@every_method
def test_a_table_with_gaps_categories_known_negatives_and_groups(key):
    pandas = pytest.importorskip("pandas")
    pu = make_pu(*blobs(), n_labeled=0.4, random_state=0)
    frame = pandas.DataFrame(pu.X, columns=list("abcdef"))
    frame["kind"] = pandas.Categorical(np.where(np.arange(len(frame)) % 3, "x", "y"))
    frame.loc[::17, "a"] = np.nan
    known = np.zeros(len(pu.y), dtype=bool)
    known[np.flatnonzero((pu.y == 0) & (pu.oracle.labels == 0))[:10]] = True
    groups = np.arange(len(pu.y)) // 4
    model = small(key, random_state=0)
    model.fit(frame, pu.y, known_negative=known, groups=groups)
    assert np.isfinite(model.decision_function(frame)).all()


@every_method
def test_images_and_texts(key):
    images, digit = load_digits(return_X_y=True)
    images = (16 * images[:100].reshape(-1, 8, 8)).clip(0, 255).astype(np.uint8)
    pu = make_pu(images, (digit[:100] % 2 == 0), n_labeled=0.4, random_state=0)
    model = small(key, random_state=0).fit(pu.X, pu.y)
    assert model.decision_function(pu.X).shape == (100,)
    rng = np.random.default_rng(0)
    fruit, sea = ["apple", "pear", "plum", "tree"], ["ship", "wave", "fish", "salt"]
    texts = [" ".join(rng.choice([fruit, sea][i % 2], 5)) for i in range(80)]
    model.fit(texts, [int(i % 4 == 0) for i in range(80)])
    assert np.isfinite(model.decision_function(texts[:9])).all()


@every_method
def test_the_page_and_the_test_of_a_method_carry_its_key(key, request):
    root = request.config.rootpath
    assert (root / "docs" / "methods" / f"{key}.md").is_file()
    assert (root / "tests" / "methods" / f"test_{key}.py").is_file()
    assert (root / "src" / "denspu" / "methods" / f"{key}.py").is_file()
    assert registry().get(key).paper


@pytest.mark.parametrize("key", ["dens_pu", "nnpu", "vpu", *CLASSICAL])
def test_nobody_floods_in_silence_where_positives_are_rare(key):
    """One in a hundred is positive: ten times as many calls come with a warning."""
    rng = np.random.default_rng(0)
    y = (np.arange(2_000) % 100 == 0).astype(int)
    X = rng.normal(size=(2_000, 5))
    X[y == 1, :3] += 3
    pu = make_pu(X, y, n_labeled=0.5, random_state=0)
    prior = {"prior": 0.01} if key in PRIOR else {}
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = small(key, random_state=0, **prior).fit(pu.X, pu.y)
    warned = any(issubclass(w.category, DegenerateFitWarning) for w in told)
    assert warned or np.mean(model.predict(pu.X)) <= 10 * y.mean()
