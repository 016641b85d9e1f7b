"""Events."""

from cupyrite._native.core import Event, IPCEventDescriptor

from cuda.core._options import options

__all__ = ["Event", "EventOptions", "IPCEventDescriptor"]

# Spelling of the versions 0.x -> today's. They mean the same: in those versions `busy_waited_sync` asked for what its
# documentation says, a thread that blocks instead of spinning.
_FORMER = {
    "busy_waited_sync": "blocking_sync",
    "enable_timing": "timing_enabled",
    "support_ipc": "ipc_enabled",
}


@options
class EventOptions:
    """How an event is made.

    Attributes
    ----------
    timing_enabled : bool
        Whether the event can be timed, by subtraction.
    blocking_sync : bool
        Whether a thread that waits for the event sleeps instead of spinning.
    ipc_enabled : bool
        Whether other processes can open the event. Such an event cannot be timed.
    """

    timing_enabled: "bool | None" = False
    blocking_sync: "bool | None" = False
    ipc_enabled: "bool | None" = False

    def __post_init__(self):
        for name in ("timing_enabled", "blocking_sync", "ipc_enabled"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, bool):
                raise TypeError(f"EventOptions.{name} is {value!r}; expected a bool or None")


def _accept_former_names(init):
    def __init__(self, *args, **kwargs):
        for former, name in _FORMER.items():
            if former in kwargs:
                import warnings

                if name in kwargs:
                    raise TypeError(f"EventOptions takes {name} or its former name {former}, not both")
                warnings.warn(f"EventOptions({former}=...) is deprecated; use {name}", DeprecationWarning, stacklevel=2)
                kwargs[name] = kwargs.pop(former)
        init(self, *args, **kwargs)

    __init__.__wrapped__ = init
    __init__.__qualname__ = init.__qualname__
    return __init__


EventOptions.__init__ = _accept_former_names(EventOptions.__init__)
