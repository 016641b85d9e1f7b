"""NVRTC, the run-time compiler of CUDA C++. Functions, classes and enums are created on first access.

Every function returns a tuple whose first element is an nvrtcResult. See https://docs.nvidia.com/cuda/nvrtc/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
