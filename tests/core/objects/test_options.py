"""The option classes of `cuda.core`: common behaviour, and errors for invalid values."""

import copy
import dataclasses
import inspect
import pickle

import pytest
from cuda.core import (
    ContextOptions,
    DeviceMemoryResource,
    DeviceMemoryResourceOptions,
    EventOptions,
    LinkerOptions,
    ProgramOptions,
    SMResourceOptions,
    Stream,
    StreamOptions,
    WorkqueueResourceOptions,
)

from helpers.programs import output

CLASSES = {
    ContextOptions: {"resources": ()},
    DeviceMemoryResourceOptions: {"max_size": 1 << 20},
    EventOptions: {"timing_enabled": True},
    LinkerOptions: {"arch": "sm_80"},
    ProgramOptions: {"arch": "sm_80"},
    SMResourceOptions: {"count": 2},
    StreamOptions: {"priority": -1},
    WorkqueueResourceOptions: {"concurrency_limit": 3},
}

every_class = pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)

NO_INTEGERS = [1.5, "3", b"3", [3]]


def wrong(error, *words):
    """Expects an error whose message contains all these words."""
    return pytest.raises(error, match="".join(f"(?=.*{word})" for word in words))


class Own(StreamOptions):
    """A user's subclass, which may have any attributes."""

    note = "n"


@every_class
def test_docstring_describes_every_field_in_order(kind):
    text = inspect.getdoc(kind).split("Attributes\n----------\n")[1].split("\n\n")[0]
    described = [line.split(" : ")[0] for line in text.splitlines() if not line.startswith(" ")]
    assert described == [field.name for field in dataclasses.fields(kind)]


def test_native_module_reads_every_field_of_program_options():
    """The fields are declared in `cuda.core._program_options`; the compiler of the Rust code makes sure that the reader
    fills every field of Rust's `ProgramOptions`."""
    from cupyrite._native.core import program_options_as_bytes

    class Recorder:
        def __init__(self):
            self.read = []

        def __getattr__(self, name):
            self.read.append(name)
            return "sm_80" if name == "arch" else None

    recorder = Recorder()
    assert program_options_as_bytes(recorder, "nvrtc") == [b"-arch=sm_80"]
    # A path is read twice.
    assert list(dict.fromkeys(recorder.read)) == [field.name for field in dataclasses.fields(ProgramOptions)]


@every_class
class TestAttributes:
    def test_unknown_attributes_are_refused(self, kind):
        options = kind(**CLASSES[kind])
        names = [field.name for field in dataclasses.fields(kind)]
        with pytest.raises(AttributeError) as caught:
            options.foo = 3
        assert str(caught.value).startswith(f"{kind.__name__} has no option 'foo'; its options are {names[0]}")
        assert all(name in str(caught.value) for name in names)
        assert (caught.value.name, caught.value.obj) == ("foo", options)
        assert not hasattr(options, "foo") and list(vars(options)) == names
        with pytest.raises(AttributeError, match="no attribute 'foo'"):
            del options.foo

    def test_fields_can_be_assigned(self, kind):
        options = kind(**CLASSES[kind])
        for field in dataclasses.fields(kind):
            value = object()
            setattr(options, field.name, value)
            assert getattr(options, field.name) is value

    def test_derived_classes_may_add_fields(self, kind):
        derived = type("Derived", (kind,), {"double": property(lambda self: 2)})
        options = derived(**CLASSES[kind])
        options.foo = 3
        (name, value), *_ = CLASSES[kind].items()
        assert (options.foo, options.double, getattr(options, name)) == (3, 2, value)
        assert options != kind(**CLASSES[kind]) and options == copy.copy(options)

    def test_derived_classes_may_replace_fields(self, kind):
        (name, value), *_ = CLASSES[kind].items()
        seen = []
        replaced = property(lambda self: value, lambda self, value: seen.append(value))
        options = type("Derived", (kind,), {name: replaced})(**CLASSES[kind])
        assert seen == [value] and getattr(options, name) == value

    def test_options_are_data_classes(self, kind):
        options = kind(**CLASSES[kind])
        for same in (copy.copy(options), copy.deepcopy(options), pickle.loads(pickle.dumps(options))):
            assert type(same) is kind and same == options and repr(same) == repr(options)
            with pytest.raises(AttributeError):
                same.foo = 3
        assert dataclasses.replace(options) == options
        assert dataclasses.asdict(options) == vars(options)
        assert list(inspect.signature(kind).parameters) == list(vars(options))
        with pytest.raises(TypeError, match="foo"):
            dataclasses.replace(options, foo=3)


def test_instances_of_derived_classes_are_accepted(device):
    options = Own(priority=-1)
    options.foo = 3
    assert pickle.loads(pickle.dumps(options)).foo == 3
    with device.create_stream(options=options) as stream:
        assert stream.priority == -1


