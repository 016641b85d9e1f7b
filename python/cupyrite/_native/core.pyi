"""Native parts of ``cuda.core`` that its Python modules use. The stub of a public class is where the class is public."""

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from typing import Protocol

from cuda.core._linker_options import LinkerOptions
from cuda.core._memory._buffer import MemoryResource
from cuda.core._memory._device_memory_resource import DeviceMemoryResource
from cuda.core._module import ObjectCode
from cuda.core._program_options import ProgramOptions
from cuda.core.typing import CompilerBackendType, ObjectCodeFormatType
from typing_extensions import Buffer

# ----------------------------------------------------------------------------------------------------------------------
# For cuda.core._utils.cuda_utils

class CUDAError(Exception):
    """A call of the CUDA driver failed. The message begins with the name of the status and names the function."""

class NVRTCError(CUDAError):
    """A call of NVRTC failed. The message contains the compilation log."""

def _explanation(code: int) -> str | None:
    """Description of a driver status; None if unknown."""

# ----------------------------------------------------------------------------------------------------------------------
# For programs and linkers

def prepare_program_options(options: ProgramOptions) -> None:
    """Implements `ProgramOptions.__post_init__`: sets computed defaults and checks every field."""

def program_options_as_bytes(
    options: ProgramOptions,
    backend: CompilerBackendType | str,
    target_type: ObjectCodeFormatType | str | None = None,
) -> list[bytes]:
    """Implements `ProgramOptions.as_bytes`."""

def linker_arguments(options: LinkerOptions) -> list[bytes]:
    """Options as nvJitLink arguments; implements `LinkerOptions.as_bytes`."""

# ----------------------------------------------------------------------------------------------------------------------
# For program caches

class _Storage(Protocol):
    """Storage of a program cache."""

    @property
    def hits(self) -> int: ...
    @property
    def misses(self) -> int: ...
    def get(self, key: bytes | str) -> bytes | None: ...
    def put(self, key: bytes | str, value: Buffer | ObjectCode) -> None: ...
    def remove(self, key: bytes | str) -> bool: ...
    def clear(self) -> None: ...
    def compile_lock(self, key: bytes | str, lock_timeout: float) -> AbstractContextManager[None]: ...
    def __len__(self) -> int: ...

def file_cache(path: str | PathLike[str] | None = None, max_size_bytes: int | None = None) -> _Storage:
    """Creates the storage of a `FileStreamProgramCache`."""

def memory_cache(max_size_bytes: int | None = None) -> _Storage:
    """Creates the storage of an `InMemoryProgramCache`."""

def lock_timeout_seconds(lock_timeout: float) -> float:
    """Checks the `lock_timeout` of a cache; returns it as a float."""

def cache_entry_name(key: bytes | str) -> str:
    """The name of the entry of a key: 64 hexadecimal digits."""

def seal_cache_entry(key: bytes | str, value: Buffer | ObjectCode) -> bytes:
    """The entry to store for a value: its bytes, and a line with a checksum."""

def unseal_cache_entry(key: bytes | str, entry: bytes) -> bytes | None:
    """The bytes of a stored entry; None if the entry is damaged."""

def program_cache_key(
    code: str | bytes | bytearray,
    code_type: str,
    options: ProgramOptions,
    target_type: str,
    name_expressions: Sequence[str | bytes] | None = None,
    extra_digest: Buffer | None = None,
) -> bytes:
    """Implements `make_program_cache_key`."""

# ----------------------------------------------------------------------------------------------------------------------
# For device memory pools

def mempool_get_access(mr: DeviceMemoryResource, device_id: int) -> str:
    """Access rights of a device to the memory of a pool: ``'rw'``, ``'r'`` or ``''``."""

def mempool_set_access(mr: DeviceMemoryResource, add: Iterable[int], remove: Iterable[int]) -> None:
    """Grants and revokes access of devices to the memory of a pool; all changes are applied or none."""

def _set_default_memory_resource(device_id: int, mr: MemoryResource) -> None:
    """Sets the memory resource of a device for all threads that have not used theirs."""
