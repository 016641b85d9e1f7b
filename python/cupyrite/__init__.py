"""Cupyrite: CUDA Python built on Rust, with an embedded CPU device.

Programs import ``cuda.bindings`` as they always did; this package holds what is Cupyrite's own. It stays
nearly empty, because every ``import cuda.bindings.driver`` runs it first.

``python -m cupyrite.demo`` compiles and runs a kernel and shows what happened.
"""

__version__ = "0.1.0"
