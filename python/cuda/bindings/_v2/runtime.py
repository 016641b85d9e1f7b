"""The CUDA runtime API with functions that raise: Cupyrite's own addition. Everything is created on first access.

Functions return their results and raise CudartError or a subclass if the call fails.
See https://docs.nvidia.com/cuda/cuda-runtime-api/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
