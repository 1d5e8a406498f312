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

from denspu.data import Items, join, read_items, read_pair
from denspu.data._decoding import ORIENTATION, _Room
from denspu.exceptions import InvalidInputError, InvalidParameterError, LabelError

NOBODY = 65534


def gradient(height=8, width=12):
    rows, columns = np.mgrid[:height, :width]
    return (rows * 20 + columns * 5).astype(np.uint8)


def save(path, pixels, **options):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path, **options)


def reasons(items):
    return dict(items.skipped)


@pytest.fixture
def folder(tmp_path):
    """Two good images in sub-folders."""
    top = tmp_path / "images"
    save(top / "b" / "two.png", gradient())
    save(top / "a" / "one.png", 255 - gradient())
    return top


# --- what is read -------------------------------------------------------------------


def test_a_folder_becomes_one_array_in_the_order_of_the_paths(folder):
    items = read_items(folder)
    assert isinstance(items, Items)
    assert items.kind == "image"
    assert items.ids == ["a/one.png", "b/two.png"]
    assert items.X.dtype == np.uint8
    assert np.array_equal(items.X[..., 0], [255 - gradient(), gradient()])
    assert items.facts["width"].tolist() == [12, 12]
    assert items.facts["height"].tolist() == [8, 8]
    assert items.facts["format"].tolist() == ["PNG", "PNG"]
    assert items.facts["bytes"].tolist() == [
        (folder / name).stat().st_size for name in items.ids
    ]
    assert items.per_second > 0
    assert items.summary().startswith("2 images · 8×12×1 uint8")


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


def test_of_a_gif_the_first_frame_is_read(tmp_path):
    frames = [Image.fromarray(np.full((4, 4), v, np.uint8)) for v in (40, 200)]
    frames[0].save(tmp_path / "x.gif", save_all=True, append_images=frames[1:])
    assert (
        read_items(tmp_path).X.ravel().tolist()
        == [40] * 16 * (read_items(tmp_path).X.shape[-1])
    )


@pytest.mark.parametrize("name", ["x.png", "x.tif"])
def test_sixteen_bits_are_kept(tmp_path, name):
    deep = gradient().astype(np.uint16) * 200 + 1
    save(tmp_path / name, deep)
    items = read_items(tmp_path)
    assert items.X.dtype == np.uint16
    assert np.array_equal(items.X[0, ..., 0], deep)
    assert items.facts["bits"].tolist() == [16]


def test_sixteen_bits_survive_a_resize(tmp_path):
    save(tmp_path / "x.png", np.full((8, 8), 40_001, np.uint16))
    assert read_items(tmp_path, image_size=4).X.ravel().tolist() == [40_001] * 16


def test_eight_bits_among_sixteen_keep_their_brightness(tmp_path):
    save(tmp_path / "a.png", np.full((4, 4), 255, np.uint8))
    save(tmp_path / "b.png", np.full((4, 4), 65_535, np.uint16))
    save(tmp_path / "c.png", np.full((4, 4, 3), 255, np.uint8))
    items = read_items(tmp_path)
    assert items.X.shape == (3, 4, 4, 3)
    assert (items.X == 65_535).all()


def test_float_pixels_outside_0_to_1_are_skipped(tmp_path):
    save(tmp_path / "a.tif", np.full((4, 4), 0.5, np.float32))
    save(tmp_path / "b.tif", np.full((4, 4), 7.5, np.float32))
    items = read_items(tmp_path)
    assert items.ids == ["a.tif"]
    assert (items.X == 32_768).all()
    assert "floats outside 0 to 1" in reasons(items)["b.tif"]


def test_colour_makes_three_channels_of_all(tmp_path):
    colour = np.zeros((4, 4, 3), np.uint8)
    colour[..., 0] = 200
    save(tmp_path / "a.png", colour)
    save(tmp_path / "b.png", np.full((4, 4), 9, np.uint8))
    items = read_items(tmp_path)
    assert items.X[:, 0, 0].tolist() == [[200, 0, 0], [9, 9, 9]]
    assert items.facts["mode"].tolist() == ["RGB", "L"]


def test_palette_and_black_and_white(tmp_path):
    colour = np.zeros((4, 4, 3), np.uint8)
    colour[..., 2] = 255
    Image.fromarray(colour).quantize(4).save(tmp_path / "a.png")
    Image.fromarray(colour[..., 2]).convert("1").save(tmp_path / "b.png")
    assert read_items(tmp_path).X[:, 0, 0].tolist() == [[0, 0, 255], [255] * 3]


