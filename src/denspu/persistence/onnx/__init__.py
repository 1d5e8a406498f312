"""A fitted model as one ONNX file, compared with the model before it is kept.

The graph holds everything from rows as they come in (pixels, a table of numbers,
embeddings) to ``score``, ``probability`` and ``decision``, the threshold and the
calibration included. It is made by torch's exporter from a twin of the model: a module
that gives the same answers. ``export.py`` leads. ``methods.py`` builds the twin from
those of encoders, refiners and learners; ``parts/`` holds their arithmetic.
"""

from denspu.persistence.onnx.compare import session
from denspu.persistence.onnx.export import OnnxExport, export_onnx

__all__ = ["OnnxExport", "export_onnx", "session"]
