"""Every public class and function of cuda.core and cuda.pathfinder has an example in its docstring, and all examples run."""

import doctest
import enum
import importlib
import inspect
import pathlib
import re

import pytest
from cuda.bindings import driver
from cuda.core import Device

from helpers.device import on_cpu_device

MODULES = [
    "cuda.core",
    "cuda.core.checkpoint",
    "cuda.core.graph",
    "cuda.core.system",
    "cuda.core.system.typing",
    "cuda.core.texture",
    "cuda.core.typing",
    "cuda.core.utils",
    "cuda.pathfinder",
]

# Classes and functions without an example. Exceptions are not listed: the functions that raise them show them.
WITHOUT_EXAMPLE = {
    "cuda.core.system.typing.FieldId": "belongs to cuda.bindings.nvml; Device.get_field_values shows it",
    "cuda.core.system.typing.TemperatureThresholds": "its only use is deprecated for Ada and later GPUs",
}

# Examples with lines that are not executed.
NOT_EXECUTED = {
    "cuda.core.Buffer.from_ipc_descriptor": "needs a second process",
    "cuda.core.DeviceMemoryResource.from_allocation_handle": "needs a second process",
    "cuda.core.Event.from_ipc_descriptor": "needs a second process",
    "cuda.core.PinnedMemoryResource.from_allocation_handle": "needs a second process",
    "cuda.core.GraphicsResource.from_gl_buffer": "needs an OpenGL context",
    "cuda.core.GraphicsResource.from_gl_image": "needs an OpenGL context",
    "cuda.core.GraphicsResource.map": "needs an OpenGL context",
    "cuda.core.Linker.get_info_log": "the text depends on the linker's version",
    "cuda.core.checkpoint.Process": "the CPU device has no checkpoints; a GPU's driver may refuse them",
}

# Members that are the same in each class that has them.
ALIKE = {"device", "handle", "is_closed", "is_surface_load_store"}

# Other members that no example shows.
NOT_SHOWN = {
    "cuda.core.DeviceMemoryResource.deallocate": "buffers free their memory themselves",
    "cuda.core.Event.get_ipc_descriptor": "deprecated",
    "cuda.core.Event.is_sync_busy_waited": "deprecated",
    "cuda.core.GraphicsResource.resource_handle": "another name of handle",
    "cuda.core.LegacyPinnedMemoryResource.device_id": "raises: host memory belongs to no device",
    "cuda.core.PinnedMemoryResource.device_id": "raises: host memory belongs to no device",
    "cuda.core.Program.link": "deprecated",
    "cuda.core.SMResource.flags": "bits of the driver, 0 unless a group has leftover multiprocessors",
    "cuda.core.VirtualMemoryResource.deallocate": "buffers free their memory themselves",
}

# Examples that advise the driver about managed memory.
ADVICE = {"cuda.core.ManagedBuffer", "cuda.core.ManagedBuffer.accessed_by"}

FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
DOCTESTS = pathlib.Path(__file__).parents[3] / "crates" / "python" / "doctests"


def public_objects():
    """Public classes and functions by qualified name; each once."""
    found, names = {}, {}
    for module in MODULES:
        loaded = importlib.import_module(module)
        for name in loaded.__all__:
            value = getattr(loaded, name)
            if id(value) not in names and (inspect.isclass(value) or callable(value)) and is_documented_here(value):
                names[id(value)] = found[f"{module}.{name}"] = value
    return found


def is_documented_here(value):
    """Whether an object is a class or function: no alias of a type, no instance, no exception."""
    if inspect.isclass(value):
        return not issubclass(value, BaseException) and type(value).__module__ != "types"
    return hasattr(value, "__name__") and not hasattr(value, "__origin__")


def members(value):
    """Public methods and properties that a class defines, or inherits from a private class."""
    found = {}
    for kind in reversed(value.__mro__[:-1]):
        if kind is value or kind.__name__.startswith("_"):
            found |= {name: member for name, member in vars(kind).items() if not name.startswith("_")}
    return {
        name: getattr(member, "__func__", member)
        for name, member in found.items()
        if callable(member) or inspect.isdatadescriptor(member) or isinstance(member, (classmethod, staticmethod))
    }


