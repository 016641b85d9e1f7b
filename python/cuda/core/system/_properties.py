"""Properties that need one line each: the value is a call of NVML, or a part of a structure that NVML filled."""

from __future__ import annotations

from cuda.bindings import nvml

from ._nvml import call

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Generic, Never, SupportsIndex, TypeVar

    from ._nvml import Handle

    T = TypeVar("T")
    IntegersT = TypeVar("IntegersT", bound="Integers")

    class Attribute(Generic[T]):
        """A property without a setter, whose value is of type `T`, as type checkers see it."""

        def __get__(self, instance: object, owner: type) -> T: ...
        def __set__(self, instance: object, value: Never) -> None: ...


__all__ = ["Integers", "Reading", "_Queried", "element", "enabled", "field", "integer", "reading"]


class _Queried:
    """A device, or a part of one, that NVML is asked about with each access."""

    __slots__ = ("_nvml_handle",)

    _nvml_handle: Handle

    def _call(self, name: str, *arguments: object) -> Any:
        """Call a function of the bindings. Parts of a device override it, to add their number to the arguments."""
        return call(name, self._nvml_handle, *arguments)


def reading(
    kind: type[T], name: str, doc: str, convert: Callable[[Any], T] | None = None, *arguments: object
) -> Attribute[T]:
    """A property of a `_Queried` class.

    Parameters
    ----------
    kind : type
        Type of the value.
    name : str
        Function of the bindings, without ``device_get_``.
    doc : str
    convert : callable, optional
        Converts the result of the function, in place of `kind`.
    arguments : object
        Arguments of the function after the device.
    """
    function = f"device_get_{name}"
    made: Callable[[Any], T] = convert or kind
    return property(lambda self: made(self._call(function, *arguments)), doc=doc)  # type: ignore[return-value]


def enabled(state: int) -> bool:
    """Whether an `EnableState` of NVML is on."""
    return state == nvml.EnableState.ENABLED


def field(kind: type[T], name: str, doc: str, convert: Callable[[Any], T] | None = None) -> Attribute[T]:
    """A property that converts the member `name` of the structure `_data`."""
    made: Callable[[Any], T] = convert or kind
    return property(lambda self: made(getattr(self._data, name)), doc=doc)  # type: ignore[return-value]


class Reading:
    """A structure that NVML filled."""

    __slots__ = ("_data",)

    def __init__(self, data: Any) -> None:
        self._data = data

    def __repr__(self) -> str:
        kind = type(self)
        names = [name for name in dir(kind) if isinstance(getattr(kind, name), property)]
        return f"{kind.__name__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


class Integers:
    """An element of an array in a structure that NVML filled: `_COUNT` integers of the type `_TYPE` of `ctypes`."""

    __slots__ = ("_owner", "_values")

    _TYPE: str
    _COUNT: int

    def __init__(self, ptr: int, owner: object) -> None:
        import ctypes

        # The memory at `ptr` lives as long as its owner.
        self._owner, self._values = owner, (getattr(ctypes, self._TYPE) * self._COUNT).from_address(ptr)


def integer(kind: type[T], at: int, doc: str, convert: Callable[[Any], T] | None = None) -> Attribute[T]:
    """A property that converts an integer of an `Integers` class."""
    made: Callable[[Any], T] = convert or kind
    return property(lambda self: made(self._values[at]), doc=doc)  # type: ignore[return-value]


def element(array: Any, length: int, index: SupportsIndex, kind: type[IntegersT]) -> IntegersT:
    """Element `index` of the first `length` of an array, as an `Integers` class; negative indices count from the end."""
    from operator import index as number

    at = number(index)
    if not -length <= at < length:
        raise IndexError(f"index {at} is out of range: there are {length} elements")
    return kind(int(array.ptr) + (at % length) * 4 * kind._COUNT, array)
