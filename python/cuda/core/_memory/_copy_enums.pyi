from enum import StrEnum

from cuda.core._device import Device
from cuda.core._host import Host

__all__ = ["CopyOptions", "MemcpyOverlapMode", "MemcpySrcAccessOrder"]

class MemcpySrcAccessOrder(StrEnum):
    """When a copy may read its source (``CUmemcpySrcAccessOrder``)."""

    STREAM = "stream"
    DURING_API_CALL = "during_api_call"
    ANY = "any"

class MemcpyOverlapMode(StrEnum):
    """Whether a copy should overlap with compute (``CUmemcpyFlags``)."""

    DEFAULT = "default"
    PREFER_OVERLAP_WITH_COMPUTE = "prefer_overlap_with_compute"

class CopyOptions:
    """Options of a copy (``CUmemcpyAttributes``)."""

    src_access_order: MemcpySrcAccessOrder | str
    src_location_hint: Device | Host | None
    dst_location_hint: Device | Host | None
    overlap_mode: MemcpyOverlapMode | str
    def __init__(
        self,
        src_access_order: MemcpySrcAccessOrder | str = "stream",
        src_location_hint: Device | Host | None = None,
        dst_location_hint: Device | Host | None = None,
        overlap_mode: MemcpyOverlapMode | str = "default",
    ) -> None: ...
    def __post_init__(self) -> None: ...
    def __eq__(self, other: object) -> bool: ...
    def __hash__(self) -> int: ...
    def __setattr__(self, name: str, value: object) -> None: ...
    def __delattr__(self, name: str) -> None: ...
    __match_args__ = ("src_access_order", "src_location_hint", "dst_location_hint", "overlap_mode")
