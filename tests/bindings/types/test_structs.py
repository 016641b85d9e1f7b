"""Struct and union classes: attributes, live views, lists, lifetimes, robustness."""

import contextlib
import copy
import ctypes
import gc
import pickle
import threading
import weakref

import pytest
from cuda.bindings import driver, nvrtc, runtime

from helpers.memory import assert_flat, resident
from helpers.programs import output
from helpers.threads import run_all

pytestmark = pytest.mark.strict_abi

try:
    import numpy as np
except ImportError:
    np = None


def classes():
    for module in (driver, runtime, nvrtc):
        for name in dir(module):
            cls = getattr(module, name)
            if isinstance(cls, type) and hasattr(cls, "getPtr"):
                yield cls


RECORDS = [c for c in classes() if not hasattr(c, "__int__")]


def attributes(cls):
    return [n for n in dir(cls) if not n.startswith("__") and type(getattr(cls, n)).__name__ == "getset_descriptor"]


def build(cls, keep):
    try:
        return cls()
    except TypeError:
        buffer = ctypes.create_string_buffer(1024)
        keep.append(buffer)
        return cls(_ptr=ctypes.addressof(buffer))


def wrong_kinds():
    class HasInt:
        def __int__(self):
            return 3

    class HasIndex:
        def __index__(self):
            return 3

    class HasPtr:
        def getPtr(self):
            return 1

    class Raises:
        def __int__(self):
            raise ZeroDivisionError

        __index__ = __float__ = __len__ = __iter__ = __int__

        def __getitem__(self, i):
            raise ZeroDivisionError

    values = [
        None, 0, 1, -1, 2**31, 2**32, 2**63, 2**64, -(2**63), -(2**64), 10**50, True, 1.5, float("nan"), float("inf"),
        1e300, "", "a", "1", b"", b"a", b"\x01" * 4, b"x" * 64, b"x" * 200, bytearray(), bytearray(8), memoryview(b"abc"),
        [], [1], [None], ["a"], [[]], (), (1,), (1, 2, 3), ((1,), (None,)), ((1, 2), (ctypes.c_int, ctypes.c_float)),
        [b"a"] * 3, [1] * 16, [1.5] * 4, range(3), {}, {1: 2}, set(), iter([1]), (i for i in [1]), object(), int, len,
        ctypes.c_int(3), ctypes.c_void_p(5), (ctypes.c_int * 4)(), HasInt(), HasIndex(), HasPtr(), Raises(), [Raises()],
        driver.CUresult.CUDA_SUCCESS, driver.CUresult, driver.CUstream(5), [driver.CUstream(5)], driver.CUdeviceptr(7),
        driver.CUdevice(1), driver.CUhostFn(9), driver.CUlaunchConfig(), [driver.CUlaunchConfig()], driver.CUuuid(),
        driver.CUlaunchAttribute(), [driver.CUlaunchAttribute()] * 3, driver.CUlaunchAttributeValue().clusterDim, 1j,
        runtime.dim3(), [runtime.cudaMemLocation()], runtime.cudaStream_t(5), runtime.cudaArray_t(6), runtime.cudaUUID_t(),
    ]  # fmt: skip
    if np is not None:
        values += [
            np.int32(4),
            np.uint64(5),
            np.float32(1.5),
            np.zeros(0),
            np.zeros(3),
            np.zeros((2, 2)),
            np.array("a"),
        ]
        values += [np.zeros(4, dtype=object), np.zeros(64, np.uint8), np.zeros(8)[::2]]
    return values


def test_any_value_for_any_attribute_is_accepted_or_raises():
    """No object assigned to any attribute of any class crashes; refusals are exceptions."""
    fine = (TypeError, ValueError, OverflowError, IndexError, AttributeError, ZeroDivisionError, BufferError)
    keep, values, assigned, refused = [], wrong_kinds(), 0, 0
    for cls in RECORDS:
        for name in attributes(cls):
            obj = build(cls, keep)
            for value in values:
                try:
                    setattr(obj, name, value)
                    assigned += 1
                except fine as e:
                    refused += 1
                    text = str(e)
                    if type(e) in (TypeError, OverflowError) and "writable" not in text:
                        assert name in text or type(e) is ZeroDivisionError or "dimension" in text, (
                            cls,
                            name,
                            value,
                            e,
                        )
                # Every accepted value has a repr. (Pointers are forged, so they are not followed.)
                with contextlib.suppress(ValueError):
                    getattr(obj, name)
            with pytest.raises((AttributeError, TypeError)):
                delattr(obj, name)
            repr(obj)
    assert assigned > 1000 and refused > 10000


