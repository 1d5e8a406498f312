"""The members: they rank, judge positives fairly, and answer the same in any batch."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.metrics import average_precision_score, roc_auc_score
from tests.refinement.starts import begin

import denspu.refinement.members as module
from denspu import DensPU, load, save
from denspu.exceptions import FewRowsWarning, InvalidInputError
from denspu.refinement import MembersRefiner
from denspu.refinement.members import Curve, Places, Scored, fair_margins, take_look


def task(n=300, share=0.3, n_labeled=30, gap=2.0, seed=0):
    """Return embeddings, which are positive, and which carry a label."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) < round(share * n)
    X = rng.normal(size=(n, 4))
    X[:, 0] += np.where(truth, gap, 0)
    label = np.zeros(n, dtype=bool)
    label[rng.choice(np.flatnonzero(truth), n_labeled, replace=False)] = True
    return X, truth, label


@pytest.fixture(autouse=True)
def few_bags(monkeypatch):
    """A tenth of the bags: enough to see what each step does."""
    few = [module.replace(one, bags=max(5, one.bags // 10)) for one in module.MEMBERS]
    monkeypatch.setattr(module, "MEMBERS", tuple(few))
    monkeypatch.setattr(module, "WORDS", module.replace(module.WORDS, bags=5))


@cache
def refined():
    X, truth, label = task()
    return MembersRefiner(random_state=0).refine(begin(X, label)), X, truth, label


def test_it_ranks_hidden_positives_first():
    refiner, X, truth, label = refined()
    for scores in (refiner.unseen_scores_, refiner.decision_function(X)):
        assert roc_auc_score(truth[~label], scores[~label]) > 0.88


def test_as_many_are_called_as_the_share_says():
    refiner, _, _, label = refined()
    called = np.mean(refiner.unseen_scores_[~label] > 0)
    assert called == pytest.approx(refiner.prior_.prior_in_unlabeled, abs=0.01)


def test_a_known_share_is_called_exactly():
    X, _, label = task()
    start = begin(X, label, share=0.2, prior_known=True)
    refiner = MembersRefiner(random_state=0).refine(start)
    assert (refiner.unseen_scores_[~label] > 0).sum() == round(0.2 * (~label).sum())
    assert refiner.prior_.prior_in_unlabeled == 0.2
    assert refiner.estimated_.prior_in_unlabeled != 0.2


def test_labels_are_chances_and_known_rows_stay():
    X, _, label = task()
    negative = np.zeros(len(X), dtype=bool)
    negative[-20:] = True
    refiner = MembersRefiner(random_state=0).refine(
        begin(X, label, known_negative=negative)
    )
    assert (refiner.labels_[label] == 1).all()
    assert (refiner.labels_[negative] == 0).all()
    assert ((refiner.labels_ >= 0) & (refiner.labels_ <= 1)).all()


def test_rows_get_the_same_answer_alone():
    refiner, X, *_ = refined()
    together = refiner.decision_function(X)
    alone = np.concatenate([refiner.decision_function(row[None]) for row in X[:20]])
    np.testing.assert_array_equal(together[:20], alone)


def test_threads_change_nothing():
    X, _, label = task()
    one, two = (
        MembersRefiner(random_state=0, n_jobs=n).refine(begin(X, label)) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.unseen_scores_, two.unseen_scores_)


def test_no_bag_judges_what_it_has_seen(monkeypatch):
    """A learner that knows its rows by heart must gain nothing by it."""
    X, _, label = task(gap=0.0, n_labeled=60)

    class Parrot:
        """Gives 1 to the positives it was shown, and 0 to all others."""

        def fit(self, X, y):
            self.known = {row.tobytes() for row in X[y]}
            return self

        def decision_function(self, X):
            return np.array([float(row.tobytes() in self.known) for row in X])

    parrots = tuple(
        module.replace(one, learner=lambda seed: Parrot()) for one in module.MEMBERS
    )
    monkeypatch.setattr(module, "MEMBERS", parrots)
    groups = np.arange(len(X)) // 3
    for given in (None, groups):
        refiner = MembersRefiner(random_state=0, looks=1)
        refiner.refine(begin(X, label, groups=given))
        own = refiner.unseen_scores_
        assert roc_auc_score(label, own) == pytest.approx(0.5, abs=0.01)


def test_groups_are_judged_whole():
    """Rows of one group are alike: a bag that has seen one may judge none of them."""
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(60, 4))
    groups = np.repeat(np.arange(60), 5)
    X = centres[groups] + 0.01 * rng.normal(size=(300, 4))
    label = groups < 12  # groups at random: their rows alone tell nothing of others
    apart = MembersRefiner(random_state=0).refine(begin(X, label, groups=groups))
    loose = MembersRefiner(random_state=0).refine(begin(X, label))
    assert roc_auc_score(label, loose.unseen_scores_) > 0.9
    assert roc_auc_score(label, apart.unseen_scores_) < 0.75


def scored(name, positive, unlabeled):
    """Return a member whose bags, one for each of two parts, say the same."""
    scores = np.concatenate([positive, unlabeled])
    one = Scored.empty(name, len(scores))
    for part in range(2):
        one.total[part], one.count[part] = scores, 1
    return one


def rows_of(n, m):
    positive = np.arange(n + m) < n
    return module.Rows(
        Z=np.zeros((n + m, 1)),
        wide=None,
        positive=positive,
        free=~positive,
        known_negative=np.zeros(n + m, dtype=bool),
        fold=np.arange(n + m) % 2,
        grouped=False,
    )


def test_evidence_drops_a_member_that_is_clearly_worse():
    rng = np.random.default_rng(0)
    good, bad = rng.normal(2, 1, 40), rng.normal(0, 1, 40)
    names = [member.name for member in module.MEMBERS]
    lists = [scored(name, good, rng.normal(0, 1, 200)) for name in names[:3]]
    lists.append(scored(names[3], bad, rng.normal(0, 1, 200)))
    look, facts = take_look(lists, rows_of(40, 200), keep_all=False)
    assert names[3] not in look.learners
    assert not facts[names[3]]["kept"]
    assert set(names[:2]) <= set(look.learners)
    everyone, _ = take_look(lists, rows_of(40, 200), keep_all=True)
    assert set(everyone.learners) == set(names)


def test_positives_are_placed_by_their_own_bags():
    """Scores of one part lie higher for all rows: that is no merit of its positives."""
    rng = np.random.default_rng(0)
    rows = rows_of(40, 400)
    noise = rng.normal(size=440)
    lists = [scored(one.name, noise[:40], noise[40:]) for one in module.MEMBERS]
    for one in lists:
        one.total[1] += 100.0
    look, _ = take_look(lists, rows, keep_all=True)
    margin = fair_margins([(look, lists)], rows)
    assert roc_auc_score(rows.positive, margin) == pytest.approx(0.5, abs=0.12)


def test_few_stored_scores_place_as_all_do():
    rng = np.random.default_rng(0)
    U = rng.normal(size=20_000)
    few = Places.among(U)
    assert len(few.scores) <= module.KEPT_SCORES
    x = np.concatenate([rng.normal(size=500), np.sort(U)[-50:]])
    exact = (
        np.searchsorted(np.sort(U), x) + np.searchsorted(np.sort(U), x, "right")
    ) / 2
    np.testing.assert_allclose(few(x), exact / len(U), atol=1e-3)
    np.testing.assert_allclose(few(np.sort(U)[-50:]), exact[-50:] / len(U), atol=1e-12)


def test_curve_rises_and_never_claims_more_than_likely_shares_allow():
    rng = np.random.default_rng(0)
    P, U = rng.normal(3, 1, 50), np.r_[rng.normal(3, 1, 60), rng.normal(0, 1, 240)]
    sure = Curve.through(P, U, 0.2)
    rough = Curve.through(P, U, 0.2, np.array([0.05, 0.2, 0.5]))
    x = np.linspace(-3, 6, 200)
    assert (np.diff(sure(x)) > 0).all()
    assert (np.diff(rough(x)) > 0).all()
    assert rough(x).max() < sure(x).max()
    for curve in (sure, rough):
        assert np.mean(curve(U) > 0) == pytest.approx(0.2, abs=0.01)


def test_second_look_spares_likely_positives():
    """With many hidden positives the second look ranks better than the first."""
    gain = []
    for seed in range(3):
        X, truth, label = task(n=400, share=0.5, gap=1.2, seed=seed)
        found = []
        for looks in (1, 2):
            refiner = MembersRefiner(looks=looks, random_state=seed)
            scores = refiner.refine(begin(X, label)).unseen_scores_
            found.append(average_precision_score(truth[~label], scores[~label]))
        gain.append(found[1] - found[0])
    assert np.mean(gain) > 0


def test_one_positive_cannot_be_left_out():
    X, _, label = task(n_labeled=2)
    label[np.flatnonzero(label)[1]] = False
    with pytest.warns(FewRowsWarning, match="leave any out"):
        refiner = MembersRefiner(random_state=0).refine(begin(X, label))
    assert not hasattr(refiner, "unseen_scores_")
    assert np.isfinite(refiner.decision_function(X)).all()


def test_sparse_form_is_asked_for_again():
    X, truth, label = task()
    wide = csr_matrix((X > 1).astype(float))
    refiner = MembersRefiner(random_state=0).refine(begin(X, label, wide=wide))
    assert "words" in refiner.looks_[0].learners
    scores = refiner.decision_function(X, wide)
    assert roc_auc_score(truth[~label], scores[~label]) > 0.8
    with pytest.raises(InvalidInputError, match="wide"):
        refiner.decision_function(X)


def test_before_refining_there_is_no_answer():
    with pytest.raises(NotFittedError):
        MembersRefiner().decision_function(np.zeros((2, 2)))


def test_a_model_of_members_is_kept_bit_by_bit(tmp_path):
    X, _, label = task(n=150)
    model = DensPU(random_state=0).fit(X, label.astype(int), holdout="folds")
    again = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(
        again.decision_function(X), model.decision_function(X)
    )


TEXTS = ["red apple pie", "green apple tart", "blue deep sea", "cold blue sea wind"]


def test_texts_are_kept_with_their_words(tmp_path):
    rng = np.random.default_rng(0)
    texts = [f"{TEXTS[i % 4]} {rng.integers(9)}" for i in range(120)]
    y = np.array([i % 4 < 2 and i < 60 for i in range(120)]).astype(int)
    model = DensPU(random_state=0).fit(texts, y)
    hidden = np.array([i % 4 < 2 for i in range(60, 120)])
    assert roc_auc_score(hidden, model.decision_function(texts[60:])) > 0.95
    again = load(save(model, tmp_path / "model"))
    np.testing.assert_array_equal(
        again.decision_function(texts), model.decision_function(texts)
    )


def test_of_a_large_u_a_sample_is_learned_from():
    X, truth, label = task(n=600)
    refiner = MembersRefiner(random_state=0, max_unlabeled=200)
    refiner.refine(begin(X, label))
    assert refiner.looks_[0].places["trees"].n == 200
    assert len(refiner.unseen_scores_) == 600
    assert roc_auc_score(truth[~label], refiner.unseen_scores_[~label]) > 0.88
