"""Array exporters that fail, report false values, change their answers or break the protocol. Each gets a clear error
or the documented result, and every export is returned exactly once.

CUPYRITE_CYCLES is the number of rounds of the memory tests.
"""

import ctypes
import enum
import gc
import os
import sys
import textwrap
import threading

import numpy as np
import pytest
from cuda.core import Buffer, Device
from cuda.core.utils import StridedMemoryView

from helpers.array_interface import Ai, Cai, floats
from helpers.dlpack import DELETER, ExchangeApi, Exporter, ManagedVersioned, get_pointer, new_capsule
from helpers.memory import resident
from helpers.programs import python
from helpers.threads import run_all

ROUNDS = int(os.environ.get("CUPYRITE_CYCLES", "3000"))


@pytest.fixture(autouse=True)
def nothing_is_swallowed(monkeypatch):
    """Asserts that no exception is swallowed."""
    lost = []
    monkeypatch.setattr(sys, "unraisablehook", lost.append)
    yield lost
    gc.collect()
    assert not lost, lost[0].exc_value


# Unusual but valid tensors


@pytest.mark.parametrize("version", [None, (1, 0), (1, 3), (1, 77)])
@pytest.mark.parametrize(
    "changes, expected",
    [
        ({"shape": ()}, ((), None, 1, 4)),
        ({"shape": (), "without": ("shape",)}, ((), None, 1, 4)),
        ({"shape": (0,), "data": 0}, ((0,), None, 0, 4)),
        ({"shape": (0, 4), "strides": (1 << 62, -(1 << 62)), "data": 0}, ((0, 4), (1 << 62, -(1 << 62)), 0, 4)),
        ({"shape": (1 << 62, 0)}, ((1 << 62, 0), None, 0, 4)),
        ({"shape": (3,), "strides": (-2,), "offset": 16}, ((3,), (-2,), 3, 4)),
        ({"shape": (2, 3), "strides": (0, 0)}, ((2, 3), (0, 0), 6, 4)),
        ({"shape": (3, 4), "strides": (1, 3)}, ((3, 4), (1, 3), 12, 4)),
        ({"shape": (1,) * 64}, ((1,) * 64, None, 1, 4)),
        ({"shape": (1, 2), "strides": ((1 << 61) - 1, 1)}, ((1, 2), ((1 << 61) - 1, 1), 2, 4)),
        ({"shape": (2, 3), "offset": 4}, ((2, 3), None, 6, 4)),
        ({"shape": (3,), "bits": 64, "lanes": 2}, ((3,), None, 3, 16)),
        ({"shape": (6,), "bits": 4, "lanes": 2}, ((6,), None, 6, 1)),
        ({"shape": (1,), "bits": 248, "lanes": 65535, "data": 4096}, ((1,), None, 1, 31 * 65535)),
        ({"shape": (6,), "code": 4, "bits": 16}, ((6,), None, 6, 2)),
        *(({"shape": (6,), "code": code, "bits": 8}, ((6,), None, 6, 1)) for code in (*range(7, 18), 255)),
    ],
)
def test_unusual_tensors(changes, expected, version):
    exporter = Exporter(floats(), version=version, **changes)
    view = StridedMemoryView.from_any_interface(exporter, -1)
    assert (view.shape, view.strides, view.size, view._layout.itemsize) == expected
    assert view.ptr == changes.get("data", exporter.array.ctypes.data) + changes.get("offset", 0)
    assert (view.readonly, view.device_id, view.is_device_accessible) == (False, -1, False)
    assert exporter.deleted == 0 and view.exporting_obj is exporter
    repr(view)
    # An export of the view reports the same.
    again = StridedMemoryView.from_dlpack(view, -1)
    assert (again.shape, again.size, again.ptr) == (view.shape, view.size, view.ptr)
    del view
    assert exporter.deleted == 0
    del again
    assert exporter.deleted == 1


@pytest.mark.parametrize("version", [(0, 0), (0, 9), (2, 0), ((1 << 32) - 1, (1 << 32) - 1)])
def test_unsupported_versions_are_refused(version):
    exporter = Exporter(floats(), version=version)
    with pytest.raises(BufferError, match="version 1"):
        StridedMemoryView.from_dlpack(exporter, -1)
    assert exporter.deleted == 1


