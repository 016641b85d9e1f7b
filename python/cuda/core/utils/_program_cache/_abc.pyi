"""Abstract base class of program caches."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import overload

from cuda.core._module import ObjectCode
from typing_extensions import Buffer, Self

__all__ = ["ProgramCacheResource"]

class ProgramCacheResource(ABC):
    """Cache of compiled code: a mapping from keys to bytes."""

    @abstractmethod
    def __getitem__(self, key: bytes | str) -> bytes: ...
    @abstractmethod
    def __setitem__(self, key: bytes | str, value: Buffer | ObjectCode) -> None: ...
    @abstractmethod
    def __delitem__(self, key: bytes | str) -> None: ...
    @abstractmethod
    def __len__(self) -> int: ...
    @abstractmethod
    def clear(self) -> None:
        """Remove all entries."""

    @overload
    def get(self, key: bytes | str, default: None = None) -> bytes | None:
        """Return the bytes stored under a key, or `default`."""
    @overload
    def get(self, key: bytes | str, default: bytes) -> bytes: ...
    def update(
        self,
        items: Mapping[bytes, Buffer | ObjectCode]
        | Mapping[str, Buffer | ObjectCode]
        | Iterable[tuple[bytes | str, Buffer | ObjectCode]],
        /,
    ) -> None:
        """Store several entries in order; if one fails, the preceding ones remain stored."""

    def close(self) -> None:
        """Release the resources of the cache. The base implementation does nothing."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
