"""True labels beside the model's own estimates."""

from __future__ import annotations

import json
import re
import warnings

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    balanced_accuracy_score,
    f1_score,
    roc_auc_score,
)
from tests.small import small

from denspu import load, save
from denspu.data import read_items
from denspu.exceptions import (
    DensPUWarning,
    InvalidInputError,
    InvalidParameterError,
    LabelError,
)
from denspu.metrics import oracle_metrics
from denspu.runs import Reading, evaluate_files
from denspu.runs.evaluate import _counted, _figures

N = 300


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A run on a table; column ``label`` holds the labels of the fit."""
    top = tmp_path_factory.mktemp("run")
    rng = np.random.default_rng(0)
    truth = rng.random(N) < 0.4
    labels = (truth & (rng.random(N) < 0.5)).astype(int)
    x = rng.normal(size=(N, 2)) + 2 * truth[:, None]
    lines = ["id,u,v,label,truth"]
    for i in range(N):
        known = "" if i % 3 == 2 else str(int(truth[i]))
        lines.append(f"k{i},{x[i, 0]},{x[i, 1]},{labels[i]},{known}")
    (top / "t.csv").write_text("\n".join(lines))
    options = {"id_column": "id", "label_column": "label"}
    items = read_items(top / "t.csv", aside=["truth"], **options)
    model = small("pu_bagging", random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)
        model.fit(items.X, items.labels, holdout=0.3)
    how = {"kind": "table", "plan": dict(items.plan), "options": options}
    save(model, top / "run" / "model", extra={"input": how})
    scores = model.decision_function(items.X)
    lines = ["item,score"] + [
        f"k{i},{float(s)!r}" for i, s in enumerate(scores) if not labels[i]
    ]
    (top / "run" / "scores.csv").write_text("\n".join(lines))
    run = {"sources": {"table": str(top / "t.csv")}}
    (top / "run" / "run.json").write_text(json.dumps(run))
    return top, truth.astype(int), labels, scores


def write_labels(path, names, truth, header="item,label"):
    rows = [f"{n},{t}" for n, t in zip(names, truth, strict=True)]
    path.write_text("\n".join([header, *rows]))
    return path


def test_figures_are_those_of_the_oracle_beside_the_estimates(home, tmp_path):
    top, truth, _, scores = home
    at = np.arange(0, N, 2)
    names = [f"k{i}" for i in at]
    labels = write_labels(tmp_path / "l.csv", [*names, "zz"], [*truth[at], 1])
    found = evaluate_files(top / "run/model", top / "t.csv", labels=labels, chunk=7)
    model = load(top / "run/model")
    right = oracle_metrics(truth[at], scores[at])
    own = model.evaluate(k=1)
    assert set(found.figures) == {*right, "lift"}
    for name, value in right.items():
        one = found[name]
        assert one.value == pytest.approx(value, abs=1e-12)
        assert one.low <= one.value <= one.high
        assert one.estimate == own[name].value
        assert (one.estimate_low, one.estimate_high) == (own[name].low, own[name].high)
        inside = own[name].low <= one.value <= own[name].high
        meet = one.low <= own[name].high and own[name].low <= one.high
        assert one.held == (True if inside else None if meet else False)
    assert (found.n_items, found.n_labels, found.n_matched) == (N, 151, 150)
    assert (found.n_unmatched, list(found.unmatched)) == (1, ["zz"])
    assert found.n_positive == int(truth[at].sum())
    assert sum(found.counts.values()) == 150
    assert found.prior_in_unlabeled == model.evidence_.prior_in_unlabeled
    text = str(found)
    assert "150 of 300 items have a true label" in text
    assert "1 label matches no item: 'zz'." in text
    assert "estimated without" in text
    assert json.loads(json.dumps(found.to_json()))["figures"]["recall"]["how"] == (
        "Wilson"
    )


def test_a_column_of_the_table_and_gaps_in_it(home):
    top, truth, _, scores = home
    found = evaluate_files(top / "run/model", top / "t.csv", label_column="truth")
    at = np.arange(N) % 3 != 2
    assert found.n_matched == found.n_labels == int(at.sum())
    assert found.n_unknown == N - int(at.sum())
    assert found["roc_auc"].value == pytest.approx(
        roc_auc_score(truth[at], scores[at]), abs=1e-12
    )


def test_without_input_the_run_s_own_items_are_meant(home, tmp_path):
    top, truth, labels, scores = home
    written = write_labels(tmp_path / "l.csv", [f"k{i}" for i in range(N)], truth)
    found = evaluate_files(top / "run/model", labels=written)
    at = labels == 0
    assert found.n_items == found.n_matched == int(at.sum())
    assert found.n_unmatched == int(labels.sum())
    assert found["accuracy"].value == pytest.approx(
        np.mean((scores[at] > 0) == truth[at])
    )
    (tmp_path / "alone").mkdir()
    model = load(top / "run/model")
    save(model, tmp_path / "alone/m", extra={"input": {"plan": {"kind": "text"}}})
    with pytest.raises(InvalidInputError, match=r"no scores\.csv beside"):
        evaluate_files(tmp_path / "alone/m", labels=written)


def test_another_threshold_moves_both_sides(home, tmp_path):
    top, truth, _, scores = home
    written = write_labels(tmp_path / "l.csv", [f"k{i}" for i in range(N)], truth)
    found = evaluate_files(
        top / "run/model", top / "t.csv", labels=written, threshold="recall=0.6"
    )
    model = load(top / "run/model").set_threshold(recall=0.6)
    assert found.threshold == model.threshold_ != 0
    assert found["recall"].estimate == model.evaluate(k=1)["recall"].value
    called = scores > model.threshold_
    assert found.counts["tp"] == int((called & (truth == 1)).sum())
    with pytest.raises(InvalidParameterError, match="about a whole list"):
        evaluate_files(
            top / "run/model", top / "t.csv", labels=written, threshold="top=5"
        )


# --- what to be careful about --------------------------------------------------------


def told(home, tmp_path, rows):
    top, truth, _, _ = home
    written = write_labels(tmp_path / "l.csv", [f"k{i}" for i in rows], truth[rows])
    return evaluate_files(top / "run/model", top / "t.csv", labels=written)


def test_positives_of_the_fit_are_noticed_in_one_table(home, tmp_path):
    _, _, labels, _ = home
    found = told(home, tmp_path, np.arange(N))
    n = int(labels.sum())
    assert any(
        f"{n} labelled items are among the positives" in w for w in found.warnings
    )
    clean = told(home, tmp_path, np.flatnonzero(labels == 0))
    assert not any("among the positives" in w for w in clean.warnings)


def test_positives_of_the_fit_are_noticed_in_a_folder(home, tmp_path):
    from denspu.runs.evaluate import training_positives
    from denspu.runs.predict import open_model

    top, *_ = home
    scorer = open_model(top / "run/model", None)
    (tmp_path / "all/confirmed").mkdir(parents=True)
    (tmp_path / "run").mkdir()
    run = {"sources": {"positive": str(tmp_path / "all/confirmed")}}
    (tmp_path / "run/run.json").write_text(json.dumps(run))
    ids = ["confirmed/a.png", "new/b.png"]
    model = tmp_path / "run/model"
    assert training_positives(model, tmp_path / "all", scorer, ids) == ids[:1]
    inside = tmp_path / "all/confirmed"
    assert training_positives(model, inside, scorer, ["a.png"]) == ["a.png"]
    assert training_positives(model, tmp_path / "run", scorer, ids) == []
    (tmp_path / "run/run.json").write_text("[1]")
    assert training_positives(model, inside, scorer, ids) == []


def test_few_labels_one_class_and_another_share(home, tmp_path):
    _, truth, labels, _ = home
    new = np.flatnonzero(labels == 0)
    positive, negative = new[truth[new] == 1], new[truth[new] == 0]
    few = told(home, tmp_path, np.r_[positive[:5], negative[:50]])
    assert any("Only 5 positive and 50 negative" in w for w in few.warnings)
    alone = told(home, tmp_path, positive[:40])
    assert list(alone.figures) == ["recall"]
    assert any("All true labels are positive: only recall" in w for w in alone.warnings)
    alone = told(home, tmp_path, negative[:40])
    assert list(alone.figures) == ["accuracy"]
    other = told(home, tmp_path, np.r_[positive[:40], negative[:32]])
    low, high = load(home[0] / "run/model").evidence_.prior_interval
    expected = "55.6% of the labelled items are positive, and the model expects .*"
    expected += re.escape(f"({low:.1%} to {high:.1%})")
    assert any(re.match(expected, w) for w in other.warnings)
    n = round(40 * (1 - high + 0.02) / (high - 0.02))  # a share inside the interval
    same = told(home, tmp_path, np.r_[positive[:40], negative[:n]])
    assert not any("of the labelled items" in w for w in same.warnings)


def test_estimates_that_fail_are_named(home, tmp_path):
    """Labels turned round: nothing the model expects can hold."""
    top, truth, labels, _ = home
    new = np.flatnonzero(labels == 0)
    written = write_labels(tmp_path / "l.csv", [f"k{i}" for i in new], 1 - truth[new])
    found = evaluate_files(top / "run/model", top / "t.csv", labels=written)
    assert found["roc_auc"].held is False
    assert any("did not hold" in w and "roc_auc" in w for w in found.warnings)
    assert "did not hold" in str(found)


def test_reading_goes_before_what_the_model_kept(home, tmp_path):
    from denspu.runs.predict import open_model

    top, *_ = home
    new, labels = tmp_path / "n.csv", tmp_path / "l.csv"
    rows = (top / "t.csv").read_text().replace("id,", "né,", 1)
    new.write_text(rows, encoding="latin-1")
    labels.write_text("né,label\nk0,1\nk1,0\n", encoding="latin-1")
    reading = Reading(id_column="né", encoding="latin-1")
    found = evaluate_files(
        top / "run/model", new, labels=labels, item_column="né", reading=reading
    )
    assert found.n_matched == 2
    options = open_model(top / "run/model", None, Reading(ids="i", workers=3)).options
    assert options == {"id_column": "id", "ids": "i", "workers": 3}


def test_a_model_without_held_out_positives(home, tmp_path):
    top, *_ = home
    items = read_items(top / "t.csv", id_column="id", label_column="label")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)
        model = small("pu_bagging", random_state=0).fit(items.X, items.labels)
    how = {"plan": dict(items.plan), "options": {"id_column": "id"}}
    save(model, tmp_path / "m", extra={"input": how})
    found = evaluate_files(tmp_path / "m", top / "t.csv", label_column="truth")
    assert found["recall"].estimate is None
    assert found["recall"].held is None
    assert any("without held-out positives" in w for w in found.warnings)


# --- files of labels -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "error", "said"),
    [
        ("item,label\nk1,maybe\n", LabelError, r"'maybe' \(1 row\).*1 or true"),
        (
            "who,label\nk1,1\n",
            InvalidInputError,
            "no column 'item' or 'id'.*--item-col",
        ),
        ("item,is\nk1,1\n", InvalidInputError, "no column 'label' or 'y'"),
        (
            "item,label\nno,1\n",
            InvalidInputError,
            "they name 'no'.*items are called 'k0'",
        ),
        ("item,label\nk1,\n", InvalidInputError, "There is no label"),
        ("item,label\n", InvalidInputError, "a header and no rows"),
    ],
)
def test_labels_that_cannot_be_used(home, tmp_path, text, error, said):
    (tmp_path / "l.csv").write_text(text)
    with pytest.raises(error, match=said):
        evaluate_files(
            home[0] / "run/model", home[0] / "t.csv", labels=tmp_path / "l.csv"
        )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "There are no labels"),
        ({"label_column": "truth", "source": None}, "pass their table"),
        ({"label_column": "truht"}, "Did you mean 'truth'"),
        ({"label_column": "truth", "level": 1.0}, "level must be"),
        ({"label_column": "truth", "n_resamples": 5}, "n_resamples must be"),
    ],
)
def test_wrong_arguments(home, options, said):
    source = options.get("source", home[0] / "t.csv")
    rest = {k: v for k, v in options.items() if k != "source"}
    with pytest.raises(InvalidParameterError, match=said):
        evaluate_files(home[0] / "run/model", source, **rest)


# --- intervals -----------------------------------------------------------------------


def figures(truth, scores, threshold, times=200, seed=0):
    rng = np.random.default_rng(seed)
    return _counted(truth, scores, threshold, 0.9, times, rng)


def test_weighted_figures_equal_those_of_scikit_learn():
    """Whole weights are repeated rows."""
    rng = np.random.default_rng(0)
    scores = rng.integers(0, 6, 40).astype(float)
    truth = rng.integers(0, 2, 40)
    weight = rng.integers(1, 4, 40)
    order = np.argsort(-scores, kind="stable")
    s, t, w = scores[order], truth[order], weight[order].astype(float)
    ends = np.flatnonzero(np.append(s[1:] < s[:-1], True))
    found = _figures((w * t)[None], (w * (1 - t))[None], ends, int((s > 2.5).sum()))
    s, t = np.repeat(scores, weight), np.repeat(truth, weight)
    called = (s > 2.5).astype(int)
    right = {
        "balanced_accuracy": balanced_accuracy_score(t, called),
        "f1": f1_score(t, called),
        "roc_auc": roc_auc_score(t, s),
        "average_precision": average_precision_score(t, s),
        "lift": t[called == 1].mean() / t.mean(),
    }
    for name, value in right.items():
        assert found[name][0] == pytest.approx(value, abs=1e-12), name


def test_drawn_intervals_hold_the_truth_about_as_often_as_they_say():
    rng = np.random.default_rng(1)
    big_truth = (rng.random(200_000) < 0.4).astype(int)
    big = rng.normal(size=200_000) + 1.2 * big_truth
    right = oracle_metrics(big_truth, big - 0.5)
    names = ("accuracy", "balanced_accuracy", "f1", "roc_auc", "average_precision")
    hits = dict.fromkeys(names, 0)
    times = 40
    for i in range(times):
        at = rng.integers(0, len(big), 150)
        for one in figures(big_truth[at], big[at], 0.5, 200, i):
            if one.name in hits:
                hits[one.name] += one.low <= right[one.name] <= one.high
    for name in names:
        assert 0.8 <= hits[name] / times <= 0.99, name


def test_a_perfect_order_of_few_rows_is_not_certain():
    truth = np.array([1] * 5 + [0] * 5)
    found = {one.name: one for one in figures(truth, np.arange(10.0)[::-1], 4.5)}
    assert found["roc_auc"].value == found["recall"].high == 1
    assert 0.5 < found["roc_auc"].low < 0.95
    assert 0.5 < found["recall"].low < 0.95


def test_scores_that_differ_in_the_last_bit_are_no_tie():
    """A shift by the threshold would make them equal."""
    scores = np.array([1e-17, 2e-17, 3e-17, 4e-17])
    truth = np.array([0, 1, 0, 1])
    found = {one.name: one for one in figures(truth, scores, 100.0)}
    assert found["roc_auc"].value == roc_auc_score(truth, scores) == 0.75
    assert "precision" not in found
    assert "lift" not in found
