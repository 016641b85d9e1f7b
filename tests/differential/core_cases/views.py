"""Strided views of other libraries' arrays and of buffers, their layouts, and exports to other libraries."""

from .resources import RESOURCES

ARRAYS = (
    RESOURCES
    + """
import inspect, re, warnings
from cuda.core.utils import *
V = StridedMemoryView
L = type(V.from_dlpack(np.zeros(2), -1)._layout)
x = np.arange(12, dtype=np.float32).reshape(3, 4)
r = np.arange(3.0); r.flags.writeable = False
b = mr.allocate(64, stream=s)
f4, i4 = np.dtype("f4"), np.dtype("i4")
class Raises:
    def __init__(self, error): self.error = error
    def __dlpack__(self, **more): raise self.error
    def __dlpack_device__(self): return (1, 0)
def sv(v):
    return v.shape, v.strides, v.size, str(v.dtype), v.device_id, v.is_device_accessible, v.readonly, type(v.exporting_obj).__name__
def text(v):
    return re.sub("ptr=[0-9]+", "ptr=N", repr(v))
def dlpack(*args, **more): return sv(V.from_dlpack(*args, **more))
def anything(*args, **more): return sv(V.from_any_interface(*args, **more))
def directly(*args, **more): return sv(V(*args, **more))
"""
)

EXPORTER = """
class Exporter:
    def __init__(self, array, device=None, old=False, result=None):
        self.array, self.device, self.old, self.result, self.log = array, device, old, result, []
    def __dlpack__(self, **more):
        self.log.append(dict(more))
        if self.old and "max_version" in more: raise TypeError("no max_version")
        if self.result is not None: return self.result
        more.pop("stream", None)
        return self.array.__dlpack__(**more)
    def __dlpack_device__(self):
        self.log.append("device")
        return self.device or self.array.__dlpack_device__()
def asked(stream, array=x, **more):
    e = Exporter(array, **more)
    seen = sv(V.from_dlpack(e, stream))
    return seen[4:7], e.log
device = V.from_buffer(b, (4, 4), dtype=f4)
pinned = LegacyPinnedMemoryResource().allocate(16)
unified = ManagedMemoryResource().allocate(16, stream=s)
"""

INTERFACES = """
class Host:
    def __init__(self, given): self.__array_interface__ = given
class Cuda:
    def __init__(self, given): self.__cuda_array_interface__ = given
class Broken:
    def __init__(self, error): self.error = error
    @property
    def __cuda_array_interface__(self): raise self.error
def without(given):
    return {k: v for k, v in given.items() if v is not Ellipsis}
def host(**more):
    given = dict(shape=(3, 4), typestr="<f4", data=(x.ctypes.data, False), version=3)
    return sv(V.from_array_interface(Host(without({**given, **more}))))
def cuda(stream_ptr=-1, **more):
    given = dict(shape=(4, 4), typestr="<f4", data=(b.handle, False), version=3)
    return sv(V.from_cuda_array_interface(Cuda(without({**given, **more})), stream_ptr))
t = d.create_stream()
h, k = int(s.handle), int(t.handle)
"""

