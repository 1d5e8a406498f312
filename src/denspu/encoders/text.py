"""Texts: weighted words and pairs of words, then a few directions of meaning."""

from __future__ import annotations

from typing import Any, Literal, Self

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted

from denspu._parameters import About, OneOf, Whole, check_parameters, setting
from denspu._random import Randomness
from denspu._typing import FloatArray, RandomState
from denspu._validation import input_kind, validate_X
from denspu.base import Encoder
from denspu.exceptions import InvalidInputError

LEARNED_FROM = 20_000
"""Texts from which words and directions are learned; more say little new."""


class OfTexts(Encoder):
    """An encoder of a list of texts."""

    about = About(inputs=("text",))

    def _checked(self, X: Any, *, reset: bool) -> Any:
        if not isinstance(X, str) and len(X) and input_kind(X) != "text":
            raise InvalidInputError(
                f"{type(self).__name__} takes a list of texts. For numbers and "
                "categories use encoder='tabular', for images encoder='contrastive'."
            )
        return validate_X(self, X, reset=reset, kind="text")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.string = True
        return tags


class TextEncoder(OfTexts):
    """TF-IDF of words and pairs of words, truncated SVD, length 1.

    Words count by the logarithm of how often a text has them, and by how few texts do
    (TF-IDF); the singular value decomposition brings texts with different words on the
    same subject together. A text without a single known word becomes zeros. Learned
    from all texts, labelled or not.

    Examples
    --------
    >>> texts = ["red apple", "green apple", "blue sea", "deep blue sea"]
    >>> Z = TextEncoder(random_state=0).fit_transform(texts)
    >>> bool(Z[2] @ Z[3] > 0.5 > Z[2] @ Z[0])
    True
    """

    about = About(key="text")

    n_components: int = setting(
        128,
        Whole(1),
        doc="Length of an embedding, at most the number of texts or words.",
    )
    unit: Literal["word", "character"] = setting(
        "word",
        OneOf("word", "character"),
        doc='``"character"``: pieces of three to five, for languages without spaces.',
    )
    ngrams: int = setting(
        2, Whole(1), doc="Words in a row that count as one term, at most."
    )
    max_features: int = setting(50_000, Whole(1), doc="Terms kept, the most frequent.")
    random_state: RandomState = setting(
        None,
        doc="Seeds the decomposition and the choice of 20,000 texts to learn from.",
    )

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the terms, their weights and the directions."""
        check_parameters(self)
        texts = self._checked(X, reset=True)
        randomness = Randomness(self.random_state)
        learned = texts
        if len(texts) > LEARNED_FROM:
            order = randomness.numpy("texts").permutation(len(texts))
            learned = texts[np.sort(order[:LEARNED_FROM])]
        self.vectorizer_ = self._vectorizer(learned)
        try:
            weights = self.vectorizer_.fit_transform(learned)
        except ValueError as error:
            raise InvalidInputError(
                f"No terms were found in {len(texts)} texts ({error}). Are they "
                "empty? unit='character' finds terms in texts without words."
            ) from error
        size = min(self.n_components, *weights.shape)
        _, _, self.components_ = randomized_svd(
            weights, size, n_iter=5, random_state=randomness.seed("svd")
        )
        self.n_terms_ = weights.shape[1]
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return one embedding of length 1 a text."""
        check_is_fitted(self)
        texts = self._checked(X, reset=False)
        Z = self.vectorizer_.transform(texts) @ self.components_.T
        length = np.linalg.norm(Z, axis=1, keepdims=True)
        return np.divide(Z, length, out=np.zeros_like(Z), where=length > 1e-12)

    def facts(self) -> dict[str, Any]:
        """Return how many terms count, and how long an embedding is."""
        return {"n_terms": self.n_terms_, "n_components": len(self.components_)}

    def _vectorizer(self, texts: Any) -> TfidfVectorizer:
        words = self.unit == "word"
        return TfidfVectorizer(
            analyzer="word" if words else "char_wb",
            ngram_range=(1, self.ngrams) if words else (3, 5),
            token_pattern=r"(?u)\b\w+\b" if words else None,
            # Among enough texts a word must stand in two of them to count.
            min_df=2 if len(texts) >= 50 else 1,
            max_features=self.max_features,
            sublinear_tf=True,
        )
