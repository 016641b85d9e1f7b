"""NVML, the management library of NVIDIA GPUs. Functions, classes and enums are created on first access.

Functions return their results and raise NvmlError or a subclass if the call fails.
See https://docs.nvidia.com/deploy/nvml-api/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
