"""Real texts and pictures: formats become rows, copies go, rules name positives."""

from __future__ import annotations

import gzip
import io
import json
import struct
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

HOME = Path(__file__).parents[2] / "benchmarks"
sys.path.insert(0, str(HOME))
try:
    import real_data
    import real_media
    from real_sources import PARTS, without_dead_links
finally:
    sys.path.remove(str(HOME))


def read(reader, folder, **given):
    X, y = real_media.READERS[reader](folder, given)
    return X, y.tolist()


@pytest.fixture
def small_draw(monkeypatch):
    monkeypatch.setattr(real_media, "MOST_ROWS", 6)


# --- the specs ------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["text", "image"])
def test_every_part_has_two_tasks_and_the_suite_enough_sources(kind):
    found = {part: real_data.tasks(kind, part) for part in PARTS}
    assert min(map(len, found.values())) >= 2
    every = [task for tasks in found.values() for task in tasks]
    assert len(every) >= 6
    assert len({task.source for task in every}) >= 4
    forms = real_media.TEXTS if kind == "text" else real_media.PICTURES
    assert {task.reader for task in every} <= {form.__name__ for form in forms}


# --- texts ----------------------------------------------------------------------------

ROWS = "1\tnews\tRain today\n2\tfilm\tA film\n3\tnews\tA film\n4\tshop\t A shoe \n5\n"


def test_columns_keep_a_text_once_and_short_lines_go(tmp_path):
    (tmp_path / "a.txt").write_text("head\n" + ROWS)
    given = {"members": ["a.txt"], "skip": 1, "label": 1, "text": 2}
    X, y = read("columns", tmp_path, positive=["film"], **given)
    assert X == ["Rain today", "A film", "A shoe"]
    assert y == [0, 1, 0]
    X, y = read("columns", tmp_path, positive=["news"], shortest=7, **given)
    assert X == ["Rain today"]


def test_columns_of_an_archive_are_classed_by_file(tmp_path):
    with tarfile.open(tmp_path / "in.tar.gz", "w:gz") as archive:
        for name in ("good", "bad"):
            entry = tarfile.TarInfo(f"in/{name}.txt")
            raw = f"0\t{name} text".encode()
            entry.size = len(raw)
            archive.addfile(entry, io.BytesIO(raw))
    members = ["in/good.txt", "in/bad.txt"]
    given = {"archive": "in.tar.gz", "members": members, "text": 1}
    X, y = read("columns", tmp_path, positive=["bad"], **given)
    assert (X, y) == (["good text", "bad text"], [0, 1])


def test_quoted_columns_hold_tabs_and_numbers_are_cut_at_a_quantile(tmp_path):
    (tmp_path / "a.tab").write_text('1\t"a\tb ""c"""\n2\td\n3\te\n9\tf\n')
    given = {"members": ["a.tab"], "label": 0, "text": 1, "above": 0.7}
    X, y = read("columns", tmp_path, quoted=True, **given)
    assert X[0] == 'a\tb "c"'
    assert y == [0, 0, 0, 1]


def test_mails_lose_headers_and_what_is_not_text(tmp_path):
    for folder in ("ham", "spam"):
        (tmp_path / "data" / folder).mkdir(parents=True)
    plain = "From x\nSubject: WIN\nX-Spam: yes\n\nHello you\n"
    (tmp_path / "data" / "ham" / "1.txt").write_text(plain)
    (tmp_path / "data" / "ham" / "1.json").write_text("{}")
    parts = (
        "Subject: b\nContent-Type: multipart/mixed; boundary=XX\n\n"
        "--XX\nContent-Type: text/html\nContent-Transfer-Encoding: base64\n\n"
        "PGI+YnV5PC9iPg==\n--XX\nContent-Type: image/png\n\nabc\n--XX--\n"
    )
    (tmp_path / "data" / "spam" / "2.txt").write_text(parts)
    X, y = read("mails", tmp_path, under="data", positive=["spam"])
    assert (X, y) == (["Hello you", "<b>buy</b>"], [0, 1])


