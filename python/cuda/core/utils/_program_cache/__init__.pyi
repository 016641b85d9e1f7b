"""Program caches and cache keys."""

from ._abc import ProgramCacheResource as ProgramCacheResource
from ._file_stream import FileStreamProgramCache as FileStreamProgramCache
from ._in_memory import InMemoryProgramCache as InMemoryProgramCache
from ._keys import make_program_cache_key as make_program_cache_key

__all__ = ["FileStreamProgramCache", "InMemoryProgramCache", "ProgramCacheResource", "make_program_cache_key"]
