"""The column ``why``: whom it is for, and what it says."""

from __future__ import annotations

import csv
import json
import math

import numpy as np
import pytest
from tests.runs.test_fit_run import make_table, options

from denspu.methods._why import Explanation, Moved, Near, Word
from denspu.report.run import render
from denspu.runs import fit_run, predict_files, why
from denspu.runs.why import looked_at, sentence


def rows_of(path):
    with path.open(newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    top = tmp_path_factory.mktemp("why")
    make_table(top / "t.csv")
    facts, rows = fit_run(options(top, columns={"customer": "drop", "when": "date"}))
    return top, facts, rows


def test_a_sentence_says_columns_words_and_names():
    reason = Explanation(
        [Near(3, 0.1), Near(1, 0.2), Near(0, 0.3)],
        [
            Moved("amount", 9120.0, 800.0, 2.0),
            Moved("day", 19_723.0, 19_800.0, -1.0),
            Moved("town", None, "A", 0.9),
            Moved("country", "NL", "DE", 0.8),
        ],
        [Word("refund", 0.2), Word("the", 0.001)],
    )
    names = {3: "p_017", 1: "p_203", 0: "p_000"}
    assert sentence(reason, {"columns": {"day": "date"}}, names) == (
        "amount 9120 (high), town missing; against it day 2024-01-01 (early); "
        "words refund; like p_017, p_203"
    )


def test_weak_columns_are_not_named():
    moved = [Moved("a", 1.0, 0.0, 2.0), Moved("b", math.nan, 0.0, 0.1)]
    assert sentence(Explanation([], moved, []), {}, {}) == "a 1 (high)"


def test_called_items_come_first_and_the_undecided_are_among_them(monkeypatch):
    monkeypatch.setattr(why, "CALLED", 3)
    monkeypatch.setattr(why, "UNDECIDED", 2)
    scores = np.array([9.0, 8, 7, 6, 5.1, 4.9, 1, 0])
    assert looked_at(scores, 5.0).tolist() == [0, 1, 2, 4, 5]
    assert looked_at(scores, 8.5).tolist() == [0, 1]
    assert looked_at(scores, math.nan).tolist() == [0, 1, 2]


def test_those_of_the_whole_are_among_those_of_its_parts(monkeypatch):
    monkeypatch.setattr(why, "CALLED", 5)
    monkeypatch.setattr(why, "UNDECIDED", 4)
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores = rng.integers(0, 9, 40).astype(float)
        whole = set(looked_at(scores, 4.0))
        for start in (0, 13, 26):
            part = np.arange(start, min(start + 13, 40))
            kept = set(part[looked_at(scores[part], 4.0)])
            assert whole & set(part) <= kept


def test_a_run_tells_why_and_only_of_some(made, tmp_path, monkeypatch):
    top, facts, rows = made
    found = rows_of(top / "run" / "scores.csv")
    assert all(row["why"] for row in found if row["decision"] == "1")
    labelled = set(rows.positive.ids)
    for row in found[:5]:
        like = row["why"].partition("like ")[2].split(", ")
        assert set(like) <= labelled
        assert len(like) == 2
        assert "size" in row["why"] or "hour" in row["why"]
    assert {tell.name for tell in facts.tells[:2]} == {"size", "hour"}
    assert facts.tells[0].positives.endswith("(high)")
    assert json.loads((top / "run" / "run.json").read_text())["tells"]

    monkeypatch.setattr(why, "CALLED", 4)
    monkeypatch.setattr(why, "UNDECIDED", 2)
    make_table(tmp_path / "t.csv")
    fit_run(options(tmp_path))
    told = [row["why"] != "" for row in rows_of(tmp_path / "run" / "scores.csv")]
    assert all(told[:4])
    assert 4 <= sum(told) <= 6


def test_new_files_get_reasons_whatever_the_chunk(made, tmp_path, monkeypatch):
    monkeypatch.setattr(why, "CALLED", 6)
    monkeypatch.setattr(why, "UNDECIDED", 3)
    for name in ("BLOCK", "IMAGE_BLOCK"):  # so that items come in several parts
        monkeypatch.setattr(f"denspu.runs.predict.{name}", 32)
    top, _, _ = made
    model, found = top / "run" / "model", []
    for chunk in (7, 4096):
        out = tmp_path / f"{chunk}.csv"
        predict_files(model, top / "t.csv", out, chunk=chunk)
        found.append(rows_of(out))
    assert found[0] == found[1]
    told = {row["item"]: row["why"] for row in found[0] if row["why"]}
    best = {row["item"] for row in found[0] if int(row["rank"]) <= 6}
    assert best <= set(told)
    assert 6 <= len(told) <= 9
    labelled = {row["item"] for row in rows_of(top / "t.csv") if row["label"] == "1"}
    for reason in told.values():
        assert set(reason.partition("like ")[2].split(", ")) <= labelled
    predict_files(model, top / "t.csv", tmp_path / "top.csv", threshold="top=2")
    told = [row for row in rows_of(tmp_path / "top.csv") if row["why"]]
    assert {row["rank"] for row in told} >= {"1", "2"}


def test_many_columns_leave_fewer_items(made, monkeypatch):
    top, _, _ = made
    monkeypatch.setattr(why, "SCORED", 400)
    monkeypatch.setattr(why, "FEWEST", 1)
    from denspu import load

    model = load(top / "run" / "model")
    assert len(model.memory_.typical) == 4
    assert why.share_of_items(model, "table") == pytest.approx(400 / (4 * 300))
    assert why.share_of_items(model, "embedding") == 1.0


def test_a_method_without_an_embedding_tells_nothing(tmp_path):
    make_table(tmp_path / "t.csv")
    facts, rows = fit_run(options(tmp_path))
    del facts

    class Bare:
        threshold_ = 0.0

    again, tells = why.with_reasons(Bare(), rows)
    assert again is rows
    assert tells == []


def test_the_page_shows_reasons_and_what_tells(made):
    _, facts, rows = made
    page = render(facts, rows)
    assert 'id="tells"' in page
    reason = rows.why[int(np.argmin(rows.rank))]
    assert page.count(reason) >= 2  # in the gallery and in the table of items