def test_fortunes_end_at_a_line_of_percent(tmp_path):
    (tmp_path / "art").write_text("50 % off\n-- me\n%\nTwo\n")
    (tmp_path / "work").write_text("Three\n%\n")
    (tmp_path / "art.dat").write_bytes(b"\xff\x00")
    (tmp_path / "art.u8").symlink_to("art")
    X, y = read("fortunes", tmp_path, under=".", positive=["work"])
    assert (X, y) == (["50 % off\n-- me", "Two", "Three"], [0, 0, 1])


def test_glosses_carry_the_words_of_a_meaning(tmp_path):
    (tmp_path / "data.noun").write_text(
        "  1 a licence\n"
        "00015388 05 n 02 sea_dog 0 seal 1 001 @ 1 n 0000 | an animal; barks  \n"
        "00021265 13 n 01 bread 0 000 | a food  \n"
    )
    X, y = read("glosses", tmp_path, member="data.noun", positive=["13"])
    assert (X, y) == (["sea dog, seal: an animal; barks", "bread: a food"], [0, 1])


def test_entries_lose_their_tag_dates_and_braces(tmp_path):
    text = (
        "Ada\n\n   <language, history> After {Lady Ada}.\n\n   (1995-03-16)\n\n"
        "note\n\n   No tag.\n\nIP\n\n   <networking> See {TCP}.\n"
    )
    with gzip.open(tmp_path / "d.dz", "wt") as file:
        file.write(text)
    X, y = read("entries", tmp_path, member="d.dz", positive=["language"])
    assert (X, y) == (["Ada After Lady Ada.", "IP See TCP."], [1, 0])


def test_the_tag_of_an_entry_may_be_of_another_form(tmp_path):
    text = b"Ivy\n   1. (Bot.) A plant.\n\nOx\n   (Zool.) \x92A beast\n   (Bot.)\n"
    (tmp_path / "d.dz").write_bytes(gzip.compress(text))
    given = {"member": "d.dz", "tag": r"\(([A-Z]\w+)\.\)", "positive": ["Bot"]}
    X, y = read("entries", tmp_path, **given)
    assert (X, y) == (["Ivy 1. A plant.", "Ox \ufffdA beast"], [1, 0])


def test_speeches_come_in_pieces_of_five_sentences(tmp_path):
    (tmp_path / "1801_jones_d.txt").write_text(" ".join(f"No {i}." for i in range(11)))
    (tmp_path / "1802_smith_r.txt").write_text("Yes! " * 5)
    X, y = read("speeches", tmp_path, under=".", positive=["r"])
    assert X[1] == "No 5. No 6. No 7. No 8. No 9."
    assert y == [0, 0, 1]


def test_a_class_that_nobody_has_is_a_mistake(tmp_path):
    (tmp_path / "art").write_text("One\n%\nTwo\n")
    with pytest.raises(ValueError, match="tools"):
        read("fortunes", tmp_path, under=".", positive=["tools"])


def test_all_tasks_of_a_source_draw_the_same_rows(tmp_path, small_draw):
    for name in ("art", "work"):
        text = "\n%\n".join(f"{name} {i}" for i in range(20))
        (tmp_path / name).write_text(text)
    one, y = read("fortunes", tmp_path, under=".", positive=["art"])
    two, z = read("fortunes", tmp_path, under=".", positive=["work"])
    assert one == two
    assert len(one) == 6
    assert y == [int(text.startswith("art")) for text in one]
    assert [a + b for a, b in zip(y, z, strict=True)] == [1] * 6


# --- pictures -------------------------------------------------------------------------


