"""Device resources and the options for partitioning a device into green contexts."""

from cuda.core._options import options
from cupyrite._native.core import DeviceResources, SMResource, WorkqueueResource
from cupyrite._native.core import check_workqueue_options as _check

__all__ = ["DeviceResources", "SMResource", "SMResourceOptions", "WorkqueueResource", "WorkqueueResourceOptions"]


@options
class SMResourceOptions:
    """Multiprocessors of a device partition. A sequence describes several partitions, one per element.

    Attributes
    ----------
    count : int or sequence of int, optional
        Number of multiprocessors. Default: all.
    coscheduled_sm_count : int or sequence of int, optional
        Number of multiprocessors that can run the blocks of one cluster.
    preferred_coscheduled_sm_count : int or sequence of int, optional
        Preferred value of `coscheduled_sm_count`.
    backfill : bool or sequence of bool
        Whether multiprocessors that do not satisfy the co-scheduling constraints may be included.

    Examples
    --------
    >>> from cuda.core import Device, SMResourceOptions
    >>> sm = Device().resources.sm
    >>> (group,), rest = sm.split(SMResourceOptions(count=sm.min_partition_size))
    >>> group.sm_count >= sm.min_partition_size
    True

    Several groups at once, one per element:

    >>> options = SMResourceOptions(count=(8, 16))
    >>> options.count
    (8, 16)
    """

    count: "int | SequenceABC[int] | None" = None
    coscheduled_sm_count: "int | SequenceABC[int] | None" = None
    preferred_coscheduled_sm_count: "int | SequenceABC[int] | None" = None
    backfill: "bool | SequenceABC[bool]" = False


@options
class WorkqueueResourceOptions:
    """Sharing of work queues. Values are checked when an instance is created and again when it is used.

    Attributes
    ----------
    sharing_scope : WorkqueueSharingScopeType or str, optional
        Scope within which the queues are shared.
    concurrency_limit : int, optional
        Expected number of concurrent streams: 1 or more.

    Examples
    --------
    >>> from cuda.core import WorkqueueResourceOptions
    >>> options = WorkqueueResourceOptions(sharing_scope="green_ctx_balanced", concurrency_limit=4)
    >>> options.concurrency_limit
    4
    """

    sharing_scope: "WorkqueueSharingScopeType | str | None" = None
    concurrency_limit: "int | None" = None

    def __post_init__(self):
        _check(self)