GROUPS = {
    "view: object": (
        ARRAYS + "v = V.from_dlpack(x, -1)\n",
        """
        public(StridedMemoryView)
        text(v)
        part = v._layout[1:, ::-1]; w = v.view(part); w._layout is part, w.view()._layout is part, w.view(dtype=i4)._layout is part, w.ptr - v.ptr, part.slice_offset
        text(V.from_buffer(b, (16,), itemsize=4))
        v.ptr == x.ctypes.data, v.exporting_obj is x, sv(v)
        type(v.shape), type(v.strides), v.shape is v.shape
        v.foo = 1
        v.ptr = 1
        v.shape = (1,)
        weakref.ref(v)
        pickle.dumps(v)
        copy.copy(v)
        v == v, v == V.from_dlpack(x, -1), hash(v) == hash(v)
        len(v)
        v[0]
        memoryview(v)
        repr(V.__dlpack_c_exchange_api__).split()[2], V.__c_dlpack_exchange_api__ is V.__dlpack_c_exchange_api__
        class Sub(V): pass
        type(Sub.from_dlpack(x, -1)).__name__, type(Sub.from_any_interface(x, -1)).__name__, type(Sub.from_buffer(b, (4,), itemsize=1)).__name__
        """,
    ),
    "view: constructor": (
        ARRAYS,
        """
        v = V(); v.ptr, v.device_id, v.is_device_accessible, v.readonly, v.exporting_obj, v.dtype
        v.shape
        v.strides
        v.size
        repr(v)
        V(None, -1).shape
        directly(x, -1)
        directly(obj=x, stream_ptr=-1)
        directly(x, 0)
        directly(x)
        directly(x, None)
        directly(x, "x")
        directly(x, -1, 3)
        V(3, -1)
        V([1, 2], -1)
        V(b"abc", -1)
        V(memoryview(b"abc"), -1)
        V(array.array("i", [1, 2]), -1)
        V(np.float32(3), -1)
        V(Raises(BufferError("mine")), -1)
        V(Raises(ZeroDivisionError("mine")), -1)
        """,
    ),
    "view: NumPy": (
        ARRAYS,
        """
        [str(V.from_dlpack(np.zeros(2, c), -1).dtype) for c in "bhilBHILefdFD?"]
        dlpack(x[:, ::2], -1), dlpack(x.T, -1), dlpack(x[::-1], -1), dlpack(np.broadcast_to(np.float32(1), (3, 4)), -1)
        dlpack(np.array(3.0), -1), dlpack(np.zeros((0, 3)), -1), dlpack(np.zeros(0), -1)
        dlpack(r, -1)
        dlpack(np.zeros(2, ">f4"), -1)
        dlpack(np.zeros(2, "S3"), -1)
        dlpack(np.zeros(2, "U3"), -1)
        dlpack(np.zeros(2, "M8[s]"), -1)
        dlpack(np.zeros(2, "g"), -1)
        dlpack(np.zeros(2, [("a", "i4"), ("b", "f4")]), -1)
        dlpack(np.zeros(2, object), -1)
        dlpack(x, -2)
        dlpack(x, 0)
        anything(x, -1), anything(r, -1)
        """,
    ),
    "view: DLPack": (
        ARRAYS + EXPORTER,
        """
        dlpack(x)
        dlpack(x, None)
        dlpack(obj=x, stream_ptr=-1)
        dlpack(x, "x")
        dlpack(x, s)
        dlpack(3, -1)
        dlpack(x.__dlpack__(), -1)
        asked(-1)
        asked(7)
        asked(-1, old=True)
        asked(0)
        asked(-1, device), asked(-1, pinned), asked(-1, unified)
        asked(0, device), asked(0, pinned), asked(0, unified)
        asked(7, device), asked(7, pinned), asked(7, unified)
        asked(1, device), asked(2, device), asked(-1, device, old=True)
        asked(None, device)
        asked(-1, device=(2, 0))
        asked(-1, device=(2, 3))
        asked(-1, device=(10, 0))
        asked(-1, device=(14, 0))
        asked(-1, device=(99, 0))
        asked(-1, device="ab")
        asked(-1, device=3)
        asked(-1, result=3)
        asked(-1, result="x")
        dlpack(Raises(BufferError("mine")), -1)
        dlpack(Raises(ZeroDivisionError("mine")), -1)
        anything(Raises(BufferError("mine")), -1)
        anything(3, -1)
        anything(x)
        c = x.__dlpack__(); v = V.from_dlpack(Exporter(x, result=c), -1); repr(c).split()[2], v.readonly
        V.from_dlpack(Exporter(x, result=c), -1)
        del v; gc.collect() >= 0
        e = Exporter(x); v = V.from_dlpack(e, -1); v.exporting_obj is e
        """,
    ),
    "view: DLPack out": (
        ARRAYS
        + "v = V.from_dlpack(x, -1)\ndv = V.from_buffer(b, (4, 4), dtype=f4)\ndef name(c): return repr(c).split()[2]\n",
        """
        v.__dlpack_device__(), dv.__dlpack_device__()
        np.from_dlpack(v).tolist() == x.tolist(), np.from_dlpack(v).strides
        np.from_dlpack(V.from_dlpack(x[::-1, ::2], -1)).tolist() == x[::-1, ::2].tolist()
        w = np.from_dlpack(v); w[0, 0] = 42; x[0, 0] == 42
        np.from_dlpack(V.from_dlpack(r, -1)).flags.writeable
        name(v.__dlpack__()), name(v.__dlpack__(stream=None)), name(v.__dlpack__(max_version=(1, 3))), name(v.__dlpack__(max_version=(0, 8))), name(v.__dlpack__(max_version=(2, 0)))
        name(dv.__dlpack__()), name(dv.__dlpack__(stream=-1)), name(dv.__dlpack__(stream=int(s.handle))), name(dv.__dlpack__(stream=1)), name(dv.__dlpack__(stream=2))
        name(dv.__dlpack__(copy=False)), name(dv.__dlpack__(copy=None)), name(dv.__dlpack__(dl_device=None))
        dv.__dlpack__(stream="x")
        dv.__dlpack__(max_version=3)
        dv.__dlpack__(max_version="ab")
        dv.__dlpack__(max_version=(1,))
        dv.__dlpack__(max_version=[1, 0])
        dv.__dlpack__(dl_device=(1, 0))
        dv.__dlpack__(dl_device=3)
        dv.__dlpack__(copy=True)
        dv.__dlpack__(copy="x")
        dv.__dlpack__(3)
        np.from_dlpack(dv)
        V.from_buffer(b, (16,), itemsize=4).__dlpack__()
        V.from_buffer(b, (2,), dtype=np.dtype([("a", "i4"), ("b", "f4")])).__dlpack__()
        V.from_buffer(b, (2,), dtype=np.dtype(">f4")).__dlpack__()
        V.from_buffer(b, (2,), dtype=np.dtype("S3")).__dlpack__()
        V.from_buffer(b, (2,), dtype=np.dtype("M8[s]")).__dlpack__()
        [name(V.from_buffer(b, (2,), dtype=np.dtype(c)).__dlpack__()) for c in "bhilBHILefdFD?"] == ['"dltensor"'] * 14
        dlpack(dv, -1), dlpack(b, -1), anything(b, -1)
        dlpack(V.from_buffer(b, (2, 2), (1, 4), dtype=f4), -1), dlpack(V.from_buffer(b, (), dtype=f4), -1)
        dlpack(V.from_buffer(b, (0, 4), dtype=f4), -1)
        dlpack(V.from_buffer(b, (4,), dtype=f4, is_readonly=True), -1)
        """,
    ),
    "view: from_buffer": (
        ARRAYS
        + """
def view(*args, **more): return sv(V.from_buffer(*args, **more))
z = mr.allocate(0, stream=s)
gone = mr.allocate(4, stream=s); gone.close()
""",
        """
        view(b, (16,), itemsize=4), view(b, (16,), dtype=f4), view(b, (16,), itemsize=4, dtype=f4)
        view(buffer=b, shape=(16,), strides=None, itemsize=4, dtype=None, is_readonly=False)
        view(b, (16,), dtype=f4, is_readonly=True)
        view(b, (4, 4), dtype=f4), view(b, (4, 4), (1, 4), dtype=f4), view(b, (4, 4), (0, 0), dtype=f4), view(b, (1000,), (0,), dtype=f4)
        view(b, (), dtype=f4), view(b, (0, 4), dtype=f4), view(b, (3,), itemsize=3), view(z, (0,), itemsize=4)
        view(b, (2,), dtype=np.dtype([("a", "i4"), ("b", "f4")])), view(b, (2,), dtype=np.dtype(">f4"))
        view(b, (16,), itemsize=2, dtype=f4)
        view(b, (64,))
        view(b, (65,), itemsize=1)
        view(b, (4, 4), (8, 1), dtype=f4)
        view(b, (4, 4), (-4, 1), dtype=f4)
        view(b, (4, 4), (4,), dtype=f4)
        view(b, (4, 4), [4, 1], dtype=f4)
        view(b, [4, 4], dtype=f4)
        view(b, 16, dtype=f4)
        view(b, (-1,), dtype=f4)
        view(b, ("x",), dtype=f4)
        view(b, (1 << 62, 1 << 62), dtype=f4)
        view(b, (1 << 70,), dtype=f4)
        view(b, (16,), itemsize=0)
        view(b, (16,), itemsize=-1)
        view(b, (16,), itemsize="x")
        view(b, (16,), dtype=3)
        view(b)
        view(b, None, itemsize=4)
        view(3, (16,), itemsize=4)
        view(z, (1,), itemsize=4)
        view(gone, (1,), itemsize=4)
        view(PinnedMemoryResource().allocate(64, stream=s), (16,), dtype=f4), view(ManagedMemoryResource().allocate(64, stream=s), (16,), dtype=f4)
        view(LegacyPinnedMemoryResource().allocate(64), (16,), dtype=f4)
        view(Buffer.from_handle(x.ctypes.data, 48, owner=x), (3, 4), dtype=f4)
        v = V.from_buffer(b, (4, 4), dtype=f4); v.ptr == b.handle, v.exporting_obj is b, v.dtype is f4
        g = mr.allocate(4, stream=s); v = V.from_buffer(g, (1,), itemsize=4); g.close(); sv(v), v.ptr != 0
        v.__dlpack_device__()
        """,
    ),
    "view: of a view": (
        ARRAYS + "v = V.from_buffer(b, (4, 4), dtype=f4)\nw = V.from_dlpack(x, -1)\n",
        """
        v.view() is v, v.view().exporting_obj is b
        sv(v.view(dtype=i4)), sv(v.view(dtype=np.int32)), sv(v.view(dtype="i4")), sv(v.view(None, i4))
        v.view(dtype=np.dtype("i2"))
        v.view(dtype=np.dtype("i8"))
        sv(v.view(L((16,), None, 4))), sv(v.view(L((32,), None, 2), np.dtype("i2"))), sv(v.view(L((2, 2), (8, 2), 4))), sv(v.view(layout=L((0,), None, 4)))
        v.view(L((32,), None, 2))
        v.view(L((17,), None, 4))
        v.view(3)
        v.view(None, "nonsense")
        sv(w.view(dtype=i4))[:4], w.view(dtype=i4).ptr == w.ptr
        sv(w.view(L((12,), None, 4)))[:4], sv(w.view(L((3, 4), (1, 3), 4)))[:4]
        V.from_dlpack(r, -1).view(dtype=np.dtype("i8")).readonly, V.from_dlpack(r, -1).view().readonly
        w.view(dtype=np.dtype("i8"))
        np.from_dlpack(w.view(dtype=i4)).tolist() == x.view("i4").tolist()
        sv(V.from_dlpack(x[::-1], -1).view(dtype=i4))[:3]
        k = w.view(dtype=i4); del w; gc.collect(); np.from_dlpack(k)[0].tolist()
        """,
    ),
    "view: array interface": (
        ARRAYS + INTERFACES,
        """
        host()
        host(strides=None), host(strides=(16, 4)), host(strides=(32, 8)), host(strides=(-16, 4))
        host(strides=(16, 3))
        host(strides=(16,))
        host(strides=[16, 4])
        host(shape=[3, 4])
        host(shape=3)
        host(shape=(-1, 4))
        host(shape=("x",))
        host(shape=...)
        host(shape=()), host(shape=(0, 4))
        host(typestr=...)
        host(typestr="x")
        host(typestr=3)
        host(typestr="|u1"), host(typestr=">f4"), host(typestr="|S3"), host(typestr="<U3"), host(typestr="<M8[s]"), host(typestr="|V8")
        host(data=...)
        host(data=None)
        host(data=(x.ctypes.data,))
        host(data=("x", True))
        host(data=(x.ctypes.data, True)), host(data=(0, False), shape=(0, 4))
        host(version=...)
        host(version=2)
        host(version="x")
        host(version=4)
        host(mask=None)
        host(mask=3)
        V.from_array_interface(Host(3))
        V.from_array_interface(Host(None))
        V.from_array_interface(Host({}))
        V.from_array_interface(3)
        sv(V.from_array_interface(r)), sv(V.from_array_interface(x[:, ::2])), sv(V.from_array_interface(x.T)), sv(V.from_array_interface(np.array(3.0)))
        v = V.from_array_interface(x); v.ptr == x.ctypes.data, v.exporting_obj is x, v.__dlpack_device__(), np.from_dlpack(v).tolist() == x.tolist()
        V.from_array_interface(np.zeros(2, "S3")).__dlpack__()
        V(Host({}), -1)
        anything(Host({}), -1)
        """,
    ),
    "view: CUDA array interface": (
        ARRAYS + INTERFACES,
        """
        cuda()
        cuda(0), cuda(h), cuda(1), cuda(2)
        cuda(None)
        cuda("x")
        cuda(s)
        cuda(h, stream=h), cuda(h, stream=k), cuda(h, stream=1), cuda(h, stream=2), cuda(h, stream=None), cuda(-1, stream=k), cuda(0, stream=k), cuda(1, stream=k)
        cuda(h, stream=0)
        cuda(h, stream=-1)
        cuda(h, stream="x")
        cuda(h, stream=1 << 70)
        cuda(-1, stream=0)
        cuda(version=...)
        cuda(version=2)
        cuda(version="x")
        cuda(version=4)
        cuda(shape=...)
        cuda(shape=[4, 4])
        cuda(shape=16)
        cuda(shape=(-4, 4))
        cuda(shape=()), cuda(shape=(0, 4)), cuda(shape=(0, 4), data=(0, False))
        cuda(typestr=...)
        cuda(typestr="x")
        cuda(typestr="|V2"), cuda(typestr=">f4"), cuda(typestr="<f8"), cuda(typestr="<c16")
        cuda(data=...)
        cuda(data=None)
        cuda(data=(b.handle,))
        cuda(data=b.handle)
        cuda(data=("x", False))
        cuda(data=(-1, False))
        cuda(data=(12345, False))
        cuda(data=(x.ctypes.data, False))
        cuda(data=(b.handle, True))
        cuda(data=(LegacyPinnedMemoryResource().allocate(64).handle, False), shape=(0,))
        cuda(strides=None), cuda(strides=(16, 4)), cuda(strides=(4, 16)), cuda(strides=(-16, 4)), cuda(strides=(0, 0))
        cuda(strides=(3, 16))
        cuda(strides=(16,))
        cuda(strides=[16, 4])
        cuda(mask=None)
        cuda(mask=3)
        V.from_cuda_array_interface(3, -1)
        V.from_cuda_array_interface(Cuda(3), -1)
        V.from_cuda_array_interface(Cuda(None), -1)
        V.from_cuda_array_interface(Cuda({}), -1)
        V.from_cuda_array_interface(Broken(ZeroDivisionError("mine")), -1)
        V.from_any_interface(Broken(ZeroDivisionError("mine")), -1)
        V.from_any_interface(Broken(AttributeError("mine")), -1)
        c = Cuda(dict(shape=(4, 4), typestr="<f4", data=(b.handle, False), version=3)); anything(c, -1), anything(c, h), directly(c, -1)
        V.from_any_interface(c)
        V(c)
        v = V.from_cuda_array_interface(c, -1); v.ptr == b.handle, v.exporting_obj is c, v.__dlpack_device__(), sv(v.view(dtype=i4))[:4]
        """,
    ),
    "view: arguments": (
        ARRAYS
        + INTERFACES
        + """
def doc(a, b=2):
    "the doc"
    return a
both = lambda a, b: (a, b)
f = args_viewable_as_strided_memory((1,))(both)
c = Cuda(dict(shape=(4, 4), typestr="<f4", data=(b.handle, False), version=3))
""",
        """
        args_viewable_as_strided_memory()
        args_viewable_as_strided_memory(3)
        args_viewable_as_strided_memory([1])
        args_viewable_as_strided_memory(())(lambda *a: a)(1, 2)
        q = f(1, x)[1]; type(q).__name__, public(q), q.obj is x, q.has_dlpack
        f(1, x)[0]
        sv(q.view(-1)), q.view(stream_ptr=-1).exporting_obj is x
        q.view()
        q.view(None)
        q.view("x")
        q.view(s)
        f(1)
        f(1, b=x)
        sv(f(1, c)[1].view(-1)), sv(f(1, c)[1].view(h)), f(1, c)[1].has_dlpack
        sv(f(1, b)[1].view(-1)), sv(f(1, V.from_dlpack(x, -1))[1].view(-1))[:4]
        f(1, 3)
        f(1, None)
        args_viewable_as_strided_memory((5,))(both)(1, x)
        args_viewable_as_strided_memory((-1,))(both)(1, x)[1].has_dlpack
        [sv(i.view(-1)) for i in args_viewable_as_strided_memory((0, 1))(both)(x, x)]
        w = args_viewable_as_strided_memory((0,))(doc); w.__name__, w.__doc__, w.__wrapped__ is doc, str(inspect.signature(w))
        """,
    ),
    "view: copies": (
        ARRAYS + "v = V.from_buffer(b, (3, 4), dtype=f4)\ny = np.zeros_like(x)\n",
        """
        v.copy_from(V.from_dlpack(x, -1), s)
        v.copy_to(V.from_dlpack(y, -1), s); (x == y).all()
        v.copy_from(x, s)
        v.copy_from(3, s)
        v.copy_from(v)
        v.copy_from(v, s, blocking="x")
        v.copy_to(3, s)
        """,
    ),
    "view: functions": (
        ARRAYS
        + INTERFACES
        + """
from cuda.core import _dlpack, _memoryview
c = Cuda(dict(shape=(4, 4), typestr="<f4", data=(b.handle, False), version=3))
def empty():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return V()
""",
        """
        v = empty(); _memoryview.view_as_cai(c, -1, v) is v, sv(v)
        v = empty(); _memoryview.view_as_array_interface(x, v) is v, v.ptr == x.ctypes.data, v.shape
        _memoryview.view_as_cai(c)
        _memoryview.view_as_cai(c, None, empty())
        _memoryview.view_as_cai(c, -1, 3)
        _memoryview.view_as_cai(3, -1, empty())
        _memoryview.view_as_array_interface(3, empty())
        _dlpack.classify_dl_device(b), _dlpack.classify_dl_device(LegacyPinnedMemoryResource().allocate(4))
        _dlpack.classify_dl_device(3)
        repr(_dlpack.make_py_capsule(b, True)).split()[2], repr(_dlpack.make_py_capsule(b, False)).split()[2]
        [(m.name, m.value) for m in _dlpack.DLDeviceType]
        """,
    ),
}
