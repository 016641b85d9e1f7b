"""Checkpoints: the device memory of a process is saved, released, and restored, by the process itself or by another one.

A process is locked (its CUDA calls wait), checkpointed (its device memory moves to the host and is released), restored and
unlocked. Needs Linux and driver 570 or later; the CPU device has checkpoints as well.
"""

from __future__ import annotations

from operator import index as _index

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, SupportsIndex

    from cuda.core.typing import ProcessStateType

__all__ = ["Process"]

_STATES: dict[str, ProcessStateType] = {
    "CU_PROCESS_STATE_RUNNING": "running",
    "CU_PROCESS_STATE_LOCKED": "locked",
    "CU_PROCESS_STATE_CHECKPOINTED": "checkpointed",
    "CU_PROCESS_STATE_FAILED": "failed",
}

_MOST_MS = 0xFFFFFFFF


def _call(name: str, pid: int, *arguments: object, expected: str | None = None) -> Any:
    """Call a function of the driver for a process. The message of an error says what is wrong with the process."""
    from cuda.bindings import driver

    from ._utils.cuda_utils import CUDAError, handle_return

    handle_return(driver.cuInit(0))
    status, *values = getattr(driver, name)(pid, *arguments)
    try:
        return handle_return((status, *values))
    except CUDAError as error:
        if reason := _reason(status.name, pid, expected, arguments):
            error.args = (f"{error} ({name})\n{reason}",)
        raise


def _reason(status: str, pid: int, expected: str | None, arguments: tuple[object, ...]) -> str | None:
    """Why a call failed, or None. `expected` is the state that the call requires."""
    from cuda.bindings import driver

    exists = _exists(pid)
    if not exists:
        return f"pid is {pid}; there is no such process" if exists is False else None
    error, found = driver.cuCheckpointProcessGetState(pid)
    if error != driver.CUresult.CUDA_SUCCESS:
        return f"pid is {pid}; expected a process of the same user that has used CUDA"
    state: str = _STATES.get(found.name, found.name)
    if expected is not None and state != expected:
        return f"process {pid} is {state!r}; expected {expected!r}"
    if status == "CUDA_ERROR_INVALID_VALUE" and any(a is not None for a in arguments) and expected == "checkpointed":
        return (
            "gpu_mapping: expected the UUIDs of all devices of the machine as keys, and of existing devices as values"
        )
    if status == "CUDA_ERROR_NOT_READY":
        return f"calls of process {pid} were still in progress after timeout_ms; it is running again"
    return None


def _exists(pid: int) -> bool | None:
    """Whether the process exists; None if that cannot be found out."""
    import os

    if os.name != "posix":
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:
        # It belongs to another user.
        return True
    return True


def _uuid(value: object, name: str) -> bytes:
    """The 16 bytes of a UUID, which may be a `CUuuid` or text, with or without the prefix ``GPU-``."""
    from cuda.bindings import driver

    if isinstance(value, driver.CUuuid):
        return value.bytes
    if not isinstance(value, str):
        raise TypeError(f"{name} of gpu_mapping is of type {type(value).__name__}; expected str or CUuuid")
    digits = value.removeprefix("GPU-").replace("-", "")
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        raw = b""
    if len(raw) != 16:
        raise ValueError(f"{name} of gpu_mapping is {value!r}; expected a UUID like Device.uuid")
    return raw


