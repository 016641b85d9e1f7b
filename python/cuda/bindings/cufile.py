"""cuFile, GPUDirect Storage. Functions, classes and enums are made when they are first looked up.

Functions return their results alone and raise cuFileError where the call fails.
See https://docs.nvidia.com/gpudirect-storage/api-reference-guide/
"""

from cupyrite._native import lazy_module

lazy_module(__name__)
del lazy_module
