"""How a device is divided: options of green contexts."""

from cuda.core._options import options

__all__ = ["SMResourceOptions", "WorkqueueResourceOptions"]


@options
class SMResourceOptions:
    """Which multiprocessors a part of a device gets. A sequence describes one part an element.

    Attributes
    ----------
    count : int or sequence of int, optional
        How many multiprocessors; by default as many as there are.
    coscheduled_sm_count : int or sequence of int, optional
        How many of them can run blocks of one cluster.
    preferred_coscheduled_sm_count : int or sequence of int, optional
        The same as a wish.
    backfill : bool or sequence of bool
        Whether multiprocessors that miss the former conditions may fill up the number.
    """

    count: "int | SequenceABC[int] | None" = None
    coscheduled_sm_count: "int | SequenceABC[int] | None" = None
    preferred_coscheduled_sm_count: "int | SequenceABC[int] | None" = None
    backfill: "bool | SequenceABC[bool]" = False


@options
class WorkqueueResourceOptions:
    """How work queues are shared.

    Attributes
    ----------
    sharing_scope : WorkqueueSharingScopeType or str, optional
        With whom.
    concurrency_limit : int, optional
        How many streams are expected to run at once.
    """

    sharing_scope: "WorkqueueSharingScopeType | str | None" = None
    concurrency_limit: "int | None" = None