def test_what_shines_through_is_white(tmp_path):
    rgba = np.zeros((2, 2, 4), np.uint8)
    rgba[0, 0] = (10, 20, 30, 255)
    save(tmp_path / "a.png", rgba)
    assert read_items(tmp_path).X[0, :, 0].tolist() == [[10, 20, 30], [255] * 3]


def test_cmyk(tmp_path):
    image = Image.new("CMYK", (16, 16), (0, 255, 255, 0))
    image.save(tmp_path / "a.jpg", quality=95)
    red, green, blue = read_items(tmp_path).X[0, 8, 8].tolist()
    assert red > 200 > 60 > max(green, blue)


@pytest.mark.parametrize("name", ["x.jpg", "x.png", "x.tif", "x.webp"])
@pytest.mark.parametrize("orientation", [1, 3, 6, 8])
def test_the_rotation_noted_by_the_camera(tmp_path, name, orientation):
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    pixels = np.zeros((16, 32), np.uint8)
    pixels[:, 16:] = 255  # bright on the right
    save(tmp_path / name, pixels, exif=exif)
    items = read_items(tmp_path)
    turns = {1: 0, 3: 2, 6: 3, 8: 1}[orientation]
    expected = np.rot90(pixels, turns)
    assert (items.facts["height"][0], items.facts["width"][0]) == expected.shape
    assert np.abs(items.X[0, ..., 0].astype(int) - expected).max() < 60


def test_one_size_is_kept_and_several_become_a_square(folder):
    assert read_items(folder).X.shape[1:3] == (8, 12)
    save(folder / "c.png", gradient(30, 20))
    items = read_items(folder)
    assert items.X.shape[1:3] == (64, 64)
    assert "2 sizes" in items.notes[0]
    assert "image_size=" in items.notes[0]
    assert items.facts["width"].tolist() == [12, 12, 20]


@pytest.mark.parametrize(("size", "shape"), [(5, (5, 5)), ((4, 7), (4, 7))])
def test_image_size(folder, size, shape):
    assert read_items(folder, image_size=size).X.shape[1:3] == shape


@pytest.mark.parametrize("size", [0, -3, 2.5, "large", (4,), True, 100_000])
def test_bad_image_size(folder, size):
    with pytest.raises(InvalidParameterError, match="image_size"):
        read_items(folder, image_size=size)


def test_new_images_come_in_the_form_of_the_first(folder, tmp_path):
    first = read_items(folder)
    save(tmp_path / "new" / "x.png", np.full((20, 20, 3), 7, np.uint8))
    save(tmp_path / "new" / "y.png", np.full((20, 20), 7 * 257, np.uint16))
    for like in (first, first.plan, dict(first.plan)):
        new = read_items(tmp_path / "new", like=like)
        assert new.X.shape == (2, 8, 12, 1)
        assert new.X.dtype == np.uint8
        assert (new.X == 7).all()


def test_threads_change_nothing(folder):
    for i in range(200):
        save(folder / f"{i}.png", np.full((8, 12), i, np.uint8))
    one = read_items(folder, workers=1)
    four = read_items(folder, workers=4)
    assert one.ids == four.ids
    assert np.array_equal(one.X, four.X)


def test_lists_of_images(folder):
    (folder / "list.txt").write_text("b/two.png\na/one.png\n")
    assert read_items(folder / "list.txt").ids == ["b/two.png", "a/one.png"]
    items = read_items([folder / "b" / "two.png"])
    assert np.array_equal(items.X[0, ..., 0], gradient())
    assert read_items(folder / "b" / "two.png").ids == ["two.png"]


def test_hidden_files_and_folders_are_left_out(folder):
    shutil.copy(folder / "a" / "one.png", folder / ".hidden.png")
    save(folder / ".cache" / "x.png", gradient())
    (folder / "readme.html").write_text("words")
    items = read_items(folder)
    assert len(items) == 2
    assert items.notes == [f"1 other files in {folder} are not read."]


def test_circles_of_links_end(folder):
    (folder / "a" / "again").symlink_to(folder, target_is_directory=True)
    (folder / "b" / "up").symlink_to("..", target_is_directory=True)
    assert len(read_items(folder)) == 2


