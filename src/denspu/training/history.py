"""What happened in each epoch, as plain numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass
class History:
    """One row an epoch: ``epoch``, ``loss``, further terms, ``lr``, ``seconds``."""

    rows: list[dict[str, float]] = field(default_factory=list)
    stopped: str = "all epochs done"

    def add(self, **row: float) -> None:
        """Append one epoch."""
        self.rows.append(row)

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, name: str) -> list[float]:
        """Return one quantity over the epochs."""
        return [row[name] for row in self.rows]

    @property
    def last(self) -> Mapping[str, float]:
        """Return the last epoch's row."""
        return self.rows[-1]
