"""Cython extensions compiled against the declarations, in C and in C++."""

import importlib.util
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig

import cuda.bindings
import pytest
from cuda.pathfinder import DynamicLibNotFoundError, find_nvidia_header_directory

pytest.importorskip("Cython", reason="needs Cython")
DECLARATIONS = pathlib.Path(cuda.bindings.__file__).parent
MODULES = ["driver", "runtime", "nvrtc", "nvml", "nvjitlink", "nvvm", "nvfatbin", "cufile", "cudla"]


def build(folder, source, cplus):
    """The extension module of a .pyx file."""
    compiler = shutil.which("g++" if cplus else "gcc")
    headers = find_nvidia_header_directory("cudart")
    if compiler is None or headers is None or not pathlib.Path(headers, "crt").is_dir():
        pytest.skip("needs a C compiler and the headers of CUDA, those of nvidia-cuda-crt included")
    generated = folder / (source.stem + (".cpp" if cplus else ".c"))
    words = ["-3", "--cplus"] if cplus else ["-3"]
    root = str(DECLARATIONS.parent.parent)
    cython = [sys.executable, "-m", "cython", *words, "-I", root, str(source), "-o", str(generated)]
    done = subprocess.run(cython, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    library = folder / f"{source.stem}{sysconfig.get_config_var('EXT_SUFFIX')}"
    include = [f"-I{sysconfig.get_paths()['include']}", f"-I{headers}"]
    words = [compiler, "-shared", "-fPIC", "-w", *include, str(generated), "-o", str(library)]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    spec = importlib.util.spec_from_file_location(source.stem, library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("cplus", [False, True], ids=["C", "C++"])
def test_calls(tmp_path, cplus):
    calls = build(tmp_path, pathlib.Path(__file__).with_name("calls.pyx"), cplus)
    calls.run()
    for call in (calls.missing, calls.missing_nogil):
        with pytest.raises(DynamicLibNotFoundError, match="libcudla"):
            call()


@pytest.mark.parametrize("name", MODULES)
def test_every_declared_function_is_imported(tmp_path, name):
    """Cython compares the C type of each declaration with the name of the capsule."""
    text = (DECLARATIONS / f"cy{name}.pxd").read_text()
    functions = re.findall(r"^cdef [^\n(]*?(\w+)\([^\n]*except", text, re.MULTILINE)
    capsules = importlib.import_module(f"cuda.bindings.cy{name}").__pyx_capi__
    assert sorted(functions) == sorted(capsules)
    source = tmp_path / f"all_{name}.pyx"
    rows = "".join(f'        "{f}": <size_t>&c.{f},\n' for f in functions)
    source.write_text(f"cimport cuda.bindings.cy{name} as c\n\ndef addresses():\n    return {{\n{rows}    }}\n")
    addresses = build(tmp_path, source, cplus=True).addresses()
    assert len(set(addresses.values())) == len(functions)
