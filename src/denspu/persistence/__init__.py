"""Save and load fitted models: plain JSON and arrays, never a pickle."""

from denspu.persistence.models import load, load_extra, save, versions

__all__ = ["load", "load_extra", "save", "versions"]
