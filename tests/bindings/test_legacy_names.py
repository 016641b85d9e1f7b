"""Names that older programs and other packages import: `cuda.cuda`, `cuda.nvrtc`, `cuda.bindings._internal`."""

import ctypes
import importlib
import pickle

import pytest

from helpers.programs import output, python

INTERNAL = ("driver", "runtime", "nvrtc", "nvjitlink", "nvvm", "nvfatbin", "nvml", "cufile", "cudla")


@pytest.mark.parametrize("old, new", [("cuda", "driver"), ("cudart", "runtime"), ("nvrtc", "nvrtc")])
@pytest.mark.parametrize("statement", ["from cuda import {old} as it", "import cuda.{old} as it"])
def test_old_modules_are_the_new_ones(old, new, statement):
    script = f"""
import warnings
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    {statement.format(old=old)}
    {statement.format(old=old)}
from cuda.bindings import {new}
import cuda
assert it is {new} and getattr(cuda, "__file__", None) is None
print([(w.category.__name__, w.filename, "cuda.bindings import {new}" in str(w.message)) for w in seen])
"""
    assert output(script).strip() == "[('DeprecationWarning', '<string>', True)]"


def test_old_module_names_do_not_change_object_names():
    script = """
import pickle, warnings
warnings.simplefilter("ignore")
from cuda import cuda
assert cuda.__name__ == cuda.CUstream.__module__ == "cuda.bindings.driver"
assert pickle.loads(pickle.dumps(cuda.CUresult.CUDA_SUCCESS)) is cuda.CUresult.CUDA_SUCCESS
"""
    output(script)


def test_deprecation_warning_can_be_an_error():
    done = python("from cuda import cuda", options=("-W", "error::DeprecationWarning"))
    assert done.returncode == 1 and "DeprecationWarning: cuda.cuda is an old name" in done.stderr


def test_importing_the_bindings_does_not_warn():
    names = ", ".join(INTERNAL)
    output(
        f"from cuda.bindings import {names}, utils\nfrom cuda.bindings._internal import {names}, utils",
        options=("-W", "error"),
    )


def test_utils_is_available_without_import():
    output("import cuda.bindings\nassert cuda.bindings.utils.envvar_bool('NO_SUCH_SWITCH', True)")
    output("import sys, cuda.bindings.driver\nassert 'cuda.bindings.utils' not in sys.modules")


def test_unknown_package_attribute_raises():
    import cuda.bindings

    with pytest.raises(AttributeError, match="no_such_module"):
        cuda.bindings.no_such_module
    with pytest.raises(ImportError, match="no_such_module"):
        from cuda.bindings import no_such_module  # noqa: F401


def test_internal_error_classes():
    from cuda.bindings._internal import nvvm, utils

    for error in (utils.FunctionNotFoundError, utils.NotSupportedError):
        assert issubclass(error, RuntimeError)
        assert error.__module__ == "cuda.bindings._internal.utils"
        assert isinstance(pickle.loads(pickle.dumps(error("x"))), error)
        assert getattr(nvvm, error.__name__) is error


def addresses(library):
    """The module of addresses; skips the test where its library is not installed."""
    from cuda import pathfinder

    module = importlib.import_module(f"cuda.bindings._internal.{library}")
    try:
        return module, module._inspect_function_pointers()
    except pathfinder.DynamicLibNotFoundError as error:
        pytest.skip(str(error).splitlines()[0])


@pytest.mark.parametrize("library", INTERNAL)
def test_function_addresses(library):
    module, every = addresses(library)
    assert all(type(name) is str and name.startswith("__") and type(value) is int for name, value in every.items())
    assert sum(value != 0 for value in every.values()) > len(every) // 2
    for name in list(every)[:20]:
        assert module._inspect_function_pointer(name) == every[name]


@pytest.mark.parametrize("library", INTERNAL)
def test_unknown_function_names_raise(library):
    module = importlib.import_module(f"cuda.bindings._internal.{library}")
    for wrong in ("", "__", "nvvmVersion", "__no_such_function", "__nvvmVersion\0", "__\u00e9"):
        with pytest.raises(KeyError):
            module._inspect_function_pointer(wrong)
    for wrong in (None, 3, b"__nvvmVersion"):
        with pytest.raises(TypeError, match="_inspect_function_pointer"):
            module._inspect_function_pointer(wrong)
    with pytest.raises(TypeError):
        module._inspect_function_pointer()


def test_address_calls_the_function():
    module, _ = addresses("nvvm")
    version = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_int))
    major, minor = ctypes.c_int(), ctypes.c_int()
    assert version(module._inspect_function_pointer("__nvvmVersion"))(major, minor) == 0
    from cuda.bindings import nvvm

    assert (major.value, minor.value) == nvvm.version()


def test_driver_addresses_match_the_called_ones():
    from cuda.bindings import driver
    from cuda.bindings._internal import driver as internal

    get_version = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))
    version = ctypes.c_int()
    assert get_version(internal._inspect_function_pointer("__cuDriverGetVersion"))(version) == 0
    assert driver.cuDriverGetVersion() == (driver.CUresult.CUDA_SUCCESS, version.value)
