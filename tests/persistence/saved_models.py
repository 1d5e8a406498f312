"""The rows of the saved models in ``models/``, and what a fitted thing answers to them.

Each model is a FeatureUnion that only holds fitted things: together they name every
class that a saved model may hold. Networks are narrower than denspu makes them. The
file of that name beside each says what they answered to ``rows.npz``, and
``environment.json`` where. A program that git keeps made them on commit 5b24845:
``git show 6cecae9:tests/persistence/make_models.py``.
"""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import torch

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
