"""A fitted encoder of images in a folder: ``config.json`` and its weights.

Facts that JSON can hold lie there as they are, the others as the values they are made
of. Weights are a safetensors file, so that no code is kept with them.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from safetensors.torch import load_file, save_file
from torch import Tensor

from denspu.augment import ImageAugment, ImagePreset
from denspu.exceptions import InvalidParameterError
from denspu.networks.pixels import PixelScale
from denspu.training import History

if TYPE_CHECKING:
    from denspu.encoders.contrastive import ContrastiveEncoder

CONFIG, WEIGHTS = "config.json", "network.safetensors"

PLAIN_STATE = (
    "input_kind_",
    "image_shape_",
    "n_features_in_",
    "image_size",
    "network_name_",
    "network_input_",
    "epochs_",
    "batch_size_",
    "n_parts_",
    "mean_cosine_",
)
"""Facts of a fitted encoder of images that JSON can hold as they are."""


def write(encoder: ContrastiveEncoder, folder: Path) -> None:
    """Keep a fitted encoder of images."""
    folder.mkdir(parents=True, exist_ok=True)
    state = {k: v.contiguous() for k, v in encoder.module_.state_dict().items()}
    save_file(state, folder / WEIGHTS)
    facts = {name: getattr(encoder, name) for name in PLAIN_STATE}
    facts |= {"preset_": asdict(encoder.preset_), "scale_": asdict(encoder.scale_)}
    facts["history_"] = encoder.history_.rows
    (folder / CONFIG).write_text(json.dumps(facts), encoding="utf-8")


def read(folder: Path) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Return the attributes of a kept encoder by name, and its network's weights."""
    if not (folder / CONFIG).is_file():
        raise InvalidParameterError(
            f"folder={str(folder)!r} holds no {CONFIG}: it must be a folder "
            "written by ContrastiveEncoder.save."
        )
    kept = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
    facts: dict[str, Any] = {}
    for name in PLAIN_STATE:
        value = kept[name]
        facts[name] = tuple(value) if isinstance(value, list) else value
    facts["preset_"] = ImagePreset(**kept["preset_"])
    facts["views_"] = ImageAugment(facts["preset_"])
    facts["scale_"] = PixelScale(**kept["scale_"])
    facts["history_"] = History(kept["history_"])
    return facts, load_file(folder / WEIGHTS)
