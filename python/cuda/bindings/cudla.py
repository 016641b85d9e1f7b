"""cuDLA, the deep learning accelerator of NVIDIA's systems on a chip. Functions, classes and enums are created on first access.

Functions return their results and raise CudlaError if the call fails.
See https://docs.nvidia.com/cuda/cudla-api/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
