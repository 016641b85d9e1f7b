"""DLPack of views and buffers: exported and imported capsules, valid and invalid ones, and the C exchange API."""

import ctypes
import gc
import threading
import weakref

import numpy as np
import pytest
from cuda.core.utils import StridedMemoryView

from helpers.array_interface import floats
from helpers.dlpack import DELETER, ExchangeApi, Exporter, Tensor, get_pointer, new_capsule
from helpers.threads import run_all

pytestmark = pytest.mark.strict_abi

# Exports


def test_exported_capsules(buffer, stream):
    view = StridedMemoryView.from_buffer(buffer, (3, 4), dtype="f4")
    for exporter in (view, buffer):
        assert '"dltensor"' in repr(exporter.__dlpack__())
        assert '"dltensor"' in repr(exporter.__dlpack__(max_version=(0, 8), copy=False))
        assert '"dltensor_versioned"' in repr(exporter.__dlpack__(max_version=(1, 0)))
        assert '"dltensor_versioned"' in repr(exporter.__dlpack__(max_version=(2, 0)))
        assert exporter.__dlpack__(dl_device=(2, 0)) and exporter.__dlpack__(stream=int(stream.handle))
        for keywords, error in (
            ({"copy": True}, BufferError),
            ({"copy": "x"}, TypeError),
            ({"dl_device": (2, 1)}, BufferError),
            ({"dl_device": (1, 0)}, BufferError),
            ({"dl_device": ()}, BufferError),
            ({"dl_device": 3}, TypeError),
            ({"max_version": 3}, TypeError),
            ({"max_version": ()}, BufferError),
            ({"max_version": ("a", "b")}, BufferError),
            ({"max_version": (1 << 80, 0)}, BufferError),
            ({"stream": "x"}, TypeError),
            ({"stream": stream}, TypeError),
            ({"stream": -2}, TypeError),
        ):
            with pytest.raises(error):
                exporter.__dlpack__(**keywords)
        with pytest.raises(TypeError):
            exporter.__dlpack__(None)


def test_exports_keep_their_memory_alive():
    source = floats()
    life = weakref.ref(source)
    view = StridedMemoryView.from_array_interface(source)
    holders = [np.from_dlpack(view), view.__dlpack__(), memoryview(view)]
    del source, view
    while holders:
        gc.collect()
        assert life() is not None, holders[0]
        holders.pop(0)
    gc.collect()
    assert life() is None


def test_exports_wait_for_pending_work(device, stream):
    other = device.create_stream()
    buffer = device.allocate(1 << 20, stream=stream)
    out = np.zeros(1 << 20, dtype=np.uint8)
    for value in range(1, 30):
        buffer.fill(value, stream=stream)
        # The consumer's stream is ordered after the fill, whether it is complete or not.
        exporter = buffer if value % 2 else StridedMemoryView.from_buffer(buffer, (1 << 18,), dtype="f4")
        capsule = exporter.__dlpack__(stream=int(other.handle))
        StridedMemoryView.from_array_interface(out).copy_from(
            StridedMemoryView.from_buffer(buffer, (1 << 20,), dtype="u1"), other, blocking=True
        )
        assert (out == value).all()
        del capsule
    buffer.close()
    other.close()


def test_exports_are_deleted_in_other_threads():
    source = floats()
    life = weakref.ref(source)
    capsules = [StridedMemoryView.from_array_interface(source).__dlpack__(max_version=(1, 0)) for _ in range(50)]
    del source
    thread = threading.Thread(target=capsules.clear)
    run_all([thread])
    gc.collect()
    assert life() is None


# Invalid imports


@pytest.mark.parametrize(
    "changes, error",
    [
        ({"ndim": -1}, BufferError),
        ({"ndim": 65}, BufferError),
        ({"ndim": 1 << 30}, BufferError),
        ({"shape": (-3,)}, ValueError),
        ({"shape": (1 << 62, 1 << 62)}, ValueError),
        ({"strides": (1 << 62, 1)}, ValueError),
        ({"strides": (-(1 << 63), 1)}, ValueError),
        ({"without": ("shape",)}, BufferError),
        ({"data": 0}, BufferError),
        ({"offset": (1 << 64) - 1}, BufferError),
        ({"bits": 12}, ValueError),
        ({"bits": 4}, ValueError),
        ({"bits": 0}, ValueError),
        ({"lanes": 0}, ValueError),
        ({"device": (10, 0)}, BufferError),
        ({"device": (99, 0)}, BufferError),
        ({"device": (2, 0), "says": (1, 0)}, BufferError),
        ({"device": (1, 0), "says": (2, 0)}, BufferError),
        ({"device": (2, 0), "says": (2, 1)}, BufferError),
        ({"device": (2, -1)}, BufferError),
    ],
)
@pytest.mark.parametrize("version", [None, (1, 0)])
def test_invalid_exports_are_refused_and_deleted(changes, error, version):
    exporter = Exporter(floats(), version=version, **changes)
    with pytest.raises(error):
        StridedMemoryView.from_dlpack(exporter, -1)
    assert exporter.deleted == len(exporter.calls)


