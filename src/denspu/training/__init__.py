"""One training loop for every network in the project, and fixed-batch inference."""

from denspu.training.hooks import (
    Checkpoint,
    History,
    Hook,
    KeepBest,
    Plateau,
    TrainingConfig,
    TrainState,
)
from denspu.training.loop import (
    BalancedBatches,
    Batches,
    PUBatches,
    Step,
    TensorBatches,
    in_fixed_batches,
    train,
)

__all__ = [
    "BalancedBatches",
    "Batches",
    "Checkpoint",
    "History",
    "Hook",
    "KeepBest",
    "PUBatches",
    "Plateau",
    "Step",
    "TensorBatches",
    "TrainState",
    "TrainingConfig",
    "in_fixed_batches",
    "train",
]
