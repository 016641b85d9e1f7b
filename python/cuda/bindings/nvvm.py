"""libNVVM, the compiler of NVVM IR. Functions, classes and enums are created on first access.

Functions return their results and raise nvvmError if the call fails.
See https://docs.nvidia.com/cuda/libnvvm-api/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
