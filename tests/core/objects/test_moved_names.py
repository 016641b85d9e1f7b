"""Names that earlier versions of cuda.core had elsewhere: the errors say where they are."""

import importlib

import cuda.core
import pytest


@pytest.mark.parametrize("name", [name for name in cuda.core._MOVED if name != "experimental"])
def test_a_moved_name_is_refused_with_its_place(name):
    home = cuda.core._MOVED[name]
    assert hasattr(importlib.import_module(home), name)
    assert not hasattr(cuda.core, name)
    with pytest.raises(AttributeError, match=rf"'cuda.core' has no attribute '{name}': .*from {home} import {name}"):
        getattr(cuda.core, name)
    with pytest.raises(ImportError, match=rf"cannot import name '{name}' .*from {home} import {name}") as refused:
        exec(f"from cuda.core import {name}")
    assert refused.value.name == "cuda.core" and not isinstance(refused.value, ModuleNotFoundError)


@pytest.mark.parametrize(
    "statement",
    [
        "import cuda.core.experimental",
        "from cuda.core.experimental import Device",
        "from cuda.core.experimental.utils import StridedMemoryView",
    ],
)
def test_the_experimental_package_is_refused_with_the_place_of_its_names(statement):
    with pytest.raises(
        ModuleNotFoundError, match="are in cuda.core now, .*cuda.core.graph.*cuda.core.utils"
    ) as refused:
        exec(statement)
    assert refused.value.name == "cuda.core.experimental"
    assert not hasattr(cuda.core, "experimental")
    with pytest.raises(ImportError, match="cannot import name 'experimental' .* in cuda.core now"):
        exec("from cuda.core import experimental")


def test_an_unknown_name_is_refused_as_python_does():
    with pytest.raises(AttributeError, match="^module 'cuda.core' has no attribute 'Nothing'$"):
        _ = cuda.core.Nothing
    with pytest.raises(ImportError, match="cannot import name 'Nothing'"):
        exec("from cuda.core import Nothing")
