"""Utilities: strided memory views, program caches, batched copies and prefetches."""

from .._memory._copy_enums import (
    CopyOptions as CopyOptions,
    MemcpyOverlapMode as MemcpyOverlapMode,
    MemcpySrcAccessOrder as MemcpySrcAccessOrder,
)
from .._memory._copy_ops import copy_batch as copy_batch
from .._memory._managed_memory_ops import (
    discard_batch as discard_batch,
    discard_prefetch_batch as discard_prefetch_batch,
    prefetch_batch as prefetch_batch,
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
    "copy_batch",
    "discard_batch",
    "discard_prefetch_batch",
    "make_program_cache_key",
    "prefetch_batch",
]

def __dir__() -> list[str]: ...
