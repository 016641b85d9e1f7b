"""nvJitLink, the device linker. Functions, classes and enums are created on first access.

Functions return their results and raise nvJitLinkError if the call fails.
See https://docs.nvidia.com/cuda/nvjitlink/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
