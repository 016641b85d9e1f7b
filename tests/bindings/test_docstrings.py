"""`help(driver.cuMemAlloc)`: what a function does, its parameters, its statuses and the section of NVIDIA's manual."""

import importlib
import inspect
import re

import pytest

MODULES = {
    "driver": "driver",
    "runtime": "runtime",
    "nvrtc": "nvrtc",
    "nvjitlink": "nvjitlink",
    "nvvm": "nvvm",
    "nvfatbin": "nvfatbin",
    "nvml": "nvml",
    "cufile": "cufile",
    "cudla": "cudla",
    "_v2.driver": "driver",
    "_v2.runtime": "runtime",
    "_v2.nvrtc": "nvrtc",
}

# The pages of the manuals: a group of the headers' documentation each.
GROUPS = {
    "driver": """
        CUDA_CHECKPOINT CUDA_CLIQUE CUDA_COREDUMP CUDA_CTX CUDA_CTX_DEPRECATED CUDA_DEVICE CUDA_DEVICE_DEPRECATED
        CUDA_DRIVER_ENTRY_POINT CUDA_EGL CUDA_ERROR CUDA_EVENT CUDA_EXEC CUDA_EXEC_DEPRECATED CUDA_EXTRES_INTEROP
        CUDA_FABRIC_COPY CUDA_GL CUDA_GRAPH CUDA_GRAPHICS CUDA_GREEN_CONTEXTS CUDA_INITIALIZE CUDA_LIBRARY
        CUDA_LOGICAL_ENDPOINT CUDA_LOGS CUDA_MALLOC_ASYNC CUDA_MEM CUDA_MEMOP CUDA_MODULE CUDA_MODULE_DEPRECATED
        CUDA_MULTICAST CUDA_OCCUPANCY CUDA_PEER_ACCESS CUDA_PRIMARY_CTX CUDA_PROFILER CUDA_STREAM CUDA_SURFOBJECT
        CUDA_SURFREF_DEPRECATED CUDA_TENSOR_MEMORY CUDA_TEXOBJECT CUDA_TEXREF_DEPRECATED CUDA_UNIFIED CUDA_VA
        CUDA_VDPAU CUDA_VERSION
    """,
    "runtime": """
        CUDART_DEVICE CUDART_DEVICE_DEPRECATED CUDART_DRIVER CUDART_DRIVER_ENTRY_POINT CUDART_EGL CUDART_ERROR
        CUDART_EVENT CUDART_EXECUTION CUDART_EXECUTION_CONTEXT CUDART_EXECUTION_DEPRECATED CUDART_EXTRES_INTEROP
        CUDART_GRAPH CUDART_INTEROP CUDART_LIBRARY CUDART_LOGS CUDART_MEMORY CUDART_MEMORY_DEPRECATED
        CUDART_MEMORY_POOLS CUDART_OCCUPANCY CUDART_OPENGL CUDART_PEER CUDART_PROFILER CUDART_STREAM
        CUDART_SURFACE_OBJECT CUDART_TEXTURE_OBJECT CUDART_UNIFIED CUDART_VDPAU CUDART__VERSION
    """,
    "nvml": """
        NvLink nvmlAccountingStats nvmlAffinity nvmlDeviceCommands nvmlDeviceQueries nvmlErrorReporting nvmlEvents
        nvmlExcludedGpuQueries nvmlFieldValueQueries nvmlGPUPRMAccess nvmlInitializationAndCleanup
        nvmlMultiInstanceGPU nvmlPowerSmoothing nvmlSystemQueries nvmlUnitCommands nvmlUnitQueries nvmlUtil nvmlVgpu
        nvmlVgpuMigration nvmlVirtualGpuQueries nvmlZPI
    """,
}
HEADINGS = {
    "nvrtc": "bundled-headers-installation compilation error-handling general-information-query "
    "precompiled-header-pch-cuda-12-8",
    "nvjitlink": "linking",
    "nvvm": "compilation error-handling general-information-query",
    "nvfatbin": "error-codes fatbinary-creation",
    "cudla": "group__CUDLA__API",
}
MANUALS = {
    "driver": "https://docs.nvidia.com/cuda/cuda-driver-api/",
    "runtime": "https://docs.nvidia.com/cuda/cuda-runtime-api/",
    "nvrtc": "https://docs.nvidia.com/cuda/nvrtc/",
    "nvjitlink": "https://docs.nvidia.com/cuda/nvjitlink/",
    "nvvm": "https://docs.nvidia.com/cuda/libnvvm-api/",
    "nvfatbin": "https://docs.nvidia.com/cuda/nvfatbin/",
    "nvml": "https://docs.nvidia.com/deploy/nvml-api/",
    "cufile": "https://docs.nvidia.com/gpudirect-storage/api-reference-guide/",
    "cudla": "https://docs.nvidia.com/cuda/cudla-api/",
}
# Functions whose header documents no group.
WITHOUT_SECTION = {"cuGetExportTable", "cudaGetExportTable", "nvmlDeviceGetCapabilities"}


