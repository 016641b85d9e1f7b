"""Field values: many figures of a device in one call of NVML."""

from __future__ import annotations

from cuda.bindings import nvml

from ._nvml import call, symbol
from ._properties import field
from .typing import FieldId

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import SupportsIndex

    from ._nvml import Handle

__all__ = ["FieldValue", "FieldValues", "checked_ids"]

# The member of NVML's union for each `nvmlValueType_t`.
_MEMBERS = ("d_val", "ui_val", "ul_val", "ull_val", "sll_val", "si_val", "us_val")


def checked_ids(field_ids: object) -> list[int | tuple[int, ...]]:
    """The requests of a call as numbers and pairs of numbers.

    Raises
    ------
    TypeError
        If `field_ids` is no list.
    ValueError
        If an element is neither a number nor a pair of numbers.
    """
    if not isinstance(field_ids, list | tuple):
        raise TypeError(
            f"field_ids is of type {type(field_ids).__name__}; expected a list of FieldId or (FieldId, scope)"
        )
    requests = []
    for at, entry in enumerate(field_ids):
        parts = entry if isinstance(entry, tuple) else (entry,)
        if len(parts) not in (1, 2) or not all(isinstance(part, int) for part in parts):
            raise ValueError(f"field_ids[{at}] is {entry!r}; expected a FieldId or a pair (FieldId, scope ID)")
        requests.append(tuple(map(int, parts)) if len(parts) == 2 else int(parts[0]))
    return requests


class FieldValue:
    """One field value.

    Parameters
    ----------
    field_value : cuda.bindings.nvml.FieldValue
        An array of one element.
    """

    __slots__ = ("_data",)

    def __init__(self, field_value: nvml.FieldValue) -> None:
        self._data = field_value

    @property
    def field_id(self) -> FieldId:
        """The `FieldId`; an int if this package does not have it."""
        number = int(self._data.field_id)
        try:
            return FieldId(number)
        except ValueError:
            return number  # type: ignore[return-value]

    scope_id = field(int, "scope_id", "Scope of the field, for example a link.")
    timestamp = field(int, "timestamp", "When the value was sampled, in microseconds since 1970.")
    latency_usec = field(int, "latency_usec", "How long NVML took to update the value, in microseconds.")

    @property
    def value(self) -> int | float:
        """The value.

        Raises
        ------
        NvmlError
            The error with which NVML answered this field.
        """
        status = int(self._data.nvml_return)
        if status:
            try:
                nvml.check_status(status)
            except nvml.NvmlError as error:
                error.args = (f"{symbol('device_get_field_values')}, field {self.field_id!r}: {error}",)
                raise
        kind = int(self._data.value_type)
        if kind >= len(_MEMBERS):
            raise RuntimeError(f"field {self.field_id!r} has the value type {kind}, which this package does not know")
        member = self._data.value[0][_MEMBERS[kind]]
        return float(member) if kind == 0 else int(member)


class FieldValues:
    """Field values: a sequence.

    Parameters
    ----------
    field_values : cuda.bindings.nvml.FieldValue
        An array.
    """

    __slots__ = ("_data",)

    def __init__(self, field_values: nvml.FieldValue) -> None:
        self._data = field_values

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, index: SupportsIndex) -> FieldValue:
        from operator import index as number

        return FieldValue(self._data[number(index)])

    def validate(self) -> None:
        """Raise the error of the first field that has one.

        Raises
        ------
        NvmlError
        """
        self.get_all_values()

    def get_all_values(self) -> list[int | float]:
        """All values as a list.

        Raises
        ------
        NvmlError
            If one of the fields has an error.
        """
        return [self[at].value for at in range(len(self))]


def read(handle: Handle, field_ids: object) -> FieldValues:
    """`FieldValues` of a device."""
    requests = checked_ids(field_ids)
    return FieldValues(call("device_get_field_values", handle, requests) if requests else nvml.FieldValue(0))
