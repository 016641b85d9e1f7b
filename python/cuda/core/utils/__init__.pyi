"""Utilities: caches of compiled programs, options of copies."""

from .._memory._copy_enums import (
    CopyOptions as CopyOptions,
    MemcpyOverlapMode as MemcpyOverlapMode,
    MemcpySrcAccessOrder as MemcpySrcAccessOrder,
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
    "make_program_cache_key",
]

def __dir__() -> list[str]: ...
