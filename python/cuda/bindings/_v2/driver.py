"""The CUDA driver API with functions that raise. Functions, classes and enums are created on first access.

Functions return their results and raise DriverError or a subclass if the call fails.
See https://docs.nvidia.com/cuda/cuda-driver-api/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
