"""A sentence encoder from a folder: frozen, row by row, and only the same weights."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from denspu import load, make, save
from denspu.encoders import SentenceEncoder
from denspu.encoders.text import LENGTHS, checked_folder, folder_sum, opened
from denspu.exceptions import (
    InvalidInputError,
    InvalidParameterError,
    ModelFileError,
)

WORDS = ["apple", "pear", "fruit", "tree", "sea", "ship", "wave", "fish"]
pytestmark = pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")


def texts(n=12, seed=0):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, 1 + 7 * (i % 4))) for i in range(n)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a tiny random model: two layers of 16 values."""
    pytest.importorskip("sentence_transformers", reason="pip install 'denspu[text]'")
    import torch
    from transformers import BertConfig, BertModel

    where = tmp_path_factory.mktemp("sentence") / "model"
    (where / "1_Pooling").mkdir(parents=True)
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    (where / "vocab.txt").write_text("\n".join(special + WORDS), encoding="utf-8")
    settings = BertConfig(
        vocab_size=len(special + WORDS),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    with torch.random.fork_rng():
        torch.random.default_generator.manual_seed(0)
        BertModel(settings).save_pretrained(where)
    files = {
        "tokenizer_config.json": {"tokenizer_class": "BertTokenizer"},
        "sentence_bert_config.json": {"max_seq_length": 64, "do_lower_case": False},
        "1_Pooling/config.json": {
            "word_embedding_dimension": 16,
            "pooling_mode_mean_tokens": True,
        },
        "modules.json": [
            {"idx": 0, "name": "0", "path": "",
             "type": "sentence_transformers.models.Transformer"},
            {"idx": 1, "name": "1", "path": "1_Pooling",
             "type": "sentence_transformers.models.Pooling"},
        ],
    }  # fmt: skip
    for name, content in files.items():
        (where / name).write_text(json.dumps(content), encoding="utf-8")
    return where


def encoder(folder, **changes):
    return SentenceEncoder(folder, device="cpu", **changes)


def test_a_text_is_embedded_alike_whatever_comes_with_it(folder):
    rows = texts(40)
    fitted = encoder(folder, batch_size=8).fit(rows)
    together = fitted.transform(rows)
    assert together.shape == (40, 16)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    assert len(np.unique(together, axis=0)) > 20
    for i in range(0, 40, 7):
        assert np.array_equal(fitted.transform(rows[i : i + 1])[0], together[i])
    assert np.array_equal(fitted.transform(rows[::-1]), together[::-1])


def test_it_embeds_as_sentence_transformers_does(folder):
    fitted = encoder(folder).fit(texts())
    network = opened(str(checked_folder(folder)), fitted.sha256_)
    wanted = network.encode(texts(), normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(fitted.transform(texts()), wanted, atol=1e-5)


def test_long_texts_are_cut(folder):
    fitted = encoder(folder, max_length=6).fit(texts())
    long = "apple pear fruit tree"
    found = fitted.transform([long, long + " sea ship wave", "apple"])
    assert np.array_equal(found[0], found[1])
    assert not np.array_equal(found[0], found[2])
    assert max(LENGTHS) == 512


def test_a_method_learns_on_it_and_is_saved_without_the_weights(folder, tmp_path):
    rows = ["apple pear tree", "fruit apple", "sea ship", "wave fish sea"] * 10
    model = make("elkan_noto", encoder=encoder(folder), random_state=0, device="cpu")
    model.fit(rows, [1, 0, 0, 0] * 10)
    saved = save(model, tmp_path / "model")
    same = load(saved)
    assert np.array_equal(same.decision_function(rows), model.decision_function(rows))
    weights = (folder / "model.safetensors").stat().st_size
    assert (saved / "arrays.safetensors").stat().st_size < weights


def test_other_weights_are_refused_after_loading(folder, tmp_path):
    mine = tmp_path / "mine"
    shutil.copytree(folder, mine)
    saved = save(encoder(mine).fit(texts()), tmp_path / "model")
    weights = bytearray((mine / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (mine / "model.safetensors").write_bytes(weights)
    opened.cache_clear()
    with pytest.raises(ModelFileError, match="not the one that was fitted with"):
        load(saved).transform(texts())
    shutil.rmtree(mine)
    with pytest.raises(ModelFileError, match="is not here"):
        load(saved).transform(texts())
    moved = load(saved).set_params(model=folder)
    assert moved.transform(texts()).shape == (12, 16)


def stub(tmp_path, kind="sentence_transformers.models.Transformer"):
    (tmp_path / "modules.json").write_text(json.dumps([{"type": kind}]))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    return tmp_path


def test_nothing_is_fetched_unpickled_or_run(tmp_path):
    with pytest.raises(InvalidParameterError, match="nothing is downloaded"):
        checked_folder(None)
    with pytest.raises(InvalidParameterError, match="names of models on the web"):
        checked_folder("sentence-transformers/all-MiniLM-L6-v2")
    folder = stub(tmp_path)
    assert checked_folder(folder) == folder
    (folder / "2_Dense").mkdir()
    (folder / "2_Dense" / "pytorch_model.bin").write_bytes(b"\x80\x04")
    with pytest.raises(InvalidParameterError, match="may be a pickle"):
        checked_folder(folder)
    shutil.rmtree(folder / "2_Dense")
    with pytest.raises(InvalidParameterError, match="code of its own"):
        checked_folder(stub(tmp_path, "custom_st.Transformer"))


def test_the_sum_follows_weights_and_names(tmp_path):
    folder = stub(tmp_path)
    first = folder_sum(folder)
    (folder / "README.md").write_text("words")
    assert folder_sum(folder) == first
    (folder / "model.safetensors").rename(folder / "other.safetensors")
    assert folder_sum(folder) != first


def test_numbers_are_refused(tmp_path):
    with pytest.raises(InvalidInputError, match="takes a list of texts"):
        SentenceEncoder(tmp_path).fit(np.zeros((3, 2)))
