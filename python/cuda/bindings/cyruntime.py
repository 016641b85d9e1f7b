"""The C functions of the CUDA runtime API for Cython: ``cimport cuda.bindings.cyruntime``. Nothing here is for Python code.

Each function is resolved on its first call. See docs/cython.md.
"""

from cupyrite._native import cython_capsules as _cython_capsules

__pyx_capi__ = _cython_capsules("cyruntime")
