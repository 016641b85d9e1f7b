"""The lazy modules: import cost, side effects, and introspection."""

import importlib
import inspect
import pickle
import pydoc
import sys

import cuda.bindings
import pytest
from cuda.bindings import driver, nvrtc

from helpers.programs import output


def test_import_is_lazy():
    out = output(
        "import sys\n"
        "from cuda.bindings import driver\n"
        "print('numpy' in sys.modules, 'ctypes' in sys.modules, 'enum' in sys.modules and 0,"
        " any('cuda' in l and '.so' in l and 'cupyrite' not in l for l in open('/proc/self/maps')))\n"
    )
    assert out.split()[0] == "False" and out.split()[-1] == "False"


@pytest.mark.parametrize("module", [driver, nvrtc], ids=["driver", "nvrtc"])
def test_module_lists_its_names(module):
    names = dir(module)
    assert names == sorted(set(names))
    assert set(module.__all__) <= set(names)
    for name in names:
        assert getattr(module, name) is getattr(module, name)
    assert set(names) - {"__getattr__"} <= set(vars(module))
    assert type(module) is type(sys) and "__getattr__" not in vars(module)  # Complete by now: an ordinary module.
    members = dict(inspect.getmembers(module))
    assert set(module.__all__) <= set(members)
    with pytest.raises(AttributeError, match="no_such_name"):
        module.no_such_name
    assert not hasattr(module, "__path__")
    assert module.__name__ in repr(module)
    assert module.__file__.endswith(".py") and module.__doc__ and module.__spec__.name == module.__name__


def test_star_import():
    space = {}
    exec("from cuda.bindings.driver import *", space)
    assert set(driver.__all__) <= set(space)
    assert space["CUresult"] is driver.CUresult and space["cuInit"] is driver.cuInit


def test_introspection_in_a_fresh_process():
    out = output(
        "from cuda.bindings import driver\n"
        "print(len(vars(driver)) > 1000, 'CUresult' in driver.__dict__, driver.__dict__ is driver.__dict__)\n"
    )
    assert out.split() == ["True"] * 3
    out = output("import cuda.bindings.driver as d; print('cuInit' in d.__dict__, len(dir(d)) > 1000)")
    assert out.split() == ["True"] * 2
    assert "True" in output("import cuda.bindings.nvrtc; print(hasattr(cuda.bindings.nvrtc, 'nvrtcVersion'))")


@pytest.mark.parametrize("module", [driver, nvrtc], ids=["driver", "nvrtc"])
def test_pickle_by_name(module):
    for name in module.__all__:
        obj = getattr(module, name)
        if isinstance(obj, int) and not isinstance(obj, type):
            continue
        assert obj.__module__ == module.__name__ and obj.__qualname__ == name
        assert pickle.loads(pickle.dumps(obj)) is obj


def test_help():
    text = pydoc.render_doc(driver.CUlaunchConfig)
    assert "gridDimX : unsigned int" in text
    assert "cuMemAlloc" in pydoc.render_doc(driver.cuMemAlloc)
    assert "nvrtcVersion" in pydoc.render_doc(nvrtc)


def test_constants():
    assert driver.CUDA_VERSION == 13050 and driver.CU_IPC_HANDLE_SIZE == 64
    assert driver.CU_DEVICE_CPU == -1 and driver.CUDA_EGL_INFINITE_TIMEOUT == 0xFFFFFFFF
    assert type(driver.CU_STREAM_LEGACY) is int


def test_signatures():
    assert str(inspect.signature(driver.CUstream)) == "(init_value=0, _ptr=0)"
    assert str(inspect.signature(driver.CUlaunchConfig)) == "(_ptr=0)"
    assert str(inspect.signature(driver.CUstream.getPtr)) == "(self, /)"


def test_assignment_and_monkeypatching():
    real = driver.cuInit
    driver.cuInit = "patched"
    try:
        assert driver.cuInit == "patched"
    finally:
        driver.cuInit = real
    from unittest import mock

    with mock.patch.object(driver, "cuMemAlloc", "patched"):
        assert driver.cuMemAlloc == "patched"
    assert callable(driver.cuMemAlloc)


def test_reload():
    before = nvrtc.nvrtcResult
    assert importlib.reload(nvrtc).nvrtcResult is before


def test_package_attributes():
    assert cuda.bindings.__version__ == "13.5.0"
    assert output("import cuda.bindings; print(cuda.bindings.__version__)").strip() == "13.5.0"


def test_marker_class():
    marker = driver.cudaBindingsDriverGlobal()
    assert type(marker).__name__ == "cudaBindingsDriverGlobal"
    with pytest.raises(TypeError):
        driver.cudaBindingsDriverGlobal(1)


def test_lazy_module_type_refuses_other_modules():
    from cupyrite import _native

    for bad in (5, None, [], "json", "no.such.module"):
        with pytest.raises((TypeError, ValueError)):
            _native.lazy_module(bad)


def test_modules_are_pickled_by_name():
    # In a new process: `vars` turns a module into an ordinary one.
    out = output(
        "import copy, pickle\n"
        "from cuda.bindings import driver, nvrtc, runtime\n"
        "for module in (driver, nvrtc, runtime):\n"
        "    print(pickle.loads(pickle.dumps(module)) is module, copy.deepcopy([module])[0] is module)\n"
    )
    assert out.split() == ["True"] * 6


def test_concurrent_first_use():
    code = """
import threading
from cuda.bindings import driver
names = dir(driver)
barrier = threading.Barrier(8)
seen = [None] * 8
def work(i):
    barrier.wait()
    seen[i] = [id(getattr(driver, n)) for n in (names if i % 2 else names[::-1])]
    if not i % 2:
        seen[i].reverse()
threads = [threading.Thread(target=work, args=(i,)) for i in range(8)]
[t.start() for t in threads]
[t.join() for t in threads]
classes = [i for i, n in enumerate(names) if isinstance(getattr(driver, n), type)]
print(all(s[i] == seen[0][i] for s in seen for i in classes))
"""
    assert output(code).strip() == "True"
