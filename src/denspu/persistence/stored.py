"""What a saved model keeps of every registered thing, as a table for the docs."""

from __future__ import annotations

from denspu._registry import Entry, registry
from denspu.persistence.allowed import INSIDE, LAYERS, SKLEARN, find

NETWORK = "weights and statistics of its networks as arrays, the history of training"
ROWS = "the training rows it compares with"

BY_KEY = {
    "method dens_pu": "its fitted parts (below), labels and scores of U, its stages",
    "method density_estimator": "the rows or the mixture of its density model; "
    "neighbour trees are built again from their rows and compared",
    "method kldce": "the rows its kernel map compares with, and its weights",
    "method label_propagation": "the rows of the graph and their labels",
    "method one_class": "its fitted detector",
    "encoder identity": "settings alone",
    "encoder tabular": "means, scales and categories of the columns",
    "encoder text": "its terms (readable words), their weights, the directions",
    "encoder sentence": "the path of its folder and the sum of the weights, not the "
    "weights; other weights are refused",
    "detector isolation_forest": "its trees as arrays",
    "detector extended_isolation_forest": "its trees as arrays",
    "detector knn": ROWS,
    "detector density_ratio": ROWS,
    "detector sphere_density": ROWS,
    "detector mahalanobis": "mean and covariance",
    "detector local_outlier_factor": f"{ROWS}; the neighbour tree is built again from "
    "them and compared",
    "detector one_class_svm": "support vectors and coefficients",
    "classifier logistic": "coefficients",
    "classifier gradient_boosting": "its trees as arrays",
    "classifier svm": "support vectors and coefficients",
    "refiner embedding": "trees as arrays, support vectors, neighbour rows, axes",
    "refiner ranking": "its trees as arrays",
}
"""Where the general rule is not telling enough."""

BY_KIND = {
    "method": "the fitted estimators inside: coefficients, support vectors or trees as "
    "arrays",
    "encoder": "what it learned, as arrays",
    "densifier": "settings alone",
    "detector": "what it learned, as arrays",
    "selector": "settings alone",
    "classifier": "what it learned, as arrays",
    "refiner": "what it learned, as arrays",
    "prior": "settings alone",
}


def stored(entry: Entry) -> str:
    """Say what is kept of one registered thing, beside its settings."""
    usual = NETWORK if entry.deep else BY_KIND[entry.kind]
    return BY_KEY.get(f"{entry.kind} {entry.key}", usual)


def may_be_saved(entry: Entry) -> bool:
    """Tell whether the class of a registered thing is among those models may hold."""
    cls = entry.load()
    own = find(f"{cls.__module__}:{cls.__qualname__}") is cls
    return own or entry.target in SKLEARN


def table() -> str:
    """Return the table of everything registered."""
    lines = ["| kind | key | kept beside the settings |", "|---|---|---|"]
    lines += [f"| {e.kind} | `{e.key}` | {stored(e)} |" for e in registry()]
    return "\n".join(lines)


def others() -> str:
    """Return the list of classes of other packages that a model may hold."""
    groups = {
        "Estimators of scikit-learn": SKLEARN,
        "What they are made of": INSIDE,
        "Layers of torch": LAYERS,
    }
    lines = []
    for title, names in groups.items():
        held = ", ".join(f"`{name.replace(':', '.')}`" for name in names)
        lines.append(f"- {title}: {held}.")
    return "\n".join(lines)
