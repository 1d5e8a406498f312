"""Small settings for any method, so that tests take a moment: found by name."""

from __future__ import annotations

from denspu._registry import registry
from denspu.refinement import EmbeddingRefiner

BY_NAME = {
    "prior": 0.5,
    "epochs": 3,
    "network": "mlp",
    "device": "cpu",
    "n_estimators": 5,
}
"""Arguments that make a fit short, wherever a constructor has them."""

SPECIAL = {
    "dens_pu": {
        "refiner": EmbeddingRefiner(rounds=0, folds=2, n_bags=1),
        "prior": "estimate",
    },
    "gen_pu": {"gan_epochs": 100, "width": 32, "n_made": 500},
}

METHODS = tuple(registry().of_kind("method"))


def takes(entry, name):
    """Tell whether a constructor has an argument."""
    return name in entry.takes()


def small(key, **changes):
    """Return a method with settings for a short fit."""
    entry = registry().get(key, "method")
    settings = {name: value for name, value in BY_NAME.items() if takes(entry, name)}
    return entry.build(**{**settings, **SPECIAL.get(key, {}), **changes})
