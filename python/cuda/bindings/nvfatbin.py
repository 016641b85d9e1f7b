"""nvFatbin, the maker of fat binaries. Functions, classes and enums are made when they are first looked up.

Functions return their results alone and raise nvFatbinError where the call fails.
See https://docs.nvidia.com/cuda/nvfatbin/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
