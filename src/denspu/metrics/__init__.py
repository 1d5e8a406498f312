"""How good is it? ``_oracle`` needs true labels and is for benchmarks only."""

from denspu.metrics._oracle import oracle_metrics

__all__ = ["oracle_metrics"]
