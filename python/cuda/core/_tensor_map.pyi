"""Tensor maps: descriptors of tensors for bulk copies between global and shared memory."""

from dataclasses import dataclass
from enum import IntEnum
from typing import final

from cuda.core._device import Device

__all__ = ["TensorMapDescriptor", "TensorMapDescriptorOptions"]

class TensorMapDataType(IntEnum):
    """Element types of tensor maps (``CUtensorMapDataType``)."""

    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    INT32 = 3
    UINT64 = 4
    INT64 = 5
    FLOAT16 = 6
    FLOAT32 = 7
    FLOAT64 = 8
    BFLOAT16 = 9
    FLOAT32_FTZ = 10
    TFLOAT32 = 11
    TFLOAT32_FTZ = 12

class TensorMapInterleave(IntEnum):
    """Interleaved layouts (``CUtensorMapInterleave``)."""

    NONE = 0
    INTERLEAVE_16B = 1
    INTERLEAVE_32B = 2

class TensorMapSwizzle(IntEnum):
    """Swizzles of shared memory (``CUtensorMapSwizzle``)."""

    NONE = 0
    SWIZZLE_32B = 1
    SWIZZLE_64B = 2
    SWIZZLE_128B = 3

class TensorMapL2Promotion(IntEnum):
    """Promotions of the second-level cache (``CUtensorMapL2promotion``)."""

    NONE = 0
    L2_64B = 1
    L2_128B = 2
    L2_256B = 3

class TensorMapOOBFill(IntEnum):
    """Values of elements outside of the tensor (``CUtensorMapFloatOOBfill``)."""

    NONE = 0
    NAN_REQUEST_ZERO_FMA = 1

class TensorMapIm2ColWideMode(IntEnum):
    """Modes of im2col maps along the width (``CUtensorMapIm2ColWideMode``)."""

    W = 0
    W128 = 1

@final
class TensorMapDescriptor:
    """A tensor in global memory, for bulk copies of its boxes from and to shared memory (compute capability 9.0)."""

    def __new__(cls) -> TensorMapDescriptor: ...
    def replace_address(self, tensor: object) -> None:
        """Makes this the map of another tensor with the same shape, strides and type."""
    @property
    def device(self) -> Device:
        """The device of the tensor's memory."""
    def __bytes__(self) -> bytes: ...

@dataclass
class TensorMapDescriptorOptions:
    """Options of :meth:`StridedMemoryView.as_tensor_map`."""

    box_dim: tuple[int, ...]
    element_strides: tuple[int, ...] | None = None
    data_type: object = None
    interleave: TensorMapInterleave = ...
    swizzle: TensorMapSwizzle = ...
    l2_promotion: TensorMapL2Promotion = ...
    oob_fill: TensorMapOOBFill = ...
    def __post_init__(self) -> None: ...
