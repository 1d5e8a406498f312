"""What reading shows and tells: how far it is, what contradicts itself."""

from __future__ import annotations

import numpy as np
import pytest
from PIL import Image
from tests.runs.test_fit_run import write_embeddings

from denspu.data import read_items
from denspu.exceptions import InvalidParameterError
from denspu.runs import RunOptions
from denspu.runs.findings import Shares
from denspu.runs.reading import read_run


def write(folder, kind, n):
    folder.mkdir()
    for i in range(n):
        if kind == "image":
            pixels = np.full((4, 4), 10 * i + len(folder.name), np.uint8)
            Image.fromarray(pixels).save(folder / f"{i}.png")
        else:
            (folder / f"{i}.txt").write_text(f"{folder.name} {i}")
    return folder


@pytest.fixture
def sources(tmp_path, monkeypatch, request):
    for module in ("_decoding", "kinds.text"):
        monkeypatch.setattr(f"denspu.data.{module}.MANY", 10)
    return {
        "positive": write(tmp_path / "known", request.param, 9),
        "unlabeled": write(tmp_path / "pile", request.param, 20),
        "out": tmp_path / "run",
    }


@pytest.mark.parametrize("sources", ["image", "text"], indirect=True)
def test_reading_many_files_is_shown(sources, capsys):
    read_run(RunOptions(verbose=1, **sources))
    words = [line.split()[:3] for line in capsys.readouterr().err.splitlines()]
    pile = str(sources["unlabeled"])
    assert words[-1] == ["reading", "20/20", pile]
    assert {where for *_, where in words} == {pile}, "few files need no progress"
    read_run(RunOptions(verbose=0, **sources))
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("sources", ["image"], indirect=True)
def test_headers_of_images_are_shown_too(sources, capsys):
    read_items(sources["unlabeled"], verbose=1)
    words = [line.split()[:2] for line in capsys.readouterr().err.splitlines()]
    assert ["headers", "20/20"] in words
    assert ["reading", "20/20"] in words


@pytest.mark.parametrize(
    ("n", "told"),
    [
        (1, "1 item is a copy of labelled positives and known to be negative"),
        (2, "2 items are copies of labelled positives and known to be negative"),
    ],
)
def test_copies_that_are_known_negatives_are_told(tmp_path, n, told):
    given = write_embeddings(tmp_path, copies=3)
    (tmp_path / "no.txt").write_text("".join(f"{i + 1}\n" for i in range(n)))
    given["known_negatives"] = tmp_path / "no.txt"
    found = read_run(RunOptions(out=tmp_path / "run", **given))
    assert found.warnings[0].startswith(told)
    assert found.is_copy.sum() == 3 - n


def test_a_share_that_cannot_be_says_what_is_known_and_allowed():
    """In words of all of U, as the option is: half an open item at either end."""
    shares = Shares(n_unlabeled=10, n_copies=1, n_known_negative=1)
    for share, hidden in ((0.01, "-0.9"), (0.14, "0.4"), (0.86, "7.6"), (0.99, "8.9")):
        with pytest.raises(InvalidParameterError) as error:
            shares.open(share)
        assert str(error.value).endswith(
            "1 is a copy of positives, there is 1 known negative, and of the other 8 "
            f"it means {hidden}. Pass a share between 0.15 and 0.85, or leave prior "
            "out."
        )
    with pytest.raises(InvalidParameterError, match="no item to speak of: of the 10"):
        Shares(n_unlabeled=10, n_copies=4, n_known_negative=6).open(0.4)
    assert shares.open(0.15) == pytest.approx(0.5 / 8)
    assert shares.open(0.85) == pytest.approx(7.5 / 8)
