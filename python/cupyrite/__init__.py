"""Cupyrite: CUDA Python built on Rust, with an embedded CPU device.

Programs import ``cuda.bindings`` and ``cuda.core``; this package holds the native module and the command-line tools. It
imports nothing, because every ``import cuda.bindings.driver`` runs it first.

The command ``cupyrite``, also ``python -m cupyrite``, examines the installation; ``cupyrite demo`` compiles and runs a kernel.
"""

__version__ = "0.1.0"
