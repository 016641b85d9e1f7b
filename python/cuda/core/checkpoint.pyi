"""Checkpoints: the device memory of a process is saved, released, and restored, by the process itself or by another one."""

from collections.abc import Mapping
from typing import Any, Literal, SupportsIndex

__all__ = ["Process"]

class Process:
    """A process whose device memory can be saved and restored.

    Parameters
    ----------
    pid : int
        Process ID; that of another process of the same user, or of this one.
    """

    def __init__(self, pid: SupportsIndex) -> None: ...
    @property
    def pid(self) -> int:
        """Process ID."""
    @property
    def state(self) -> Literal["running", "locked", "checkpointed", "failed"]:
        """``"running"``, ``"locked"``, ``"checkpointed"`` or ``"failed"``."""
    @property
    def restore_thread_id(self) -> int:
        """ID of the thread in the process from which it is restored."""
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
    def checkpoint(self) -> None:
        """Save the device memory of a locked process and release it.

        Raises
        ------
        CUDAError
            ``CUDA_ERROR_ILLEGAL_STATE`` if the process is not locked.
        """
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
    def unlock(self) -> None:
        """Unlock a locked process: its CUDA calls continue.

        Raises
        ------
        CUDAError
            ``CUDA_ERROR_ILLEGAL_STATE`` if the process is not locked.
        """