def docstrings():
    """Docstrings of the public classes and functions and of their members, by qualified name."""
    found = {}
    for name, value in OBJECTS.items():
        found[name] = inspect.cleandoc(value.__doc__ or "")
        if inspect.isclass(value) and not issubclass(value, enum.Enum):
            for member, of in members(value).items():
                found[f"{name}.{member}"] = inspect.cleandoc(getattr(of, "__doc__", None) or "")
    return found


OBJECTS = public_objects()
DOCSTRINGS = docstrings()
EXAMPLES = {name: text for name, text in DOCSTRINGS.items() if ">>>" in text}


def test_the_objects_are_found():
    assert len(OBJECTS) > 120
    assert {"cuda.core.launch", "cuda.core.Device", "cuda.core.graph.KernelNode", "cuda.core.system.Device"} <= set(
        OBJECTS
    )
    assert {"cuda.core.Stream.sync", "cuda.core.utils.InMemoryProgramCache.clear"} <= set(DOCSTRINGS)


def test_each_class_and_function_has_an_example():
    missing = {name for name in OBJECTS if name not in EXAMPLES}
    assert missing == set(WITHOUT_EXAMPLE)


def test_an_example_is_a_section_of_its_own():
    pattern = re.compile(r"(^|\n\n)Examples\n--------\n\S")
    assert [name for name, text in EXAMPLES.items() if not pattern.search(text)] == []


def test_each_method_and_property_is_shown_by_an_example():
    shown, hidden = set(), {}
    for name, value in OBJECTS.items():
        if not inspect.isclass(value) or issubclass(value, enum.Enum):
            continue
        texts = [EXAMPLES.get(of, "") for of in (name, *(f"{name}.{member}" for member in members(value)))]
        code = "\n".join(re.findall(r"^\s*(?:>>>|\.\.\.) (.*)$", "\n".join(texts), re.MULTILINE))
        for member, of in members(value).items():
            if re.search(rf"""(\.|"|def ){member}\b""", code):
                shown.add(id(of))
            elif member not in ALIKE:
                hidden.setdefault(id(of), f"{name}.{member}")
    # An inherited member is shown by one of the classes that inherit it.
    assert {name for of, name in hidden.items() if of not in shown} == set(NOT_SHOWN)


def test_lines_that_are_not_executed_have_a_reason():
    assert {name for name, text in EXAMPLES.items() if "+SKIP" in text} == set(NOT_EXECUTED)


@pytest.mark.filterwarnings("error::DeprecationWarning")
# Sorted: the order of native members differs from process to process, and workers of pytest-xdist must agree.
@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_example(name, device):
    if "orkqueue" in name and driver.cuDriverGetVersion()[1] < 13010:
        pytest.skip("needs a driver of CUDA 13.1")
    if name in ADVICE and not on_cpu_device() and driver.cuDriverGetVersion()[1] < 13010:
        pytest.skip("drivers of CUDA 13.0 take no advice about memory of managed pools")
    test = doctest.DocTestParser().get_doctest(EXAMPLES[name], {"__name__": "__main__"}, name, None, 0)
    assert test.examples
    output = []
    try:
        failed = doctest.DocTestRunner(optionflags=FLAGS, verbose=False).run(test, out=output.append).failed
    finally:
        Device(0).set_current()
    assert not failed, "".join(output)


@pytest.mark.skipif(not DOCTESTS.is_dir(), reason="needs the sources of the extension module")
def test_native_objects_show_their_own_examples():
    written = {}
    for file in DOCTESTS.glob("*.txt"):
        for example in file.read_text().split("@@ ")[1:]:
            name, _, text = example.partition("\n")
            assert name not in written
            written[name] = text.strip()
    assert len(written) > 150
    assert [name for name, text in written.items() if not DOCSTRINGS.get(name, "").endswith(text)] == []
