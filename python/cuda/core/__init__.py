"""Pythonic CUDA: devices, streams, memory, programs and launches.

Public names are imported on first use, so importing this package loads neither NumPy nor a driver. Every object owns
its resources and releases them when it is closed or garbage-collected.
"""

__version__ = "1.2.2"

# Public name -> module of this package that defines it.
_HOMES = {
    "Buffer": "_memory._buffer",
    "Context": "_context",
    "ContextOptions": "_context",
    "Device": "_device",
    "DeviceMemoryResource": "_memory._device_memory_resource",
    "DeviceMemoryResourceOptions": "_memory._device_memory_resource",
    "DeviceResources": "_device_resources",
    "Event": "_event",
    "EventOptions": "_event",
    "GraphMemoryResource": "_memory._graph_memory_resource",
    "GraphicsResource": "_graphics",
    "Host": "_host",
    "Kernel": "_module",
    "LEGACY_DEFAULT_STREAM": "_stream",
    "LaunchConfig": "_launch_config",
    "LegacyPinnedMemoryResource": "_memory._legacy",
    "Linker": "_linker",
    "LinkerOptions": "_linker",
    "ManagedBuffer": "_memory._managed_buffer",
    "ManagedMemoryResource": "_memory._managed_memory_resource",
    "ManagedMemoryResourceOptions": "_memory._managed_memory_resource",
    "MemoryResource": "_memory._buffer",
    "ObjectCode": "_module",
    "PER_THREAD_DEFAULT_STREAM": "_stream",
    "PinnedMemoryResource": "_memory._pinned_memory_resource",
    "PinnedMemoryResourceOptions": "_memory._pinned_memory_resource",
    "Program": "_program",
    "ProgramOptions": "_program",
    "SMResource": "_device_resources",
    "SMResourceOptions": "_device_resources",
    "Stream": "_stream",
    "StreamOptions": "_stream",
    "TensorMapDescriptor": "_tensor_map",
    "TensorMapDescriptorOptions": "_tensor_map",
    "VirtualMemoryResource": "_memory._virtual_memory_resource",
    "VirtualMemoryResourceOptions": "_memory._virtual_memory_resource",
    "WorkqueueResource": "_device_resources",
    "WorkqueueResourceOptions": "_device_resources",
    "launch": "_launcher",
}

_SUBMODULES = ("checkpoint", "graph", "system", "texture", "typing", "utils")

# Names that earlier versions had here or in cuda.core.experimental -> where they are.
_MOVED = {
    "Graph": "cuda.core.graph",
    "GraphBuilder": "cuda.core.graph",
    "GraphCompleteOptions": "cuda.core.graph",
    "GraphDebugPrintOptions": "cuda.core.graph",
    "StridedMemoryView": "cuda.core.utils",
    "args_viewable_as_strided_memory": "cuda.core.utils",
    "experimental": "cuda.core",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    from importlib import import_module

    if name in _SUBMODULES:
        return import_module(f"{__name__}.{name}")
    home = _HOMES.get(name)
    if home is None:
        raise _absent(name)
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def _absent(name):
    """The exception for an unknown name, with the module that has it now."""
    import sys

    moved = _MOVED.get(name)
    if moved is None:
        return AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name == "experimental":
        hint = f"the names of {__name__}.experimental are in {moved} now"
    else:
        hint = f"it is in {moved}: from {moved} import {name}"
    # `from cuda.core import name` asks with hasattr and discards the message of an AttributeError.
    if sys._getframe(2).f_code.co_name == "_handle_fromlist":
        return ImportError(f"cannot import name {name!r} from {__name__!r}: {hint}", name=__name__, path=__file__)
    return AttributeError(
        f"module {__name__!r} has no attribute {name!r}: {hint}", name=name, obj=sys.modules[__name__]
    )


def __dir__():
    return sorted({*globals(), *_HOMES, *_SUBMODULES})


def _patch_tab_completion():
    """Stop interactive tab completion from evaluating the getters of native classes.

    `rlcompleter` lists properties without reading them, but it does not recognise the getset descriptors of native
    classes, whose getters may call the driver or raise. CUDA_CORE_DONT_FIX_TAB_COMPLETION disables the patch.
    """
    import os
    import sys
    import types

    completion = sys.modules.get("rlcompleter")  # interactive interpreters import it first
    if completion is not None and os.environ.get("CUDA_CORE_DONT_FIX_TAB_COMPLETION", "") in ("", "0"):
        completion.property = (property, types.GetSetDescriptorType)


_patch_tab_completion()