@pytest.mark.parametrize("flags", [0, 1, 2, 3, 4, 5, (1 << 64) - 1])
def test_flags(flags):
    view = StridedMemoryView.from_dlpack(Exporter(floats(), version=(1, 1), flags=flags), -1)
    assert view.readonly is bool(flags & 1)
    assert np.from_dlpack(view).flags.writeable is not view.readonly
    assert memoryview(view).readonly is view.readonly
    assert StridedMemoryView.from_dlpack(view, -1).readonly is view.readonly
    assert view.view(view._layout[1:]).readonly is view.readonly
    if view.readonly:
        with pytest.raises(ValueError, match="read-only"):
            view.copy_from(StridedMemoryView.from_dlpack(floats(), -1), Device(0).default_stream)


class Kind(enum.IntEnum):
    HOST = 1
    PINNED = 3


@pytest.mark.parametrize("says", [(1, 0), (True, False), (Kind.HOST, 0), (np.int64(1), 0), (Kind.PINNED, 0), (1, 7)])
def test_devices_as_other_types(says):
    exporter = Exporter(floats(), says=says)
    if isinstance(says[0], np.integer):
        # Not an int, which the protocol requires.
        with pytest.raises(TypeError, match="__dlpack_device__"):
            StridedMemoryView.from_dlpack(exporter, -1)
        assert not exporter.calls
    else:
        assert StridedMemoryView.from_dlpack(exporter, -1).__dlpack_device__() == says


@pytest.mark.parametrize("kind", [1, 2, 3, 13])
def test_stream_argument_depends_on_the_memory(kind, stream):
    numbers = {-1: -1, 0: None, 1: 1, 2: 2, int(stream.handle): int(stream.handle)}
    for given, reported in numbers.items():
        exporter = Exporter(floats(), device=(kind, 0))
        StridedMemoryView.from_dlpack(exporter, given)
        # Host memory, page-locked or not, needs no stream order.
        expected = reported if kind in (2, 13) else None
        assert exporter.calls == [{"stream": expected, "max_version": (1, 3)}]
        assert exporter.deleted == 1


# Changing answers


def test_second_answer_counts():
    class Grows(Exporter):
        def __dlpack__(self, **arguments):
            self._shape[0] += 1
            return super().__dlpack__(**arguments)

    exporter = Grows(floats(), shape=(1, 2))
    views = [StridedMemoryView.from_any_interface(exporter, -1) for _ in range(3)]
    # A view has its own values, not the exporter's.
    assert [view.shape for view in views] == [(2, 2), (3, 2), (4, 2)]
    assert [view._layout.volume for view in views] == [4, 6, 8]


def test_later_changes_have_no_effect():
    exporter = Exporter(floats(), strides=(4, 1))
    view = StridedMemoryView.from_dlpack(exporter, -1)
    exporter._shape[0], exporter._strides[1], exporter.managed.tensor.ndim = 1 << 40, -1, 70
    exporter.managed.tensor.data, exporter.managed.tensor.bits = 8, 4
    assert (view.shape, view.strides, view.ptr) == ((3, 4), (4, 1), exporter.array.ctypes.data)
    assert np.array_equal(np.from_dlpack(view), exporter.array)


def test_changed_device_is_refused():
    class Moves(Exporter):
        def __dlpack_device__(self):
            self.says = (3 - self.says[0], 0)
            return self.says

    exporter = Moves(floats(), says=(2, 0))
    assert StridedMemoryView.from_dlpack(exporter, -1).device_id == -1
    with pytest.raises(BufferError, match=r"\(2, 0\)"):
        StridedMemoryView.from_dlpack(exporter, -1)
    assert exporter.deleted == len(exporter.calls) == 2