def test_names_with_odd_characters(tmp_path):
    names = ["ä ö.png", "a\nb.png", "'; drop --.png", "<b>&.png", "日本.png"]
    for name in names:
        save(tmp_path / "i" / name, gradient())
    assert sorted(read_items(tmp_path / "i").ids) == sorted(names)


def test_a_name_that_is_not_utf8(tmp_path):
    save(tmp_path / "x.png", gradient())
    try:
        os.rename(tmp_path / "x.png", os.fsencode(tmp_path) + b"/\xe9.png")
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    items = read_items(tmp_path)
    assert items.ids == ["\\xe9.png"]
    items.ids[0].encode("utf-8")


# --- bad files are listed, never fatal ----------------------------------------------


def break_file(folder, name, content):
    (folder / name).write_bytes(content)


def test_bad_files_are_listed_with_the_reason(folder):
    whole = (folder / "a" / "one.png").read_bytes()
    noise = np.random.default_rng(0).integers(0, 255, (64, 64), dtype=np.uint8)
    save(folder / "c" / "long.jpg", noise)
    jpeg = (folder / "c" / "long.jpg").read_bytes()
    break_file(folder, "cut.png", whole[: len(whole) - 30])
    break_file(folder, "cut.jpg", jpeg[: len(jpeg) // 2])
    break_file(folder, "head.png", whole[:20])
    break_file(folder, "empty.png", b"")
    break_file(folder, "words.png", b"Dear all, this is no image.")
    break_file(folder, "flipped.png", whole[:50] + b"\x00\xff" * 10 + whole[70:])
    (folder / "gone.png").symlink_to("nowhere.png")
    items = read_items(folder)
    assert items.ids == ["a/one.png", "b/two.png", "c/long.jpg"]
    why = reasons(items)
    assert set(why) == {
        "cut.png",
        "cut.jpg",
        "head.png",
        "empty.png",
        "words.png",
        "flipped.png",
        "gone.png",
    }
    assert why["empty.png"] == "the file is empty"
    assert "not a readable image" in why["words.png"]
    assert "b'Dear all, th'" in why["words.png"]
    assert "truncated" in why["cut.jpg"]
    assert "not there" in why["gone.png"]


def test_rows_stay_with_their_names_when_some_are_bad(tmp_path):
    for i in range(30):
        save(tmp_path / f"{i:02d}.png", np.full((4, 4), i, np.uint8))
        if i % 3 == 1:
            path = tmp_path / f"{i:02d}.png"
            path.write_bytes(path.read_bytes()[:-30])
    items = read_items(tmp_path)
    assert [int(name[:2]) for name in items.ids] == items.X[:, 0, 0, 0].tolist()
    assert len(items) == len(items.facts["width"]) == 20


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


def test_a_file_and_a_folder_without_permission(open_folder):
    save(open_folder / "good.png", gradient())
    save(open_folder / "secret.png", gradient())
    save(open_folder / "locked" / "x.png", gradient())
    read_items(open_folder)  # what is imported late is imported now
    for name in ("secret.png", "locked"):
        (open_folder / name).chmod(0)
    with as_nobody():
        items = read_items(open_folder)
    assert items.ids == ["good.png"]
    assert reasons(items) == {
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


@pytest.mark.parametrize("side", [8_000, 12_000, 30_000])
def test_a_header_that_promises_too_much(folder, side):
    break_file(folder, "bomb.png", png_that_claims(side, side))
    items = read_items(folder)
    assert len(items) == 2
    assert "more than max_pixels=50,000,000" in reasons(items)["bomb.png"]
    assert f"{side * side:,}" in reasons(items)["bomb.png"] or (
        f"{side:,}×{side:,}" in reasons(items)["bomb.png"]
    )


def test_a_real_large_image(folder):
    Image.new("1", (12_000, 12_000)).save(folder / "large.png")
    assert (folder / "large.png").stat().st_size < 200_000
    assert "12,000×12,000" in reasons(read_items(folder))["large.png"]
    save(folder / "mid.png", np.zeros((100, 100), np.uint8))
    why = reasons(read_items(folder, max_pixels=5_000))
    assert set(why) == {"large.png", "mid.png"}


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
    assert room.free == 100
    with room.for_pixels(10_000):  # alone, even a larger one may enter
        assert room.free == 0


# --- what cannot be done is said ----------------------------------------------------


def test_an_empty_folder(tmp_path):
    with pytest.raises(InvalidInputError, match=r"has no images: it is empty.*\.png"):
        read_items(tmp_path)


def test_a_folder_of_something_else(tmp_path):
    (tmp_path / "x.csv").write_text("a\n1\n")
    with pytest.raises(InvalidInputError, match=r"holds 1 \.csv.*as a file"):
        read_items(tmp_path)
    with pytest.raises(InvalidInputError, match="Pass one of its files"):
        read_items(tmp_path, kind="table")


def test_nothing_but_bad_images(tmp_path):
    (tmp_path / "x.png").write_bytes(b"no")
    with pytest.raises(
        InvalidInputError, match=r"None of the 1 images .*x\.png: not a"
    ):
        read_items(tmp_path)


def test_one_image_is_read_but_is_no_class(folder, tmp_path):
    save(tmp_path / "one" / "x.png", gradient())
    P, U = read_pair(tmp_path / "one", folder)
    assert len(P) == 1
    with pytest.raises(LabelError, match="has 1 usable item; at least 2"):
        join(P, U)


def test_no_such_path(tmp_path):
    with pytest.raises(InvalidInputError, match="neither a folder nor a file"):
        read_items(tmp_path / "nowhere")
    with pytest.raises(InvalidInputError, match="list of images is empty"):
        read_items([])


def test_too_much_for_the_memory(folder):
    with pytest.raises(InvalidInputError, match=r"need .* GB, more than max_bytes=100"):
        read_items(folder, max_bytes=100)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"kind": "picture"}, "kind='picture' must be"),
        ({"imagesize": 3}, "no option 'imagesize'. Did you mean 'image_size'"),
        ({"max_pixels": 0}, "max_pixels=0 must be"),
        ({"like": {"kind": "?"}}, "is no plan"),
        ({"like": {"kind": "text"}, "kind": "image"}, "contradicts like="),
    ],
)
def test_bad_options(folder, options, words):
    with pytest.raises(InvalidParameterError, match=words.replace("?", r"\?")):
        read_items(folder, **options)


