"""Utilities: strided memory views, program caches, batched copies and prefetches."""

# Public name -> module that defines it, relative to this package.
_HOMES = {
    "CopyOptions": ".._memory._copy_enums",
    "FileStreamProgramCache": "._program_cache",
    "InMemoryProgramCache": "._program_cache",
    "MemcpyOverlapMode": ".._memory._copy_enums",
    "MemcpySrcAccessOrder": ".._memory._copy_enums",
    "ProgramCacheResource": "._program_cache",
    "StridedMemoryView": ".._memoryview",
    "args_viewable_as_strided_memory": ".._memoryview",
    "copy_batch": ".._memory._copy_ops",
    "discard_batch": ".._memory._managed_memory_ops",
    "discard_prefetch_batch": ".._memory._managed_memory_ops",
    "make_program_cache_key": "._program_cache",
    "prefetch_batch": ".._memory._managed_memory_ops",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    from importlib import import_module

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(home, __name__), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_HOMES})