@pytest.mark.parametrize("name", ["__cuda_array_interface__", "__array_interface__"])
def test_changing_interfaces(name, buffer):
    source = floats()
    right = (Cai(buffer) if "cuda" in name else Ai(source)).__dict__[name]
    answers = [right]

    class Changes:
        requested = 0

    def answer(self):
        Changes.requested += 1
        found = answers[min(Changes.requested, len(answers)) - 1]
        if isinstance(found, Exception):
            raise found
        return found

    setattr(Changes, name, property(answer))
    for answers[1:], error in (
        ([None], TypeError),
        ([{}], BufferError),
        ([[]], TypeError),
        ([KeyError("mine")], KeyError),
        ([AttributeError("mine")], AttributeError),
        ([{**right, "version": 2}], BufferError),
    ):
        Changes.requested = 0
        # The attribute is looked up once to test for it, and once for its value.
        with pytest.raises(error):
            StridedMemoryView.from_any_interface(Changes(), -1)
        assert Changes.requested == 2
    answers[1:] = []
    assert StridedMemoryView.from_any_interface(Changes(), -1).shape == (3, 4)


class Truthless:
    def __bool__(self):
        raise KeyError("no truth")


class Indexed:
    def __index__(self):
        return 2


class Raising(dict):
    def __getitem__(self, key):
        raise KeyError("not for you")

    get = __getitem__


@pytest.mark.parametrize("name", ["__cuda_array_interface__", "__array_interface__"])
@pytest.mark.parametrize(
    "changes, result",
    [
        ({"version": True}, BufferError),
        ({"version": 1 << 80}, OverflowError),
        ({"version": 3.0}, TypeError),
        ({"version": Indexed()}, BufferError),
        ({"mask": ()}, BufferError),
        ({"mask": None}, (3, 4)),
        ({"shape": ()}, ()),
        ({"shape": (True, Indexed())}, (1, 2)),
        ({"shape": (3, 4.0)}, TypeError),
        ({"shape": (-(1 << 63),)}, ValueError),
        ({"shape": ((3,), 4)}, TypeError),
        ({"shape": (0, 1 << 62, 1 << 62), "data": (0, False)}, (0, 1 << 62, 1 << 62)),
        ({"strides": (16, 4)}, (3, 4)),
        ({"strides": (-16, 4)}, (3, 4)),
        ({"strides": (16, 4, 1)}, ValueError),
        ({"strides": [16, 4]}, TypeError),
        ({"strides": (1 << 64, 4)}, OverflowError),
        ({"strides": (-(1 << 63), 4)}, ValueError),
        ({"typestr": None}, TypeError),
        ({"typestr": ""}, TypeError),
        ({"typestr": "<"}, TypeError),
        ({"typestr": "f4"}, TypeError),
        ({"typestr": "<f-4"}, TypeError),
        ({"typestr": "<f+4"}, TypeError),
        ({"typestr": "<f\u0664"}, TypeError),
        ({"typestr": "\ud800f4"}, TypeError),
        ({"typestr": "<f0"}, ValueError),
        ({"typestr": "<U4611686018427387904"}, TypeError),
        ({"typestr": "|V9223372036854775808"}, ValueError),
        ({"typestr": "<M8[ns]", "shape": (6,)}, (6,)),
        ({"typestr": "<M8[ns", "shape": (6,)}, TypeError),
        ({"typestr": b"<f4"}, TypeError),
        ({"typestr": "|V8", "shape": (6,), "descr": 3}, (6,)),
        ({"typestr": "|V8", "shape": (6,), "descr": [("a", "<f4")]}, (6,)),
        ({"data": ()}, ValueError),
        ({"data": [0, False]}, TypeError),
        ({"data": (None, False)}, TypeError),
        ({"data": (1 << 64, False)}, OverflowError),
        ({"data": ((1 << 64) - 1, False), "shape": (0,)}, None),
    ],
)
def test_entries_of_interfaces(name, changes, result, buffer):
    made = (Cai(buffer, **changes) if "cuda" in name else Ai(floats(), **changes)).__dict__[name]
    make = StridedMemoryView.from_any_interface

    def of(interface):
        return type("Shows", (), {name: interface})()

    for kind in (dict, Raising):
        # Of a dict subclass the stored items count, not its methods.
        if isinstance(result, tuple):
            view = make(of(kind(made)), -1)
            assert view.shape == result
            view.dtype, repr(view)
        elif result is None:
            # Nothing is mapped at this address, and there are no elements: whether it is refused depends on the driver.
            try:
                assert make(of(kind(made)), -1).size == 0
            except Exception as error:
                assert type(error).__name__ == "CUDAError"
        else:
            with pytest.raises(result):
                make(of(kind(made)), -1)


