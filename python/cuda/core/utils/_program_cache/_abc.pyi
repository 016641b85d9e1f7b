"""What every cache of compiled programs has."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import overload

from cuda.core._module import ObjectCode
from typing_extensions import Buffer, Self

__all__ = ["ProgramCacheResource"]

class ProgramCacheResource(ABC):
    """Something that keeps compiled code: bytes under keys."""

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
        """Forgets everything."""

    @overload
    def get(self, key: bytes | str, default: None = None) -> bytes | None:
        """The bytes under a key, or `default` if there are none."""
    @overload
    def get(self, key: bytes | str, default: bytes) -> bytes: ...
    def update(
        self,
        items: Mapping[bytes, Buffer | ObjectCode]
        | Mapping[str, Buffer | ObjectCode]
        | Iterable[tuple[bytes | str, Buffer | ObjectCode]],
        /,
    ) -> None:
        """Keeps several entries, one after the other."""

    def close(self) -> None:
        """Lets go of what the cache holds."""

    def __enter__(self) -> Self: ...
    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None: ...