def test_versions():
    for version in ((0, 9), (2, 0), (1 << 31, 0)):
        # Nothing but the version may be read.
        exporter = Exporter(floats(), version=version, ndim=-5, without=("shape",))
        with pytest.raises(BufferError, match=f"DLPack {version[0]}"):
            StridedMemoryView.from_dlpack(exporter, -1)
        assert exporter.deleted == 1
    assert StridedMemoryView.from_dlpack(Exporter(floats(), version=(1, 99)), -1).readonly is False
    assert StridedMemoryView.from_dlpack(Exporter(floats(), version=(1, 0), flags=1), -1).readonly is True


def test_export_is_deleted_once():
    source = floats()
    for version in (None, (1, 0)):
        exporter = Exporter(source, version=version, offset=8, shape=(2,))
        view = StridedMemoryView.from_dlpack(exporter, -1)
        part = view.view(view._layout[1:])
        assert view.ptr == source.ctypes.data + 8 and exporter.deleted == 0
        del view
        assert exporter.deleted == 0
        del part
        assert exporter.deleted == 1
    # An export without a deleter is not deleted.
    eternal = Exporter(source, without=("deleter",))
    assert StridedMemoryView.from_dlpack(eternal, -1).shape == (3, 4)
    assert eternal.deleted == 0


def test_invalid_capsules_are_refused():
    source = floats()

    class Answers(Exporter):
        def __dlpack__(self, **_):
            return self.answer

    for answer, error in (
        (None, TypeError),
        (3, TypeError),
        (new_capsule(8, b"other", None), BufferError),
        (new_capsule(8, b"used_dltensor", None), BufferError),
        (new_capsule(8, None, None), BufferError),
        (new_capsule(9, b"dltensor", None), BufferError),
    ):
        exporter = Answers(source)
        exporter.answer = answer
        with pytest.raises(error):
            StridedMemoryView.from_dlpack(exporter, -1)
    twice = Answers(source)
    twice.answer = source.__dlpack__()
    view = StridedMemoryView.from_dlpack(twice, -1)
    with pytest.raises(BufferError, match="used_dltensor"):
        StridedMemoryView.from_dlpack(twice, -1)
    assert np.array_equal(np.from_dlpack(view), source)


def test_exceptions_of_exporters_propagate():
    class Fails:
        where = None

        def __dlpack_device__(self):
            if self.where == "device":
                raise KeyError("mine")
            return self.answer

        def __dlpack__(self, **_):
            raise KeyError("mine")

    fails = Fails()
    fails.answer = (1, 0)
    for fails.where in ("device", "tensor"):
        with pytest.raises(KeyError, match="mine"):
            StridedMemoryView.from_dlpack(fails, -1)
    for fails.answer in (3, (1,), ("a", 0), (1, 0, 0), None, (1 << 40, 0)):
        fails.where = None
        with pytest.raises(TypeError, match="__dlpack_device__"):
            StridedMemoryView.from_dlpack(fails, -1)

    class Property:
        @property
        def __cuda_array_interface__(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        StridedMemoryView.from_any_interface(Property(), -1)


def test_additional_element_types():
    source = np.zeros(16, dtype=np.uint16)
    brain = StridedMemoryView.from_dlpack(Exporter(source, code=4, bits=16, shape=(4,)), -1)
    # Exported again without a package that knows the type.
    assert '"dltensor"' in repr(brain.__dlpack__())
    try:
        import ml_dtypes
    except ImportError:
        with pytest.raises(NotImplementedError, match="ml_dtypes"):
            brain.dtype
    else:
        assert brain.dtype == ml_dtypes.bfloat16
        small = StridedMemoryView.from_dlpack(Exporter(source, code=10, bits=8, shape=(4,)), -1)
        assert small.dtype == ml_dtypes.float8_e4m3fn
        view = StridedMemoryView.from_array_interface(source).view(dtype=ml_dtypes.bfloat16)
        assert StridedMemoryView.from_dlpack(view, -1).dtype == ml_dtypes.bfloat16
    vectors = StridedMemoryView.from_dlpack(Exporter(floats(), lanes=4, shape=(3,)), -1)
    assert vectors._layout.itemsize == 16 and vectors.dtype == np.dtype(("f4", (4,)))
    for code, bits in ((3, 64), (2, 128), (99, 8)):
        odd = StridedMemoryView.from_dlpack(Exporter(source, code=code, bits=bits, shape=(1,)), -1)
        assert "shape=(1,)" in repr(odd)
        with pytest.raises(TypeError, match="NumPy"):
            odd.dtype


# C exchange API


def test_exchange_api_of_views():
    capsule = StridedMemoryView.__dlpack_c_exchange_api__
    api = ExchangeApi.from_address(get_pointer(capsule, b"dlpack_exchange_api"))
    assert (api.major, api.previous) == (1, None)
    source = floats()
    view = StridedMemoryView.from_array_interface(source)

    tensor = Tensor()
    describe = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(api.describe)
    assert describe(view, ctypes.addressof(tensor)) == 0
    assert (tensor.data, tensor.ndim, tensor.code, tensor.bits) == (source.ctypes.data, 2, 2, 32)
    assert (tensor.shape[:2], tensor.strides[:2]) == ([3, 4], [4, 1])
    with pytest.raises(TypeError):
        describe(source, ctypes.addressof(tensor))
    with pytest.raises(BufferError):
        describe(StridedMemoryView.from_array_interface(np.zeros(1, "S3")), ctypes.addressof(tensor))

    managed = ctypes.c_void_p()
    export = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p)(api.export)
    assert export(view, ctypes.addressof(managed)) == 0
    life = weakref.ref(source)
    del source, view
    made = ctypes.py_object()
    import_ = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(api.import_)
    assert import_(managed, ctypes.addressof(made)) == 0
    assert made.value.shape == (3, 4) and made.value.exporting_obj is None
    ctypes.pythonapi.Py_DecRef(made)  # The handle that C received.
    made = None
    gc.collect()
    assert life() is None
    with pytest.raises(TypeError):
        import_(None, ctypes.addressof(managed))

    stream = ctypes.c_void_p(5)
    current = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.c_void_p)(api.current_stream)
    assert current(2, 0, ctypes.addressof(stream)) == 0 and stream.value is None
    reported = []
    set_error = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p)
    allocate = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, set_error)(
        api.allocate
    )
    assert (
        allocate(ctypes.addressof(tensor), ctypes.addressof(managed), None, set_error(lambda *a: reported.append(a)))
        == -1
    )
    assert reported[0][1] == b"NotImplementedError"