def test_read_only_flag_whose_truth_value_raises(buffer):
    source = floats()
    with pytest.raises(KeyError, match="truth"):
        StridedMemoryView.from_array_interface(Ai(source, data=(source.ctypes.data, Truthless())))
    with pytest.raises(KeyError, match="truth"):
        StridedMemoryView.from_cuda_array_interface(Cai(buffer, data=(int(buffer.handle), Truthless())), -1)


# Exporters that call back


def test_deleters_may_use_the_library(nothing_is_swallowed):
    made = []

    class Busy(Exporter):
        def _delete(self, pointer):
            super()._delete(pointer)
            made.append(StridedMemoryView.from_any_interface(floats(), -1))
            with pytest.raises(KeyError):
                raise KeyError("caught")

    exporter = Busy(floats())
    del exporter.__dict__["calls"][:]
    view = StridedMemoryView.from_dlpack(exporter, -1)
    del view
    assert exporter.deleted == 1 and len(made) == 1
    # The pending exception survives the deleter.
    bad = Busy(floats(), ndim=-1)
    with pytest.raises(BufferError, match="dimensions"):
        StridedMemoryView.from_dlpack(bad, -1)
    assert bad.deleted == 1 and len(made) == 2


def test_exception_of_a_deleter_is_reported_only(nothing_is_swallowed):
    class Fails(Exporter):
        def _delete(self, pointer):
            super()._delete(pointer)
            raise KeyError("in a deleter")

    exporter = Fails(floats())
    StridedMemoryView.from_dlpack(exporter, -1)
    assert exporter.deleted == 1
    reported = [lost.exc_value for lost in nothing_is_swallowed]
    nothing_is_swallowed.clear()
    assert len(reported) == 1 and isinstance(reported[0], KeyError)


@pytest.mark.parametrize("error", [TypeError, BufferError, KeyboardInterrupt, SystemExit, MemoryError])
def test_exceptions_of_exporters_propagate(error):
    class Fails(Exporter):
        def __dlpack__(self, **arguments):
            self.calls.append(arguments)
            raise error("mine")

    exporter = Fails(floats())
    with pytest.raises(error, match="mine"):
        StridedMemoryView.from_any_interface(exporter, -1)
    # A TypeError may mean the argument that exporters before version 1 lack.
    assert len(exporter.calls) == (2 if error is TypeError else 1)


def test_capsule_is_consumed_once(nothing_is_swallowed):
    exporter = Exporter(floats())
    capsule = exporter.__dlpack__()

    class Same:
        def __dlpack_device__(self):
            return 1, 0

        def __dlpack__(self, **_):
            return capsule

    view = StridedMemoryView.from_dlpack(Same(), -1)
    for _ in range(3):
        with pytest.raises(BufferError, match="used_dltensor"):
            StridedMemoryView.from_dlpack(Same(), -1)
    assert exporter.deleted == 0
    del view
    assert exporter.deleted == 1
    # A refused capsule is consumed, too: it was returned to its owner.
    exporter = Exporter(floats(), ndim=-1, version=(1, 0))
    capsule = exporter.__dlpack__()
    for match in ("dimensions", "used_dltensor_versioned"):
        with pytest.raises(BufferError, match=match):
            StridedMemoryView.from_dlpack(Same(), -1)
    assert exporter.deleted == 1


def test_unconsumed_capsules_free_their_export(buffer):
    source = floats()
    view = StridedMemoryView.from_dlpack(source, -1)
    for exporter in (view, buffer):
        for version in (None, (1, 0)):
            before = sys.getrefcount(exporter)
            held = [exporter.__dlpack__(max_version=version) for _ in range(10)]
            assert sys.getrefcount(exporter) == before + 10
            del held
            # At once, not at the next call.
            assert sys.getrefcount(exporter) == before