@pytest.mark.parametrize("cls", RECORDS, ids=lambda c: c.__name__)
def test_construction_and_repr(cls):
    keep = []
    obj = build(cls, keep)
    assert obj.getPtr() == obj.getPtr() != 0
    assert isinstance(repr(obj), str)
    assert str(obj) == repr(obj)
    assert obj == obj and obj != 5 and obj is not None
    assert isinstance(hash(obj), int)
    with pytest.raises(AttributeError):
        obj.no_such_attribute = 1
    with pytest.raises(TypeError):
        pickle.dumps(obj)
    with pytest.raises(TypeError):
        copy.copy(obj)
    assert weakref.ref(obj)() is obj
    with pytest.raises(TypeError):
        cls("a")
    with pytest.raises(TypeError):
        cls(bogus=1)
    with pytest.raises(TypeError):
        cls(0, 0)
    with pytest.raises(OverflowError):
        cls(-1)
    with pytest.raises(ValueError):
        cls(1)
    with pytest.raises(ValueError):
        cls(_ptr=2**64 - 8)


def test_integer_attributes():
    c = driver.CUlaunchConfig()
    c.gridDimX = 2**32 - 1
    assert c.gridDimX == 2**32 - 1
    for bad in (-1, 2**32, 2**64, 1e30):
        with pytest.raises(OverflowError, match="CUlaunchConfig.gridDimX"):
            c.gridDimX = bad
    for bad in ("a", b"a", None, [], object()):
        with pytest.raises(TypeError, match="CUlaunchConfig.gridDimX"):
            c.gridDimX = bad
    c.gridDimX = driver.CUdeviceptr(3)
    assert c.gridDimX == 3
    c.gridDimX = 1.9
    assert c.gridDimX == 1
    e = driver.CUgraphEdgeData()
    e.from_port = 255
    with pytest.raises(OverflowError):
        e.from_port = 256
    v = driver.CUlaunchAttributeValue()
    v.priority = -5
    assert v.priority == -5


def test_enum_attributes():
    m = driver.CUDA_MEMCPY2D()
    with pytest.raises(ValueError, match="0 is not a valid CUmemorytype"):
        m.srcMemoryType
    m.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
    assert m.srcMemoryType is driver.CUmemorytype.CU_MEMORYTYPE_HOST
    m.srcMemoryType = 2
    assert m.srcMemoryType is driver.CUmemorytype.CU_MEMORYTYPE_DEVICE
    m.srcMemoryType = -1
    with pytest.raises(ValueError, match="4294967295"):
        m.srcMemoryType
    with pytest.raises(TypeError):
        m.srcMemoryType = None
    with pytest.raises(ValueError):
        m.srcMemoryType = "a"
    with pytest.raises(OverflowError):
        m.srcMemoryType = 2**33


def test_handle_attributes_are_live():
    c = driver.CUlaunchConfig()
    s = c.hStream
    assert c.hStream is s and isinstance(s, driver.CUstream)
    c.hStream = 5
    assert int(s) == 5
    c.hStream = driver.CUstream(7)
    assert int(s) == 7 and s == driver.CUstream(7)
    c.hStream = None
    assert int(s) == 0
    c.hStream = 9
    del c
    gc.collect()
    assert int(s) == 9
    m = driver.CUDA_MEMCPY2D()
    assert m.dstDevice == m.dstDevice  # By identity: CUdeviceptr does not compare by value.
    with pytest.raises(OverflowError):
        m.dstDevice = -1
    with pytest.raises(TypeError):
        m.dstDevice = "a"


def test_nested_views_are_live():
    v = driver.CUlaunchAttributeValue()
    v.clusterDim.x = 3
    assert v.clusterDim.x == 3 and v.clusterDim.getPtr() == v.getPtr()
    assert v.pad[:4] == b"\x03\0\0\0"
    window = v.accessPolicyWindow
    window.hitRatio = 0.5
    assert v.accessPolicyWindow is window
    del v
    gc.collect()
    assert window.hitRatio == 0.5
    n = driver.CUgraphNodeParams()
    k = driver.CUDA_KERNEL_NODE_PARAMS_v3()
    k.blockDimX = 8
    n.kernel = k
    k.blockDimX = 9
    assert n.kernel.blockDimX == 8
    for bad in (None, 5, "a", driver.CUmemLocation(), [k]):
        with pytest.raises(TypeError, match="kernel"):
            n.kernel = bad
    n.kernel = n.kernel
    assert n.kernel.blockDimX == 8


