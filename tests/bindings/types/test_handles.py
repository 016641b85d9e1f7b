"""Handle, integer and callback classes."""

import contextlib
import copy
import ctypes
import gc
import operator
import pickle
import sys
import weakref

import pytest
from cuda.bindings import driver, nvrtc

pytestmark = pytest.mark.strict_abi


def classes():
    for module in (driver, nvrtc):
        for name in dir(module):
            cls = getattr(module, name)
            if isinstance(cls, type) and hasattr(cls, "getPtr") and hasattr(cls, "__int__"):
                yield cls


ALL = list(classes())
POINTERS = [c for c in ALL if c.__eq__ is not object.__eq__]
CALLBACKS = [c for c in ALL if hasattr(c, "__index__") and c not in POINTERS]
INTEGERS = [c for c in ALL if not hasattr(c, "__index__")]


def name(cls):
    return cls.__name__


def test_all_three_categories_exist():
    assert len(POINTERS) > 25 and len(CALLBACKS) >= 4 and len(INTEGERS) > 10
    assert driver.CUstream in POINTERS and driver.CUhostFn in CALLBACKS and driver.CUdeviceptr in INTEGERS


@pytest.mark.parametrize("cls", ALL, ids=name)
def test_construction(cls):
    assert int(cls()) == 0
    assert int(cls(5)) == 5 == int(cls(init_value=5)) == int(cls(5, 0)) == int(cls(init_value=5, _ptr=0))
    assert int(cls(True)) == 1
    assert int(cls(cls(7))) == 7
    assert int(cls(driver.CUevent(6))) == 6
    assert int(cls(driver.CUdevice(6))) == 6
    assert int(cls(1.5)) == 1

    class HasInt:
        def __int__(self):
            return 9

    assert int(cls(HasInt())) == 9
    for bad in ("5", b"5", None, [], object(), driver.CUlaunchConfig(), ctypes.c_int(5)):
        with pytest.raises(TypeError, match=cls.__name__):
            cls(bad)
    for bad in (2**64, -(2**64)):
        with pytest.raises(OverflowError, match=cls.__name__):
            cls(bad)
    with pytest.raises(ValueError):
        cls(float("nan"))
    with pytest.raises(TypeError):
        cls(1, 2, 3)
    with pytest.raises(TypeError):
        cls(foo=1)
    with pytest.raises(TypeError):
        cls(1, init_value=1)
    for bad in ("a", None):
        with pytest.raises(TypeError, match="_ptr"):
            cls(_ptr=bad)
    for bad in (1, 4095, 2**64 - 1):
        with pytest.raises(ValueError, match="_ptr"):
            cls(_ptr=bad)


@pytest.mark.parametrize("cls", ALL, ids=name)
def test_value_range(cls):
    size = {driver.__name__: driver, nvrtc.__name__: nvrtc}[cls.__module__].sizeof(cls)
    bits = 8 * size
    signed = True
    try:
        low = int(cls(-1))
        assert low == -1
    except OverflowError:
        signed = False
    top = 2 ** (bits - signed) - 1
    assert int(cls(top)) == top
    with pytest.raises(OverflowError):
        cls(top + 1)
    bottom = -(2 ** (bits - 1)) if signed else 0
    assert int(cls(bottom)) == bottom
    with pytest.raises(OverflowError):
        cls(bottom - 1)


def test_signedness():
    assert repr(driver.CUdevice(-1)) == "<CUdevice -1>"
    assert int(driver.CUdevice(-(2**31))) == -(2**31)


@pytest.mark.parametrize("cls", ALL, ids=name)
def test_repr(cls):
    n = cls.__name__
    expected = f"<{n} 26>" if cls in INTEGERS else f"<{n} 0x1a>"
    assert repr(cls(26)) == str(cls(26)) == f"{cls(26)}" == expected
    assert bool(cls(0)) is True


