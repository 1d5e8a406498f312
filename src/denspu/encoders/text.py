"""Texts: weighted words and directions of meaning, or a frozen sentence encoder."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, Self

import numpy as np
import torch
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils.extmath import randomized_svd
from sklearn.utils.validation import check_is_fitted
from torch import Tensor

from denspu._machine import resolve_device
from denspu._parameters import (
    About,
    InstanceOf,
    OneOf,
    Whole,
    check_parameters,
    setting,
)
from denspu._random import Randomness
from denspu._typing import FloatArray, RandomState
from denspu._validation import input_kind, validate_X
from denspu.base import Encoder
from denspu.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    MissingDependencyError,
    ModelFileError,
)

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

    def wide(self, X: Any) -> Any:
        """Return the weights of all terms, a sparse row of length 1 a text."""
        check_is_fitted(self)
        return self.vectorizer_.transform(self._checked(X, reset=False))

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


LENGTHS = (16, 32, 64, 128, 256, 512)
"""Tokens to which texts are padded: the least of these that holds a text."""

PICKLED = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
MODULES = "modules.json"


class SentenceEncoder(OfTexts):
    """A sentence encoder whose weights are on the disk, as it is.

    The sentence-transformers model is never downloaded: ``model`` is a folder with its
    weights as safetensors. A text's embedding depends on the text alone, whatever
    others it comes with: texts are padded to one of a few lengths by their own number
    of tokens, and run in batches of one size.

    Attributes
    ----------
    folder_ : str
        The folder that was fitted with.
    sha256_ : str
        Sum of its weights and settings; other weights are refused later on.
    n_components_ : int
        Length of an embedding.
    """

    about = About(key="sentence", paper="Reimers and Gurevych 2019, Sentence-BERT")

    model: str | Path | None = setting(
        None,
        OneOf(None),
        InstanceOf(str),
        InstanceOf(Path),
        positional=True,
        doc="The folder, as ``SentenceTransformer.save`` writes it.",
    )
    max_length: int | None = setting(
        None,
        OneOf(None),
        Whole(1),
        doc="Tokens of a text that are read; None: the model's own limit, at most 512.",
    )
    batch_size: int = setting(32, Whole(1))
    device: str = setting("auto")

    def fit(self, X: Any, y: Any = None) -> Self:
        """Open the model and remember the sum of its weights; nothing is learned."""
        check_parameters(self)
        self._checked(X, reset=True)
        folder = checked_folder(self.model)
        self.folder_, self.sha256_ = str(folder), folder_sum(folder)
        self.n_components_ = int(self._embed(["a"]).shape[1])
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return one embedding of length 1 a text."""
        check_is_fitted(self)
        texts = self._checked(X, reset=False)
        return self._embed([str(text) for text in texts])

    def facts(self) -> dict[str, Any]:
        """Return the folder's name and how long an embedding is."""
        return {"model": Path(self.folder_).name, "n_components": self.n_components_}

    def _network(self) -> Any:
        """Return the model of the folder, if it still holds the same weights."""
        given = None if self.model is None else Path(self.model)
        folder = given if given is not None and given.is_dir() else Path(self.folder_)
        if not folder.is_dir():
            raise ModelFileError(
                f"The sentence encoder's folder {folder} is not here. Put the model "
                "there, or set the encoder's model= to where it is."
            )
        return opened(str(checked_folder(folder)), self.sha256_)

    def _embed(self, texts: list[str]) -> FloatArray:
        network = self._network()
        device = resolve_device(self.device)
        limit = min(int(network.max_seq_length or LENGTHS[-1]), LENGTHS[-1])
        if self.max_length is not None:
            limit = min(limit, self.max_length)
        numbers = network.tokenizer(
            texts, truncation=True, max_length=limit, padding=False, verbose=False
        )["input_ids"]
        network.to(device)
        out: FloatArray | None = None
        least = np.searchsorted(LENGTHS, [len(found) for found in numbers])
        for i in np.unique(least):
            rows, length = np.flatnonzero(least == i), LENGTHS[i]
            for start in range(0, len(rows), self.batch_size):
                part = rows[start : start + self.batch_size]
                batch = [numbers[row] for row in part]
                batch += batch[:1] * (self.batch_size - len(batch))
                Z = _forward(network, batch, length, device)[: len(part)]
                if out is None:
                    out = np.empty((len(texts), Z.shape[1]), np.float32)
                out[part] = Z
        network.to("cpu")
        assert out is not None
        return out


