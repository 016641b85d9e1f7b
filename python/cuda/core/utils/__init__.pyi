"""Utilities: views of everyone's arrays, caches of compiled programs, options of copies."""

from .._memory._copy_enums import (
    CopyOptions as CopyOptions,
    MemcpyOverlapMode as MemcpyOverlapMode,
    MemcpySrcAccessOrder as MemcpySrcAccessOrder,
)
from .._memoryview import (
    StridedMemoryView as StridedMemoryView,
    args_viewable_as_strided_memory as args_viewable_as_strided_memory,
)
from ._program_cache import (
    FileStreamProgramCache as FileStreamProgramCache,
    InMemoryProgramCache as InMemoryProgramCache,
    ProgramCacheResource as ProgramCacheResource,
    make_program_cache_key as make_program_cache_key,
)

__all__ = [
    "CopyOptions",
    "FileStreamProgramCache",
    "InMemoryProgramCache",
    "MemcpyOverlapMode",
    "MemcpySrcAccessOrder",
    "ProgramCacheResource",
    "StridedMemoryView",
    "args_viewable_as_strided_memory",
    "make_program_cache_key",
]

def __dir__() -> list[str]: ...
