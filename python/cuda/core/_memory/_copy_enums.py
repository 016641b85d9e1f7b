"""How copies are made."""

from enum import StrEnum

from cuda.core._options import options

__all__ = ["CopyOptions", "MemcpyOverlapMode", "MemcpySrcAccessOrder"]


class MemcpySrcAccessOrder(StrEnum):
    """When a copy may read its source (``CUmemcpySrcAccessOrder``)."""

    STREAM = "stream"
    """In the stream's order."""

    DURING_API_CALL = "during_api_call"
    """Before the call returns."""

    ANY = "any"
    """At any time between the call and the copy's turn in the stream."""


class MemcpyOverlapMode(StrEnum):
    """Whether a copy makes room for kernels (``CUmemcpyFlags``)."""

    DEFAULT = "default"
    """As the driver sees fit."""

    PREFER_OVERLAP_WITH_COMPUTE = "prefer_overlap_with_compute"
    """It should rather run beside kernels than fast."""


def _member(kind, field, given):
    try:
        return kind(given)
    except ValueError:
        choices = ", ".join(repr(str(member)) for member in kind)
        raise ValueError(f"CopyOptions.{field} is {given!r}; expected one of {choices}") from None


@options(frozen=True)
class CopyOptions:
    """How a copy is made (``CUmemcpyAttributes``).

    Drivers before CUDA 12.8, and the default streams, have no such attributes: there all of this but ``during_api_call`` is
    left out, and that one waits for the stream.

    Attributes
    ----------
    src_access_order : MemcpySrcAccessOrder or str
        When the source may be read.
    src_location_hint, dst_location_hint : Device or Host, optional
        Where source and destination are, if that is managed or system memory.
    overlap_mode : MemcpyOverlapMode or str
        Whether the copy makes room for kernels.
    """

    src_access_order: "MemcpySrcAccessOrder | str" = "stream"
    src_location_hint: "Device | Host | None" = None
    dst_location_hint: "Device | Host | None" = None
    overlap_mode: "MemcpyOverlapMode | str" = "default"

    def __post_init__(self):
        order = _member(MemcpySrcAccessOrder, "src_access_order", self.src_access_order)
        mode = _member(MemcpyOverlapMode, "overlap_mode", self.overlap_mode)
        object.__setattr__(self, "src_access_order", order)
        object.__setattr__(self, "overlap_mode", mode)