# --- pairs --------------------------------------------------------------------------


def test_a_pair_gets_one_form(tmp_path):
    save(tmp_path / "p" / "1.png", np.full((9, 9), 255, np.uint8))
    save(tmp_path / "p" / "2.png", np.full((9, 9), 255, np.uint8))
    save(tmp_path / "u" / "1.png", np.zeros((20, 9, 3), np.uint8))
    save(tmp_path / "u" / "2.png", np.full((9, 9), 1, np.uint16))
    P, U = read_pair(tmp_path / "p", tmp_path / "u")
    assert P.X.shape[1:] == U.X.shape[1:] == (64, 64, 3)
    X, y, ids = join(P, U)
    assert X.dtype == np.uint16
    assert (X[0] == 65_535).all()
    assert y.tolist() == [1, 1, 0, 0]
    assert ids == ["1.png", "2.png", "1.png", "2.png"]


def test_join_brings_grey_to_colour_and_eight_bits_to_sixteen(tmp_path):
    save(tmp_path / "p" / "1.png", np.full((4, 4), 255, np.uint8))
    save(tmp_path / "p" / "2.png", np.full((4, 4), 255, np.uint8))
    save(tmp_path / "u" / "1.png", np.zeros((4, 4, 3), np.uint8))
    save(tmp_path / "u" / "2.png", np.full((4, 4), 1, np.uint16))
    X, _, _ = join(read_items(tmp_path / "p"), read_items(tmp_path / "u"))
    assert X.shape == (4, 4, 4, 3)
    assert (X[:2] == 65_535).all()
    assert (X[3] == 1).all()


def test_join_refuses_two_sizes(tmp_path):
    for name, side in (("p", 4), ("u", 5)):
        save(tmp_path / name / "1.png", gradient(side, side))
        save(tmp_path / name / "2.png", gradient(side, side))
    with pytest.raises(InvalidInputError, match=r"are 4×4, .*5×5.*read_pair"):
        join(read_items(tmp_path / "p"), read_items(tmp_path / "u"))


def test_images_and_a_table_are_no_pair(folder, tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match=r"holds images and .* table rows"):
        read_pair(folder, tmp_path / "x.csv")
    with pytest.raises(InvalidInputError, match=r"image items and .* table items"):
        join(read_items(folder), read_items(tmp_path / "x.csv"))


def test_take(folder):
    some = read_items(folder).take([False, True])
    assert some.ids == ["b/two.png"]
    assert np.array_equal(some.X[0, ..., 0], gradient())
    assert some.facts["width"].tolist() == [12]