def test_bytes_attributes():
    f = driver.CUmemFabricHandle()
    f.data = bytes(range(64))
    assert f.data == bytes(range(64))
    f.data = bytearray(64)
    assert f.data == bytes(64)
    for bad in (b"a", bytes(65), b""):
        with pytest.raises(ValueError, match="64"):
            f.data = bad
    for bad in ("a" * 64, None, 5, [1] * 64):
        with pytest.raises(TypeError):
            f.data = bad
    u = driver.CUuuid()
    assert u.bytes == bytes(16) and repr(u) == "bytes : " + "0" * 32
    with pytest.raises(AttributeError):
        u.bytes = bytes(16)


def test_array_attributes():
    t = driver.CUDA_TEXTURE_DESC()
    clamp = driver.CUaddress_mode.CU_TR_ADDRESS_MODE_CLAMP
    t.addressMode = [clamp] * 3
    assert t.addressMode == [clamp] * 3
    t.addressMode = (1, 2, 3)
    assert t.addressMode[2] is driver.CUaddress_mode(3)
    for bad in ([1, 2], [1, 2, 3, 1], []):
        with pytest.raises(IndexError, match="addressMode"):
            t.addressMode = bad
    assert t.addressMode[2] is driver.CUaddress_mode(3)
    t.borderColor = [1, 2, 3, 4]
    assert t.borderColor == [1.0, 2.0, 3.0, 4.0]
    with pytest.raises(TypeError):
        t.borderColor = ["a"] * 4
    m = driver.CUtensorMap()
    assert m.getPtr() % 64 == 0
    m.opaque = [driver.cuuint64_t(7)] * 16
    assert [int(x) for x in m.opaque] == [7] * 16
    e = driver.CUeglFrame()
    e.frame.pArray = [driver.CUarray(5)] * 3
    assert e.frame.pArray == [driver.CUarray(5)] * 3
    e.frame.pPitch = [1, 2, 3]
    assert e.frame.pPitch == [1, 2, 3]
    assert "pPitch : [1, 2, 3]" in repr(e)


def test_list_attributes():
    c = driver.CUlaunchConfig()
    assert c.attrs == []
    a = driver.CUlaunchAttribute()
    a.id = driver.CUlaunchAttributeID.CU_LAUNCH_ATTRIBUTE_PRIORITY
    a.value.priority = 3
    c.attrs = [a, a]
    assert c.numAttrs == 0  # Set separately.
    a.value.priority = 9  # The list was copied.
    assert [x.value.priority for x in c.attrs] == [3, 3]
    c.attrs[0].value.priority = 11  # So is the result of reading.
    assert [x.value.priority for x in c.attrs] == [3, 3]
    c.numAttrs = 2
    other = driver.CUlaunchConfig(c.getPtr())  # The C layout of it.
    assert [x.value.priority for x in other.attrs] == [3, 3]
    c.attrs = (a,)
    assert len(c.attrs) == 1 and c.numAttrs == 2
    for bad in (None, 5, "a", b"a", [1], [None], {}, [driver.CUmemLocation()], (x for x in [a]), [a, 1]):
        with pytest.raises(TypeError, match="attrs"):
            c.attrs = bad
    assert len(c.attrs) == 1
    c.attrs = []
    assert c.attrs == []


def test_lists_that_set_their_count():
    b = driver.CUDA_MEMCPY_BATCH_NODE_PARAMS_V1()
    b.attrs = [driver.CUmemcpyAttributes()] * 2
    assert b.numAttrs == 2
    with pytest.raises(AttributeError, match="set_dsts_srcs"):
        b.dsts = []
    b.set_dsts_srcs([driver.CUdeviceptr(1), 2], (3, driver.CUdeviceptr(4)))
    assert ([int(x) for x in b.dsts], [int(x) for x in b.srcs], b.count) == ([1, 2], [3, 4], 2)
    with pytest.raises(ValueError):
        b.set_dsts_srcs([1], [])
    for bad in (None, 5, "a", ["a"]):
        with pytest.raises(TypeError):
            b.set_dsts_srcs(bad, bad)
    assert b.count == 2
    b.set_dsts_srcs(dsts=[], srcs=[])
    assert (b.dsts, b.srcs, b.count) == ([], [], 0)
    with pytest.raises(TypeError):
        b.set_dsts_srcs()


