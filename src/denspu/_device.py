"""The one place that turns the word ``device`` into a torch device."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from denspu.exceptions import DeviceError, InvalidParameterError

if TYPE_CHECKING:
    import torch


def available_devices() -> list[str]:
    """Return the devices torch can use here, best first."""
    import torch

    found = [f"cuda:{i}" for i in range(torch.cuda.device_count())]
    if torch.backends.mps.is_available():
        found.append("mps")
    return [*found, "cpu"]


def resolve_device(device: str | torch.device = "auto") -> torch.device:
    """Turn ``"auto"``, ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ... into a device.

    ``"auto"`` takes the first CUDA device, then the CPU.

    Raises
    ------
    DeviceError
        If the device does not exist; the message names those that do.
    """
    import torch

    if isinstance(device, torch.device):
        device = str(device)
    if not isinstance(device, str):
        raise InvalidParameterError(
            f"device={device!r} is not a device name. "
            'Pass "auto", "cpu", "cuda" or "cuda:0".'
        )
    found = available_devices()
    if device == "auto":
        return torch.device(found[0] if found[0].startswith("cuda") else "cpu")
    if device == "cuda" and "cuda:0" in found:
        return torch.device("cuda:0")
    if device in found:
        return torch.device(device)
    raise DeviceError(
        f"device={device!r} is not available here. Available: {', '.join(found)}. "
        'Pass one of these, or "auto".'
    )


def on_device(device: torch.device) -> AbstractContextManager[object]:
    """Make a GPU the current one inside a block: graphs, streams and seeds are its."""
    import torch

    return torch.cuda.device(device) if device.type == "cuda" else nullcontext()
