"""Make the saved models of this folder: run on the tree whose format they keep.

PYTHONPATH=src python tests/persistence/make_models.py FOLDER

Each model is a FeatureUnion that only holds fitted things: together they name every
class that a saved model may hold. Networks are made narrower than denspu makes them.
``answers.npz`` beside each says what they answered to ``rows.npz``, and
``environment.json`` where. Made by commit 5b24845; it need not run on later trees.
"""

from __future__ import annotations

import json
import platform
import sys
import warnings
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import nn

ANSWERS = ("decision_function", "predict_proba", "transform", "score_samples")


def environment():
    """Return what the last bits of an answer depend on."""
    from denspu.persistence import versions

    known = {k: v for k, v in versions().items() if k != "denspu"}
    capability = torch.backends.cpu.get_cpu_capability()
    return {**known, "machine": platform.machine(), "cpu": processor() + capability}


def processor():
    """Return the name of the processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith("model name")), "")


def read_rows(path):
    """Return the rows of each kind as the models take them."""
    with np.load(path) as held:
        found = {name: held[name] for name in held.files}
    found["texts"] = found["texts"].astype(object)
    words = found.pop("words").astype(object)
    words[words == ""] = None
    try:
        import pandas
    except ImportError:
        return found
    frame = pandas.DataFrame(found["table"], columns=list("abcd"))
    frame.loc[::9, "a"] = np.nan
    frame["word"] = words
    frame["kind"] = pandas.Categorical(np.where(found["y"] > 0, "x", "y"))
    return {**found, "frame": frame}


def answers(thing, rows):
    """Return all that a fitted thing answers."""
    found = {}
    for name in ANSWERS:
        if hasattr(thing, name):
            answer = getattr(thing, name)(rows)
            found[name] = answer.toarray() if hasattr(answer, "toarray") else answer
    return found


# --- what was made, on commit 5b24845 ------------------------------------------------


def make_rows(path):
    """Draw rows of every kind."""
    rng = np.random.default_rng(0)
    truth = np.arange(60) % 2
    table = rng.normal(size=(60, 4)).round(3)
    table[:, :2] += 2 * truth[:, None]
    images = rng.integers(0, 120, (60, 6, 6)) + 100 * truth[:, None, None]
    words = np.array(["red", "green", "blue", "sea", "sky", "deep"])
    chance = np.array([3, 3, 3, 1, 1, 1])
    texts = [
        " ".join(rng.choice(words, 6, p=(chance if t else chance[::-1]) / 12))
        for t in truth
    ]
    np.savez(
        path,
        y=truth * (rng.random(60) < 0.6),
        truth=truth,
        table=table,
        words=np.where(np.arange(60) % 7 == 0, "", rng.choice(["ä", "b"], 60)),
        images=images.astype(np.uint8),
        colour=np.kron(images, np.ones((1, 3, 3)))[..., None]
        .repeat(3, axis=3)
        .astype(np.uint8)[:, :16, :16],
        large=rng.integers(0, 255, (60, 32, 32, 1), dtype=np.uint8)[:12],
        texts=np.array(texts),
    )


def narrow():
    """Let denspu build narrow networks."""
    from denspu.classifiers import backbone
    from denspu.encoders import contrastive
    from denspu.networks import backbones, cae, resnet, vgg
    from denspu.refinement import embedding

    backbones.MLP_WIDTH, backbones.MLP_DEPTH = 6, 1
    vgg.BLOCKS = ((4,), (4,), (4,), (4,), (4,))
    cae.FILTERS = (4, 4, 2)

    def small(channels, size):
        return resnet.ResNet(channels, size, widths=(8, 8), depth=1, halve=size > 15)

    contrastive.IMAGE_NETWORKS["small"] = small
    embedding.TREES = 10
    contrastive.MLP = partial(contrastive.MLP, width=6, depth=1)
    backbones.resnet18 = small
    assert backbone.NETWORKS


def all_conv(shape):
    """Return the convolutional network of nnPU with few filters."""
    from denspu.networks import backbones

    network = backbones.AllConv(*shape)
    network.n_features = 4
    network.layers = nn.Sequential(
        backbones.NormalisedConv(shape[0], 4, 3, 2),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(4 * -(-shape[1] // 2) * -(-shape[2] // 2), 4),
        nn.ReLU(),
    )
    return backbones.OneLogit(network)


def every_layer():
    """Return a network of all layers of torch that may be saved, for 1×6×6 images."""
    from denspu.networks.backbones import OneLogit

    body = nn.Sequential(
        *(nn.Upsample(scale_factor=2), nn.ZeroPad2d(1), nn.Conv2d(1, 2, 3)),
        *(nn.BatchNorm2d(2), nn.ELU(), nn.Dropout2d(0.1), nn.InstanceNorm2d(2)),
        *(nn.GroupNorm(1, 2), nn.MaxPool2d(2), nn.ConvTranspose2d(2, 2, 2)),
        *(nn.Hardswish(), nn.AvgPool2d(2, 1), nn.AdaptiveMaxPool2d(4)),
        *(nn.AdaptiveAvgPool2d(3), nn.Flatten(), nn.GELU(), nn.Unflatten(1, (2, 9))),
        *(nn.Conv1d(2, 2, 3), nn.BatchNorm1d(2), nn.LeakyReLU(), nn.Dropout1d(0.1)),
        *(nn.ConvTranspose1d(2, 2, 3), nn.InstanceNorm1d(2), nn.Mish()),
        *(nn.MaxPool1d(2, 1, 1), nn.AvgPool1d(2, 1, 1), nn.AdaptiveMaxPool1d(8)),
        *(nn.AdaptiveAvgPool1d(4), nn.Flatten()),
        *(nn.Unflatten(1, (1, 2, 2, 2)), nn.Conv3d(1, 1, 2, padding=1)),
        *(nn.BatchNorm3d(1), nn.PReLU(), nn.Flatten(), nn.Linear(27, 4)),
        *(nn.LayerNorm(4), nn.ReLU6(), nn.SELU(), nn.SiLU(), nn.Sigmoid()),
        *(nn.LogSigmoid(), nn.Softplus(), nn.Tanh(), nn.Softmax(1), nn.Identity()),
        *(nn.Dropout(0.1), nn.ReLU()),
    )
    body.n_features = 4
    network = OneLogit(body)
    network.unused = nn.ModuleDict({"a": nn.ModuleList([nn.Embedding(2, 2)])})
    return network


SMALL = {
    "prior": 0.5,
    "epochs": 1,
    "device": "cpu",
    "random_state": 0,
    "gan_epochs": 2,
    "width": 4,
    "n_noise": 2,
    "n_made": 40,
    "n_projection": 3,
    "final_epochs": 1,
    "n_bags": 2,
    "n_components": 5,
}


def method(key, rows, kind="table", calibrated=False, **settings):
    """Return a fitted method and its rows."""
    import denspu

    model = denspu.make(key)
    known = model.get_params()
    small = {k: v for k, v in SMALL.items() if k in known and key != "dens_pu"}
    if key == "dens_pu":
        small = {"device": "cpu", "random_state": 0, "checks": 1}
    elif "network" in known and kind != "table":
        small["network"] = "mlp"
    model.set_params(**{**small, **settings})
    n = len(rows[kind])
    X, y = rows[kind], rows["y"][:n]
    model.fit(X, y, **({"holdout": 0.3} if calibrated else {}))
    if calibrated:
        model.set_threshold(top=9).calibrate()
    return kind, model


def methods(rows):
    """Return one of each method, and of each kind of data and ending."""
    from sklearn.ensemble import RandomForestClassifier

    from denspu._registry import registry
    from denspu.classifiers import BackboneClassifier, VGG16Classifier
    from denspu.detectors import ExtendedIsolationForest, IsolationForest
    from denspu.encoders import CAEEncoder, ContrastiveEncoder, IdentityEncoder
    from denspu.networks import backbones
    from denspu.refinement import EmbeddingRefiner, NetworkRefiner, RankingRefiner

    make = partial(method, rows=rows)
    contrastive = partial(
        ContrastiveEncoder, epochs=1, n_projection=3, network="small", random_state=0
    )
    short = {"refiner": None, "classifier": "logistic"}
    embedding = EmbeddingRefiner(rounds=1, folds=2, n_bags=1)
    yield {
        key: make(key)
        for key, entry in registry().of_kind("method").items()
        if not entry.deep
    } | {
        "adjusted": make("elkan_noto", variant="adjusted", calibration="sigmoid"),
        "mixture": make("density_estimator", density="mixture"),
        "em": make("spy", variant="em"),
        "clusters": make("rocchio_svm", n_clusters=2),
        "linear": make("kldce", variant="linear"),
        "forest": make("elkan_noto", estimator=RandomForestClassifier(3)),
        "generator": make("elkan_noto", random_state=np.random.RandomState(0)),
        "frame": make("spy", kind="frame"),
        "texts": make("spy", kind="texts"),
        "judged": make("elkan_noto", calibrated=True),
    }
    yield {
        key: make(key)
        for key, entry in registry().of_kind("method").items()
        if entry.deep and key != "dens_pu"
    } | {
        "kernel": make("upu", network="kernel", n_centres=5),
        "linear": make("nnpu", network="linear", random_state=np.random.default_rng(0)),
        "resnet": make("nnpu", kind="colour", network="resnet18"),
        "vgg": make(
            "nnpu", kind="large", network=backbones.build_backbone("vgg16", (1, 32, 32))
        ),
        "all conv": make("nnpu", kind="colour", network=all_conv((3, 16, 16))),
        "layers": make("nnpu", kind="images", network=every_layer()),
        "frame": make("nnpu", kind="frame", encoder="tabular"),
        "judged": make("vpu", calibrated=True),
    }
    walk = make("dens_pu", encoder="identity", **short)
    yield {
        f"detector {key}": make("dens_pu", encoder="identity", detector=key, **short)
        for key in registry().of_kind("detector")
        if "forest" not in key
    } | {
        "forest": make("dens_pu", detector=IsolationForest(n_estimators=3), **short),
        "extended": make(
            "dens_pu",
            detector=ExtendedIsolationForest(n_estimators=3, n_directions=2),
            densifier="midpoint",
            **short,
        ),
        "svm": walk,
        "embedding": make("dens_pu", refiner=embedding),
        "judged": make("dens_pu", refiner=embedding, calibrated=True),
        "ranking": make(
            "dens_pu",
            refiner=RankingRefiner(
                rounds=1, folds=2, learner="both", max_iter=3, n_trees=3
            ),
        ),
        "frame": make("dens_pu", kind="frame", **short),
        "texts": make("dens_pu", kind="texts", **short),
    }
    yield {
        "contrastive": make("one_class", kind="colour", encoder=contrastive()),
        "natural": make(
            "one_class", kind="colour", encoder=contrastive(augment="natural")
        ),
        "rows": make("one_class", encoder=contrastive(network="mlp")),
        "cae": make(
            "one_class", kind="colour", encoder=CAEEncoder(epochs=1, image_size=16)
        ),
        "backbone": make(
            "elkan_noto",
            kind="images",
            estimator=BackboneClassifier(epochs=1, network="mlp"),
        ),
        "vgg16": make(
            "dens_pu",
            kind="large",
            encoder="identity",
            classifier=VGG16Classifier(epochs=1),
            detector="knn",
        ),
        "network": make(
            "dens_pu",
            kind="colour",
            encoder=contrastive(),
            refiner=NetworkRefiner(
                ratio_epochs=1, risk_epochs=1, rounds=1, epochs=1, batch_size=16
            ),
        ),
        "normalised": make("one_class", encoder=IdentityEncoder(normalize=True)),
    }


def estimators(rows):
    """Return one of each estimator of scikit-learn that may be saved."""
    from denspu.persistence.allowed import SKLEARN, find

    X, y, texts = rows["table"], rows["truth"], list(rows["texts"])
    positive = np.abs(X)
    made = {}
    small = {"n_estimators": 2, "max_iter": 3, "n_components": 2, "n_clusters": 2}
    small |= {"random_state": 0, "novelty": True}
    for name in SKLEARN:
        cls, short = find(name), name.partition(":")[2]
        steps = [("scale", find("sklearn.preprocessing:StandardScaler")())]
        needed = {
            "ColumnTransformer": {"transformers": [("a", steps[0][1], [0, 1])]},
            "Pipeline": {"steps": steps},
            "FeatureUnion": {"transformer_list": steps},
        }
        model = cls(**needed.get(short, {}))
        known = set(model.get_params())
        known -= {"n_components"} if short == "LinearDiscriminantAnalysis" else set()
        model.set_params(**{k: v for k, v in small.items() if k in known})
        if "text" in name and short != "TfidfTransformer":
            made[short] = "texts", model.fit(texts)
        elif short == "LabelEncoder":
            made[short] = "y", model.fit(y)
        elif short == "IsotonicRegression":
            made[short] = "column", model.fit(X[:, 0], y)
        elif short in ("MissingIndicator", "SimpleImputer"):
            held = X.copy()
            held[::5, 0] = np.nan
            made[short] = "table", model.fit(held)
        else:
            made[short] = "table", model.fit(positive if "Tfidf" in short else X, y)
    for tree in ("kd_tree", "ball_tree"):
        cls = find("sklearn.neighbors:KNeighborsClassifier")
        made[tree] = "table", cls(3, algorithm=tree).fit(X, y)
    import scipy.sparse as sparse

    for kind in (sparse.csr_array, sparse.csr_matrix):
        cls = find("sklearn.neighbors:KNeighborsClassifier")
        made[kind.__name__] = "table", cls(3, algorithm="brute").fit(kind(X), y)
    return made


def settings_alone():
    """Return one of everything of which only settings are kept."""
    from denspu._registry import registry

    return [
        entry.build()
        for kind in ("densifier", "selector", "prior")
        for entry in registry().of_kind(kind).values()
    ]


def main(folder):
    from sklearn.pipeline import FeatureUnion

    from denspu import save

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    narrow()
    make_rows(folder / "rows.npz")
    rows = read_rows(folder / "rows.npz")
    rows["column"] = rows["table"][:, 0]
    names = ("classical", "deep", "walk", "parts", "estimators")
    for name, made in zip(names, (*methods(rows), estimators(rows)), strict=True):
        found = {
            f"{thing}/{kind}/{asked}": answer
            for thing, (kind, model) in made.items()
            for asked, answer in answers(model, rows[kind]).items()
        }
        np.savez_compressed(folder / f"{name}.npz", **found)
        union = FeatureUnion([(thing, model) for thing, (_, model) in made.items()])
        if name == "walk":
            union.settings_ = settings_alone()
        save(union, folder / name, overwrite=True)
    text = json.dumps(environment(), indent=1) + "\n"
    (folder / "environment.json").write_text(text, "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
