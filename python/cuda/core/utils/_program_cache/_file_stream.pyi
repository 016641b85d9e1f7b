"""Program cache on disk."""

from os import PathLike

from cuda.core._module import ObjectCode
from typing_extensions import Buffer

from ._abc import ProgramCacheResource

__all__ = ["FileStreamProgramCache"]

class FileStreamProgramCache(ProgramCacheResource):
    """Program cache in a directory, shared by any number of concurrent processes."""

    def __init__(self, path: str | PathLike[str] | None = None, *, max_size_bytes: int | None = None) -> None: ...
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
