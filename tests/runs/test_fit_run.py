"""A whole run from Python: who is fitted, what is decided, what is written."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest

import denspu
from denspu.data import Items, read_items
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError
from denspu.report.words import headline, result_lines, sureness
from denspu.runs import RunOptions, fit_run, read_input
from denspu.runs.fit import CHOSEN, COPY, KNOWN, STAGES
from denspu.runs.reading import copies_together

HEADER = ["item", "customer", "when", "size", "town", "hour", "label"]


def make_table(path, n=160, seed=0):
    """Write rows, a quarter of them positive, two thirds of those labelled."""
    rng = np.random.default_rng(seed)
    truth = np.arange(n) % 4 == 0
    with path.open("w", newline="") as file:
        write = csv.writer(file).writerow
        write(HEADER)
        for i in range(n):
            size = rng.normal(6 if truth[i] else 0)
            town = "" if i % 11 == 0 else rng.choice(["A", "B"])
            hour = rng.normal(3 if truth[i] else -3)
            labelled = int(truth[i] and i % 3 > 0)
            day = f"2024-01-{1 + i % 28:02d}"
            write([f"r{i}", f"c{i // 2}", day, f"{size:.4f}", town, hour, labelled])
    return path


def options(tmp_path, **changes):
    table = {"table": tmp_path / "t.csv", "label_column": "label", "id_column": "item"}
    if "positive" in changes or "table" in changes:
        table = {}
    usual = {"out": tmp_path / "run", "method": "elkan_noto", "device": "cpu"}
    return RunOptions(**{**usual, **table, **changes})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """One run with groups, times, known negatives and a rule for the cut."""
    top = tmp_path_factory.mktemp("made")
    make_table(top / "t.csv")
    (top / "no.csv").write_text("item,label\nr1,0\nr2,0\nr3,\nr5,1\nelsewhere,0\n")
    told = []
    facts, rows = fit_run(
        options(
            top,
            groups="customer",
            time="when",
            known_negatives=top / "no.csv",
            threshold="recall=0.8",
        ),
        report=lambda path, facts, rows: path.write_text(facts.kind),
        tell=lambda word, sentence: told.append((word, sentence)),
    )
    return top, facts, rows, told


def scores(run):
    with (run / "scores.csv").open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_the_folder_holds_what_is_promised(made):
    top, facts, _, _ = made
    run = top / "run"
    assert sorted(p.name for p in run.iterdir()) == [
        "model",
        "report.html",
        "run.json",
        "scores.csv",
        "scores.parquet",
        "skipped.csv",
    ]
    assert (run / "report.html").read_text() == "table"
    assert json.loads((run / "run.json").read_text()) == facts.to_json()
    assert not list(top.glob("*.part"))


def test_scores_are_every_unlabelled_item_highest_first(made):
    top, facts, rows, _ = made
    found = scores(top / "run")
    assert len(found) == facts.n_unlabeled == len(rows.unlabeled)
    assert [int(r["rank"]) for r in found] == list(range(1, len(found) + 1))
    values = [float(r["score"]) for r in found]
    assert values == sorted(values, reverse=True)
    assert {r["stage"] for r in found} <= set(STAGES)
    assert sum(int(r["decision"]) for r in found) == facts.n_called
    by_id = {r["item"]: float(r["score"]) for r in found}
    assert [by_id[i] for i in rows.unlabeled.ids] == rows.score_unlabeled.tolist()


def test_the_saved_model_gives_the_scores_again(made):
    """What predict needs lies in the model folder: how to read, and the cut."""
    top, facts, rows, _ = made
    model = denspu.load(top / "run" / "model")
    how = read_input(top / "run" / "model")
    read = read_items(top / "t.csv", like=how["plan"], id_column="item")
    again = dict(zip(read.ids, model.decision_function(read.X), strict=True))
    assert [again[i] for i in rows.unlabeled.ids] == rows.score_unlabeled.tolist()
    assert how["kind"] == "table"
    assert how["options"]["id_column"] == "item"
    assert set(how["plan"]["columns"]) == {"size", "town", "hour"}
    assert model.threshold_ == facts.threshold.value
    proba = model.predict_proba(read.X)[:, 1]
    kept = dict(zip(read.ids, proba, strict=True))
    is_open = rows.stage != KNOWN
    expected = np.array([kept[i] for i in rows.unlabeled.ids])
    assert np.array_equal(rows.probability[is_open], expected[is_open])


def test_known_negatives_are_decided(made):
    """Rows labelled 0 in the file, not those with 1 or nothing."""
    _, facts, rows, _ = made
    known = rows.stage == KNOWN
    assert np.array(rows.unlabeled.ids)[known].tolist() == ["r1", "r2"]
    assert (rows.decision[known] == 0).all()
    assert (rows.probability[known] == 0).all()
    assert any("'elsewhere'" in w for w in facts.warnings)
    assert facts.evaluation.n_unlabeled == facts.n_unlabeled - 2


def test_held_out_groups_are_the_latest_and_whole(made):
    _, facts, rows, _ = made
    held = rows.held_out
    assert facts.n_held_out == held.sum() > 0
    groups, times = (rows.positive.aside[n] for n in ("customer", "when"))
    assert not set(groups[held]) & set(groups[~held])
    last = {g: max(times[groups == g]) for g in groups}
    assert min(last[g] for g in groups[held]) >= max(last[g] for g in groups[~held])


def test_the_facts_are_complete(made):
    _, facts, rows, _ = made
    low, value, high = (getattr(facts.prior, k) for k in ("low", "value", "high"))
    assert 0 <= low <= value <= high <= 1
    assert facts.count.value == pytest.approx(value * facts.n_unlabeled)
    assert facts.threshold.rule == "recall"
    assert facts.evaluation["recall"].value >= 0.8
    assert len(facts.sensitivity) == 5
    assert facts.sensitivity[0].prior == pytest.approx(low)
    names = [check.name for check in facts.checks]
    assert names == ["labels at random", "trivial model", "shortcut"]
    assert facts.lists[0].name == "sure negatives"
    assert "declared positives" in facts.lists[-1].sentence
    assert facts.stages[0].name == "read"
    assert {"read", "fit", "total"} <= set(facts.seconds)
    assert facts.versions["denspu"] == denspu.__version__
    assert rows.map_positive.shape == (facts.n_positive, 2)
    assert rows.map_unlabeled.shape == (facts.n_unlabeled, 2)
    assert "variance" in rows.map_note


def write_embeddings(tmp_path, copies=0):
    """Two clouds; the first rows of U are copies of the first rows of P."""
    rng = np.random.default_rng(0)
    P = rng.normal(2, 1, (40, 4))
    U = np.concatenate(
        [P[:copies], rng.normal(2, 1, (20, 4)), rng.normal(-2, 1, (80, 4))]
    )
    np.save(tmp_path / "p.npy", P)
    np.save(tmp_path / "u.npy", U)
    return {"positive": tmp_path / "p.npy", "unlabeled": tmp_path / "u.npy"}


def test_copies_of_positives_are_positive_and_not_fitted(tmp_path, monkeypatch):
    """No copy is in the fit: not as unlabelled, and not as the twin of a held-out."""
    from denspu.methods.elkan_noto import ElkanNoto

    seen = {}
    fit = ElkanNoto.fit

    def spy(self, X, y, **named):
        seen.update(X=X, y=y, **named)
        return fit(self, X, y, **named)

    monkeypatch.setattr(ElkanNoto, "fit", spy)
    facts, rows = fit_run(options(tmp_path, **write_embeddings(tmp_path, copies=6)))
    assert seen["X"].shape == (40 + 100, 4)
    assert len(np.unique(seen["X"], axis=0)) == 140
    copied = rows.stage == COPY
    assert np.flatnonzero(copied).tolist() == list(range(6))
    assert (rows.decision[copied] == 1).all()
    assert (rows.probability[copied] == 1).all()
    assert facts.evaluation.n_unlabeled == 100
    assert facts.count.low >= 6
    assert len(facts.copies) == 6
    share = (facts.count.value - 6) / 100
    assert facts.evaluation.prior_in_unlabeled == pytest.approx(share)


def test_a_known_share_inside_u_is_kept(tmp_path):
    given = write_embeddings(tmp_path, 4)
    facts, _ = fit_run(options(tmp_path, prior_in_unlabeled=0.25, **given))
    assert facts.prior.value == pytest.approx(0.25)
    assert facts.prior.given
    ends = facts.count.value, facts.count.low, facts.count.high
    assert ends == pytest.approx((26, 26, 26))
    inside = facts.evaluation.prior_in_unlabeled
    assert inside == pytest.approx((26 - 4) / 100)
    assert facts.settings["prior_in_unlabeled"] == 0.25


def test_a_known_share_of_all_items_is_what_the_method_means(tmp_path):
    """56 of 140 are positive, and 40 of these are labelled."""
    told = []
    given = {"method": "nnpu", "prior": 0.4, "settings": {"epochs": 1}}
    facts, _ = fit_run(
        options(tmp_path, **given, **write_embeddings(tmp_path)),
        tell=lambda word, said: told.append(word),
    )
    model = denspu.load(tmp_path / "run/model")
    assert model.prior == pytest.approx(0.4)
    assert facts.prior.value == pytest.approx((0.4 * 140 - 40) / 100)
    assert facts.settings["prior_of"] == "all items"
    assert told.count("note") == 1
    assert not any("without a prior" in w for w in facts.warnings)


def test_in_two_samples_a_known_share_is_that_of_u(tmp_path):
    given = {"method": "pusb", "settings": {"epochs": 1}, "scenario": "two-sample"}
    given |= write_embeddings(tmp_path)
    facts, _ = fit_run(options(tmp_path, prior=0.3, **given))
    assert denspu.load(tmp_path / "run/model").prior == pytest.approx(0.3)
    assert facts.prior.value == pytest.approx(0.3)


def test_a_given_share_is_set_beside_what_the_scores_say(tmp_path):
    """0.9 is far too large here, and the table reaches down to the estimate."""
    given = write_embeddings(tmp_path)
    facts, _ = fit_run(options(tmp_path, prior_in_unlabeled=0.9, **given))
    priors = [row.prior for row in facts.sensitivity]
    assert priors[-1] == pytest.approx(0.9)
    assert len(priors) > 1
    assert priors[0] < 0.6
    right = [row.precision for row in facts.sensitivity]
    assert right[0] < right[-1]


def test_a_prior_that_copies_contradict_is_refused(tmp_path):
    with pytest.raises(InvalidParameterError, match="4 copies of labelled positives"):
        fit_run(options(tmp_path, prior=0.01, **write_embeddings(tmp_path, 4)))
    assert not (tmp_path / "run.part").exists()


def test_without_hold_out_nothing_is_claimed(tmp_path):
    facts, rows = fit_run(options(tmp_path, holdout=0, **write_embeddings(tmp_path)))
    assert facts.evaluation is None
    assert facts.sensitivity == facts.lists == []
    assert facts.n_held_out == 0
    assert any("Nothing is held out" in w for w in facts.warnings)
    assert facts.threshold.rule == "own"
    assert np.array_equal(rows.decision, (rows.score_unlabeled > 0).astype(int))


def test_reliable_negatives_are_named(tmp_path):
    _, rows = fit_run(options(tmp_path, method="spy", **write_embeddings(tmp_path)))
    assert len(rows.chosen)
    chosen = np.zeros(100, dtype=bool)
    chosen[rows.chosen] = True
    assert np.array_equal(rows.stage == CHOSEN, chosen & (rows.decision == 0))


def test_a_mislabelled_positive_looks_odd(tmp_path):
    """Two rows of the other cloud among P come first, held out or not."""
    given = write_embeddings(tmp_path)
    P = np.load(given["positive"])
    P[[7, 21]] = [[-2, -2.1, -1.9, -2], [-1.8, -2, -2, -2.2]]
    np.save(given["positive"], P)
    _, rows = fit_run(options(tmp_path, **given))
    assert set(rows.odd_positive[:2].tolist()) == {7, 21}


def test_top_calls_so_many(tmp_path):
    facts, rows = fit_run(
        options(tmp_path, threshold="top=12", **write_embeddings(tmp_path, 3))
    )
    assert (rows.decision[3:] == 1).sum() == 12
    assert facts.n_called == 12 + 3, "copies are called positive besides"
    assert facts.threshold.sentence.startswith("The 12 highest of 100 unlabelled")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"label_column": None}, "--label-column"),
        ({"scenario": "one sample"}, "one-sample or two-sample"),
        ({"method": "kldce", "scenario": "two-sample"}, "one-sample data alone"),
        ({"holdout": 1.0}, "holdout=1.0"),
        ({"holdout": 0, "threshold": "prior"}, "holdout=0 keeps none"),
        ({"threshold": "recall=2"}, "above 0 and up to 1"),
        ({"threshold": "prior=0.1"}, "takes no number"),
        ({"prior": 1.5}, "prior=1.5"),
        ({"method": "elkan_nota"}, "Did you mean 'elkan_noto'"),
        ({"settings": {"random_state": 1}}, "--seed"),
        ({"settings": {"nothing": 1}}, "no parameter 'nothing'"),
    ],
    ids=lambda value: None if isinstance(value, dict) else value[:12],
)
def test_what_cannot_work_is_refused_before_files_are_read(tmp_path, changes, message):
    with pytest.raises(InvalidParameterError, match=message):
        fit_run(options(tmp_path, **changes))


@pytest.mark.parametrize(
    ("method", "settings", "said"),
    [
        ("spy", {}, True),
        ("pu_bagging", {}, False),
    ],
)
def test_a_prior_that_is_not_learned_with_is_said_once(
    tmp_path, method, settings, said
):
    facts, _ = fit_run(
        options(
            tmp_path,
            method=method,
            prior=0.4,
            settings=settings,
            **write_embeddings(tmp_path),
        )
    )
    found = [w for w in facts.warnings if "prior" in w.lower()]
    assert [f"{method} learns without a prior" in w for w in found] == [True] * said


def test_a_labelled_positive_cannot_be_a_known_negative(tmp_path):
    make_table(tmp_path / "t.csv", n=48)
    (tmp_path / "no.txt").write_text("r4\n")
    with pytest.raises(LabelError, match="'r4'"):
        fit_run(options(tmp_path, known_negatives=tmp_path / "no.txt"))


def test_a_cut_that_contradicts_the_chances_is_spoken_of(tmp_path):
    """A score shifted up calls items positive whose chance is small."""
    make_table(tmp_path / "t.csv")
    fit = denspu.make("elkan_noto").__class__._decide
    said = {}
    for shift in (0.0, 1.5):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(
                denspu.make("elkan_noto").__class__,
                "_decide",
                lambda self, X, shift=shift: fit(self, X) + shift,
            )
            for wish in (None, "prior"):
                out = tmp_path / f"run-{shift}-{wish}"
                facts, _ = fit_run(options(tmp_path, out=out, threshold=wish))
                said[shift, wish] = [w for w in facts.warnings if "disagree" in w]
    assert said[0.0, None] == said[0.0, "prior"] == said[1.5, "prior"] == []
    (sentence,) = said[1.5, None]
    assert "called positive have a chance below 50 %" in sentence
    assert "held-out positives" in sentence
    assert "--threshold" in sentence


def test_a_check_that_could_not_be_made_is_neither_good_nor_bad(tmp_path):
    """Five held-out positives cannot show whether labels were given at random."""
    make_table(tmp_path / "t.csv")
    facts, _ = fit_run(options(tmp_path))
    check = next(c for c in facts.checks if c.name == "labels at random")
    assert check.ok is None
    assert check.sentence.startswith("Too few to compare")
    told = [sentence for _, sentence in result_lines(facts, None)]
    assert check.sentence not in told


def test_what_reading_shows_to_be_impossible_is_refused_before_the_fit(tmp_path):
    pair = write_embeddings(tmp_path)
    with pytest.raises(InvalidInputError, match="there are 100 items"):
        fit_run(options(tmp_path, threshold="top=101", **pair))
    (tmp_path / "no.txt").write_text("x\n")
    with pytest.raises(InvalidInputError, match="Write them as"):
        fit_run(options(tmp_path, known_negatives=tmp_path / "no.txt", **pair))
    np.save(tmp_path / "p.npy", np.load(tmp_path / "p.npy")[:9])
    with pytest.raises(InvalidInputError, match="is chosen with held-out positives"):
        fit_run(options(tmp_path, threshold="prior", **pair))


# --- who judges ----------------------------------------------------------------------


def judged(tmp_path, **changes):
    make_table(tmp_path / "t.csv")
    return fit_run(options(tmp_path, **changes))


def test_every_positive_judges_where_that_needs_no_second_fit(tmp_path):
    facts, rows = judged(tmp_path, method="dens_pu")
    assert facts.n_held_out == facts.n_positive == len(rows.positive)
    assert facts.in_turn
    assert facts.settings["holdout"] == "folds"
    assert facts.evaluation.n_positive == facts.n_positive
    # no positive joins U
    assert facts.evaluation.n_unlabeled == facts.n_unlabeled
    model = denspu.load(tmp_path / "run" / "model")
    assert rows.score_positive.tolist() == model.evidence_.positive.tolist()


def test_others_hold_a_fifth_out(tmp_path):
    facts, _ = judged(tmp_path)
    assert facts.settings["holdout"] == 0.2
    assert 0 < facts.n_held_out < facts.n_positive / 2
    facts, _ = judged(tmp_path, method="dens_pu", time="when", out=tmp_path / "later")
    assert facts.settings["holdout"] == 0.2
    with pytest.raises(InvalidParameterError, match="holdout='folds'"):
        judged(tmp_path, holdout="folds", time="when", out=tmp_path / "no")


def test_copies_among_positives_are_judged_together():
    rows = np.arange(12, dtype=np.float64).reshape(6, 2)
    rows[4] = rows[1]
    P = Items("embedding", rows, [f"p{i}" for i in range(6)], "P", {})
    names = copies_together(P, 3)
    assert names[1] == names[4]
    assert len(set(names)) == 8
    assert copies_together(P.take(np.arange(6) != 4), 3) is None


def test_labels_strewn_over_all_rows_are_told_first(tmp_path):
    rng = np.random.default_rng(0)
    label = np.zeros(160, dtype=int)
    label[rng.choice(160, 30, replace=False)] = 1
    noise = rng.normal(size=(160, 2))
    lines = [f"{a:.3f},{b:.3f},{y}" for (a, b), y in zip(noise, label, strict=True)]
    (tmp_path / "t.csv").write_text("\n".join(["a,b,label", *lines]))
    facts, _ = fit_run(options(tmp_path, method="dens_pu", id_column=None))
    failed = [check for check in facts.checks if check.ok is False]
    assert "labels tell something" in [check.name for check in failed]
    assert "look random" in headline(facts)
    assert not sureness(facts)
    told = [line for line in result_lines(facts, None) if line[0] == "warning"]
    assert "look random" in told[0][1]
    assert len(told) == len(set(told))
