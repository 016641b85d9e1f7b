"""The old name of `cuda.bindings.driver`: importing it gives that module, with a DeprecationWarning."""

import sys
import warnings

from cuda.bindings import driver

warnings.warn(
    "cuda.cuda is an old name that may go away: use `from cuda.bindings import driver`",
    DeprecationWarning,
    stacklevel=2,
)
# The import system takes from here what it hands out, so the old name and the new one are the same module.
sys.modules[__name__] = driver