def test_copied_structs_share_their_lists():
    """A struct copied into another keeps the targets of its pointers alive."""
    inner = driver.CUDA_BATCH_MEM_OP_NODE_PARAMS_v2()
    op = driver.CUstreamBatchMemOpParams()
    op.operation = driver.CUstreamBatchMemOpType.CU_STREAM_MEM_OP_WAIT_VALUE_32
    op.waitValue.flags = 77
    inner.paramArray = [op] * 3
    outer = driver.CUgraphNodeParams()
    outer.memOp = inner
    inner.paramArray = []
    del inner, op
    gc.collect()
    assert [p.waitValue.flags for p in outer.memOp.paramArray] == [77] * 3
    assert outer.memOp.paramArray[0].operation == 1
    nested = driver.CUcheckpointCustomStorageInfo_st()
    nested.perDeviceData = [driver.CUcheckpointCustomStoragePerDeviceData()]
    assert len(nested.perDeviceData) == 1


def test_void_pointer_attributes():
    m = driver.CUDA_MEMCPY2D()
    m.srcHost = data = b"hello"
    assert ctypes.string_at(m.srcHost, 5) == data
    buffer = bytearray(8)
    m.srcHost = buffer
    with pytest.raises(BufferError):
        buffer.extend(bytes(10000))  # Would move the memory under the pointer.
    m.srcHost = None
    buffer.extend(bytes(10000))
    assert m.srcHost == 0
    m.srcHost = driver.CUdeviceptr(5)
    assert m.srcHost == 5
    holder = (ctypes.c_int * 4)()
    m.srcHost = holder
    assert m.srcHost == ctypes.addressof(holder)
    for bad in (-1, 2**64, "abc", [], object()):
        with pytest.raises(TypeError, match="srcHost"):
            m.srcHost = bad
    if np is not None:
        array = np.arange(10)
        m.srcHost = array
        assert m.srcHost == array.ctypes.data
        m.srcHost = np.uint64(5)
        assert m.srcHost == 5
        ref = weakref.ref(array)
        m.srcHost = array
        del array
        gc.collect()
        assert ref() is not None
        m.srcHost = 0
        gc.collect()
        assert ref() is None


def test_kernel_params_attribute():
    k = driver.CUDA_KERNEL_NODE_PARAMS()
    k.kernelParams = ((1, 2.5), (ctypes.c_int, ctypes.c_float))
    first = ctypes.c_void_p.from_address(k.kernelParams).value
    assert ctypes.c_int.from_address(first).value == 1
    k.kernelParams = 0
    assert k.kernelParams == 0
    k.kernelParams = 5
    assert k.kernelParams == 5
    for bad in ("a", [1], 1.5):
        with pytest.raises(TypeError, match="kernelParams"):
            k.kernelParams = bad


def test_views_of_foreign_memory():
    buffer = ctypes.create_string_buffer(driver.sizeof(driver.CUlaunchConfig))
    c = driver.CUlaunchConfig(ctypes.addressof(buffer))
    assert c.getPtr() == ctypes.addressof(buffer)
    c.gridDimX = 77
    assert buffer.raw[:4] == b"\x4d\0\0\0"
    duplicate = driver.CUlaunchConfig(_ptr=c.getPtr())
    duplicate.hStream = 5
    assert int(c.hStream) == 5


def test_access_to_protected_memory_raises():
    import mmap

    page = mmap.mmap(-1, 4096)
    address = ctypes.addressof(ctypes.c_char.from_buffer(page))
    libc = ctypes.CDLL(None, use_errno=True)
    mprotect = libc.mprotect
    mprotect.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    c = driver.CUlaunchConfig(address)
    view = c.hStream
    c.gridDimX = 3
    assert mprotect(address, 4096, 1) == 0  # Read-only.
    assert c.gridDimX == 3
    with pytest.raises(ValueError, match="cannot be written"):
        c.gridDimX = 4
    assert mprotect(address, 4096, 0) == 0  # No access at all.
    with pytest.raises(ValueError, match="cannot be read"):
        c.gridDimX
    with pytest.raises(ValueError):
        int(view)
    assert "<ValueError>" in repr(c)
    with pytest.raises(ValueError):
        driver.CUlaunchConfig(address)
    assert mprotect(address, 4096, 3) == 0
    assert c.gridDimX == 3


def test_subclasses():
    class Config(driver.CUlaunchConfig):
        def __init__(self, x, **kw):
            super().__init__()
            self.gridDimX = x
            self.note = "mine"

        def __new__(cls, *args, **kw):
            return super().__new__(cls)

    c = Config(4)
    assert (c.gridDimX, c.note) == (4, "mine")
    c.me = c  # A cycle.
    ref = weakref.ref(c)
    del c
    gc.collect()
    assert ref() is None
    assert issubclass(driver.CUDA_MEMCPY2D, driver.CUDA_MEMCPY2D_v2)
    assert issubclass(driver.CUDA_MEMCPY2D_v2, driver.CUDA_MEMCPY2D_st)
    with pytest.raises(TypeError):
        driver.CUlaunchConfig.foo = 1  # Classes are immutable.


