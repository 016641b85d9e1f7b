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
    absent = object()

    def __init__(self, timing_enabled=absent, blocking_sync=absent, ipc_enabled=absent, **former):
        if not former:
            if timing_enabled is absent:
                timing_enabled = False
            if blocking_sync is absent:
                blocking_sync = False
            if ipc_enabled is absent:
                ipc_enabled = False
            if type(self) is EventOptions and type(timing_enabled) is type(blocking_sync) is type(ipc_enabled) is bool:
                # What `init` would do: events are made in hot loops, with options made on the spot.
                fields = self.__dict__
                fields["timing_enabled"] = timing_enabled
                fields["blocking_sync"] = blocking_sync
                fields["ipc_enabled"] = ipc_enabled
                return
            init(self, timing_enabled, blocking_sync, ipc_enabled)
            return
        given = {"timing_enabled": timing_enabled, "blocking_sync": blocking_sync, "ipc_enabled": ipc_enabled}
        given = {name: value for name, value in given.items() if value is not absent}
        for name, value in former.items():
            today = _FORMER.get(name, name)
            if today in given:
                raise TypeError(f"EventOptions takes {today} or its former name {name}, not both")
            if name in _FORMER:
                import warnings

                warnings.warn(f"EventOptions({name}=...) is deprecated; use {today}", DeprecationWarning, stacklevel=2)
            given[today] = value
        init(self, **given)

    __init__.__wrapped__ = init
    __init__.__qualname__ = init.__qualname__
    return __init__


EventOptions.__init__ = _accept_former_names(EventOptions.__init__)
