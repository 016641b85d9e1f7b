"""Transfer of device memory between processes of one machine, without a copy through the host.

Every process that receives has an :class:`IpcReceiver`: a thread behind a Unix socket. A sender connects, passes the file
descriptor of an IPC-enabled pool and the descriptor of a buffer; the receiver imports the buffer, copies it into memory of its
own, closes the import and answers. After the answer the two processes share no memory: either can free its own, or end.
"""

from __future__ import annotations

import contextlib
import logging
import os
import pickle
import secrets
import socket
import struct
import sys
import threading
import time
import weakref
from typing import Any

from cuda.core import Buffer, Device, DeviceMemoryResource
from cuda.core._memory._ipc import IPCAllocationHandle

__all__ = ["IpcReceiver", "is_supported", "node_identity", "send"]

_log = logging.getLogger(__name__)

#: Seconds that a sender waits for a receiver, which allocates and copies.
TIMEOUT = 30.0
#: Seconds after which memory that was not claimed is freed: its message was lost.
UNCLAIMED_SECONDS = 600.0
#: Seconds after which an imported pool that is not used is closed: the process that exported it may have ended.
UNUSED_POOL_SECONDS = 60.0
#: Seconds between two looks for such memory and pools.
EXPIRY_INTERVAL = 15.0
_LENGTH = struct.Struct("<Q")


def is_supported(device: Device | None = None) -> bool:
    """Whether memory can be sent: on Linux, and from pools of the device that are shared as file descriptors.

    Parameters
    ----------
    device : Device, optional
        Default: no device is asked.
    """
    if sys.platform != "linux":
        return False
    if device is None:
        return True
    properties = device.properties
    return bool(properties.memory_pools_supported and properties.mempool_supported_handle_types & 1)


