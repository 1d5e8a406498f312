"""Folders that are not whole models, models that cannot be saved, disks that fill."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import pickle
import resource
import shutil
import warnings
from collections import OrderedDict
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file, save_file
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import FunctionTransformer

from denspu import load, make, save
from denspu._files import as_json
from denspu.detectors import Mahalanobis
from denspu.encoders import IdentityEncoder
from denspu.exceptions import DensPUError, ModelFileError, ModelVersionWarning
from denspu.persistence import load_extra, models
from denspu.persistence.allowed import find, name_of

MODELS = Path(__file__).parent / "models"
Z = np.random.default_rng(0).normal(size=(60, 3))


@pytest.fixture
def model():
    return Mahalanobis().fit(Z)


@pytest.fixture
def saved(model, tmp_path):
    return save(model, tmp_path / "model")


def rewrite(folder, change=None, arrays=None):
    """Change a saved model and write new sums, as somebody else could."""
    if change:
        config = json.loads((folder / "config.json").read_text("utf-8"))
        change(config)
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
    if arrays:
        found = load_file(folder / "arrays.safetensors")
        arrays(found)
        save_file(found, folder / "arrays.safetensors")
    reseal(folder)


def reseal(folder):
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    for name, facts in manifest["files"].items():
        content = (folder / name).read_bytes()
        facts["bytes"] = len(content)
        facts["sha256"] = hashlib.sha256(content).hexdigest()
    (folder / "manifest.json").write_bytes(as_json(manifest))


# --- damaged and foreign folders -----------------------------------------------------


@pytest.mark.parametrize("name", ["config.json", "arrays.safetensors"])
def test_a_flipped_byte_is_refused(saved, name):
    path = saved / name
    content = bytearray(path.read_bytes())
    for place in (0, len(content) // 2, len(content) - 1):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError, match=rf"{name} .*changed or damaged"):
            load(saved)
    path.write_bytes(content)
    load(saved)


def test_any_flipped_byte_of_the_manifest_is_refused(saved):
    path = saved / "manifest.json"
    content = path.read_bytes()
    for place in range(len(content)):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(ModelFileError):
            load(saved)


@pytest.mark.parametrize("name", ["config.json", "arrays.safetensors"])
def test_a_missing_or_cut_file_is_refused(saved, name):
    content = (saved / name).read_bytes()
    (saved / name).write_bytes(content[:-5])
    with pytest.raises(ModelFileError, match=name):
        load(saved)
    (saved / name).unlink()
    with pytest.raises(ModelFileError, match=f"{name} is missing"):
        load(saved)


class Bomb:
    """Runs code when it is unpickled."""

    def __reduce__(self):
        return (os.mkdir, ("exploded",))


def test_a_pickle_is_never_loaded(saved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    bomb = pickle.dumps(Bomb())
    (tmp_path / "model.denspu").write_bytes(bomb)
    with pytest.raises(ModelFileError, match=r"model\.denspu is a pickle"):
        load("model.denspu")
    for name in ("manifest.json", "config.json", "arrays.safetensors"):
        copied = tmp_path / f"with {name}"
        shutil.copytree(saved, copied)
        (copied / name).write_bytes(bomb)
        with pytest.raises(ModelFileError, match=rf"{name} is a pickle"):
            load(copied)
        if name != "manifest.json":
            reseal(copied)
            with pytest.raises(ModelFileError, match=name):
                load(copied)
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "model.pkl").write_bytes(bomb)
    with pytest.raises(ModelFileError, match=r"no manifest.json \(model.pkl is a pick"):
        load(alone)
    torch.save({"a": 1}, tmp_path / "model.pt")
    with pytest.raises(ModelFileError, match=r"torch\.save"):
        load(tmp_path / "model.pt")
    assert not (tmp_path / "exploded").exists()


def test_no_folder_and_an_empty_one(tmp_path):
    with pytest.raises(ModelFileError, match="no folder"):
        load(tmp_path / "nowhere")
    with pytest.raises(ModelFileError, match="manifest"):
        load(tmp_path)


def test_another_format_version(saved):
    path = saved / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    path.write_bytes(as_json({**manifest, "version": 2}))
    with pytest.raises(ModelFileError, match="format version 2"):
        load(saved)
    path.write_bytes(as_json({**manifest, "format": "other"}))
    with pytest.raises(ModelFileError, match="not the manifest"):
        load(saved)


@pytest.mark.parametrize("name", ["../config.json", "/etc/passwd", "x/../config.json"])
def test_names_that_lead_elsewhere(saved, name):
    path = saved / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    manifest["files"][name] = manifest["files"].pop("config.json")
    path.write_bytes(as_json(manifest))
    with pytest.raises(ModelFileError, match="alone"):
        load(saved)


@pytest.mark.parametrize(
    "name",
    [
        "os:system",
        "subprocess:Popen",
        "builtins:eval",
        "denspu.__main__:main",
        "denspu.cli.app:App",
        "denspu.benchmark.runner:Here",
        "denspu.encoders.contrastive:Path",
        "denspu.encoders.contrastive:np",
        "denspu.methods.no_such:Class",
        "denspu.methods..nnpu:NNPU",
        "sklearn.preprocessing:FunctionTransformer",
        "tests.small:small",
        "",
    ],
)
def test_other_classes_are_not_made(saved, name):
    assert find(name) is None
    rewrite(saved, lambda c: c["model"].update(object=name))
    with pytest.raises(ModelFileError, match="which no model may hold"):
        load(saved)


@pytest.mark.parametrize(
    "tree",
    [
        None,
        3,
        [],
        {},
        {"list": 3},
        {"list": []},
        {"tuple": [], "list": []},
        {"same": 1},
        {"object": "denspu.detectors.classical:Mahalanobis"},
        {
            "object": "denspu.detectors.classical:Mahalanobis",
            "state": {"__class__": 1},
        },
        {"object": "denspu.base:Detector", "state": {}},
        {"object": "torch.nn:Linear", "state": {}},
        {"float": "import os"},
        {"number": "|O", "value": 1},
        {"torch": "load"},
        {"numpy": "evil"},
    ],
    ids=str,
)
def test_trees_that_are_none(saved, tree):
    rewrite(saved, lambda c: c.update(model=tree))
    with pytest.raises(ModelFileError):
        load(saved)


def test_a_tree_too_deep(saved):
    deep = '{"list": [' * 20_000 + "]}" * 20_000
    (saved / "config.json").write_text(f'{{"versions": {{}}, "model": {deep}}}')
    reseal(saved)
    with pytest.raises(ModelFileError):
        load(saved)


def test_arrays_that_are_missing_or_other(saved):
    name = sorted(load_file(saved / "arrays.safetensors"))[0]
    whole = (saved / "arrays.safetensors").read_bytes()

    def without(found):
        del found[name]

    def smaller(found):
        found[name] = found[name].astype(np.float32)

    def longer(found):
        found[name] = np.concatenate([found[name], found[name]])

    for change, said in ((without, "lacks"), (smaller, "F32"), (longer, "shape")):
        (saved / "arrays.safetensors").write_bytes(whole)
        rewrite(saved, arrays=change)
        with pytest.raises(ModelFileError, match=said):
            load(saved)


def array_nodes(tree):
    if isinstance(tree, dict):
        if "array" in tree:
            yield tree
        for value in tree.values():
            yield from array_nodes(value)


def test_steps_that_leave_the_memory(saved):
    def far(config):
        node = next(n for n in array_nodes(config["model"]) if len(n["shape"]) == 2)
        node["steps"] = [1000, 1]

    rewrite(saved, far)
    with pytest.raises(ModelFileError, match="steps"):
        load(saved)


def test_versions(saved):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(saved)
    rewrite(saved, lambda c: c["versions"].update(torch="2.0.1", numpy="2.0.0"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(saved)
    rewrite(saved, lambda c: c["versions"].update(torch="1.13.0"))
    with pytest.warns(ModelVersionWarning, match=r"torch 1\.13\.0"):
        load(saved)
    rewrite(saved, lambda c: c["versions"].update({"scikit-learn": "1.0.0"}))
    with pytest.warns(ModelVersionWarning, match=r"scikit-learn 1\.0\.0"):
        load(saved)


# --- models that cannot be saved -----------------------------------------------------


class MyEncoder(IdentityEncoder):
    """A class whose code does not travel."""


class MyNetwork(torch.nn.Linear):
    pass


def refused(model, match, tmp_path):
    with pytest.raises(ModelFileError, match=match) as told:
        save(model, tmp_path / "deep" / "model")
    assert isinstance(told.value, DensPUError)
    assert not list(tmp_path.iterdir())


def test_a_class_of_your_own(blobs, tmp_path, monkeypatch):
    model = make("one_class", encoder=MyEncoder(), prior=0.5).fit(blobs.X, blobs.y)
    refused(model, r"model\.encoder cannot be saved.*MyEncoder.*Nothing", tmp_path)
    monkeypatch.setattr(MyEncoder, "__module__", "denspu.encoders.tabular")
    refused(model, r"model\.encoder cannot be saved", tmp_path)


@pytest.mark.filterwarnings("ignore::denspu.exceptions.DensPUWarning")
def test_a_network_of_your_own_and_one_with_hooks(blobs, tmp_path):
    given = {"prior": 0.5, "epochs": 1, "device": "cpu", "random_state": 0}
    model = make("nnpu", network=MyNetwork(3, 1), **given).fit(blobs.X, blobs.y)
    refused(model, r"model\.network cannot be saved.*MyNetwork", tmp_path)
    model = make("nnpu", network=torch.nn.Linear(3, 1), **given).fit(blobs.X, blobs.y)
    model.module_.register_forward_hook(print)
    refused(model, "forward hooks, which are code", tmp_path)


def test_functions_circles_and_odd_values(model, tmp_path):
    for value, said in (
        (len, "is code"),
        (lambda x: x, "is code"),
        (model.predict, "is code"),
        (FunctionTransformer(np.log), "not among the classes"),
        (np.array([object()]), "not among the classes"),
        (np.array(["a"], dtype=np.dtypes.StringDType()), "cannot be kept"),
        (torch.ones(2).to_sparse(), "another kind"),
        (np.longdouble(1), "cannot be kept"),
        (open, "is code"),
        (model.__class__, "not among the classes"),
    ):
        model.extra_ = value
        refused(model, rf"model\.extra_.* {said}", tmp_path)
    model.extra_ = [model]
    refused(model, "leads back to itself", tmp_path)


def test_what_is_not_a_fitted_estimator(tmp_path):
    with pytest.raises(NotFittedError):
        save(Mahalanobis(), tmp_path / "model")
    refused({"a": 1}, "not a denspu method or part", tmp_path)
    assert name_of(dict) is None
    assert name_of(LogisticRegression) == "sklearn.linear_model:LogisticRegression"


# --- values --------------------------------------------------------------------------

RECORDS = np.array([(1, 2.5)], dtype=np.dtype([("a", "u1"), ("b", "<f8")], align=True))

VALUES = [
    None,
    True,
    -(2**80),
    0.1 + 0.2,
    -0.0,
    float("inf"),
    "ä\n\x00",
    (1, [2, {3}]),
    frozenset("ab"),
    {"a": 1, (1, 2): slice(1, None)},
    OrderedDict(b=1, a=2),
    np.float32(0.1),
    np.float64("nan"),
    np.uint64(2**64 - 1),
    np.bool_(True),
    np.str_("x"),
    np.dtype("<f4"),
    np.dtype(object),
    np.float64,
    int,
    Path("a/b"),
    torch.device("cpu"),
    torch.float16,
    np.arange(6).reshape(2, 3),
    np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    np.arange(24).reshape(2, 3, 4).transpose(1, 2, 0),
    np.arange(20)[::-3],
    np.zeros((0, 3)),
    np.array(2.5),
    np.array(["a", "bcd"]),
    np.array(["2020-01-01"], dtype="datetime64[D]"),
    np.array([1 + 2j]),
    np.array([1.5], dtype=">f8"),
    RECORDS,
    np.array([["a", None], [1.5, True]], dtype=object),
    torch.arange(24.0).reshape(2, 3, 2, 2).to(memory_format=torch.channels_last),
    torch.arange(36.0).reshape(4, 1, 3, 3).to(memory_format=torch.channels_last),
    torch.tensor([1.5, -0.0], dtype=torch.bfloat16),
    torch.tensor(True),
    torch.nn.Parameter(torch.ones(2), requires_grad=False),
]


@pytest.mark.parametrize("value", VALUES, ids=[str(i) for i in range(len(VALUES))])
def test_values_come_back_as_they_were(model, tmp_path, value):
    model.extra_ = value
    found = load(save(model, tmp_path / "model")).extra_
    assert type(found) is type(value) or isinstance(value, Path)
    if isinstance(value, np.ndarray):
        assert found.dtype == value.dtype
        assert found.flags.writeable
        assert np.array_equal(found, value)
        if value.flags.forc or value.ndim > 2:
            assert found.strides == value.strides
    elif isinstance(value, torch.Tensor):
        assert found.dtype == value.dtype
        assert found.stride() == value.stride()
        assert torch.equal(found, value)
        assert found.requires_grad == value.requires_grad
    else:
        assert repr(found) == repr(value)


def test_one_thing_held_twice_stays_one(model, tmp_path):
    shared, numbers = [1], np.arange(3)
    model.extra_ = [shared, shared, numbers, numbers[:], list(shared)]
    found = load(save(model, tmp_path / "model")).extra_
    assert found[0] is found[1]
    assert found[2] is found[3]
    assert found[4] is not found[0]
    assert len(load_file(tmp_path / "model" / "arrays.safetensors")) < 10


# --- the folder ----------------------------------------------------------------------


def test_a_taken_folder(model, saved, tmp_path):
    with pytest.raises(ModelFileError, match="overwrite=True"):
        save(model, saved)
    model.extra_ = "new"
    save(model, saved, overwrite=True)
    assert load(saved).extra_ == "new"
    assert os.listdir(tmp_path) == ["model"]
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ModelFileError, match="is a file"):
        save(model, tmp_path / "file", overwrite=True)
    (saved / "notes.txt").write_text("mine")
    with pytest.raises(ModelFileError, match="does not delete"):
        save(model, saved, overwrite=True)
    assert (saved / "notes.txt").read_text() == "mine"


def test_an_empty_folder_and_folders_above_are_fine(model, tmp_path):
    (tmp_path / "a").mkdir()
    save(model, tmp_path / "a")
    save(model, str(tmp_path / "b" / "c" / "d"))
    load(tmp_path / "b" / "c" / "d")


@pytest.mark.parametrize("step", ["save_file", "_seal"])
def test_a_full_disk_leaves_nothing(model, saved, tmp_path, monkeypatch, step):
    before = {p.name: p.read_bytes() for p in saved.iterdir()}

    def full(*args, **kwargs):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(models, step, full)
    with pytest.raises(ModelFileError, match=r"No space left.*Nothing was left"):
        save(model, tmp_path / "new" / "deep" / "model")
    with pytest.raises(ModelFileError, match="No space left"):
        save(model, saved, overwrite=True)
    assert os.listdir(tmp_path) == ["model"]
    assert {p.name: p.read_bytes() for p in saved.iterdir()} == before


def test_a_real_limit_of_file_size(model, tmp_path):
    model.extra_ = np.zeros(100_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(ModelFileError, match="could not be written"):
            save(model, tmp_path / "model")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.iterdir())
    save(model, tmp_path / "model")


def test_an_interrupt_leaves_nothing(model, tmp_path, monkeypatch):
    def interrupt(work):
        raise KeyboardInterrupt

    monkeypatch.setattr(models, "_seal", interrupt)
    with pytest.raises(KeyboardInterrupt):
        save(model, tmp_path / "model")
    assert not list(tmp_path.iterdir())


def test_all_files_can_be_read_by_the_same_people(saved):
    assert len({path.stat().st_mode for path in saved.iterdir()}) == 1


# --- what lies beside a model ---------------------------------------------------------


def test_an_extra_is_kept_and_covered_by_the_manifest(model, tmp_path):
    how = {"kind": "table", "plan": {"columns": {"ä": "number"}}}
    saved = save(model, tmp_path / "model", extra={"input": how})
    assert load_extra(saved, "input") == how
    assert np.array_equal(load(saved).score_samples(Z), model.score_samples(Z))
    path = saved / "input.json"
    path.write_bytes(path.read_bytes().replace(b"number", b"numbeR"))
    for read in (load, load_extra):
        with pytest.raises(ModelFileError, match=r"input\.json"):
            read(saved)


def test_a_model_without_extra_has_none_even_if_a_file_lies_there(saved):
    (saved / "input.json").write_text("{}")
    assert load_extra(saved, "input") is None


def test_a_model_with_an_extra_can_be_replaced(model, tmp_path):
    save(model, tmp_path / "model", extra={"input": {}})
    save(model, tmp_path / "model", overwrite=True)
    assert load_extra(tmp_path / "model", "input") is None
    assert not (tmp_path / "model" / "input.json").exists()


def test_other_extras_are_refused(model, tmp_path):
    with pytest.raises(ModelFileError, match="one of input"):
        save(model, tmp_path / "model", extra={"../x": 1})
    assert list(tmp_path.iterdir()) == []


def test_saving_twice_writes_the_same_bytes(tmp_path):
    model = dict(load(MODELS / "walk").transformer_list)["judged"]
    one = save(model, tmp_path / "one")
    two = save(load(one), tmp_path / "two")
    for path in one.iterdir():
        assert path.read_bytes() == (two / path.name).read_bytes(), path.name


def test_a_device_that_is_not_here_becomes_the_cpu(tmp_path):
    model = dict(load(MODELS / "parts").transformer_list)["contrastive"]
    model.device_ = model.encoder_.device = "cuda:7"
    model.device = "auto"
    folder = save(model, tmp_path / "model")
    loaded = load(folder)
    found = (loaded.device, loaded.device_, loaded.encoder_.device)
    assert found == ("auto", "cpu", "cpu")
    chosen = load(folder, device="cpu")
    assert (chosen.device, chosen.encoder_.device) == ("cpu", "cpu")


def test_a_model_replaced_while_it_is_read_is_read_again(model, saved, monkeypatch):
    whole, tries = models._checked, []

    def replaced(place):
        tries.append(place)
        if len(tries) == 1:
            model.extra_ = "new"
            save(model, saved, overwrite=True)
            raise ModelFileError("mixed")
        return whole(place)

    monkeypatch.setattr(models, "_checked", replaced)
    assert load(saved).extra_ == "new"
