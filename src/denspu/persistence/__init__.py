"""Save and load fitted models: plain JSON and arrays, never a pickle."""

from denspu.persistence.models import load, save

__all__ = ["load", "save"]
