"""nvJitLink, the linker of device code. Functions, classes and enums are made when they are first looked up.

Functions return their results alone and raise nvJitLinkError where the call fails.
See https://docs.nvidia.com/cuda/nvjitlink/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