class Process:
    """A process whose device memory can be saved and restored.

    Parameters
    ----------
    pid : int
        Process ID; that of another process of the same user, or of this one.

    Examples
    --------
    Release the device memory of this process for a while (on an NVIDIA GPU):

    >>> import os
    >>> from cuda.core.checkpoint import Process
    >>> process = Process(os.getpid())
    >>> process.pid == os.getpid()
    True
    >>> process.state  # doctest: +SKIP
    'running'
    >>> process.restore_thread_id  # doctest: +SKIP
    4711
    >>> process.lock(timeout_ms=1000)  # doctest: +SKIP
    >>> process.checkpoint()  # doctest: +SKIP
    >>> process.restore()  # doctest: +SKIP
    >>> process.unlock()  # doctest: +SKIP
    """

    __slots__ = ("_pid",)

    def __init__(self, pid: SupportsIndex) -> None:
        if isinstance(pid, bool) or not hasattr(type(pid), "__index__"):
            raise TypeError(f"pid is of type {type(pid).__name__}; expected int")
        number = _index(pid)
        if not 0 < number < 1 << 31:
            raise ValueError(f"pid is {number}; expected a process ID, 1 to {(1 << 31) - 1}")
        self._pid = number

    @property
    def pid(self) -> int:
        """Process ID."""
        return self._pid

    @property
    def state(self) -> ProcessStateType:
        """``"running"``, ``"locked"``, ``"checkpointed"`` or ``"failed"``."""
        state = _call("cuCheckpointProcessGetState", self._pid)
        try:
            return _STATES[state.name]
        except (AttributeError, KeyError):
            raise RuntimeError(
                f"cuCheckpointProcessGetState returned {state!r}, which this package does not know"
            ) from None

    @property
    def restore_thread_id(self) -> int:
        """ID of the thread in the process from which it is restored."""
        thread: int = _call("cuCheckpointProcessGetRestoreThreadId", self._pid)
        return thread

    def lock(self, timeout_ms: SupportsIndex = 0) -> None:
        """Lock a running process: its CUDA calls wait until it is unlocked.

        Parameters
        ----------
        timeout_ms : int
            How long to wait for its calls in progress, in milliseconds; 0 waits without a limit. If the time is over, the
            process is running again.

        Raises
        ------
        CUDAError
            ``CUDA_ERROR_NOT_READY`` after the time; ``CUDA_ERROR_ILLEGAL_STATE`` if the process is not running.
        """
        from cuda.bindings import driver

        if isinstance(timeout_ms, bool) or not hasattr(type(timeout_ms), "__index__"):
            raise TypeError(f"timeout_ms is of type {type(timeout_ms).__name__}; expected int")
        number = _index(timeout_ms)
        if not 0 <= number <= _MOST_MS:
            raise ValueError(f"timeout_ms is {number}; expected 0 (no limit) to {_MOST_MS}")
        arguments = driver.CUcheckpointLockArgs()
        arguments.timeoutMs = number
        _call("cuCheckpointProcessLock", self._pid, arguments, expected="running")

    def checkpoint(self) -> None:
        """Save the device memory of a locked process and release it.

        Raises
        ------
        CUDAError
            ``CUDA_ERROR_ILLEGAL_STATE`` if the process is not locked.
        """
        _call("cuCheckpointProcessCheckpoint", self._pid, None, expected="locked")

    def restore(self, gpu_mapping: Mapping[Any, Any] | None = None) -> None:
        """Restore a checkpointed process, which is locked afterwards.

        Parameters
        ----------
        gpu_mapping : mapping, optional
            The UUID of each device at the time of the checkpoint, and of the device to restore it onto: text like
            `Device.uuid`, or `CUuuid`. It names every device of the machine, also those that ``CUDA_VISIBLE_DEVICES``
            hides. Default: the same devices.

        Raises
        ------
        CUDAError
            ``CUDA_ERROR_ILLEGAL_STATE`` if the process is not checkpointed.
        """
        arguments = None
        if gpu_mapping is not None:
            import ctypes
            from collections.abc import Mapping

            from cuda.bindings import driver

            if not isinstance(gpu_mapping, Mapping):
                raise TypeError(f"gpu_mapping is of type {type(gpu_mapping).__name__}; expected a mapping of UUIDs")
            pairs, memory = [], []
            for old, new in gpu_mapping.items():
                # The structure is two UUIDs of 16 bytes, whose bytes cannot be assigned.
                raw = ctypes.create_string_buffer(_uuid(old, "a key") + _uuid(new, "a value"), 32)
                memory.append(raw)
                pairs.append(driver.CUcheckpointGpuPair(_ptr=ctypes.addressof(raw)))
            if pairs:
                arguments = driver.CUcheckpointRestoreArgs()
                arguments.gpuPairs = pairs
                arguments.gpuPairsCount = len(pairs)
        _call("cuCheckpointProcessRestore", self._pid, arguments, expected="checkpointed")

    def unlock(self) -> None:
        """Unlock a locked process: its CUDA calls continue.

        Raises
        ------
        CUDAError
            ``CUDA_ERROR_ILLEGAL_STATE`` if the process is not locked.
        """
        _call("cuCheckpointProcessUnlock", self._pid, None, expected="locked")

    def __repr__(self) -> str:
        return f"Process({self._pid})"


del TYPE_CHECKING
