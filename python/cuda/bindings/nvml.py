"""NVML, the management library of NVIDIA GPUs. Functions, classes and enums are made when they are first looked up.

Functions return their results alone and raise NvmlError or a class derived from it where the call fails.
See https://docs.nvidia.com/deploy/nvml-api/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