def test_keyword_only_arguments_of_exports(buffer):
    view = StridedMemoryView.from_dlpack(floats(), -1)
    for exporter in (view, buffer):
        name = type(exporter).__name__
        with pytest.raises(TypeError, match=f"{name}.__dlpack__.*keyword arguments only"):
            exporter.__dlpack__(-1)
        with pytest.raises(TypeError, match=f"{name}.__dlpack__.*'streams'"):
            exporter.__dlpack__(streams=-1)
        with pytest.raises(TypeError):
            type(exporter).__dlpack__()
        with pytest.raises(TypeError, match="Buffer|StridedMemoryView"):
            type(exporter).__dlpack__(3)
        # An equal name that is another object.
        keywords = {"".join(["max_", "version"]): (1, 0), "".join(["str", "eam"]): None, "copy": False}
        assert '"dltensor_versioned"' in repr(exporter.__dlpack__(**keywords))
        assert type(exporter).__dlpack__(exporter, dl_device=exporter.__dlpack_device__())


# C exchange API


def functions(*, status=0, answer=True, stream_status=0, version=(1, 0), header=(1, 0), without=(), **changes):
    """A class with exchange functions, and the exporter that they return."""
    exporter = Exporter(floats(), version=version, **changes)

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def export(_obj, out):
        exporter.calls.append(None)
        if answer:
            out[0] = ctypes.addressof(exporter.managed)
        return status

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
    def current(_kind, _number, out):
        out[0] = 0
        return stream_status

    def pointer(name, function):
        return None if name in without else ctypes.cast(function, ctypes.c_void_p)

    api = ExchangeApi(*header, None, None, pointer("export", export), None, None, pointer("current", current))
    capsule = new_capsule(ctypes.addressof(api), b"dlpack_exchange_api", None)
    kept = (exporter, export, current, api)
    return type("Foreign", (), {"__dlpack_c_exchange_api__": capsule, "kept": kept}), exporter


@pytest.mark.parametrize(
    "changes, consumer, error, given_back",
    [
        ({"status": -1, "answer": False}, -1, BufferError, 0),
        ({"status": 1}, -1, BufferError, 0),
        ({"answer": False}, -1, BufferError, 0),
        ({"version": (2, 0)}, -1, BufferError, 1),
        ({"device": (10, 0)}, -1, BufferError, 1),
        ({"device": (2, -1)}, -1, BufferError, 1),
        ({"ndim": 65}, -1, BufferError, 1),
        ({"shape": (-1,)}, -1, ValueError, 1),
        ({"bits": 4}, -1, ValueError, 1),
        ({"device": (13, 0), "stream_status": -1}, 0, BufferError, 1),
        ({"device": (13, 0), "stream_status": -1}, -1, None, 1),
        ({"device": (13, 0), "without": ("current",)}, 0, None, 1),
        ({"without": ("export",)}, -1, AttributeError, 0),
        ({"header": (2, 0)}, -1, AttributeError, 0),
    ],
)
def test_failing_exchange_functions(changes, consumer, error, given_back):
    made, exporter = functions(**changes)
    if error is None:
        assert StridedMemoryView.from_dlpack(made(), consumer).shape == (3, 4)
    else:
        with pytest.raises(error):
            StridedMemoryView.from_dlpack(made(), consumer)
    assert exporter.deleted == given_back


def test_older_exchange_api_is_found():
    made, exporter = functions()
    old = made.kept[-1]
    new = ExchangeApi(3, 0, ctypes.addressof(old), None, 8, 8, 8, 8)
    newest = ExchangeApi(9, 9, ctypes.addressof(new), None, 8, 8, 8, 8)
    made.__dlpack_c_exchange_api__ = new_capsule(ctypes.addressof(newest), b"dlpack_exchange_api", None)
    assert StridedMemoryView.from_dlpack(made(), -1).shape == (3, 4)
    assert exporter.deleted == 1


def test_exceptions_of_exchange_functions_propagate():
    # Ours refuse objects that are not our views.
    made = type("Foreign", (), {"__dlpack_c_exchange_api__": StridedMemoryView.__dlpack_c_exchange_api__})
    with pytest.raises(TypeError, match="expected a StridedMemoryView"):
        StridedMemoryView.from_dlpack(made(), -1)


def test_import_through_the_api_owns_the_tensor():
    capsule = StridedMemoryView.__dlpack_c_exchange_api__
    api = ExchangeApi.from_address(get_pointer(capsule, b"dlpack_exchange_api"))
    import_ = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(api.import_)
    place = ctypes.c_void_p()
    for changes, error in (({"ndim": -1}, BufferError), ({"version": (2, 0)}, BufferError), ({"bits": 3}, ValueError)):
        exporter = Exporter(floats(), **{"version": (1, 0), **changes})
        with pytest.raises(error):
            import_(ctypes.addressof(exporter.managed), ctypes.addressof(place))
        assert exporter.deleted == 1 and place.value is None


