"""The C functions of NVRTC for Cython: ``cimport cuda.bindings.cynvrtc``. Nothing here is for Python code.

Each function is resolved on its first call. See docs/cython.md.
"""

from cupyrite._native import cython_capsules as _cython_capsules

__pyx_capi__ = _cython_capsules("cynvrtc")