def write_png(path, colour, size=(8, 8), mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.new(mode, size, colour).save(path)


def test_folders_are_classes_and_copies_links_and_faults_go(tmp_path, capsys):
    write_png(tmp_path / "top" / "animals" / "big" / "cat.png", (255, 0, 0), (4, 8))
    write_png(tmp_path / "top" / "food" / "pie.jpg", (0, 0, 255))
    write_png(tmp_path / "top" / "food" / "twin.png", (255, 0, 0), (4, 8))
    write_png(tmp_path / "top" / "stars" / "one.png", (0, 255, 0))
    write_png(tmp_path / "top" / "loose.png", (9, 9, 9))
    (tmp_path / "top" / "food" / "cut.png").write_bytes(b"\x89PNG no")
    (tmp_path / "top" / "food" / "link.png").symlink_to("twin.png")
    given = {"under": "top", "but": "^stars/", "positive": ["food"]}
    X, y = read("folders", tmp_path, **given)
    assert X.shape == (2, 64, 64, 3)
    assert X.dtype == np.uint8
    assert y == [0, 1]
    assert X[0, 32, 32].tolist() == [255, 0, 0]
    assert X[0, 32, 0].tolist() == [255, 255, 255]  # beside a tall picture
    assert "cut.png" in capsys.readouterr().err
    again, _ = read("folders", tmp_path, **given)
    assert np.array_equal(X, again)
    assert capsys.readouterr().err == ""  # not decoded again


def test_what_is_see_through_is_white_and_thin_pictures_stay(tmp_path):
    write_png(tmp_path / "a" / "1.png", (0, 0, 0, 0), mode="RGBA")
    write_png(tmp_path / "b" / "2.png", (0, 0, 0), size=(500, 1))
    X, _ = read("folders", tmp_path, under=".", positive=["b"])
    assert X[0].min() == 255
    assert X[1, 32].max() == 0 or X[1, 31].max() == 0


def test_too_many_pixels_are_left_out_with_a_word(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(real_media, "MOST_PIXELS", 99)
    write_png(tmp_path / "1.png", (0, 0, 0), size=(10, 10))
    assert real_media.small(tmp_path / "1.png") is None
    assert "10×10 pixels are too many" in capsys.readouterr().err


def test_faces_are_cut_out_of_one_file(tmp_path):
    raw = b""
    for name, colour in (("monster/ant.x11", 9), ("wall/w.111", 99), ("wall/w.112", 7)):
        file = io.BytesIO()
        Image.new("RGB", (32, 32), (colour, 0, 0)).save(file, "PNG")
        content = file.getvalue()
        raw += f"IMAGE {len(content)} ./arch/{name}\n".encode() + content
    (tmp_path / "all").write_bytes(raw)
    given = {"member": "all", "but": r"(?<!11)$", "positive": ["wall"]}
    X, y = read("faces", tmp_path, **given)
    assert X[:, 30, 30, 0].tolist() == [9, 99]
    assert y == [0, 1]


@pytest.mark.parametrize("pack", [gzip.compress, bytes])
def test_idx_keeps_the_classes_asked_for(tmp_path, pack):
    pixels = np.arange(4 * 28 * 28, dtype=np.uint32).reshape(4, 28, 28) % 251
    raw = struct.pack(">4I", 2051, 4, 28, 28) + pixels.astype(np.uint8).tobytes()
    (tmp_path / "x").write_bytes(pack(raw))
    (tmp_path / "y").write_bytes(
        pack(struct.pack(">2I", 2049, 4) + bytes([4, 9, 1, 4]))
    )
    given = {"pictures": "x", "labels": "y", "among": ["4", "9"], "positive": ["4"]}
    X, y = read("idx", tmp_path, **given)
    assert X.shape == (3, 64, 64, 3)
    assert y == [1, 0, 1]


def test_sheets_are_cut_into_pictures(tmp_path):
    pixels = np.zeros((2, 32 * 32, 3), dtype=np.uint8)
    pixels[1, :, 2] = 200
    Image.fromarray(pixels).save(tmp_path / "s.png")
    (tmp_path / "l.json").write_text(json.dumps([3, 8]))
    given = {"pictures": ["s.png"], "labels": "l.json", "positive": ["8"]}
    X, y = read("sheets", tmp_path, **given)
    assert X[1, 5, 5].tolist() == [0, 0, 200]
    assert y == [0, 1]


def test_links_out_of_a_package_go(tmp_path):
    (tmp_path / "here").write_text("x")
    (tmp_path / "good").symlink_to("here")
    (tmp_path / "dead").symlink_to("/nowhere/at/all")
    without_dead_links(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["good", "here"]
