"""NVRTC, the run-time compiler of CUDA C++. Functions, classes and enums are made when they are first looked up.

Every function returns a tuple that begins with an nvrtcResult. See https://docs.nvidia.com/cuda/nvrtc/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
