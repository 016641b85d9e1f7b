"""Program cache in memory."""

from cuda.core._module import ObjectCode
from typing_extensions import Buffer

from ._abc import ProgramCacheResource

__all__ = ["InMemoryProgramCache"]

class InMemoryProgramCache(ProgramCacheResource):
    """Program cache in the memory of this process. Thread-safe."""

    def __init__(self, *, max_size_bytes: int | None = None) -> None: ...
    def __getitem__(self, key: bytes | str) -> bytes: ...
    def __setitem__(self, key: bytes | str, value: Buffer | ObjectCode) -> None: ...
    def __delitem__(self, key: bytes | str) -> None: ...
    def __len__(self) -> int: ...
    def clear(self) -> None:
        """Remove all entries."""

    @property
    def hits(self) -> int:
        """Number of lookups of this object that hit."""

    @property
    def misses(self) -> int:
        """Number of lookups of this object that missed."""
