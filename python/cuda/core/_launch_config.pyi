from typing import Any, SupportsIndex

from typing_extensions import disjoint_base

_Dims = int | SupportsIndex | tuple[SupportsIndex, ...] | list[SupportsIndex]

@disjoint_base
class LaunchConfig:
    """Configuration of a launch: grid, blocks and launch attributes."""

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
        """Grid dimensions in blocks; with a cluster, in clusters. Accepts an int or a tuple of up to three ints."""

    @grid.setter
    def grid(self, value: _Dims, /) -> None: ...
    @property
    def block(self) -> tuple[int, int, int]:
        """Block dimensions in threads. Accepts an int or a tuple of up to three ints."""

    @block.setter
    def block(self, value: _Dims, /) -> None: ...
    @property
    def cluster(self) -> tuple[int, int, int] | None:
        """Cluster dimensions in blocks, or None. Accepts None, an int or a tuple of up to three ints."""

    @cluster.setter
    def cluster(self, value: _Dims | None, /) -> None: ...
    @property
    def shmem_size(self) -> int:
        """Bytes of dynamic shared memory per block."""

    @shmem_size.setter
    def shmem_size(self, value: SupportsIndex, /) -> None: ...
    @property
    def is_cooperative(self) -> bool:
        """Whether the launch is cooperative."""

    @is_cooperative.setter
    def is_cooperative(self, value: bool, /) -> None: ...
    @property
    def programmatic_stream_serialization(self) -> bool:
        """Whether the kernel may start before the preceding kernel in the stream has completed."""

    @programmatic_stream_serialization.setter
    def programmatic_stream_serialization(self, value: bool, /) -> None: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

__all__ = ["LaunchConfig"]