def exchange(version=1, *, stream=0, fails=False, name=b"dlpack_exchange_api"):
    """A class with the exchange functions, written here, and counters of their calls."""
    counts = {"exports": 0, "deleted": 0, "streams": []}
    source = floats()
    kept = []

    @DELETER
    def delete(_pointer):
        counts["deleted"] += 1

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.POINTER(ctypes.c_void_p))
    def export(_obj, out):
        if fails:
            return -1
        counts["exports"] += 1
        exporter = Exporter(source, version=(version, 0), device=(13, 0))
        exporter.managed.deleter = ctypes.cast(delete, ctypes.c_void_p)
        kept.append(exporter)
        out[0] = ctypes.addressof(exporter.managed)
        return 0

    @ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_int32, ctypes.POINTER(ctypes.c_void_p))
    def current(kind, number, out):
        counts["streams"].append((kind, number))
        out[0] = stream
        return 0

    pointer = [ctypes.cast(f, ctypes.c_void_p) for f in (export, current)]
    api = ExchangeApi(version, 0, None, None, pointer[0], None, None, pointer[1])
    capsule = new_capsule(ctypes.addressof(api), name, None)
    made = type(
        "Foreign", (), {"__dlpack_c_exchange_api__": capsule, "kept": (kept, api, export, current, delete, source)}
    )
    return made, counts


def test_exchange_api_of_other_classes(stream):
    made, counts = exchange(stream=int(stream.handle))
    obj = made()
    view = StridedMemoryView.from_any_interface(obj, -1)
    assert view.shape == (3, 4) and view.exporting_obj is obj and view.device_id == 0
    assert counts == {"exports": 1, "deleted": 0, "streams": []}
    del view
    assert counts["deleted"] == 1
    for consumer in (0, 1, int(stream.handle)):
        StridedMemoryView.from_dlpack(obj, consumer)
    assert counts["exports"] == counts["deleted"] == 4 and counts["streams"] == [(13, 0)] * 3
    failing, _ = exchange(fails=True)
    with pytest.raises(BufferError, match="export"):
        StridedMemoryView.from_dlpack(failing(), -1)


def test_unknown_exchange_apis_are_ignored():
    for made, _ in (exchange(version=2), exchange(name=b"something")):
        with pytest.raises(AttributeError):
            StridedMemoryView.from_dlpack(made(), -1)
    wrong = type("Wrong", (), {"__dlpack_c_exchange_api__": 3})
    with pytest.raises(AttributeError):
        StridedMemoryView.from_dlpack(wrong(), -1)


def test_more_classes_than_are_cached():
    # Each with its own functions.
    for _ in range(3):
        for made, counts in [exchange() for _ in range(25)]:
            before = counts["exports"]
            StridedMemoryView.from_dlpack(made(), -1)
            assert counts["exports"] == before + 1
