"""Events."""

from dataclasses import dataclass
from typing import Any, final

from typing_extensions import disjoint_base

from cuda.bindings.driver import CUevent
from cuda.core._context import Context
from cuda.core._device import Device

__all__ = ["Event", "EventOptions", "IPCEventDescriptor"]

@disjoint_base
class Event:
    """A point in a stream that can be waited for and, where it was made for that, timed."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> Event: ...
    @classmethod
    def from_ipc_descriptor(cls, ipc_descriptor: IPCEventDescriptor) -> Event:
        """Opens an event that another process made with ``ipc_enabled``."""
    @property
    def handle(self) -> CUevent:
        """The driver's handle; 0 once the event was closed."""
    @property
    def is_closed(self) -> bool:
        """Whether :meth:`close` was called."""
    @property
    def is_done(self) -> bool:
        """Whether everything before the event is done."""
    @property
    def is_timing_enabled(self) -> bool:
        """Whether the event can be timed."""
    @property
    def is_blocking_sync(self) -> bool:
        """Whether a thread that waits for the event sleeps."""
    @property
    def is_ipc_enabled(self) -> bool:
        """Whether other processes can open the event."""
    @property
    def is_sync_busy_waited(self) -> bool:
        """The older name of :attr:`is_blocking_sync`."""
    @property
    def ipc_descriptor(self) -> IPCEventDescriptor:
        """What another process opens the event with."""
    def get_ipc_descriptor(self) -> IPCEventDescriptor:
        """The older spelling of :attr:`ipc_descriptor`."""
    @property
    def device(self) -> Device:
        """The device that it belongs to."""
    @property
    def context(self) -> Context:
        """The context that it belongs to."""
    def sync(self) -> None:
        """Waits until everything before the event is done."""
    def close(self) -> None:
        """Lets go of the event."""
    def __sub__(self, other: Event, /) -> float: ...
    def __isub__(self, other: Event, /) -> float: ...
    def __rsub__(self, other: Event, /) -> float: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class IPCEventDescriptor:
    """What another process opens an :class:`Event` with."""

    def __new__(cls, *_args: Any, **_kwargs: Any) -> IPCEventDescriptor: ...
    def __reduce__(self) -> tuple[Any, tuple[bytes, bool]]: ...
    def __eq__(self, other: object, /) -> bool: ...
    __hash__: None  # type: ignore[assignment]

@dataclass
class EventOptions:
    """How an event is made."""

    timing_enabled: bool | None = False
    blocking_sync: bool | None = False
    ipc_enabled: bool | None = False
    def __post_init__(self) -> None: ...