def test_export_through_the_api_is_deleted_by_its_consumer(device):
    capsule = StridedMemoryView.__dlpack_c_exchange_api__
    api = ExchangeApi.from_address(get_pointer(capsule, b"dlpack_exchange_api"))
    export = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(api.export)
    view = StridedMemoryView.from_dlpack(floats(), -1)
    before = sys.getrefcount(view)
    place = ctypes.c_void_p()
    for _ in range(100):
        assert export(view, ctypes.addressof(place)) == 0
        managed = ManagedVersioned.from_address(place.value)
        assert (managed.major, managed.minor, managed.flags) == (1, 3, 0)
        # A thread without a thread state, as C++ consumers have them.
        delete = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(managed.deleter)
        delete(place)
    assert sys.getrefcount(view) == before


# NumPy arrays over foreign memory


def test_numpy_arrays_of_page_locked_memory(device, stream):
    from cuda.core import PinnedMemoryResource

    pinned = PinnedMemoryResource().allocate(64, stream=stream)
    array = np.from_dlpack(pinned)
    for source in (array, array[::2], array[::-1], array[:0]):
        for consumer in (-1, 0, 1, stream, int(stream.handle)):
            for make in (StridedMemoryView.from_dlpack, StridedMemoryView.from_any_interface):
                view = make(source, consumer)
                assert view.shape == source.shape and view.strides == source.strides
                assert source.size == 0 or view.ptr == source.ctypes.data
                assert view.exporting_obj is source
    del array, source, view
    pinned.close()


# Repetition and threads


def test_eight_threads_with_hostile_exporters(buffer):
    source = floats()
    view = StridedMemoryView.from_dlpack(source, -1)
    errors = []
    made, shared = functions(device=(13, 0))

    def work():
        try:
            for number in range(60):
                bad = Exporter(source, ndim=-1, version=(1, 0) if number % 2 else None)
                try:
                    StridedMemoryView.from_dlpack(bad, -1)
                except BufferError:
                    assert bad.deleted == 1
                good = Exporter(source)
                shape = StridedMemoryView.from_any_interface(good, -1).shape
                assert shape == (3, 4) and good.deleted == 1
                StridedMemoryView.from_dlpack(made(), -1)
                assert np.array_equal(np.from_dlpack(view), source)
                assert StridedMemoryView.from_any_interface(Cai(buffer), -1).size == 12
                # More classes than are cached.
                StridedMemoryView.from_dlpack(type("New", (Exporter,), {})(source), -1)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    run_all(threads)
    assert not errors
    assert shared.deleted == len(shared.calls) == 8 * 60