def checked_folder(model: Any) -> Path:
    """Return the folder of a model, refusing what would have to be run or fetched."""
    if model is None:
        raise InvalidParameterError(
            "SentenceEncoder needs model=, the folder of a sentence-transformers model "
            "on this disk; nothing is downloaded."
        )
    folder = Path(model).absolute()
    if not (folder / MODULES).is_file():
        raise InvalidParameterError(
            f"model={str(model)!r} is not a folder with a {MODULES}. Save one with "
            "SentenceTransformer.save; names of models on the web are not taken."
        )
    for path in sorted(folder.rglob("*")):
        held = path.suffix in PICKLED and not list(path.parent.glob("*.safetensors"))
        if held and path.name != "training_args.bin":
            raise InvalidParameterError(
                f"{path} may be a pickle, which could run anything when it is read. "
                "Save the model again with safe_serialization=True (safetensors)."
            )
    parts = json.loads((folder / MODULES).read_text(encoding="utf-8"))
    strange = [
        part["type"]
        for part in parts
        if not part["type"].startswith("sentence_transformers.")
    ]
    if strange:
        raise InvalidParameterError(
            f"model={str(model)!r} asks for code of its own ({strange[0]}), which is "
            "not run. Choose a model made of sentence-transformers' own parts."
        )
    return folder


def folder_sum(folder: Path) -> str:
    """Return a SHA-256 sum of the weights, the settings and the tokenizer."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.suffix not in (".safetensors", ".json", ".txt", ".model"):
            continue
        total.update(f"{path.relative_to(folder).as_posix()}\0".encode())
        with path.open("rb") as file:
            while block := file.read(1 << 20):
                total.update(block)
    return total.hexdigest()


@lru_cache(maxsize=2)
def opened(folder: str, wanted: str) -> Any:
    """Return the model of a folder, frozen, after its sum was compared."""
    if importlib.util.find_spec("sentence_transformers") is None:
        raise MissingDependencyError(
            "SentenceEncoder needs sentence-transformers: pip install 'denspu[text]'."
        )
    if folder_sum(Path(folder)) != wanted:
        raise ModelFileError(
            f"The sentence encoder in {folder} is not the one that was fitted with: "
            "its weights or settings have changed. Put the old ones back, or fit again."
        )
    from sentence_transformers import SentenceTransformer

    with contextlib.redirect_stderr(io.StringIO()):  # a bar while weights are read
        network = SentenceTransformer(
            folder,
            device="cpu",
            local_files_only=True,
            trust_remote_code=False,
            model_kwargs={"use_safetensors": True},
        )
    return network.eval().requires_grad_(False)


def _forward(
    network: Any, batch: list[list[int]], length: int, device: torch.device
) -> FloatArray:
    """Return embeddings of length 1 of padded texts."""
    padding = network.tokenizer.pad_token_id or 0
    ids = torch.full((len(batch), length), padding, dtype=torch.int64)
    mask = torch.zeros_like(ids)
    for i, numbers in enumerate(batch):
        ids[i, : len(numbers)] = torch.tensor(numbers)
        mask[i, : len(numbers)] = 1
    given = {"input_ids": ids.to(device), "attention_mask": mask.to(device)}
    with torch.inference_mode():
        found: Tensor = network(given)["sentence_embedding"].float()
        found = torch.nn.functional.normalize(found, dim=1)
    return np.asarray(found.cpu().numpy())
