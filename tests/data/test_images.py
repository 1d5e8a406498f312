"""Folders of images: every format, every way a file can be bad."""

from __future__ import annotations

import os
import shutil
import struct
import tempfile
import threading
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from denspu.data import join, read_items, read_pair
from denspu.data.kinds.image import ORIENTATION, _Room
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError

NOBODY = 65534


def gradient(height=8, width=12):
    rows, columns = np.mgrid[:height, :width]
    return (rows * 20 + columns * 5).astype(np.uint8)


def save(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)


@pytest.fixture
def folder(tmp_path):
    """Two good images in sub-folders."""
    top = tmp_path / "images"
    save(top / "b" / "two.png", gradient())
    save(top / "a" / "one.png", 255 - gradient())
    return top


# --- what is read -------------------------------------------------------------------


def test_a_folder_becomes_one_array_in_the_order_of_the_paths(folder):
    shutil.copy(folder / "a" / "one.png", folder / ".hidden.png")
    save(folder / ".cache" / "x.png", gradient())
    (folder / "readme.html").write_text("words")
    (folder / "a" / "again").symlink_to(folder, target_is_directory=True)
    items = read_items(folder)
    assert items.kind == "image"
    assert items.ids == ["a/one.png", "b/two.png"]
    assert items.X.dtype == np.uint8
    assert np.array_equal(items.X[..., 0], [255 - gradient(), gradient()])
    assert items.facts["width"].tolist() == [12, 12]
    assert items.facts["height"].tolist() == [8, 8]
    assert items.facts["format"].tolist() == ["PNG", "PNG"]
    sizes = [(folder / name).stat().st_size for name in items.ids]
    assert items.facts["bytes"].tolist() == sizes
    assert items.notes == [f"1 other files in {folder} are not read."]
    assert items.summary().startswith("2 images · 8×12×1 uint8")
    some = items.take([False, True])
    assert some.ids == ["b/two.png"]
    assert np.array_equal(some.X[0, ..., 0], gradient())


@pytest.mark.parametrize(
    ("name", "exact"),
    [
        ("x.png", True),
        ("x.bmp", True),
        ("x.tif", True),
        ("x.GIF", True),
        ("x.webp", False),
        ("x.jpeg", False),
    ],
)
def test_every_format(tmp_path, name, exact):
    save(tmp_path / name, gradient())
    values = read_items(tmp_path).X[0, ..., 0].astype(int)
    assert np.abs(values - gradient()).max() <= (0 if exact else 12)


def test_sixteen_bits(tmp_path):
    deep = gradient().astype(np.uint16) * 200 + 1
    save(tmp_path / "a" / "x.png", deep)
    items = read_items(tmp_path / "a")
    assert items.X.dtype == np.uint16
    assert np.array_equal(items.X[0, ..., 0], deep)
    assert items.facts["bits"].tolist() == [16]
    save(tmp_path / "b" / "a.png", np.full((4, 4), 255, np.uint8))
    save(tmp_path / "b" / "b.png", np.full((4, 4), 65_535, np.uint16))
    save(tmp_path / "b" / "c.png", np.full((4, 4, 3), 255, np.uint8))
    for size in (None, 2):
        items = read_items(tmp_path / "b", image_size=size)
        assert items.X.shape[3] == 3
        assert (items.X == 65_535).all()


def test_float_pixels_outside_0_to_1_are_skipped(tmp_path):
    save(tmp_path / "a.tif", np.full((4, 4), 0.5, np.float32))
    save(tmp_path / "b.tif", np.full((4, 4), 7.5, np.float32))
    items = read_items(tmp_path)
    assert items.ids == ["a.tif"]
    assert (items.X == 32_768).all()
    assert "outside 0 to 1" in dict(items.skipped)["b.tif"]


