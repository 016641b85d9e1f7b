"""Locks with a lease, for compilations that several hosts may start at once.

The holder renews its lease in a thread. A holder that was killed or stopped therefore frees its lock within
:data:`LEASE_SECONDS`, and a compilation may take any time. Entering a lock never raises: a caller that waited for too long, or
whose storage fails, goes on without it.
"""

from __future__ import annotations

import contextlib
import threading
from abc import ABC, abstractmethod
from time import monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

__all__ = ["LEASE_SECONDS", "Lease"]

#: Seconds after which the lock of a holder that no longer renews it is free.
LEASE_SECONDS = 10.0


class Lease(ABC):
    """Context manager that holds a lock of a storage.

    Parameters
    ----------
    within_process : context manager
        Lock of the threads of this process, so that one of them asks the storage.
    timeout : float
        Seconds to wait for both locks together.
    pauses : pair of float
        Seconds between attempts: the first and the longest pause.
    is_stored : callable
        Whether the entry exists. All waiting processes read it then, instead of one after the other with the lock.
    uncount_miss : callable
        Takes back the miss of the lookup before the lock.
    """

    def __init__(
        self,
        within_process: AbstractContextManager[object],
        timeout: float,
        pauses: tuple[float, float],
        is_stored: Callable[[], bool],
        uncount_miss: Callable[[], None],
    ) -> None:
        self._within_process = within_process
        self._timeout = timeout
        self._pauses = pauses
        self._is_stored = is_stored
        # `Program.compile` calls it.
        self._uncount_miss = uncount_miss
        self._held = False
        self._ended: threading.Event | None = None
        # Renewals end before the release.
        self._renewing = threading.Lock()

    @abstractmethod
    def try_acquire(self) -> bool | None:
        """Whether this call acquired the lock; None if the storage has no locks."""

    @abstractmethod
    def renew(self) -> bool:
        """Prolong the lease. False if another holder has the lock."""

    @abstractmethod
    def release(self) -> None:
        """Release the lock, if it is still held."""

    def __enter__(self) -> None:
        end = monotonic() + self._timeout
        self._within_process.__enter__()
        try:
            # A failure of the storage is reported by the lookup that follows.
            with contextlib.suppress(Exception):
                self._held = self._acquire_until(end)
            if self._held:
                self._ended = threading.Event()
                renewals = threading.Thread(
                    target=self._renew_regularly, args=(self._ended,), name="cupyrite-lease", daemon=True
                )
                # Without a thread, the lease is not renewed: another process may compile as well.
                with contextlib.suppress(RuntimeError):
                    renewals.start()
        except BaseException:
            self.__exit__()
            raise

    def _acquire_until(self, end: float) -> bool:
        pause, longest = self._pauses
        while not (acquired := self.try_acquire()):
            left = end - monotonic()
            if acquired is None or left <= 0 or self._is_stored():
                return False
            sleep(min(pause, left))
            pause = min(pause * 1.5, longest)
        return True

    def _renew_regularly(self, ended: threading.Event) -> None:
        while not ended.wait(LEASE_SECONDS / 3):
            with self._renewing:
                if ended.is_set():
                    return
                # The storage may be back before the lease ends.
                with contextlib.suppress(Exception):
                    if not self.renew():
                        return

    def __exit__(self, *exception: object) -> None:
        try:
            if self._held:
                self._held = False
                if self._ended is not None:
                    with self._renewing:
                        self._ended.set()
                # The lease ends without it.
                with contextlib.suppress(Exception):
                    self.release()
        finally:
            self._within_process.__exit__(None, None, None)
