"""``explain`` claims changes of scores, distances and words that can be recounted."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import cdist
from tests.small import small

import denspu
from denspu._frame import Frame
from denspu.exceptions import DensPUWarning, InvalidInputError, InvalidParameterError
from denspu.methods import _why

N = 150


def table():
    """Return a Frame of which ``size`` and ``town`` tell the classes apart."""
    rng = np.random.default_rng(0)
    truth = np.arange(N) % 3 == 0
    size = rng.normal(4.0 * truth)
    size[::10] = np.nan
    town = np.where(truth & (rng.random(N) < 0.8), "A", "B").astype(object)
    town[5::20] = None
    frame = Frame({"size": size, "town": town, "noise": rng.normal(size=N)})
    return frame, (truth & (np.arange(N) % 2 == 0)).astype(int)


def fitted(X, y, key="elkan_noto", **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)
        return small(key, random_state=0).fit(X, y, **options)


def with_value(frame, name, value):
    other = frame.copy()
    values = np.empty(len(frame), dtype=object)
    values[:] = value
    other[name] = values if isinstance(value, str) else np.full(len(frame), value)
    return other


def as_pandas(frame):
    return pd.DataFrame({name: frame[name].to_numpy() for name in frame.columns})


@pytest.mark.parametrize("form", [Frame.copy, as_pandas])
def test_a_change_is_what_the_score_loses_with_the_typical_value(form):
    frame, y = table()
    X = form(frame)
    model = fitted(X, y)
    size = frame["size"].to_numpy()[y == 0]
    size = np.sort(size[~np.isnan(size)])
    usual = {"size": size[(len(size) - 1) // 2], "town": "B"}
    found = model.explain(X, k=9)
    for name, value in usual.items():
        less = model.decision_function(with_value(X, name, value))
        change = model.decision_function(X) - less
        for i, one in enumerate(found):
            told = {m.column: m for m in one.columns}
            if frame[name][i] == value:
                assert name not in told
                continue
            assert told[name].change == change[i]
            assert told[name].typical == value
            same = told[name].value == frame[name][i]
            assert same or told[name].value != told[name].value  # a gap
    for one in found:
        changes = [abs(m.change) for m in one.columns]
        assert changes == sorted(changes, reverse=True)
    assert [len(one.columns) for one in model.explain(X, k=1)] == [1] * N


def test_columns_without_names_are_numbers_and_little_is_scored_at_once(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = np.arange(60) < 15
    X[y] += 2
    model = fitted(X, y)
    whole = model.explain(X[:20])
    assert {m.column for one in whole for m in one.columns} == {0, 1, 2}
    monkeypatch.setattr(_why, "SCORED_AT_ONCE", 7)
    assert model.explain(X[:20]) == whole


def test_the_nearest_positives_are_of_all_that_were_labelled():
    frame, y = table()
    held = (y == 1) & (np.arange(N) % 4 == 0)
    model = fitted(frame, y, holdout=held)
    rows = np.flatnonzero(y)
    Z = model.encoder_.transform(frame)
    distance = cdist(Z, Z[rows])
    found = model.explain(frame, k=4)
    for i, one in enumerate(found):
        near = [n.distance for n in one.nearest]
        assert np.allclose(near, np.sort(distance[i])[:4])
        assert all(y[n.row] for n in one.nearest)
    assert {n.row for one in found for n in one.nearest} & set(np.flatnonzero(held))


def test_of_many_positives_some_are_kept(monkeypatch):
    monkeypatch.setattr(_why, "KEPT_POSITIVES", 10)
    frame, y = table()
    model = fitted(frame, y)
    rows = np.flatnonzero(y)
    assert 5 <= len(model.memory_.rows) <= 10 < len(rows)
    assert np.ptp(model.memory_.rows) > N / 2
    assert set(model.memory_.rows) <= set(rows)


def texts():
    rng = np.random.default_rng(1)
    words = ["ape", "bee", "cat", "dog", "eel", "fox", "gnu", "hen"]
    truth = np.arange(N) % 3 == 0
    made = [
        " ".join([*rng.choice(words, 6), *(["card refund"] if t else ["the sea"])])
        for t in truth
    ]
    return made, (truth & (np.arange(N) % 2 == 0)).astype(int)


def test_words_of_a_text_are_those_of_the_positives_and_sum_up():
    X, y = texts()
    model = fitted(X, y)
    found = model.explain(X, k=2)
    for text, one in zip(X, found, strict=True):
        told = [word.term for word in one.words]
        assert all(term in text for term in told)
        assert ("refund" in text) == any("refund" in t or "card" in t for t in told)
        assert not any("sea" in term for term in told)
        assert one.columns == []
    # a term's weight is its part of the cosine similarity with P, beyond that with U
    W = model.encoder_.vectorizer_.transform(X).toarray()
    at = model.encoder_.vectorizer_.vocabulary_
    mean = W[y == 1].mean(axis=0) - W[y == 0].mean(axis=0)
    word = found[0].words[0]
    assert np.isclose(word.weight, W[0, at[word.term]] * mean[at[word.term]])


def test_no_word_is_told_twice():
    X, y = texts()
    for one in fitted(X, y).explain(X, k=5):
        words = [w for held in one.words for w in set(held.term.split())]
        assert len(words) == len(set(words))


@pytest.mark.parametrize("make", [table, texts])
def test_a_loaded_model_says_the_same(tmp_path, make):
    X, y = make()
    model = fitted(X, y, "dens_pu")
    again = denspu.load(denspu.save(model, tmp_path / "model"))
    # gaps are not equal to themselves
    assert repr(again.explain(X)) == repr(model.explain(X))


def test_images_and_embeddings_have_their_nearest_only(monkeypatch):
    monkeypatch.setattr(_why, "MOST_COLUMNS", 6)
    rng = np.random.default_rng(0)
    y = (np.arange(60) < 12).astype(int)
    images = rng.integers(0, 99, (60, 6, 6, 1)).astype(np.uint8)
    images[y == 1] += 90
    sphere = rng.normal(size=(60, 5)) + 2 * y[:, None]
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    wide = rng.normal(size=(60, 7))
    for X in (images, sphere, wide):
        one = fitted(X, y).explain(X[:1])[0]
        assert (one.nearest[0].row, one.columns, one.words) == (0, [], [])


def test_what_cannot_be_told_is_refused():
    rng = np.random.default_rng(0)
    y = (np.arange(40) < 12).astype(int)
    images = rng.integers(0, 99, (40, 6, 6, 1)).astype(np.uint8)
    with pytest.raises(InvalidInputError, match="NNPU has no embedding"):
        fitted(images, y, "nnpu").explain(images)
    frame, y = table()
    with pytest.raises(InvalidParameterError, match="k must be"):
        fitted(frame, y).explain(frame, k=0)


def test_a_second_fit_forgets_the_encoder_of_the_first():
    rng = np.random.default_rng(0)
    y = (np.arange(40) < 12).astype(int)
    X = rng.normal(size=(40, 4)) + y[:, None]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DensPUWarning)
        model = small("nnpu", random_state=0, encoder="tabular").fit(X, y)
        model.set_params(encoder=None).fit(
            rng.integers(0, 99, (40, 6, 6, 1)).astype(np.uint8), y
        )
    assert not hasattr(model, "memory_")
