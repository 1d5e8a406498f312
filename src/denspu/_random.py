"""The one place that turns ``random_state`` into random numbers.

Each consumer asks for its own named stream, so adding a stage never changes the
numbers another stage sees, and nobody touches NumPy's or torch's global state.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import numpy as np

from denspu._typing import RandomState
from denspu.exceptions import InvalidParameterError

if TYPE_CHECKING:
    import torch

_MAX_SEED = 2**31 - 1


class Randomness:
    """Named, independent random streams drawn from one ``random_state``.

    Parameters
    ----------
    random_state : int, numpy.random.RandomState, numpy.random.Generator or None
        ``None`` draws fresh entropy. A generator is asked for one number, so that
        using it twice gives two different results, as in scikit-learn.

    Examples
    --------
    >>> Randomness(0).seed("forest") == Randomness(0).seed("forest")
    True
    >>> Randomness(0).seed("forest") == Randomness(0).seed("network")
    False
    """

    def __init__(self, random_state: RandomState = None) -> None:
        self.entropy = _entropy(random_state)

    def _sequence(self, name: str) -> np.random.SeedSequence:
        key = zlib.crc32(name.encode())
        return np.random.SeedSequence(entropy=self.entropy, spawn_key=(key,))

    def numpy(self, name: str) -> np.random.Generator:
        """Return a NumPy generator for the stream ``name``."""
        return np.random.default_rng(self._sequence(name))

    def seed(self, name: str) -> int:
        """Return an integer seed for code that wants one (scikit-learn)."""
        return int(self._sequence(name).generate_state(1)[0] % _MAX_SEED)

    def generator(
        self, name: str, device: torch.device | str = "cpu"
    ) -> torch.Generator:
        """Return a torch generator for the stream ``name`` on ``device``."""
        import torch

        return torch.Generator(device=device).manual_seed(self.seed(name))

    @contextmanager
    def torch_scope(self, name: str, device: torch.device) -> Iterator[None]:
        """Seed torch's default generators inside the block and restore them after.

        Network initialisation and dropout draw from those generators.
        """
        import torch

        cuda = device.type == "cuda"
        with torch.random.fork_rng(devices=[device] if cuda else []):
            torch.default_generator.manual_seed(self.seed(name))
            if cuda:
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(self.seed(name))
            yield


def _entropy(random_state: RandomState) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0])
    if isinstance(random_state, bool):
        pass
    elif isinstance(random_state, int | np.integer):
        if random_state >= 0:
            return int(random_state)
    elif isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(_MAX_SEED))
    elif isinstance(random_state, np.random.Generator):
        return int(random_state.integers(_MAX_SEED))
    raise InvalidParameterError(
        f"random_state={random_state!r} cannot seed anything. Pass None, an integer "
        "of at least 0, or a numpy RandomState or Generator."
    )