@pytest.mark.parametrize("kind", ["numpy", "view", "buffer", "interface", "functions", "part", "export", "refused"])
def test_memory_stays_flat(kind, buffer):
    source = floats()
    view = StridedMemoryView.from_dlpack(source, -1)
    layout, interface = view._layout.permuted((1, 0)), Cai(buffer)
    make = StridedMemoryView.from_any_interface
    table = (ctypes.c_int64 * 2)(3, 4)

    class Fixed(ctypes.Structure):
        _fields_ = [("managed", ManagedVersioned)]

    @DELETER
    def delete(_pointer):
        pass

    fixed = Fixed()
    fixed.managed.major, fixed.managed.deleter = 1, ctypes.cast(delete, ctypes.c_void_p)
    tensor = fixed.managed.tensor
    tensor.data, tensor.kind, tensor.ndim, tensor.code, tensor.bits, tensor.lanes = source.ctypes.data, 1, 2, 2, 32, 1
    tensor.shape = table

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def export(_obj, out):
        out[0] = ctypes.addressof(fixed)
        return 0

    api = ExchangeApi(1, 0, None, None, ctypes.cast(export, ctypes.c_void_p), None, None, None)
    capsule = new_capsule(ctypes.addressof(api), b"dlpack_exchange_api", None)
    foreign = type("Foreign", (), {"__dlpack_c_exchange_api__": capsule})()

    def refused():
        with pytest.raises(BufferError):
            make(3, -1)

    once = {
        "numpy": lambda: make(source, -1),
        "view": lambda: make(view, -1).shape,
        "buffer": lambda: make(buffer, -1).strides,
        "interface": lambda: make(interface, -1)._layout,
        "functions": lambda: make(foreign, -1).dtype,
        "part": lambda: view.view(layout).__dlpack__(),
        "export": lambda: buffer.__dlpack__(stream=-1, max_version=(1, 3)),
        "refused": refused,
    }[kind]
    rounds = ROUNDS if kind != "refused" else max(ROUNDS // 50, 10)
    for _ in range(min(rounds, 1000)):
        once()
    gc.collect()
    grown = []
    # A leak grows every time.
    while not grown or (grown[-1] >= (1 << 20) and len(grown) < 4):
        before, blocks = resident(), sys.getallocatedblocks()
        for _ in range(rounds):
            once()
        grown.append(resident() - before)
        gc.collect()
        assert sys.getallocatedblocks() - blocks < max(rounds // 4, 200)
    assert grown[-1] < 1 << 20, f"grew by {grown} bytes in {rounds} rounds each"


FLIGHT = """
    import sys, threading, time
    import numpy as np
    from cuda.core import Device
    from cuda.core.utils import StridedMemoryView
    from helpers.dlpack import Exporter
    from helpers.array_interface import Cai
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    buffer = device.allocate(96, stream=stream)
    source = np.zeros((3, 4), dtype=np.float32)
    kept = []

    def work():
        device.set_current()
        while True:
            view = StridedMemoryView.from_any_interface(source, -1)
            kept.append((view.__dlpack__(), np.from_dlpack(view), memoryview(view), buffer.__dlpack__()))
            StridedMemoryView.from_dlpack(Exporter(source), -1)
            StridedMemoryView.from_any_interface(Cai(buffer, stream=int(stream.handle)), 0)
            del kept[:-50]

    for _ in range(4):
        threading.Thread(target=work, daemon=True).start()
    time.sleep(0.3)
    {last}
"""


@pytest.mark.parametrize("last", ["pass", "sys.exit(0)", "stream.close(); buffer.close()"])
def test_exit_while_daemon_threads_make_views(last):
    """Some views and exports are still alive."""
    script = textwrap.dedent(FLIGHT).format(last=last)
    run = python(script)
    assert run.returncode == 0, run.stderr
    assert "panicked" not in run.stderr and "Fatal" not in run.stderr, run.stderr


@pytest.mark.parametrize("how", ["view", "dlpack", "numpy", "interface"])
def test_long_chains_of_views(how):
    """Views that own views: destruction does not recurse."""
    source = floats()
    last = StridedMemoryView.from_array_interface(source)
    layout, count = last._layout, sys.getrefcount(source)
    gc.disable()  # It would walk along the chain again and again.
    try:
        for _ in range(60_000):
            if how == "view":
                last = last.view(layout)
            elif how == "dlpack":
                last = StridedMemoryView.from_dlpack(last, -1)
            elif how == "numpy":
                last = StridedMemoryView.from_dlpack(np.from_dlpack(last), -1)
            else:
                last = StridedMemoryView.from_array_interface(last)
        assert (last.shape, last.ptr, last.__dlpack_device__()) == ((3, 4), source.ctypes.data, (1, 0))
        del last
    finally:
        gc.enable()
    assert sys.getrefcount(source) < count


def test_host_buffers_destroyed_before_their_views():
    source = np.arange(12, dtype=np.float32)
    buffer = Buffer.from_handle(source.ctypes.data, source.nbytes, owner=source)
    view = StridedMemoryView.from_buffer(buffer, (3, 4), dtype="f4")
    capsules = [view.__dlpack__(), buffer.__dlpack__(max_version=(1, 0)), np.from_dlpack(view)]
    count = sys.getrefcount(source)
    buffer.close()
    assert sys.getrefcount(source) == count  # While the memory is exposed.
    same = np.array_equal(capsules.pop(), source.reshape(3, 4))
    assert same
    with pytest.raises(RuntimeError, match="closed"):
        buffer.__dlpack__()
    capsules.clear()
    del view
    gc.collect()
    assert sys.getrefcount(source) == count - 1
