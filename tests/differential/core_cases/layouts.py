"""The layouts behind strided views, and hand-written DLPack tensors."""

from .views import ARRAYS

LAYOUT = (
    ARRAYS
    + """
PROPERTIES = ("ndim", "shape", "strides", "strides_in_bytes", "itemsize", "volume", "slice_offset", "slice_offset_in_bytes", "offset_bounds", "min_offset", "max_offset", "stride_order", "is_contiguous_c", "is_contiguous_f", "is_contiguous_any", "is_dense", "is_unique")
def all_of(l): return [getattr(l, n) for n in PROPERTIES]
l, m, f = L((5, 3, 4), None, 4), L((3, 4), (4, 1), 4), L.dense((5, 3, 4), 4, "F")
h = l[:, ::2]
"""
)

CAPSULES = (
    ARRAYS
    + """
from ctypes import c_int32, c_int64, c_uint8, c_uint16, c_uint32, c_uint64, c_void_p, POINTER
def structure(name, *fields): return type(name, (ctypes.Structure,), {"_fields_": list(fields)})
Kind = structure("Kind", ("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))
Where = structure("Where", ("type", c_int32), ("id", c_int32))
Tensor = structure("Tensor", ("data", c_void_p), ("device", Where), ("ndim", c_int32), ("dtype", Kind), ("shape", POINTER(c_int64)), ("strides", POINTER(c_int64)), ("byte_offset", c_uint64))
Old = structure("Old", ("tensor", Tensor), ("context", c_void_p), ("deleter", c_void_p))
New = structure("New", ("major", c_uint32), ("minor", c_uint32), ("context", c_void_p), ("deleter", c_void_p), ("flags", c_uint64), ("tensor", Tensor))
capsule = ctypes.pythonapi.PyCapsule_New
capsule.restype, capsule.argtypes = ctypes.py_object, [c_void_p, ctypes.c_char_p, c_void_p]
memory, kept, deleted = np.arange(256, dtype=np.uint8), [], []
deleter = ctypes.CFUNCTYPE(None, c_void_p)(lambda pointer: deleted.append(1))
class Made:
    def __init__(self, shape=(4,), strides=None, kind=(2, 32, 1), device=(1, 0), offset=0, version=None, flags=0, data=memory.ctypes.data, name=None):
        self.device, self.name = device, name or (b"dltensor_versioned" if version else b"dltensor")
        self.owner = (New if version else Old)(deleter=ctypes.cast(deleter, c_void_p))
        t = self.owner.tensor
        t.data, t.device, t.ndim, t.dtype, t.byte_offset = data, Where(*device), len(shape), Kind(*kind), offset
        self.shape = (c_int64 * 80)(*shape); t.shape = ctypes.cast(self.shape, POINTER(c_int64))
        if strides is not None:
            self.strides = (c_int64 * 80)(*strides); t.strides = ctypes.cast(self.strides, POINTER(c_int64))
        if version:
            (self.owner.major, self.owner.minor), self.owner.flags = version, flags
        kept.append(self)
    def __dlpack__(self, **more): return capsule(ctypes.addressof(self.owner), self.name, None)
    def __dlpack_device__(self): return self.device
def made(*args, **more): return V.from_dlpack(Made(*args, **more), -1)
def seen(*args, **more): return sv(made(*args, **more))
"""
)

