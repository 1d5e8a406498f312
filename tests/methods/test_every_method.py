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
from denspu.priors import _views

pytestmark = pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
every_method = pytest.mark.parametrize("key", METHODS)


def blobs(seed=0, n=240, distance=3.0):
    """Return rows of two kinds and their true labels."""
    rng = np.random.default_rng(seed)
    y = (np.arange(n) % 2 == 0).astype(int)
    X = rng.normal(size=(n, 6))
    X[:, :3] += distance / 2 * (2 * y - 1)[:, None]
    return X, y


def task(seed=0, **settings):
    X, y = blobs(seed, **settings)
    return make_pu(X, y, n_labeled=0.4, random_state=seed)


@every_method
def test_it_learns(key):
    """At its defaults (but for a prior that it needs), new rows are told apart."""
    given = {"prior": 0.5} if registry().get(key).needs_prior else {}
    pu = task()
    model = registry().get(key).build(random_state=0, device="cpu", **given)
    model.fit(pu.X, pu.y)
    X, y = blobs(1)
    answers = model.decision_function(X)
    assert roc_auc_score(y, answers) > 0.95
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


@every_method
def test_labels_given_at_random_teach_nothing(key):
    """P drawn from all rows alike, and no gap between the classes to give them away.

    As many labels given to positives alone teach the same method a good deal.
    """
    longer = {"epochs": 30} if takes(registry().get(key), "epochs") else {}

    def reached(seed, kinds):
        X, y, labels = without_gap(seed, kinds)
        model = small(key, random_state=0, **longer).fit(X, labels)
        return roc_auc_score(y, model.decision_function(X))

    at_random = np.mean([reached(seed, (0, 1)) for seed in (3, 4)])
    assert 0.37 < at_random < 0.63
    assert reached(3, (1,)) > 0.67


@pytest.mark.parametrize(
    "key", [key for key in METHODS if takes(registry().get(key), "prior")]
)
def test_the_prior_is_estimated_and_used(key, monkeypatch):
    """Fewer than a third are positive; the estimate does what the number would do."""
    monkeypatch.setattr(_views, "TREES", 10)
    rng = np.random.default_rng(0)
    y = (np.arange(200) % 10 < 3).astype(int)
    X = rng.normal(size=(200, 4)) + 3 * y[:, None]
    pu = make_pu(X, y, n_labeled=0.5, random_state=0)
    scenario = {"scenario": "two-sample"} if key == "elkan_noto" else {}
    truth = y[pu.y == 0].mean() if scenario else y.mean()

    def fitted(prior):
        return small(key, random_state=0, prior=prior, **scenario).fit(pu.X, pu.y)

    estimated = fitted("estimate")
    assert 0 < estimated.prior_ < 1
    assert estimated.prior_ == pytest.approx(truth, abs=0.04)
    answers, same, other = (
        model.decision_function(pu.X)
        for model in (estimated, fitted(estimated.prior_), fitted(0.6))
    )
    np.testing.assert_allclose(answers, same, rtol=1e-3, atol=1e-3)
    assert not np.allclose(answers, other, rtol=1e-3, atol=1e-3)


@every_method
def test_same_seed_same_answers(key):
    pu = task()
    one, two = (
        small(key, random_state=7).fit(pu.X, pu.y).decision_function(pu.X)
        for _ in range(2)
    )
    assert np.array_equal(one, two)


@every_method
def test_scores_vary_and_probabilities_sum_to_one(key):
    pu = task()
    model = small(key, random_state=0).fit(pu.X, pu.y)
    assert len(np.unique(model.decision_function(pu.X))) > 10
    probability = model.predict_proba(pu.X)
    assert probability.shape == (len(pu.X), 2)
    assert probability.sum(axis=1) == pytest.approx(1)
    assert np.array_equal(model.predict(pu.X), (probability[:, 1] > 0.5).astype(int))


@every_method
def test_a_row_does_not_depend_on_its_batch(key):
    """Bit for bit: columns enough for products of matrices to differ in shape."""
    rng = np.random.default_rng(0)
    y = (np.arange(300) % 2 == 0).astype(int)
    X = rng.normal(size=(300, 50)) + 0.5 * y[:, None]
    pu = make_pu(X, y, n_labeled=0.4, random_state=0)
    model = small(key, random_state=0).fit(pu.X, pu.y)
    together = model.decision_function(X)
    for rows in (slice(0, 1), slice(3, 8), slice(7, 150), slice(1, 300)):
        assert np.array_equal(model.decision_function(X[rows]), together[rows])