def test_former_names_of_event_options():
    with pytest.warns(DeprecationWarning):
        assert EventOptions(ipc_enabled=False, enable_timing=True) == EventOptions(True)
    with pytest.warns(DeprecationWarning), pytest.raises(TypeError, match="foo"):
        EventOptions(enable_timing=True, foo=1)
    # Also where the default is given.
    with pytest.raises(TypeError, match="timing_enabled.*enable_timing.*not both"):
        EventOptions(False, enable_timing=True)


def test_reloaded_modules():
    """The class is looked up once; instances of a reloaded class with its name are accepted."""
    program = """
import importlib
import cuda.core._event as module
from cuda.core import Device

device = Device()
former = module.EventOptions(timing_enabled=True)
assert device.create_event(former).is_timing_enabled
importlib.reload(module)
assert module.EventOptions is not type(former)
assert device.create_event(former).is_timing_enabled
assert device.create_event(module.EventOptions(timing_enabled=True)).is_timing_enabled
"""
    output(program)


class TestMessages:
    @pytest.mark.parametrize("value", [1 << 40, 1 << 80, -(1 << 80), 7, True], ids=repr)
    def test_priorities_outside_the_device_range(self, device, value):
        words = (f"StreamOptions.priority is {value};", "priorities from -?[0-9]+ \\(highest\\) to 0 \\(lowest\\)")
        for given in (StreamOptions(priority=value), {"priority": value}):
            with wrong(ValueError, *words):
                device.create_stream(options=given)
            with wrong(ValueError, *words):
                Stream(options=given)

    @pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
    def test_priorities_of_wrong_types(self, device, value):
        with wrong(TypeError, "StreamOptions.priority", "expected an int or None"):
            StreamOptions(priority=value)
        options = StreamOptions()
        options.priority = value
        with wrong(TypeError, "StreamOptions.priority", "expected an int or None"):
            device.create_stream(options=options)

    @pytest.mark.parametrize("value", [1, 1 << 80, -1, 1.5, "x"], ids=repr)
    @pytest.mark.parametrize("field", ["timing_enabled", "blocking_sync", "ipc_enabled"])
    def test_event_options(self, device, field, value):
        options = EventOptions()
        setattr(options, field, value)
        with wrong(TypeError, f"EventOptions.{field} is {value!r}; expected a bool or None"):
            device.create_event(options)

    @pytest.mark.parametrize("value", [1 << 40, 1 << 80, -1, -(1 << 80)], ids=repr)
    @pytest.mark.parametrize(
        "field", ["max_register_count", "optimization_level", "split_compile", "split_compile_extended"]
    )
    def test_linker_numbers(self, field, value):
        options = LinkerOptions(arch="sm_80", **{field: value})
        with pytest.raises(ValueError) as caught:
            options.as_bytes()
        assert str(caught.value) == f"LinkerOptions.{field} is {value}; expected an int from 0 to 2**32 - 1, or None"

    @pytest.mark.parametrize("value", NO_INTEGERS, ids=repr)
    def test_linker_types(self, value):
        for field in ("max_register_count", "optimization_level", "split_compile", "split_compile_extended"):
            with pytest.raises(TypeError) as caught:
                LinkerOptions(arch="sm_80", **{field: value}).as_bytes()
            assert str(caught.value).startswith(f"LinkerOptions.{field} is {value!r}; expected an int from 0")
        if not isinstance(value, str):
            for field in ("name", "arch"):
                with pytest.raises(TypeError) as caught:
                    LinkerOptions(**{field: value}).as_bytes()
                assert str(caught.value) == f"LinkerOptions.{field} is {value!r}; expected a str or None"

    @pytest.mark.parametrize("value", [1 << 80, -1, *NO_INTEGERS, None], ids=repr)
    def test_pool_sizes(self, device, value):
        with wrong((TypeError, OverflowError), "DeviceMemoryResourceOptions.max_size", "expected", "number of bytes"):
            DeviceMemoryResource(device, {"max_size": value})

    @pytest.mark.parametrize("value", [1 << 80, -1, 1.5, "x", True], ids=repr)
    @pytest.mark.parametrize(
        "field", ["max_register_count", "split_compile", "diag_error", "diag_suppress", "diag_warn"]
    )
    def test_program_numbers(self, field, value):
        with wrong((TypeError, ValueError), f"ProgramOptions.{field} is ", "an integer from 0 to 4294967295"):
            ProgramOptions(arch="sm_80", **{field: value})


def test_memory_resource_constructor():
    parameters = inspect.signature(DeviceMemoryResource).parameters
    assert {name: parameter.default for name, parameter in parameters.items()} == {
        "device_id": inspect.Parameter.empty,
        "options": None,
    }
