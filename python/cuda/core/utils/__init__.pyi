"""Utilities: caches of compiled programs."""

from ._program_cache import (
    FileStreamProgramCache as FileStreamProgramCache,
    InMemoryProgramCache as InMemoryProgramCache,
    ProgramCacheResource as ProgramCacheResource,
    make_program_cache_key as make_program_cache_key,
)

__all__ = ["FileStreamProgramCache", "InMemoryProgramCache", "ProgramCacheResource", "make_program_cache_key"]

def __dir__() -> list[str]: ...
