"""The old name of `cuda.bindings.nvrtc`: importing it gives that module, with a DeprecationWarning."""

import sys
import warnings

from cuda.bindings import nvrtc

warnings.warn(
    "cuda.nvrtc is an old name that may go away: use `from cuda.bindings import nvrtc`",
    DeprecationWarning,
    stacklevel=2,
)
# The import system takes from here what it hands out, so the old name and the new one are the same module.
sys.modules[__name__] = nvrtc
