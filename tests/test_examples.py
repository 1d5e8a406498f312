"""Every example runs, draws a picture of its size, and says what it measured."""

from __future__ import annotations

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from matplotlib.image import imread

EXAMPLES = Path(__file__).parents[1] / "examples"
PIXELS = {  # file, tiny settings, width and height
    "toy_pu": ("toy-pu.png", {"n": 60}, (1600, 660)),
    "lambda_distributions": (
        "lambda-distributions.png",
        {"n": 5_000},
        (1600, 640),
    ),
    "circles": ("circles.png", {"n": 120}, (1600, 660)),
    "psnr": ("psnr-digits.png", {"limit": 120, "epochs": 1}, (1040, 680)),
    "quickstart": ("quickstart.png", {}, (920, None)),
}


def load(name):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module", params=PIXELS)
def run(request, tmp_path_factory):
    """Run one example; return its name, its picture and what it printed."""
    lines = []
    module = load(request.param)
    module.print = lambda *words: lines.append(" ".join(map(str, words)))
    settings = PIXELS[request.param][1]
    path = module.main(tmp_path_factory.mktemp(request.param) / "out", **settings)
    return request.param, path, "\n".join(lines)


def test_every_script_is_tried():
    elsewhere = {"make_data"}  # tests/test_make_data.py
    assert {path.stem for path in EXAMPLES.glob("*.py")} == set(PIXELS) | elsewhere


def test_the_picture_is_there_in_its_size_and_not_blank(run):
    name, path, _ = run
    file, _, (width, height) = PIXELS[name]
    assert path.name == file
    pixels = imread(path)[..., :3]
    assert pixels.shape[1] == width
    assert height in (None, pixels.shape[0])
    assert pixels.std() > 0.05


def test_the_example_says_what_it_found(run):
    name, path, text = run
    assert text.endswith(str(path))
    CHECKS[name](text)


def _toy_pu(text):
    assert "4 labelled, 56 unlabelled" in text  # 15 % of 30 positives
    assert "46% are positive" in text


def _lambda(text):
    spans = dict(re.findall(r"^(\w+).*k = 0\.2 +nine in ten between (\S+)", text, re.M))
    mixup = float(re.search(r"mixup.*between (\S+)", text)[1])
    assert mixup < float(spans["literal"]) < float(spans["midpoint"]) < 0.5


def _circles(text):
    depth = [float(d) for d in re.findall(r"half within (\S+) of", text)]
    mixup, proposed = depth
    assert proposed < mixup - 0.1


def _psnr(text):
    for line in ("all images", "unseen images only"):
        found = re.search(line + r": +Mann-Whitney p [<=] \S+, AUC (\S+)", text)
        assert 0 <= float(found[1]) <= 1


def _quickstart(text):
    assert float(re.search(r"accuracy +(\S+)", text)[1]) > 0.85
    assert re.search("^refine ", text, re.M)
    assert re.search(r"2\d\d of 540 new images are called even", text)


CHECKS = {
    "toy_pu": _toy_pu,
    "lambda_distributions": _lambda,
    "circles": _circles,
    "psnr": _psnr,
    "quickstart": _quickstart,
}


def test_psnr_asks_for_more_images_than_two(tmp_path):
    with pytest.raises(SystemExit, match="too few"):
        load("psnr").main(tmp_path, limit=2)


@pytest.mark.parametrize("name", PIXELS)
def test_pictures_go_beside_the_examples_by_default(name):
    assert EXAMPLES / "out" == load(name).OUT


def test_a_script_takes_its_folder_from_the_command_line(tmp_path):
    command = [sys.executable, str(EXAMPLES / "toy_pu.py"), "--out", str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    assert (tmp_path / "toy-pu.png").exists()