def node_identity() -> str:
    """Text that two processes have in common if one can connect to abstract sockets of the other: the machine's boot and the
    network namespace."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            boot = file.read().strip()
        return f"{boot} {os.stat('/proc/self/ns/net').st_ino}"
    except OSError:
        # Equal to no other text: the bytes then go through the host.
        return secrets.token_hex(16)


def _peer_user(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    # The process, the user, the group.
    user: int = struct.unpack("3i", credentials)[1]
    return user


def _send_message(connection: socket.socket, message: Any, files: list[int]) -> None:
    data = pickle.dumps(message)
    socket.send_fds(connection, [_LENGTH.pack(len(data))], files)
    connection.sendall(data)


def _receive_message(connection: socket.socket, most_files: int) -> tuple[Any, list[int]]:
    data, files, _, _ = socket.recv_fds(connection, _LENGTH.size, most_files)
    try:
        # A stream delivers any number of bytes at a time.
        data += _receive_exactly(connection, _LENGTH.size - len(data))
        return pickle.loads(_receive_exactly(connection, _LENGTH.unpack(data)[0])), files
    except BaseException:
        for file in files:
            os.close(file)
        raise


def _receive_exactly(connection: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = connection.recv(size - len(parts))
        if not part:
            raise ConnectionError("the other process closed the connection")
        parts += part
    return bytes(parts)


class IpcReceiver:
    """Receives device memory from processes of the same user on the same machine.

    Attributes
    ----------
    address : str
        Address for :func:`send`.
    count : int
        Number of buffers received so far.
    """

    def __init__(self) -> None:
        if not is_supported():
            raise RuntimeError("transfers between processes need Linux")
        self.address = f"cupyrite-ipc-{os.getpid()}-{secrets.token_hex(8)}"
        self.count = 0
        self._lock = threading.Lock()
        self._closed = False
        # Ticket: received memory and the time of its arrival.
        self._received: dict[int, tuple[Buffer, float]] = {}
        # UUID of a pool: its imported resource and the time of its last use.
        self._pools: dict[Any, tuple[DeviceMemoryResource, float]] = {}
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind("\0" + self.address)
        self._socket.listen(64)
        self._socket.settimeout(EXPIRY_INTERVAL)
        _receivers.add(self)
        threading.Thread(target=self._accept, name="cupyrite-ipc", daemon=True).start()

    def close(self) -> None:
        """Stop receiving, and free unclaimed memory. Further calls do nothing."""
        self._closed = True
        with contextlib.suppress(OSError):
            # Ends accept() in the other thread.
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        with self._lock:
            self._received.clear()
            self._pools.clear()

    def claim(self, ticket: int) -> Buffer:
        """Return received memory.

        Parameters
        ----------
        ticket : int
            The result of :func:`send`. Each can be claimed once.

        Raises
        ------
        RuntimeError
            There is no such memory: it was claimed before, or not within 10 minutes.
        """
        with self._lock:
            found = self._received.pop(ticket, None)
        if found is None:
            raise RuntimeError(f"memory {ticket} from another process was claimed before, or freed after 10 minutes")
        return found[0]

    def _accept(self) -> None:
        while not self._closed:
            try:
                connection, _ = self._socket.accept()
            except TimeoutError:
                self._expire()
                continue
            except OSError as error:
                if not self._closed:
                    # Such as too many open files: other transfers may end meanwhile.
                    _log.debug("a transfer from another process was not accepted: %s", error)
                    time.sleep(0.1)
                continue
            try:
                threading.Thread(target=self._serve, args=(connection,), name="cupyrite-ipc", daemon=True).start()
            except RuntimeError as error:
                _log.debug("a transfer from another process was not accepted: %s", error)
                connection.close()

    def _expire(self) -> None:
        """Free unclaimed memory, and close unused pools."""
        now = time.monotonic()
        with self._lock:
            lost = [ticket for ticket, (_, arrival) in self._received.items() if now - arrival > UNCLAIMED_SECONDS]
            unused = [uuid for uuid, (_, used) in self._pools.items() if now - used > UNUSED_POOL_SECONDS]
            # Freed after the lock is released.
            expired = [*(self._received.pop(ticket) for ticket in lost), *(self._pools.pop(uuid) for uuid in unused)]
        del expired

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.settimeout(TIMEOUT)
            answer: int | str = ""
            try:
                if _peer_user(connection) != os.geteuid():
                    return
                request, files = _receive_message(connection, 1)
                try:
                    answer = self._receive(request, files)
                except Exception as error:
                    answer = f"{type(error).__name__}: {error}"
                _send_message(connection, answer, [])
            except Exception as error:
                _log.debug("a transfer from another process failed: %s", error)
                if isinstance(answer, int):
                    # The sender does not have the ticket.
                    with self._lock:
                        self._received.pop(answer, None)

    def _receive(self, request: dict[str, Any], files: list[int]) -> int:
        """Copy a buffer of another process; return its ticket."""
        source = self._pool(request, files)
        device = Device()
        stream = device.create_stream()
        size = request["size"]
        memory = device.allocate(size, stream=stream)
        imported = Buffer.from_ipc_descriptor(source, request["descriptor"], stream=stream)
        try:
            if source.device_id != device.device_id:
                source.peer_accessible_by = [device]
            memory.copy_from(imported if imported.size == size else imported[:size], stream=stream)
            stream.sync()
        finally:
            imported.close(stream)
            stream.sync()
        with self._lock:
            # Also the ticket.
            self.count += 1
            self._received[self.count] = memory, time.monotonic()
            return self.count

    def _pool(self, request: dict[str, Any], files: list[int]) -> DeviceMemoryResource:
        # Owns the file descriptor, also if the pool is known.
        handle: IPCAllocationHandle = IPCAllocationHandle._restore(files[0], request["pool"])  # type: ignore[attr-defined]
        now = time.monotonic()
        with self._lock:
            known = self._pools.get(request["pool"])
            if known is not None:
                self._pools[request["pool"]] = known[0], now
        if known is not None:
            handle.close()
            return known[0]
        wanted = request["device"]
        device = next((device for device in Device.get_all_devices() if device.uuid == wanted), None)
        if device is None:
            raise LookupError(f"device {wanted} is not visible to process {os.getpid()}")
        imported = DeviceMemoryResource.from_allocation_handle(device, handle)
        with self._lock:
            return self._pools.setdefault(request["pool"], (imported, now))[0]


_receivers: weakref.WeakSet[IpcReceiver] = weakref.WeakSet()


def _after_fork() -> None:
    # The child has no threads that answer, and must not keep the addresses in use.
    for receiver in list(_receivers):
        receiver._closed = True
        receiver._socket.close()


os.register_at_fork(after_in_child=_after_fork)

_staging_lock = threading.Lock()
_staging_pools: dict[int, DeviceMemoryResource] = {}


def _staging_pool(device_id: int) -> DeviceMemoryResource:
    with _staging_lock:
        pool = _staging_pools.get(device_id)
        if pool is None:
            pool = _staging_pools[device_id] = DeviceMemoryResource(device_id, {"ipc_enabled": True})
        return pool


# Exported memory whose receiver did not answer in time, and until when it is kept.
_kept: list[tuple[Buffer, float]] = []


def _keep(memory: Buffer) -> None:
    now = time.monotonic()
    with _staging_lock:
        _kept[:] = [*((kept, until) for kept, until in _kept if until > now), (memory, now + UNCLAIMED_SECONDS)]


def _exportable(memory: Buffer) -> bool:
    resource = memory.memory_resource
    if not isinstance(resource, DeviceMemoryResource) or memory.is_mapped or not resource.is_ipc_enabled:
        return False
    try:
        return memory.ipc_descriptor.size >= memory.size
    except RuntimeError:
        # A slice: its pool exports whole allocations only.
        return False


def send(memory: Buffer, address: str) -> int | None:
    """Send device memory to an :class:`IpcReceiver`. The memory's work must be complete.

    Parameters
    ----------
    memory : Buffer
        Memory that is not in an IPC-enabled pool is copied into one first, on its device.
    address : str
        The receiver's address.

    Returns
    -------
    int or None
        The ticket of the memory at the receiver; None if the receiver cannot be reached, does not see the device, or is short
        of memory.
    """
    device = Device(memory.device_id)
    staged = None
    answer: int | str = ""
    try:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(TIMEOUT)
            connection.connect("\0" + address)
            if _peer_user(connection) != os.geteuid():
                return None
            if not _exportable(memory):
                stream = device.create_stream()
                staged = _staging_pool(memory.device_id).allocate(memory.size, stream=stream)
                staged.copy_from(memory, stream=stream)
                stream.sync()
            source = staged or memory
            pool: Any = source.memory_resource
            handle = pool.allocation_handle
            request = {
                "pool": handle.uuid,
                "descriptor": source.ipc_descriptor,
                "size": memory.size,
                "device": device.uuid,
            }
            _send_message(connection, request, [int(handle)])
            answer = _receive_message(connection, 0)[0]
    except TimeoutError as error:
        # The receiver may still copy.
        _keep(staged or memory)
        staged = None
        _log.debug("device memory could not be sent to %s: %s", address, error)
        return None
    except Exception as error:
        # The bytes then go through the host, which reports errors of the memory itself.
        _log.debug("device memory could not be sent to %s: %s", address, error)
        return None
    finally:
        if staged is not None:
            staged.close()
    if isinstance(answer, str):
        _log.debug("process at %s did not accept device memory: %s", address, answer)
        return None
    return answer
