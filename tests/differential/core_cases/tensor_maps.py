"""Tensor maps of views."""

from .devices import CURRENT

MAPS = (
    CURRENT
    + """
from cuda.core.utils import StridedMemoryView
from cuda.core._tensor_map import TensorMapDataType, TensorMapIm2ColWideMode, TensorMapInterleave, TensorMapL2Promotion, TensorMapOOBFill, TensorMapSwizzle
s = d.create_stream()
b = d.memory_resource.allocate(1 << 20, stream=s)
O = TensorMapDescriptorOptions
def view(*shape, dtype="float32", strides=None):
    return StridedMemoryView.from_buffer(b, shape, strides, dtype=np.dtype(dtype))
v = view(64, 64)
n = view(2, 8, 8, 16)
"""
)

GROUPS = {
    "tensor map: options": (
        MAPS,
        """
        public(O)
        public(TensorMapDescriptor)
        TensorMapDescriptor()
        O((32, 32))
        O([32, 32])
        O(32)
        O(None)
        O(())
        O((32, -1))
        O((32.5, 1))
        O((32, 32), element_strides=[1, 1])
        O((32, 32), data_type="float32").data_type
        O((32, 32), data_type=np.float32).data_type
        O((32, 32), data_type=TensorMapDataType.FLOAT32).data_type
        O((32, 32), data_type=7)
        O((32, 32), swizzle=3)
        O((32, 32), swizzle="128B")
        O((32, 32), interleave=None)
        [(e.__name__, [(m.name, m.value) for m in e]) for e in (TensorMapDataType, TensorMapInterleave, TensorMapSwizzle, TensorMapL2Promotion, TensorMapOOBFill, TensorMapIm2ColWideMode)]
        """,
    ),
    "tensor map: tiled": (
        MAPS,
        """
        v.as_tensor_map((32, 32))
        v.as_tensor_map((32, 32)).device is d
        v.as_tensor_map()
        v.as_tensor_map([32, 32])
        v.as_tensor_map((32,))
        v.as_tensor_map((32, 257))
        v.as_tensor_map((32, 0))
        v.as_tensor_map((3, 3))
        v.as_tensor_map(options=O((32, 32)))
        v.as_tensor_map(options={"box_dim": (32, 32)})
        v.as_tensor_map(options=5)
        v.as_tensor_map((32, 32), options=O((32, 32)))
        v.as_tensor_map((32, 32), element_strides=(1, 2))
        v.as_tensor_map((32, 32), element_strides=(9, 1))
        v.as_tensor_map((32, 32), element_strides=(1, 0))
        v.as_tensor_map((32, 32), element_strides=(1,))
        v.as_tensor_map((32, 32), swizzle=TensorMapSwizzle.SWIZZLE_128B)
        v.as_tensor_map((32, 64), swizzle=TensorMapSwizzle.SWIZZLE_128B)
        v.as_tensor_map((32, 32), swizzle=3)
        v.as_tensor_map((32, 32), interleave=TensorMapInterleave.INTERLEAVE_16B)
        v.as_tensor_map((32, 32), oob_fill=TensorMapOOBFill.NAN_REQUEST_ZERO_FMA)
        v.as_tensor_map((32, 32), data_type=np.int32, oob_fill=TensorMapOOBFill.NAN_REQUEST_ZERO_FMA)
        v.as_tensor_map((32, 32), l2_promotion=TensorMapL2Promotion.L2_256B)
        v.as_tensor_map((32, 32), data_type=TensorMapDataType.TFLOAT32)
        v.as_tensor_map((32, 32), data_type=TensorMapDataType.FLOAT16)
        v.as_tensor_map((32, 32), data_type="no type")
        [view(64, 64, dtype=t).as_tensor_map((16, 16)) for t in ("uint8", "uint16", "uint32", "int32", "uint64", "int64", "float16", "float32", "float64")]
        view(64, 64, dtype="bool").as_tensor_map((32, 32))
        view(64, 64, dtype="int8").as_tensor_map((32, 32))
        view(64).as_tensor_map((32,))
        view().as_tensor_map(())
        view(2, 2, 2, 2, 2, 64).as_tensor_map((1, 1, 1, 1, 1, 32))
        view(64, 63).as_tensor_map((32, 32))
        view(64, 32, strides=(64, 1)).as_tensor_map((32, 32))
        view(64, 32, strides=(64, 2)).as_tensor_map((32, 32))
        view(64, 0).as_tensor_map((32, 32))
        StridedMemoryView.from_any_interface(np.zeros((64, 64), np.float32), -1).as_tensor_map((32, 32))
        m = v.as_tensor_map((32, 32)); m.replace_address(v)
        m.replace_address(b)
        m.replace_address(5)
        m.replace_address(np.zeros(4))
        m.replace_address(view(64))
        m == m, m == v.as_tensor_map((32, 32))
        """,
    ),
    "tensor map: im2col": (
        MAPS,
        """
        TensorMapDescriptor._from_tiled(v, (32, 32))
        TensorMapDescriptor._from_im2col(n, (0, 0), (0, 0), 16, 4)
        TensorMapDescriptor._from_im2col(n, (0,), (0,), 16, 4)
        TensorMapDescriptor._from_im2col(n, (-200, 0), (0, 0), 16, 4)
        TensorMapDescriptor._from_im2col(n, (0, 0), (0, 0), 257, 4)
        TensorMapDescriptor._from_im2col(n, (0, 0), (0, 0), 16, 1025)
        TensorMapDescriptor._from_im2col(n, (0, 0), (0, 0), 3, 4)
        TensorMapDescriptor._from_im2col(v, (), (), 16, 4)
        TensorMapDescriptor._from_im2col(n, 0, 0, 16, 4)
        """,
    ),
}
