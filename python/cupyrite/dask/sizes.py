"""Sizes and tokens of `cuda.core` objects for Dask. Needs Dask alone, without `distributed`."""

from __future__ import annotations

import uuid

from cuda.core import Buffer, Kernel, ManagedBuffer, ObjectCode
from cuda.core.utils import StridedMemoryView

from cupyrite import serialization

__all__ = ["MEMORY_TYPES", "register_sizes"]

MEMORY_TYPES = (Buffer, ManagedBuffer, StridedMemoryView)


def register_sizes() -> None:
    """Register sizes with Dask, whose workers count device memory like other memory, and tokens, which name results."""
    from dask.sizeof import sizeof
    from dask.tokenize import normalize_token

    # Tasks with the same memory are different tasks: its contents can change.
    normalize_token.register(MEMORY_TYPES)(lambda memory: uuid.uuid4().hex)
    sizeof.register(MEMORY_TYPES)(serialization.nbytes)
    sizeof.register(ObjectCode)(_code_nbytes)
    # The code is counted where it is an object of its own.
    sizeof.register(Kernel)(lambda kernel: object.__sizeof__(kernel))


def _code_nbytes(code: ObjectCode) -> int:
    contents = code.code
    return object.__sizeof__(code) + (len(contents) if isinstance(contents, bytes) else 0)
