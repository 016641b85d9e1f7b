"""The CUDA driver API. Functions, classes and enums are created on first access.

Every function returns a tuple whose first element is a CUresult. See https://docs.nvidia.com/cuda/cuda-driver-api/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