def functions(module):
    """The generated functions of a module. `sizeof` is not one of them."""
    from cuda.bindings import driver

    module = importlib.import_module(f"cuda.bindings.{module}")
    found = {name: getattr(module, name) for name in dir(module)}
    made = {n: f for n, f in found.items() if type(f) is type(driver.cuInit) and n not in ("sizeof", "__getattr__")}
    assert made, module
    return made


def sections(doc):
    """The docstring's sections by title. The part before the first one has the title ''."""
    parts = re.split(r"^(\w+)\n-+\n", doc, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


@pytest.mark.parametrize("module", MODULES)
def test_every_function_says_what_it_does(module):
    made = functions(module)
    # A function without a description has a fallback: "CUDA driver API: cuMemAlloc".
    first = {name: f.__doc__.splitlines()[0] for name, f in made.items()}
    without = sorted(name for name, line in first.items() if not line.endswith("."))
    print(f"{module}: {len(made) - len(without)} of {len(made)} functions have a description")
    assert not without
    assert not [name for name, line in first.items() if len(line) > 140 or "  " in line]


@pytest.mark.parametrize("module", MODULES)
def test_docstrings_are_complete(module):
    for name, f in functions(module).items():
        found = sections(f.__doc__)
        assert list(found)[-2:] == ["Raises", "See"], name
        names = list(inspect.signature(f).parameters)
        documented = re.findall(r"^(\w+) : ", found.get("Parameters", ""), flags=re.MULTILINE)
        assert documented == names, name
        for line in found.get("Statuses", "").split("\n"):
            # A name, and what it means in this project's words.
            assert not line or re.fullmatch(r"\w+: .+", line), (name, line)


@pytest.mark.parametrize("module", MODULES)
def test_sections_are_pages_of_the_manual(module):
    library = MODULES[module]
    if library in GROUPS:
        pages = {f"group__{group.replace('_', '__')}.html" for group in GROUPS[library].split()}
    else:
        pages = {f"index.html#{heading}" for heading in HEADINGS.get(library, "").split()}
    used = set()
    for name, f in functions(module).items():
        reference, url = sections(f.__doc__)["See"].splitlines()
        symbol = reference.split(":")[0]
        base, page = url[: len(MANUALS[library])], url[len(MANUALS[library]) :]
        assert base == MANUALS[library], name
        if library == "cufile" and ":" in reference:
            assert page == f"index.html#{symbol.removesuffix('_v2').lower()}", name
        elif page or (symbol not in WITHOUT_SECTION and ":" in reference):
            assert page in pages, (name, url)
            used.add(page)
    if library != "cufile":
        assert used == pages


def test_a_docstring_in_whole():
    from cuda.bindings import driver

    assert (
        driver.cuMemAlloc.__doc__
        == """\
Allocates device memory in the current context.

The memory is not initialized; its address is aligned for every type.

Parameters
----------
bytesize : size_t
    size in bytes, at least 1

Returns
-------
A tuple. All but the status are None after an error.

CUresult
dptr : CUdeviceptr

Statuses
--------
CUDA_SUCCESS: no error
CUDA_ERROR_DEINITIALIZED: the driver is shutting down
CUDA_ERROR_NOT_INITIALIZED: the driver is not initialized: call cuInit first
CUDA_ERROR_INVALID_CONTEXT: no context is current, or the context handle is not valid
CUDA_ERROR_INVALID_VALUE: an argument is outside the range of acceptable values
CUDA_ERROR_OUT_OF_MEMORY: the device has not enough memory left
CUDA_ERROR_EXTERNAL_DEVICE: an external device reported an error

Raises
------
TypeError, ValueError, OverflowError
    For an argument that does not convert; nothing is called then.

See
---
cuMemAlloc: CUDA driver API, Memory Management
https://docs.nvidia.com/cuda/cuda-driver-api/group__CUDA__MEM.html
"""
    )


def test_functions_that_raise_list_errors_with_their_names():
    from cuda.bindings._v2 import driver

    found = sections(driver.mem_alloc_v2.__doc__)
    assert found[""].startswith("Allocates device memory in the current context.\n")
    assert found["Parameters"] == "bytesize : size_t\n    size in bytes, at least 1\n\n"
    assert "ERROR_OUT_OF_MEMORY: the device has not enough memory left\n" in found["Statuses"]
    assert "SUCCESS" not in found["Statuses"]
    assert found["See"].startswith("cuMemAlloc_v2: CUDA driver API, Memory Management\n")


def test_results_have_notes():
    from cuda.bindings import driver, nvml

    assert "free : int\n    in bytes\ntotal : int\n    in bytes\n" in sections(driver.cuMemGetInfo.__doc__)["Returns"]
    assert "    in mW\n" in sections(nvml.device_get_power_usage.__doc__)["Returns"]
    # An argument that is a result too.
    found = sections(driver.cuGraphGetNodes.__doc__)
    assert "room for nodes" in found["Parameters"] and "room for nodes" in found["Returns"]


def test_functions_without_a_c_function_are_described():
    from cuda.bindings import runtime

    doc = runtime.make_cudaExtent.__doc__
    assert doc.startswith("Makes a cudaExtent: the size of a box.\n")
    assert "h : " in doc and "    height\n" in doc and "Statuses" not in doc
