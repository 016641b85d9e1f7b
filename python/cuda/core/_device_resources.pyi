"""Device resources and the options for partitioning a device into green contexts."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from cuda.core._device import Device
from cuda.core.typing import WorkqueueSharingScopeType

__all__ = ["DeviceResources", "SMResource", "SMResourceOptions", "WorkqueueResource", "WorkqueueResourceOptions"]

@final
class DeviceResources:
    """The resources of a device, of a context or of a stream's context. Each query returns a new object."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> DeviceResources: ...
    @property
    def sm(self) -> SMResource:
        """The multiprocessors."""
    @property
    def workqueue(self) -> WorkqueueResource:
        """The work queues."""

@final
class SMResource:
    """Multiprocessors (SMs) of a device: all of them or a part. A value reserves nothing."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> SMResource: ...
    @property
    def handle(self) -> int:
        """Address of the driver's ``CUdevResource`` structure, valid as long as this object."""
    @property
    def sm_count(self) -> int:
        """Number of multiprocessors."""
    @property
    def min_partition_size(self) -> int:
        """Smallest number of multiprocessors of a part."""
    @property
    def coscheduled_alignment(self) -> int:
        """Number of multiprocessors that are guaranteed to be co-scheduled."""
    @property
    def flags(self) -> int:
        """Flags of the driver's structure: ``CUdevSmResourceGroup_flags``."""
    def split(
        self, options: SMResourceOptions | dict[str, Any], *, dry_run: bool = False
    ) -> tuple[list[SMResource], SMResource]:
        """Splits the multiprocessors into disjoint groups; returns them and the rest."""

@final
class WorkqueueResource:
    """The configuration of work queues: how many streams are expected to run concurrently, and who shares the queues."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> WorkqueueResource: ...
    @property
    def handle(self) -> int:
        """Address of the driver's ``CUdevResource`` structure, valid as long as this object."""
    @property
    def concurrency_limit(self) -> int:
        """Expected maximum number of concurrent streams."""
    @property
    def sharing_scope(self) -> WorkqueueSharingScopeType:
        """Scope of sharing."""
    @property
    def device(self) -> Device:
        """Device of the work queues."""
    def configure(self, options: WorkqueueResourceOptions | dict[str, Any]) -> None:
        """Changes the configuration, for contexts that are created with this object afterwards."""

@dataclass
class SMResourceOptions:
    """Multiprocessors of a device partition. A sequence describes several partitions, one per element."""

    count: int | Sequence[int] | None = None
    coscheduled_sm_count: int | Sequence[int] | None = None
    preferred_coscheduled_sm_count: int | Sequence[int] | None = None
    backfill: bool | Sequence[bool] = False

@dataclass
class WorkqueueResourceOptions:
    """Sharing of work queues."""

    sharing_scope: WorkqueueSharingScopeType | str | None = None
    concurrency_limit: int | None = None

    def __post_init__(self) -> None: ...