def test_all_modes_become_grey_or_colour(tmp_path):
    blue = np.zeros((4, 4, 3), np.uint8)
    blue[..., 2] = 255
    Image.fromarray(blue).quantize(4).save(tmp_path / "a.png")  # a palette
    Image.fromarray(blue[..., 2]).convert("1").save(tmp_path / "b.png")
    save(tmp_path / "c.png", np.zeros((4, 4, 4), np.uint8))  # transparent
    save(tmp_path / "d.png", np.full((4, 4), 9, np.uint8))
    Image.new("CMYK", (4, 4), (0, 255, 255, 0)).save(tmp_path / "e.jpg", quality=95)
    frames = [Image.fromarray(np.full((4, 4), v, np.uint8)) for v in (40, 200)]
    frames[0].save(tmp_path / "f.gif", save_all=True, append_images=frames[1:])
    pixels = read_items(tmp_path).X[:, 0, 0].tolist()
    white = [255, 255, 255]
    assert pixels[:4] == [[0, 0, 255], white, white, [9, 9, 9]]
    red, green, blue = pixels[4]
    assert red > 200 > 60 > max(green, blue)
    assert pixels[5] == [40, 40, 40]


@pytest.mark.parametrize("name", ["x.jpg", "x.png", "x.tif", "x.webp"])
@pytest.mark.parametrize("orientation", [3, 6])
def test_the_rotation_noted_by_the_camera(tmp_path, name, orientation):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    pixels = np.zeros((16, 32), np.uint8)
    pixels[:, 16:] = 255  # bright on the right
    save(tmp_path / name, pixels, exif=exif)
    items = read_items(tmp_path)
    expected = np.rot90(pixels, {3: 2, 6: 3}[orientation])
    assert (items.facts["height"][0], items.facts["width"][0]) == expected.shape
    assert np.abs(items.X[0, ..., 0].astype(int) - expected).max() < 60


def test_one_size_is_kept_and_several_become_a_square(folder):
    assert read_items(folder, image_size=(4, 7)).X.shape[1:3] == (4, 7)
    save(folder / "c.png", gradient(30, 20))
    items = read_items(folder)
    assert items.X.shape[1:3] == (64, 64)
    assert "2 sizes" in items.notes[0]
    assert items.facts["width"].tolist() == [12, 12, 20]


@pytest.mark.parametrize("size", [0, 2.5, (4,), True, 100_000])
def test_bad_image_size(folder, size):
    with pytest.raises(InvalidParameterError, match="image_size"):
        read_items(folder, image_size=size)


def test_new_images_come_in_the_form_of_the_first(folder, tmp_path):
    first = read_items(folder)
    save(tmp_path / "new" / "x.png", np.full((20, 20, 3), 7, np.uint8))
    save(tmp_path / "new" / "y.png", np.full((20, 20), 7 * 257, np.uint16))
    for like in (first, dict(first.plan)):
        new = read_items(tmp_path / "new", like=like)
        assert new.X.shape == (2, 8, 12, 1)
        assert new.X.dtype == np.uint8
        assert (new.X == 7).all()


def test_lists_of_images(folder):
    (folder / "list.txt").write_text("b/two.png\na/one.png\n")
    assert read_items(folder / "list.txt").ids == ["b/two.png", "a/one.png"]
    items = read_items([folder / "b" / "two.png"])
    assert np.array_equal(items.X[0, ..., 0], gradient())
    assert read_items(folder / "b" / "two.png").ids == ["two.png"]
    (folder / "list.txt").write_text("\n")
    with pytest.raises(InvalidInputError, match="one image path a line"):
        read_items(folder / "list.txt", kind="image")
    with pytest.raises(InvalidInputError, match="read as images, not as texts"):
        read_items([folder / "list.txt"], kind="text")
    with pytest.raises(InvalidInputError, match="list of images is empty"):
        read_items([])


def test_names_with_odd_characters(tmp_path):
    names = ["ä ö.png", "a\nb.png", "'; drop --.png", "<b>&.png", "日本.png"]
    for name in names:
        save(tmp_path / "i" / name, gradient())
    assert sorted(read_items(tmp_path / "i").ids) == sorted(names)
    save(tmp_path / "x.png", gradient())
    try:
        os.rename(tmp_path / "x.png", os.fsencode(tmp_path) + b"/\xe9.png")
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    assert "\\xe9.png" in read_items(tmp_path).ids


# --- bad files are listed, never fatal ----------------------------------------------


