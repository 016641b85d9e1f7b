from typing import Any, SupportsIndex

from typing_extensions import disjoint_base

_Dims = int | SupportsIndex | tuple[SupportsIndex, ...] | list[SupportsIndex]

@disjoint_base
class LaunchConfig:
    """The shape of a launch: how many blocks of how many threads, and what else the driver may know."""

    def __new__(
        cls,
        grid: _Dims | None = None,
        cluster: _Dims | None = None,
        block: _Dims | None = None,
        shmem_size: SupportsIndex | None = None,
        is_cooperative: bool = False,
        programmatic_stream_serialization: bool = False,
    ) -> LaunchConfig: ...
    @property
    def grid(self) -> tuple[int, int, int]:
        """Blocks in x, y and z; with a cluster, clusters in x, y and z."""

    @grid.setter
    def grid(self, value: _Dims, /) -> None: ...
    @property
    def block(self) -> tuple[int, int, int]:
        """Threads of a block in x, y and z."""

    @block.setter
    def block(self, value: _Dims, /) -> None: ...
    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """Blocks of a cluster in x, y and z, or None."""

    @cluster.setter
    def cluster(self, value: _Dims | None, /) -> None: ...
    @property
    def shmem_size(self) -> int:
        """Bytes of dynamic shared memory of a block."""

    @shmem_size.setter
    def shmem_size(self, value: SupportsIndex, /) -> None: ...
    @property
    def is_cooperative(self) -> bool:
        """Whether all blocks are on the device at the same time."""

    @is_cooperative.setter
    def is_cooperative(self, value: bool, /) -> None: ...
    @property
    def programmatic_stream_serialization(self) -> bool:
        """Whether the kernel may begin before the one ahead of it in the stream has ended."""

    @programmatic_stream_serialization.setter
    def programmatic_stream_serialization(self, value: bool, /) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

__all__ = ["LaunchConfig"]