GROUPS = {
    "layout: object": (
        LAYOUT,
        """
        public(L)
        L((3, 4), None, 4), L(shape=(3, 4), strides=(4, 1), itemsize=4), L((3, 4), (16, 4), 4, divide_strides=True), L((3, 4), (16, 4), 4, True)
        L((), None, 4), L((0,), None, 4), L((3, 4), None, 3)
        L((1 << 62, 1 << 62), None, 4).shape
        L()
        L((3, 4))
        L([3, 4], None, 4)
        L((3, 4), [4, 1], 4)
        L(3, None, 4)
        L((-1,), None, 4)
        L((3, 4), (4,), 4)
        L((3, 4), None, 0)
        L((3, 4), None, -1)
        L((3, 4), None, "x")
        L(("x",), None, 4)
        L((1 << 70,), None, 4)
        L((3, 4), (16, 3), 4, divide_strides=True)
        L(tuple([1] * 64), None, 1).ndim
        L(tuple([1] * 65), None, 1)
        L.dense((3, 4), 4), L.dense((3, 4), 4, "C"), L.dense((3, 4), 4, "F"), L.dense((3, 4), 4, (0, 1)), L.dense((3, 4), 4, (1, 0)), L.dense((3, 4), 4, stride_order="F")
        L.dense((3, 4), 4, "K")
        L.dense((3, 4), 4, (1, 1))
        L.dense((3, 4), 4, (0,))
        L.dense((3, 4), 4, "x")
        L.dense((3, 4), 4, 3)
        m == L((3, 4), (4, 1), 4), m == L((3, 4), None, 4), m == 3, m != L((3, 4), (4, 1), 2), l[1:2] == l[2:3], h == l[:, ::2]
        hash(l)
        l < l
        len(l)
        l.foo = 3
        l.shape = (1,)
        weakref.ref(l)
        pickle.dumps(l)
        copy.copy(l)
        bool(l)
        repr(l[1:])
        """,
    ),
    "layout: properties": (
        LAYOUT,
        """
        all_of(l)
        all_of(m)
        all_of(f)
        all_of(h)
        all_of(l[1:])
        all_of(l[::-1])
        all_of(L((3, 4), (-4, 1), 4))
        all_of(L((3, 4), (0, 1), 4))
        all_of(L((3, 4), (1, 1), 4))
        all_of(L((0, 4), None, 4))
        all_of(L((), None, 8))
        all_of(L((1, 4, 1), (99, 1, 99), 4))
        all_of(l.permuted((2, 0, 1)))
        [L(*a, 4).stride_order for a in (((2, 3, 1, 4), (12, 4, 99, 1)), ((2, 1, 3), (3, 3, 1)), ((1, 1), (5, 5)), ((3, 3), (2, 2)), ((2, 3), (2, 2)), ((3, 2), (2, 2)), ((3, 4), (-1, 2)))]
        L((1 << 62, 1 << 62), None, 4).volume
        L((1 << 62,), (1 << 62,), 4).offset_bounds
        L((1 << 62, 1 << 62), None, 4).required_size_in_bytes()
        l.required_size_in_bytes(), f.required_size_in_bytes(), h.required_size_in_bytes(), l[1:].required_size_in_bytes(), L((0,), None, 4).required_size_in_bytes(), L((), None, 4).required_size_in_bytes(), l[::-1].required_size_in_bytes()
        L((3,), (-1,), 4).required_size_in_bytes()
        """,
    ),
    "layout: slices": (
        LAYOUT,
        """
        l[1], l[-1], l[1:3], l[::-1], l[:, 1, 2], l[1, 2, 3], l[-2:], l[4:0:-2]
        l[()]
        l[2:2], l[10:20]
        l.sliced(1), l.sliced((slice(1, 2), 1)), l.sliced(slices=slice(2)), l[:, 1:][0]
        l[5]
        l[-6]
        l[1, 2, 3, 4]
        l[::0]
        l[..., 1]
        l[None]
        l["x"]
        l[1.5]
        l[[1, 2]]
        """,
    ),
    "layout: shapes": (
        LAYOUT,
        """
        l.permuted((2, 0, 1)), l.permuted((0, 1, -1)), L((), None, 4).permuted(()), l.permuted((0, 1, 2)) is l
        l.permuted((0, 1))
        l.permuted((0, 1, 1))
        l.permuted((0, 1, 3))
        l.permuted([0, 1, 2])
        l.reshaped((15, 4)), l.reshaped((-1,)), l.reshaped((4, -1)), l.reshaped((5, 3, 2, 2)), l.reshaped((1, 5, 1, 3, 4)), h.reshaped((5, 2, 4)), l.permuted((2, 0, 1)).reshaped((4, 15))
        L((0, 3), None, 4).reshaped((3, 0)), L((0, 3), None, 4).reshaped((-1, 3))
        L((), None, 4).reshaped((1, 1)), L((1, 1), None, 4).reshaped(())
        l.reshaped((7, -1))
        l.reshaped((-1, -1))
        l.reshaped((61,))
        l.reshaped(60)
        l.reshaped([60])
        h.reshaped((10, 4))
        l.permuted((2, 0, 1)).reshaped((20, 3))
        L((0, 3), None, 4).reshaped((0, -1))
        l.flattened(), f.flattened(), h.flattened(), l.flattened(0, 1), l.flattened(1), l.flattened(start_axis=1, end_axis=2), l.flattened(1, 1), l.permuted((2, 0, 1)).flattened()
        l.flattened(mask=0), l.flattened(mask=2), l.flattened(mask=4), l.flattened(mask=6), h.flattened(mask=6), l.flattened_axis_mask(), f.flattened_axis_mask(), h.flattened_axis_mask()
        L((), None, 4).flattened(), L((1,), None, 4).flattened()
        L((0, 3), None, 4).flattened()
        l.flattened(0, 5)
        L((1, 5, 1), None, 4).squeezed(), L((1, 1), None, 4).squeezed(), L((0, 1), None, 4).squeezed(), l.squeezed()
        l.unsqueezed(0), l.unsqueezed(3), l.unsqueezed(-1), l.unsqueezed((0, 2)), l.unsqueezed((0, 4))
        [L((2, 3), t, 4).unsqueezed(a).strides for t in ((6, 2), (1, 5), (3, -1), (0, 0)) for a in (0, 1, 2, -1, (0, 3), (1, 2), (-1, -2))]
        L((), None, 4).unsqueezed((0, 1)).strides, L((0, 3), None, 4).unsqueezed((0, 3)).strides
        l.unsqueezed(())
        l.unsqueezed(4)
        l.unsqueezed((0, 0))
        l.unsqueezed((0, 9))
        l.unsqueezed("x")
        L((3, 1), None, 4).broadcast_to((2, 3, 5)), L((), None, 4).broadcast_to((2, 3)), L((1,), None, 4).broadcast_to((0,)), l.broadcast_to((5, 3, 4))
        l.broadcast_to((5, 3, 5))
        l.broadcast_to((3, 4))
        l.broadcast_to([5, 3, 4])
        l.broadcast_to((-1, 3, 4))
        l.to_dense(), f.to_dense(), f.to_dense("C"), h.to_dense(), h.to_dense("F"), l.to_dense((1, 0, 2)), l.permuted((2, 0, 1)).to_dense(), l[1:].to_dense()
        L.dense_like(h), L.dense_like(f), L.dense_like(f, "C"), L.dense_like(l, (2, 1, 0)), L((3, 4), (0, 1), 4).to_dense(), L((3, 4), (-4, 1), 4).to_dense()
        l.to_dense() is l, l.to_dense("C") is l, l.to_dense("F") is l, l.to_dense((0, 1, 2)) is l, l.to_dense().strides, L.dense_like(l) is l
        f.to_dense() is f, f.to_dense("K") is f, f.to_dense("F") is f, f.to_dense("C") is f, h.to_dense() is h, l[1:].to_dense("C").slice_offset
        L((0, 3), None, 4).to_dense().strides, L((1,), (7,), 4).to_dense().strides, L((3, 4), (16, 4), 4, 1).strides, L((3, 4), (4, 1), 4, None).strides
        l.to_dense("x")
        L.dense_like(3)
        """,
    ),
    "layout: item sizes": (
        LAYOUT,
        """
        l.repacked(2), l.repacked(1), l.repacked(8), l.repacked(16), l.repacked(4), h.repacked(8), l[1:].repacked(8), l[1:].repacked(2), f.repacked(2, axis=0)
        l.repacked(16, keep_dim=False), l.repacked(16, keep_dim=True), l.repacked(8, keep_dim=False), L((2, 4), (6, 1), 4).repacked(8), L((1,), None, 4).repacked(2)
        l.repacked(32)
        l.repacked(0)
        l.repacked(-1)
        l.repacked(8, axis=0)
        f.repacked(8)
        f.repacked(8, axis=0)
        l.repacked(8, data_ptr=4)
        l.repacked(2, axis=5)
        L((5, 3, 3), None, 4).repacked(8)
        L((2, 4), (5, 1), 4).repacked(8)
        L((), None, 4).repacked(2)
        L((0,), None, 4).repacked(2)
        l.max_compatible_itemsize(), f.max_compatible_itemsize(), l.max_compatible_itemsize(8), l.max_compatible_itemsize(max_itemsize=64), l.max_compatible_itemsize(16, 4), l.max_compatible_itemsize(16, 8), l.max_compatible_itemsize(axis=0)
        L((3,), None, 4).max_compatible_itemsize(), L((6,), None, 4).max_compatible_itemsize(), L((0,), None, 4).max_compatible_itemsize()
        l.max_compatible_itemsize(2)
        l.max_compatible_itemsize(0)
        L((), None, 4).max_compatible_itemsize()
        """,
    ),
    "DLPack: handwritten tensors": (
        CAPSULES,
        """
        seen(), seen((2, 3)), seen((2, 3), (3, 1)), seen((), kind=(2, 64, 1)), seen((0, 3)), seen((4,), (-1,)), seen((4,), (0,))
        made(offset=16).ptr - memory.ctypes.data
        seen(data=0)
        [seen(kind=k)[3] for k in ((0, 8, 1), (0, 64, 1), (1, 16, 1), (2, 16, 1), (2, 64, 1), (5, 64, 1), (5, 128, 1), (6, 8, 1))]
        np.from_dlpack(made((2, 2), (4, 1), kind=(1, 8, 1), offset=3)).tolist()
        made((-1,)).shape
        made((1,) * 64).size, len(made((1,) * 64).shape)
        made((1,) * 70).shape
        made((2,) * 64).size
        made(kind=(2, 32, 4)).dtype
        made(kind=(3, 64, 1)).dtype
        made(kind=(99, 8, 1)).dtype
        made(kind=(2, 8, 1)).dtype
        made(kind=(6, 1, 1)).dtype
        made(kind=(0, 4, 1))
        v = made(kind=(4, 16, 1)); v.shape, v.size, v.strides
        made(kind=(4, 16, 1)).dtype
        seen(version=(1, 0)), seen(version=(1, 3), flags=1), seen(version=(1, 0), flags=2), seen(version=(1, 99))
        seen(version=(2, 0))
        seen(name=b"foo")
        seen(name=b"used_dltensor")
        seen(device=(2, 0)), seen(device=(3, 0)), seen(device=(13, 0))
        seen(device=(14, 0))
        v = None; deleted.clear(); v = made(); len(deleted)
        v = None; gc.collect(); len(deleted)
        deleted.clear(); v = made(version=(1, 0)); v = None; gc.collect(); len(deleted)
        deleted.clear(); v = made(); w = v.view(dtype=i4); v = None; gc.collect(); len(deleted)
        w = None; gc.collect(); len(deleted)
        deleted.clear(); v = made(); c = v.__dlpack__(); v = None; gc.collect(); len(deleted)
        c = None; gc.collect(); len(deleted)
        """,
    ),
}