def test_bad_files_are_listed_with_the_reason(folder):
    whole = (folder / "a" / "one.png").read_bytes()
    noise = np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)
    save(folder / "c" / "long.jpg", noise)
    jpeg = (folder / "c" / "long.jpg").read_bytes()
    broken = {
        "cut.png": whole[: len(whole) - 30],
        "cut.jpg": jpeg[: len(jpeg) // 2],
        "head.png": whole[:20],
        "empty.png": b"",
        "words.png": b"Dear all, this is no image.",
        "flipped.png": whole[:50] + b"\x00\xff" * 10 + whole[70:],
    }
    for name, content in broken.items():
        (folder / name).write_bytes(content)
    (folder / "gone.png").symlink_to("nowhere.png")
    items = read_items(folder)
    assert items.ids == ["a/one.png", "b/two.png", "c/long.jpg"]
    why = dict(items.skipped)
    assert set(why) == {*broken, "gone.png"}
    assert why["empty.png"] == "the file is empty"
    assert "not a readable image: it starts with b'Dear all, th'" in why["words.png"]
    assert "truncated" in why["cut.jpg"]
    assert "not there" in why["gone.png"]


def test_rows_stay_with_their_names_whatever_the_threads(tmp_path):
    for i in range(100):
        path = tmp_path / f"{i:03d}.png"
        save(path, np.full((4, 4), i, np.uint8))
        if i % 3 == 1:
            path.write_bytes(path.read_bytes()[:-30])
    for workers in (1, 4):
        items = read_items(tmp_path, workers=workers)
        assert [int(name[:3]) for name in items.ids] == items.X[:, 0, 0, 0].tolist()
        assert len(items) == len(items.facts["width"]) == 67


@contextmanager
def as_nobody():
    """Act as a user without rights; the super-user may read everything."""
    if not hasattr(os, "seteuid"):
        pytest.skip("no other user can be taken here")
    if os.geteuid() != 0:
        yield
        return
    try:
        os.seteuid(NOBODY)
    except OSError:
        pytest.skip("no other user can be taken here")
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def open_folder():
    """A folder that everybody may enter; pytest's own belong to one user."""
    top = Path(tempfile.mkdtemp())
    top.chmod(0o755)
    yield top
    for path in top.rglob("*"):
        path.chmod(0o755)
    shutil.rmtree(top)


def test_what_may_not_be_read(open_folder):
    save(open_folder / "good.png", gradient())
    save(open_folder / "secret.png", gradient())
    save(open_folder / "locked" / "x.png", gradient())
    for name in ("t.csv", "t.parquet", "t.npy", "t.txt"):
        (open_folder / name).write_text("a\n1\n")
    read_items(open_folder)  # what is imported late is imported now
    for path in open_folder.iterdir():
        if path.name != "good.png":
            path.chmod(0)
    with as_nobody():
        items = read_items(open_folder)
        for name in ("t.csv", "t.parquet", "t.npy", "t.txt"):
            with pytest.raises(InvalidInputError, match="no permission"):
                read_items(open_folder / name)
    assert items.ids == ["good.png"]
    assert dict(items.skipped) == {
        "secret.png": "no permission to read it",
        "locked/": "no permission to read it",
    }


def png_that_claims(width, height):
    """A few bytes that promise a huge image."""

    def chunk(name, data):
        check = struct.pack(">I", zlib.crc32(name + data))
        return struct.pack(">I", len(data)) + name + data + check

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(b"\0" * 100))
        + chunk(b"IEND", b"")
    )


def test_too_many_pixels(folder):
    for side in (8_000, 30_000):
        (folder / f"{side}.png").write_bytes(png_that_claims(side, side))
    Image.new("1", (12_000, 12_000)).save(folder / "real.png")
    save(folder / "mid.png", np.zeros((100, 100), np.uint8))
    items = read_items(folder)
    assert len(items) == 3
    why = dict(items.skipped)
    assert why["8000.png"] == "8,000×8,000 pixels, more than max_pixels=50,000,000"
    assert why["30000.png"] == "900,000,000 pixels, more than max_pixels=50,000,000"
    assert "12,000×12,000" in why["real.png"]
    assert "mid.png" in dict(read_items(folder, max_pixels=5_000).skipped)


