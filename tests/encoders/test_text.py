"""Texts → embeddings, and texts through the gate."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from denspu import DensPU, make
from denspu.encoders import TabularEncoder, TextEncoder
from denspu.exceptions import InvalidInputError, InvalidParameterError

SEA = ["sea", "wave", "ship", "sail", "tide", "fish", "net", "storm", "anchor", "oar"]
HILL = ["hill", "rock", "snow", "path", "goat", "peak", "cloud", "rope", "pine", "ice"]


def documents(n, seed=10, length=8):
    """Texts about the sea (1) and the hills (0), with words of both in between."""
    rng = np.random.default_rng(seed)
    truth = rng.random(n) < 0.5
    texts = []
    for sea in truth:
        own, other = (SEA, HILL) if sea else (HILL, SEA)
        words = [*rng.choice(own, length - 1), rng.choice(other)]
        texts.append(" ".join(rng.permutation(words)))
    return texts, truth.astype(int)


def test_embeddings_follow_the_subject_alone():
    texts, truth = documents(200)
    encoder = TextEncoder(n_components=10, random_state=0)
    Z = encoder.fit_transform(texts)
    assert Z.shape == (200, 10)
    assert np.allclose(np.linalg.norm(Z, axis=1), 1)
    alike, same = Z @ Z.T, truth[:, None] == truth[None, :]
    assert alike[same].mean() > alike[~same].mean() + 0.2
    assert encoder.facts() == {"n_terms": encoder.n_terms_, "n_components": 10}
    again = TextEncoder(n_components=10, random_state=0).fit(texts)
    assert np.array_equal(Z, again.transform(texts))
    alone = np.concatenate([encoder.transform([text]) for text in texts[:20]])
    assert np.array_equal(Z[:20], alone)
    assert np.array_equal(Z[::-1], encoder.transform(texts[::-1]))


def test_the_weights_are_those_of_the_formula():
    """(1 + ln tf)(1 + ln((1 + n) / (1 + df))), rows of length 1."""
    texts = ["a a b", "b c", "c"]
    encoder = TextEncoder(ngrams=1, random_state=0).fit(texts)
    tf = np.array([[2, 1, 0], [0, 1, 1], [0, 0, 1]])
    idf = 1 + np.log(4 / (1 + (tf > 0).sum(axis=0)))
    weights = np.where(tf > 0, 1 + np.log(np.maximum(tf, 1)), 0) * idf
    weights /= np.linalg.norm(weights, axis=1, keepdims=True)
    assert np.allclose(encoder.vectorizer_.transform(texts).toarray(), weights)
    # With as many directions as terms, nothing is lost: angles are kept.
    Z = encoder.transform(texts)
    assert np.allclose(Z @ Z.T, weights @ weights.T)


def test_a_few_texts_and_unknown_words():
    texts = ["one", "two words", "three little words", "one", "five"]
    encoder = TextEncoder(random_state=0).fit(texts)
    Z = encoder.transform([*texts, "unknown terms", ""])
    assert np.isfinite(Z).all()
    assert np.allclose(Z[0], Z[3])
    assert (Z[5:] == 0).all()
    assert encoder.fit_transform(["just one text"]).shape == (1, 1)


def test_settings_reach_the_terms(monkeypatch):
    texts, _ = documents(300)

    def fitted(**settings):
        encoder = TextEncoder(**{"n_components": 3, "random_state": 0} | settings)
        return encoder.fit(texts)

    words = fitted(ngrams=1)
    assert "wave" in words.vectorizer_.vocabulary_
    assert words.n_terms_ == 20 < fitted().n_terms_
    assert fitted(max_features=7).n_terms_ == 7
    assert "wav" in fitted(unit="character").vectorizer_.vocabulary_
    monkeypatch.setattr("denspu.encoders.text.LEARNED_FROM", 100)
    one, two, other = (fitted(random_state=seed) for seed in (0, 0, 1))
    assert one.vectorizer_.vocabulary_ == two.vectorizer_.vocabulary_
    assert one.vectorizer_.vocabulary_ != other.vectorizer_.vocabulary_
    assert one.transform(texts).shape == (300, 3)


@pytest.mark.parametrize(
    ("X", "words"),
    [
        ([[1.0, 2.0]], "takes a list of texts.*tabular"),
        ("one text", "pass a list of texts"),
        ([], "0 texts"),
        (["a", None], r"X\[1\] is None \(NoneType\), not a text"),
        (["a", 3], r"X\[1\] is 3 \(int\)"),
        (["...", "!"], "No terms were found in 2 texts"),
    ],
)
def test_no_texts(X, words):
    with pytest.raises(InvalidInputError, match=words):
        TextEncoder().fit(X)


def test_bad_parameters():
    for bad in ({"n_components": 0}, {"unit": "line"}, {"ngrams": 0}):
        with pytest.raises(InvalidParameterError, match=next(iter(bad))):
            TextEncoder(**bad).fit(["a", "b"])
    texts, truth = documents(40)
    y = truth * (np.arange(40) % 2)
    with pytest.raises(InvalidParameterError, match="TabularEncoder takes table input"):
        DensPU(encoder=TabularEncoder()).fit(texts, y)
    with pytest.raises(InvalidParameterError, match=r"TextEncoder takes text.*a table"):
        DensPU(encoder="text").fit(np.zeros((40, 2)) + np.arange(40)[:, None], y)


# --- methods ------------------------------------------------------------------------


def test_all_forms_of_texts():
    texts, truth = documents(80)
    y = truth * (np.arange(80) % 2)
    plain = make("elkan_noto", random_state=0).fit(texts, y)
    assert isinstance(plain.encoder_, TextEncoder)
    for form in (np.array, pd.Series, tuple):
        model = make("elkan_noto", random_state=0).fit(form(texts), y)
        assert np.array_equal(model.predict(form(texts)), plain.predict(texts))
