"""Copy options."""

from __future__ import annotations

from enum import StrEnum

from cuda.core._options import options

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeVar

    from cuda.core._device import Device
    from cuda.core._host import Host

    _E = TypeVar("_E", bound=StrEnum)

__all__ = ["CopyOptions", "MemcpyOverlapMode", "MemcpySrcAccessOrder"]


class MemcpySrcAccessOrder(StrEnum):
    """When a copy may read its source (``CUmemcpySrcAccessOrder``).

    Examples
    --------
    >>> from cuda.core.utils import CopyOptions, MemcpySrcAccessOrder
    >>> CopyOptions(src_access_order=MemcpySrcAccessOrder.ANY).src_access_order
    <MemcpySrcAccessOrder.ANY: 'any'>
    """

    STREAM = "stream"
    """Stream-ordered."""

    DURING_API_CALL = "during_api_call"
    """Before the call returns."""

    ANY = "any"
    """At any time between the call and the copy's position in the stream."""


class MemcpyOverlapMode(StrEnum):
    """Whether a copy should overlap with compute (``CUmemcpyFlags``).

    Examples
    --------
    >>> from cuda.core.utils import CopyOptions, MemcpyOverlapMode
    >>> CopyOptions(overlap_mode=MemcpyOverlapMode.PREFER_OVERLAP_WITH_COMPUTE).overlap_mode
    <MemcpyOverlapMode.PREFER_OVERLAP_WITH_COMPUTE: 'prefer_overlap_with_compute'>
    """

    DEFAULT = "default"
    """The driver decides."""

    PREFER_OVERLAP_WITH_COMPUTE = "prefer_overlap_with_compute"
    """Prefer overlap with kernels over copy speed."""


def _member(enum_class: type[_E], field: str, given: str) -> _E:
    try:
        return enum_class(given)
    except ValueError:
        choices = ", ".join(repr(str(member)) for member in enum_class)
        raise ValueError(f"CopyOptions.{field} is {given!r}; expected one of {choices}") from None


@options(frozen=True)
class CopyOptions:
    """Options of a copy (``CUmemcpyAttributes``).

    Drivers before CUDA 12.8 and default streams do not support these attributes: they are ignored there, except
    ``during_api_call``, which synchronizes the stream.

    Attributes
    ----------
    src_access_order : MemcpySrcAccessOrder or str
        When the source may be read.
    src_location_hint, dst_location_hint : Device or Host, optional
        Locations of managed or system memory.
    overlap_mode : MemcpyOverlapMode or str
        Whether the copy should overlap with kernels.

    Examples
    --------
    >>> import numpy as np
    >>> from cuda.core import Device
    >>> from cuda.core.utils import CopyOptions
    >>> device = Device()
    >>> stream = device.create_stream()
    >>> source, target = (device.allocate(4, stream=stream) for _ in range(2))
    >>> source.fill(9, stream=stream)
    >>> options = CopyOptions(src_access_order="stream", overlap_mode="prefer_overlap_with_compute")
    >>> source.copy_to(target, stream=stream, options=options) is target
    True
    >>> stream.sync()
    """

    src_access_order: MemcpySrcAccessOrder | str = "stream"
    src_location_hint: Device | Host | None = None
    dst_location_hint: Device | Host | None = None
    overlap_mode: MemcpyOverlapMode | str = "default"

    def __post_init__(self) -> None:
        order = _member(MemcpySrcAccessOrder, "src_access_order", self.src_access_order)
        mode = _member(MemcpyOverlapMode, "overlap_mode", self.overlap_mode)
        object.__setattr__(self, "src_access_order", order)
        object.__setattr__(self, "overlap_mode", mode)
