"""cuFile, GPUDirect Storage. Functions, classes and enums are created on first access.

Functions return their results and raise cuFileError if the call fails.
See https://docs.nvidia.com/gpudirect-storage/api-reference-guide/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