@every_method
def test_a_table_with_gaps_and_categories(key):
    pandas = pytest.importorskip("pandas")
    pu = task()
    frame = pandas.DataFrame(pu.X, columns=list("abcdef"))
    frame["kind"] = pandas.Categorical(np.where(np.arange(len(frame)) % 3, "x", "y"))
    frame.loc[::17, "a"] = np.nan
    model = small(key, random_state=0).fit(frame, pu.y)
    assert np.isfinite(model.decision_function(frame)).all()


@every_method
def test_images(key):
    images, digit = load_digits(return_X_y=True)
    images = (16 * images[:150].reshape(-1, 8, 8)).clip(0, 255).astype(np.uint8)
    pu = make_pu(images, (digit[:150] % 2 == 0), n_labeled=0.4, random_state=0)
    model = small(key, random_state=0).fit(pu.X, pu.y)
    assert model.decision_function(pu.X).shape == (150,)


@every_method
def test_texts(key):
    rng = np.random.default_rng(0)
    fruit, sea = ["apple", "pear", "plum", "tree"], ["ship", "wave", "fish", "salt"]
    texts = [" ".join(rng.choice([fruit, sea][i % 2], 5)) for i in range(80)]
    y = [int(i % 4 == 0) for i in range(80)]
    assert "text" in registry().get(key, "method").inputs
    model = small(key, random_state=0).fit(texts, y)
    assert np.isfinite(model.decision_function(texts[:9])).all()


@every_method
def test_known_negatives_and_groups_are_taken(key):
    pu = task()
    known = np.zeros(len(pu.y), dtype=bool)
    known[np.flatnonzero((pu.y == 0) & (pu.oracle.labels == 0))[:10]] = True
    groups = np.arange(len(pu.y)) // 4
    model = small(key, random_state=0)
    model.fit(pu.X, pu.y, known_negative=known, groups=groups)
    assert np.isfinite(model.decision_function(pu.X)).all()


@every_method
def test_a_copy_is_unfitted_and_fits_alike(key):
    pu = task()
    model = small(key, random_state=0).fit(pu.X, pu.y)
    again = clone(model).fit(pu.X, pu.y)
    assert np.array_equal(model.decision_function(pu.X), again.decision_function(pu.X))


@every_method
def test_the_page_and_the_test_of_a_method_carry_its_key(key, request):
    root = request.config.rootpath
    assert (root / "docs" / "methods" / f"{key}.md").is_file()
    assert (root / "tests" / "methods" / f"test_{key}.py").is_file()
    assert (root / "src" / "denspu" / "methods" / f"{key}.py").is_file()
    assert registry().get(key).paper


@every_method
def test_nobody_floods_in_silence_where_positives_are_rare(key):
    """One in a hundred is positive: ten times as many calls come with a warning."""
    rng = np.random.default_rng(0)
    y = (np.arange(2_000) % 100 == 0).astype(int)
    X = rng.normal(size=(2_000, 5))
    X[y == 1, :3] += 3
    pu = make_pu(X, y, n_labeled=0.5, random_state=0)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        model = small(key, random_state=0, **RARE_PRIOR.get(key, {})).fit(pu.X, pu.y)
    warned = any(issubclass(w.category, DegenerateFitWarning) for w in told)
    assert warned or np.mean(model.predict(pu.X)) <= 10 * y.mean()


RARE_PRIOR = {
    key: {"prior": 0.01} for key in METHODS if takes(registry().get(key), "prior")
}


def test_too_many_positives_for_the_prior_are_told():
    """A model that calls ten times the estimated share positive warns."""
    X, y = blobs(n=400)
    pu = make_pu(X, y, n_labeled=0.4, random_state=0)

    model = small("nnpu", prior=0.5, random_state=0)
    model.fit(pu.X, pu.y)
    model.prior_in_unlabeled_ = 0.01
    with pytest.warns(DegenerateFitWarning, match="share of positives vouches"):
        model._warn_if_degenerate(_checked(pu))


def _checked(pu):
    from denspu._validation import PUInput

    positive = pu.y == 1
    return PUInput(pu.X, "table", positive, np.zeros(len(positive), bool), None)