@pytest.mark.parametrize("cls", ALL, ids=name)
def test_identity_and_get_ptr(cls):
    h = cls(5)
    size = {driver.__name__: driver, nvrtc.__name__: nvrtc}[cls.__module__].sizeof(cls)
    assert h.getPtr() == h.getPtr()
    assert int.from_bytes(ctypes.string_at(h.getPtr(), size), "little") == 5
    ctypes.memset(h.getPtr(), 1, size)
    assert int(h) == int.from_bytes(b"\1" * size, "little")
    buffer = ctypes.create_string_buffer(b"\x07" + bytes(15), 16)
    view = cls(_ptr=ctypes.addressof(buffer))
    assert int(view) == 7 and view.getPtr() == ctypes.addressof(buffer)
    buffer[0] = b"\x08"
    assert int(view) == 8


@pytest.mark.parametrize("cls", POINTERS, ids=name)
def test_equality(cls):
    assert cls(5) == cls(5) and not cls(5) != cls(5) and cls(5) != cls(6)
    assert hash(cls(5)) == hash(5) and hash(cls(2**63)) == hash(2**63)
    assert len({cls(5), cls(5), cls(6)}) == 2
    for other in (5, None, "a", driver.CUdeviceptr(5), object()):
        assert cls(5) != other and not cls(5) == other
    with pytest.raises(TypeError):
        cls(5) < cls(6)
    assert operator.index(cls(5)) == 5 and hex(cls(5)) == "0x5"

    class Derived(cls):
        pass

    assert Derived(5) == cls(5) and cls(5) == Derived(5)


def test_handles_of_different_classes_differ():
    assert driver.CUstream(5) != driver.CUevent(5)
    assert driver.CUstream(5).__eq__(driver.CUevent(5)) in (False, NotImplemented)


@pytest.mark.parametrize("cls", INTEGERS + CALLBACKS, ids=name)
def test_integer_classes_compare_by_identity(cls):
    h = cls(5)
    assert h == h and h != cls(5)
    if cls in INTEGERS:
        with pytest.raises(TypeError):
            operator.index(h)
    with pytest.raises(TypeError):
        h + 1


@pytest.mark.parametrize("cls", ALL, ids=name)
def test_as_python_objects(cls):
    h = cls(5)
    with pytest.raises(AttributeError):
        h.foo = 1
    with pytest.raises(TypeError):
        cls.foo = 1
    for copier in (pickle.dumps, copy.copy, copy.deepcopy, lambda h: pickle.dumps(h, 0)):
        with pytest.raises(TypeError, match=cls.__name__):
            copier(h)
    ref = weakref.ref(h)
    assert ref() is h
    del h
    gc.collect()
    assert ref() is None
    assert cls.__doc__ and cls.__text_signature__ == "(init_value=0, _ptr=0)"

    class Derived(cls):
        def __init__(self, *args):
            self.note = "mine"

    d = Derived(5)
    assert int(d) == 5 and d.note == "mine"
    assert type(d).__mro__[1:3] == (cls, object)
    d.me = d
    ref = weakref.ref(d)
    del d
    gc.collect()
    assert ref() is None


def test_cuda_stream_protocol():
    assert driver.CUstream(5).__cuda_stream__() == (0, 5)
    assert not hasattr(driver.CUevent, "__cuda_stream__")


def test_sizeof():
    assert driver.sizeof(driver.CUstream) == 8 and driver.sizeof(driver.CUdevice) == 4
    assert driver.sizeof(driver.CUDA_MEMCPY2D) == 128
    assert nvrtc.sizeof(nvrtc.nvrtcProgram) == 8
    for bad in (int, 5, driver.CUstream(5), driver.CUresult, driver.anon_union2, driver.cudaBindingsDriverGlobal, None):
        with pytest.raises(TypeError):
            driver.sizeof(bad)
    with pytest.raises(TypeError):
        driver.sizeof()


def test_references_do_not_leak():
    h = driver.CUstream(5)
    before = sys.getrefcount(driver.CUstream)
    for _ in range(1000):
        driver.CUstream(5)
        repr(h), hash(h), h == h, int(h), h.getPtr(), h.__cuda_stream__()
        with contextlib.suppress(TypeError):
            driver.CUstream("a")
    assert abs(sys.getrefcount(driver.CUstream) - before) < 5
