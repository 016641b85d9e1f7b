"""Options for partitioning a device into green contexts."""

from collections.abc import Sequence
from dataclasses import dataclass

from cuda.core.typing import WorkqueueSharingScopeType

__all__ = ["SMResourceOptions", "WorkqueueResourceOptions"]

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
