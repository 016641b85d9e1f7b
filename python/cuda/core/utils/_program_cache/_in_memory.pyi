"""A cache in memory."""

from cuda.core._module import ObjectCode
from typing_extensions import Buffer

from ._abc import ProgramCacheResource

__all__ = ["InMemoryProgramCache"]

class InMemoryProgramCache(ProgramCacheResource):
    """A cache of compiled programs in this process's memory."""

    def __init__(self, *, max_size_bytes: int | None = None) -> None: ...
    def __getitem__(self, key: bytes | str) -> bytes: ...
    def __setitem__(self, key: bytes | str, value: Buffer | ObjectCode) -> None: ...
    def __delitem__(self, key: bytes | str) -> None: ...
    def __len__(self) -> int: ...
    def clear(self) -> None:
        """Forgets everything."""

    @property
    def hits(self) -> int:
        """How many lookups of this object found something."""

    @property
    def misses(self) -> int:
        """How many lookups of this object found nothing."""