def test_a_large_jpeg_is_shrunk_while_it_is_read(tmp_path):
    save(tmp_path / "x.jpg", np.full((1600, 800), 90, np.uint8))
    items = read_items(tmp_path, max_pixels=25_000, image_size=8)
    assert np.abs(items.X.astype(int) - 90).max() <= 2
    assert items.facts["height"].tolist() == [1600]
    with pytest.raises(InvalidInputError, match="max_pixels=19,000"):
        read_items(tmp_path, max_pixels=19_000)


def test_large_images_wait_for_each_other():
    room = _Room(100)
    seen, most = [], []
    lock = threading.Lock()

    def work():
        with room.for_pixels(60):
            with lock:
                seen.append(1)
                most.append(len(seen))
            threading.Event().wait(0.01)
            with lock:
                seen.pop()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(most) == 1
    with room.for_pixels(10_000):  # alone, even a larger one may enter
        assert room.free == 0


# --- what cannot be done is said ----------------------------------------------------


def test_folders_without_images(tmp_path):
    with pytest.raises(InvalidInputError, match=r"has no images: it is empty.*\.png"):
        read_items(tmp_path)
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(InvalidInputError, match=r"holds 1 \.csv.*as a file"):
        read_items(tmp_path)
    with pytest.raises(InvalidInputError, match="Pass one of its files"):
        read_items(tmp_path, kind="table")
    (tmp_path / "x.png").write_bytes(b"no")
    with pytest.raises(InvalidInputError, match=r"None of the 1 images .*x\.png: not"):
        read_items(tmp_path)
    with pytest.raises(InvalidInputError, match="neither a folder nor a file"):
        read_items(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "picture"}, "kind='picture' must be auto, image, table, text"),
        ({"imagesize": 3}, "no option 'imagesize'. Did you mean 'image_size'"),
        ({"like": {"kind": "text"}, "kind": "image"}, "contradicts like="),
    ],
)
def test_bad_options(folder, options, words):
    with pytest.raises(InvalidParameterError, match=words):
        read_items(folder, **options)


# --- pairs --------------------------------------------------------------------------


def test_a_pair_gets_one_form_and_join_brings_two_together(tmp_path):
    for side, name in ((9, "1.png"), (9, "2.png")):
        save(tmp_path / "p" / name, np.full((side, side), 255, np.uint8))
    save(tmp_path / "u" / "1.png", np.zeros((9, 9, 3), np.uint8))
    save(tmp_path / "u" / "2.png", np.full((9, 9), 1, np.uint16))
    pair = read_pair(tmp_path / "p", tmp_path / "u")
    assert pair[0].X.shape[1:] == pair[1].X.shape[1:] == (9, 9, 3)
    assert pair[0].X.dtype == np.uint16
    apart = read_items(tmp_path / "p"), read_items(tmp_path / "u")
    assert apart[0].X.shape[3] == 1
    for P, U in (pair, apart):
        X, y, ids = join(P, U)
        assert X.dtype == np.uint16
        assert (X[:2] == 65_535).all()
        assert (X[3] == 1).all()
        assert y.tolist() == [1, 1, 0, 0]
        assert ids == ["1.png", "2.png", "1.png", "2.png"]


def test_what_is_no_pair(folder, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"holds images and .* table rows"):
        read_pair(folder, tmp_path / "x.csv")
    with pytest.raises(InvalidInputError, match=r"image items and .* table items"):
        join(read_items(folder), read_items(tmp_path / "x.csv"))
    save(tmp_path / "one" / "x.png", gradient(5, 5))
    with pytest.raises(InvalidInputError, match=r"are 12×8, .*5×5.*read_pair"):
        join(read_items(folder), read_items(tmp_path / "one"))
    with pytest.raises(LabelError, match="has 1 usable labelled positive; at least 2"):
        join(*read_pair(tmp_path / "one", folder))
    with pytest.raises(InvalidInputError, match=r"need .* GB, more than max_bytes=100"):
        read_items(folder, max_bytes=100)
