"""How a device is divided: options of green contexts."""

from collections.abc import Sequence
from dataclasses import dataclass

from cuda.core.typing import WorkqueueSharingScopeType

__all__ = ["SMResourceOptions", "WorkqueueResourceOptions"]

@dataclass
class SMResourceOptions:
    """Which multiprocessors a part of a device gets."""

    count: int | Sequence[int] | None = None
    coscheduled_sm_count: int | Sequence[int] | None = None
    preferred_coscheduled_sm_count: int | Sequence[int] | None = None
    backfill: bool | Sequence[bool] = False

@dataclass
class WorkqueueResourceOptions:
    """How work queues are shared."""

    sharing_scope: WorkqueueSharingScopeType | str | None = None
    concurrency_limit: int | None = None
