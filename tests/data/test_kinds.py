"""The kinds of data answer for themselves, and a new one is one file."""

from __future__ import annotations

import numpy as np
import pytest

from denspu.data import find_duplicates, iter_items, join, kinds, read_items, read_pair
from denspu.data.kinds import kind_of
from denspu.encoders import (
    ContrastiveEncoder,
    IdentityEncoder,
    TabularEncoder,
    TextEncoder,
)
from denspu.exceptions import InvalidParameterError

SOUND = """
import numpy as np
from denspu.data.kinds import Items, Kind

class Sounds(Kind):
    name = noun = thing = "sound"
    input_kind = "table"
    shows = "picture"
    suffixes = frozenset((".wav",))
    wanted = "a folder of .wav"
    folder = "sounds (.wav)"
    file_name = "a sound"

    def pieces(self, found, options, plan, limit):
        step = limit.rows if limit else len(found.names)
        for i in range(0, len(found.names), step):
            yield found, found.names[i : i + step]

    def items(self, piece, options, plan):
        found, names = piece
        X = [np.frombuffer((found.path / n).read_bytes(), np.uint8) for n in names]
        return Items(self.name, np.stack(X).astype(float), names, found.source, plan)

    def picture(self, row):
        return row[None, :].astype(np.uint8)

KIND = Sounds()
"""


@pytest.fixture
def sound(tmp_path, monkeypatch):
    """Put one more module beside the kinds."""
    folder = tmp_path / "more"
    folder.mkdir()
    (folder / "sound.py").write_text(SOUND)
    monkeypatch.setattr(kinds, "__path__", [*kinds.__path__, str(folder)])
    kinds.kinds.cache_clear()
    yield kind_of("sound")
    kinds.kinds.cache_clear()


def test_a_new_kind_is_one_file(sound, tmp_path):
    for name, start in (("p", 0), ("u", 2)):
        (tmp_path / name).mkdir()
        for i in range(4):
            (tmp_path / name / f"{i}.wav").write_bytes(bytes([start + i] * 6))
    P, U = read_pair(tmp_path / "p", tmp_path / "u")
    assert P.kind == "sound"
    assert P.summary().startswith("4 sounds")
    X, y, ids = join(P, U)
    assert X.shape == (8, 6)
    assert y.sum() == 4
    assert ids[0] == "0.wav"
    assert find_duplicates(P, U).exact == [(2, 0), (3, 1)]
    assert "2 unlabelled sounds are copies" in find_duplicates(P, U).sentences()[0]
    parts = list(iter_items(tmp_path / "u", like=P, chunk=3))
    assert [len(part) for part in parts] == [3, 1]
    assert isinstance(sound.default_encoder(X, False), TabularEncoder)
    assert sound.picture(X[2]).shape == (1, 6)
    (tmp_path / "x.png").write_bytes(b"")
    with pytest.raises(
        InvalidParameterError, match=r"must be auto, .*embedding, sound"
    ):
        read_items(tmp_path / "p", kind="noise")


@pytest.mark.parametrize(
    ("kind", "shape", "on_gpu", "encoder", "size"),
    [
        ("image", (9, 16, 16, 3), False, IdentityEncoder, None),
        ("image", (9, 32, 32, 1), False, IdentityEncoder, None),
        ("image", (9, 32, 32, 1), True, ContrastiveEncoder, None),
        ("image", (9, 32, 32, 3), False, ContrastiveEncoder, None),
        ("image", (9, 99, 32, 3), False, ContrastiveEncoder, 64),
        ("image", (9, 99, 32, 3), True, ContrastiveEncoder, None),
        ("table", (9, 4), False, TabularEncoder, None),
        ("embedding", (9, 4), False, TabularEncoder, None),
        ("text", (9,), False, TextEncoder, None),
    ],
)
def test_the_encoder_that_suits(kind, shape, on_gpu, encoder, size):
    X = np.ones(shape)
    chosen = kind_of(kind).default_encoder(X, on_gpu)
    assert type(chosen) is encoder
    assert getattr(chosen, "image_size", None) == size
    own = kind_of(kind).is_own_embedding(X, on_gpu)
    assert own == (encoder in (IdentityEncoder, TabularEncoder))


def test_rows_of_length_one_are_embeddings_already():
    X = np.eye(4)
    for kind in ("table", "embedding"):
        assert isinstance(kind_of(kind).default_encoder(X, False), IdentityEncoder)


def test_what_a_network_sees_and_a_report_shows():
    assert kind_of("image").plain_encoder() is None
    assert kind_of("text").plain_encoder(3).random_state == 3
    assert isinstance(kind_of("embedding").plain_encoder(3), TabularEncoder)
    assert kind_of("text").text("words") == "words"
    assert kind_of("image").picture(np.zeros((3, 2, 1))).shape == (3, 2, 1)
    assert kind_of("image").values_in_one({"height": 3, "width": 2, "channels": 1}) == 6
    assert kind_of("table").values_in_one({}) is None
    with pytest.raises(InvalidParameterError, match="Did you mean 'image'"):
        kind_of("images")
