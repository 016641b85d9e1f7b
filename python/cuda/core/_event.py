"""Events and their options."""

from cuda.core._options import options
from cupyrite._native.core import Event, IPCEventDescriptor

__all__ = ["Event", "EventOptions", "IPCEventDescriptor"]

# Option names of cuda.core 0.x -> current names. The meaning is unchanged: `busy_waited_sync` already selected blocking
# instead of spinning.
_RENAMED = {
    "busy_waited_sync": "blocking_sync",
    "enable_timing": "timing_enabled",
    "support_ipc": "ipc_enabled",
}


@options
class EventOptions:
    """Options of an event.

    Attributes
    ----------
    timing_enabled : bool
        Whether the event records a timestamp; required to subtract events.
    blocking_sync : bool
        Whether :meth:`Event.sync` blocks the thread instead of spinning.
    ipc_enabled : bool
        Whether other processes can open the event. Excludes `timing_enabled`.

    Examples
    --------
    >>> from cuda.core import Device, EventOptions
    >>> event = Device().create_event(EventOptions(timing_enabled=True, blocking_sync=True))
    >>> event.is_timing_enabled, event.is_blocking_sync, event.is_ipc_enabled
    (True, True, False)
    """

    timing_enabled: "bool | None" = False
    blocking_sync: "bool | None" = False
    ipc_enabled: "bool | None" = False

    def __post_init__(self):
        for name in ("timing_enabled", "blocking_sync", "ipc_enabled"):
            value = getattr(self, name)
            if value is not None and not isinstance(value, bool):
                raise TypeError(f"EventOptions.{name} is {value!r}; expected a bool or None")


def _accept_renamed_options(init):
    missing = object()

    def __init__(self, timing_enabled=missing, blocking_sync=missing, ipc_enabled=missing, **renamed):
        if not renamed:
            if timing_enabled is missing:
                timing_enabled = False
            if blocking_sync is missing:
                blocking_sync = False
            if ipc_enabled is missing:
                ipc_enabled = False
            if type(self) is EventOptions and type(timing_enabled) is type(blocking_sync) is type(ipc_enabled) is bool:
                # Fast path, equivalent to `init`: programs create events and their options in hot loops.
                fields = self.__dict__
                fields["timing_enabled"] = timing_enabled
                fields["blocking_sync"] = blocking_sync
                fields["ipc_enabled"] = ipc_enabled
                return
            init(self, timing_enabled, blocking_sync, ipc_enabled)
            return
        given = {"timing_enabled": timing_enabled, "blocking_sync": blocking_sync, "ipc_enabled": ipc_enabled}
        given = {name: value for name, value in given.items() if value is not missing}
        for name, value in renamed.items():
            current = _RENAMED.get(name, name)
            if current in given:
                raise TypeError(f"EventOptions() takes {current} or its former name {name}, not both")
            if name in _RENAMED:
                import warnings

                warnings.warn(
                    f"EventOptions({name}=...) is deprecated; use {current}", DeprecationWarning, stacklevel=2
                )
            given[current] = value
        init(self, **given)

    __init__.__wrapped__ = init
    __init__.__qualname__ = init.__qualname__
    return __init__


EventOptions.__init__ = _accept_renamed_options(EventOptions.__init__)
