"""The CUDA runtime API. Functions, classes and enums are made when they are first looked up.

Every function returns a tuple that begins with a cudaError_t. See https://docs.nvidia.com/cuda/cuda-runtime-api/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
