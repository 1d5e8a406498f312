"""Everything denspu raises or warns about, in one tree.

::

    DensPUError (Exception)
    ├── InvalidInputError (ValueError)      the data handed in
    │   └── LabelError                      y is not 1 / 0
    ├── InvalidParameterError (ValueError)  a constructor or function argument
    │   └── UnknownPartError                a name that is not registered
    ├── DeviceError (RuntimeError)          the device asked for is absent
    ├── DataNotFoundError (FileNotFoundError)   a benchmark set is not here
    ├── DataIntegrityError (ValueError)     a file is not what it should be
    ├── ModelFileError (ValueError)         a model cannot be saved or loaded
    ├── RunFolderError (OSError)            a run folder cannot be written
    └── MissingDependencyError (ImportError)    an extra is not installed

    DensPUWarning (UserWarning)
    ├── DegenerateFitWarning                one class for (almost) everything
    ├── WeakBoundaryWarning                 the boundary does not separate
    ├── FewRowsWarning                      too few rows to rely on estimates
    ├── ModelVersionWarning                 a model was saved by other versions
    ├── CompileWarning                      training goes on uncompiled
    ├── PriorDisagreementWarning            estimates of the prior lie far apart
    ├── RoughPriorWarning                   the prior's interval is wide
    ├── DoubtfulLabelsWarning               labels look random, or chosen
    ├── WeakRankingWarning                  a simpler method ranks better
    ├── SelectionWarning                    fewer negatives than asked for
    └── UnusedInputWarning                  something given plays no part in the fit

Each error also inherits from the builtin it resembles, so ``except ValueError``
keeps working.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DensPUError(Exception):
    """Base of every error raised on purpose by denspu."""


class InvalidInputError(DensPUError, ValueError):
    """The data cannot be used as it is."""


class LabelError(InvalidInputError):
    """``y`` does not hold PU labels."""


class InvalidParameterError(DensPUError, ValueError):
    """An argument has a value that is not allowed."""


class UnknownPartError(InvalidParameterError):
    """A name that no registered part or method carries."""


class DeviceError(DensPUError, RuntimeError):
    """The device asked for does not exist on this machine."""


class DataNotFoundError(DensPUError, FileNotFoundError):
    """A benchmark data set could not be found or fetched."""


class DataIntegrityError(DensPUError, ValueError):
    """A data file does not hold what its name promises."""


class ModelFileError(DensPUError, ValueError):
    """A model cannot be saved, or a folder does not hold one that can be loaded."""


class RunFolderError(DensPUError, OSError):
    """A run folder is taken, or cannot be written."""


class MissingDependencyError(DensPUError, ImportError):
    """An optional package is needed and not installed."""


class DensPUWarning(UserWarning):
    """Base of every warning issued by denspu."""


class DegenerateFitWarning(DensPUWarning):
    """The fitted model gives (almost) every sample the same answer."""


class WeakBoundaryWarning(DensPUWarning):
    """The boundary does not tell held-out positives from unlabelled data."""


class FewRowsWarning(DensPUWarning):
    """So few labelled or unlabelled rows that estimates say little."""


class ModelVersionWarning(DensPUWarning):
    """A model was saved by versions that may answer differently."""


class CompileWarning(DensPUWarning):
    """Training goes on without compiled code, which could not be made here."""


class PriorDisagreementWarning(DensPUWarning):
    """Estimators of the class prior give answers that lie far apart."""


class RoughPriorWarning(DensPUWarning):
    """The estimated class prior has an interval so wide that the cut may be far off."""


class DoubtfulLabelsWarning(DensPUWarning):
    """Labels say nothing that can be seen, or are no random sample of the positives."""


class WeakRankingWarning(DensPUWarning):
    """Held-out positives stand higher by a simpler method."""


class SelectionWarning(DensPUWarning):
    """Fewer reliable negatives were found than asked for."""


class UnusedInputWarning(DensPUWarning):
    """Something that was given plays no part in the fit."""


def did_you_mean(word: str, allowed: Iterable[str]) -> str:
    """Return ``" Did you mean 'x'?"`` for the closest allowed word, or nothing."""
    close = difflib.get_close_matches(str(word), list(allowed), n=1, cutoff=0.5)
    return f" Did you mean {close[0]!r}?" if close else ""


def with_article(noun: str) -> str:
    """Return ``"a method"``, ``"an encoder"``."""
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