def test_cycles_through_pointers_are_collected():
    class Buffer(bytearray):
        pass

    b = Buffer(8)
    m = driver.CUDA_MEMCPY2D()
    m.srcHost = b
    b.struct = m
    ref = weakref.ref(b)
    del b, m
    gc.collect()
    assert ref() is None


def test_long_chains_are_freed():
    def chain():
        last = driver.CUdevResource()
        for _ in range(50_000):
            r = driver.CUdevResource()
            r.nextResource = [last]
            last = r

    # A chain takes more than 7 MB. Freeing it by recursion would overflow the stack.
    assert_flat(chain, 1)


def test_exit_with_live_objects():
    """Structs, views, lists and cycles outlive the interpreter's modules."""
    code = """
import sys, threading
from cuda.bindings import driver as d
everything = [getattr(d, n) for n in dir(d)]
def use():
    last = d.CUdevResource()
    for _ in range(200):
        r = d.CUdevResource(); r.nextResource = [last]; last = r
    c = d.CUlaunchConfig(); c.attrs = [d.CUlaunchAttribute()]
    class B(bytearray): pass
    b = B(4); m = d.CUDA_MEMCPY2D(); m.srcHost = b; b.m = m; b.s = c.hStream
    return [last, c, c.hStream, c.attrs, m, b, d.CUresult(0), d.CUgraphNodeParams().kernel]
sys.kept = use()
local = threading.local()
def work():
    local.x = use()
threads = [threading.Thread(target=work) for _ in range(4)]
[t.start() for t in threads]; [t.join() for t in threads]
class AtExit:
    def __del__(self, use=use, d=d):
        d.CUstream(5), d.CUresult(0), use()
sys.last = AtExit()
"""
    for _ in range(3):
        output(code)


def churn(rounds):
    attr = driver.CUlaunchAttribute()
    for i in range(rounds):
        c = driver.CUlaunchConfig()
        c.hStream = i
        c.hStream
        c.attrs = [attr, attr]
        c.attrs
        n = driver.CUgraphNodeParams()
        n.kernel.gridDimX = 1
        n.kernel = n.kernel
        m = driver.CUDA_MEMCPY2D()
        m.srcHost = bytearray(100)
        m.srcHost = b"abc"
        driver.CUdeviceptr(i)
        with contextlib.suppress(TypeError):
            c.gridDimX = "a"


def test_references_do_not_leak():
    churn(2_000)
    before = resident()
    churn(100_000)
    assert resident() - before < 4 << 20


def test_threads_share_objects_and_replace_lists():
    config = driver.CUlaunchConfig()
    attr = driver.CUlaunchAttribute()
    node = driver.CUgraphNodeParams()
    errors = []

    def work(seed):
        try:
            for i in range(3_000):
                config.attrs = [attr] * ((seed + i) % 5)
                assert len(config.attrs) < 5
                config.hStream = i
                int(config.hStream)
                node.kernel.gridDimX = i
                node.kernel = node.kernel
                driver.CUresult(i % 4)
                config.numAttrs = 0
        except Exception as e:
            errors.append(e)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(8)]
    run_all(threads, limit=200)
    assert not errors


def test_repr():
    c = driver.CUlaunchConfig()
    c.gridDimX = 3
    c.hStream = 0x1A
    assert repr(c).split("\n") == [
        "gridDimX : 3", "gridDimY : 0", "gridDimZ : 0", "blockDimX : 0", "blockDimY : 0", "blockDimZ : 0",
        "sharedMemBytes : 0", "hStream : <CUstream 0x1a>", "attrs : []", "numAttrs : 0",
    ]  # fmt: skip
    m = driver.CUDA_MEMCPY2D()
    assert repr(m).split("\n")[2:5] == ["srcMemoryType : <ValueError>", "srcHost : 0x0", "srcDevice : <CUdeviceptr 0>"]
    location = driver.CUmemAccessDesc()
    assert repr(location).split("\n")[:2] == [
        "location :",
        "    type : <CUmemLocationType.CU_MEM_LOCATION_TYPE_INVALID: 0>",
    ]
    assert repr(driver.CUipcMemHandle()) == f"reserved : {bytes(64)!r}"
