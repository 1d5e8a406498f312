"""A fitted model as one ONNX file, compared with the model before it is kept.

The graph holds everything from rows as they come in (pixels, a table of numbers,
embeddings) to ``score``, ``probability`` and ``decision``, the threshold and the
calibration included. It is made by torch's exporter from a twin of the model: a module
that gives the same answers. ``export.py`` leads, ``twins.py`` builds the twin,
``arithmetic.py`` holds what it is made of.
"""

from denspu.persistence.onnx.export import OnnxExport, export_onnx, session

__all__ = ["OnnxExport", "export_onnx", "session"]
