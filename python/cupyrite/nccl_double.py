"""A test double of NCCL: programs that call nccl4py run without GPUs and without NCCL. It is slow, and for tests only.

    import cupyrite.nccl_double as nccl  # instead of: import nccl.core as nccl

Names and parameters are those of ``nccl.core``: unique ids, `Communicator` (also `init_all`), `allreduce`, `broadcast`, `send`,
`recv`, groups. Ranks are threads or processes of one Linux machine, on devices of any kind. Data goes through host memory and
the process that made the unique id. It stays ordered: a call waits for its stream, and what it receives is copied in the stream.

Where NCCL hangs or writes wrong results, the double raises `NCCLError` on all ranks, with the reason: ranks whose calls differ in
operation, type, size, root or order; ranks that left; calls that some rank does not make within `TIMEOUT` seconds. After an error,
a communicator fails every call. Unlike NCCL, a call returns when all its ranks have made it, and ranks may share a device.
"""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import multiprocessing.util
import secrets
import struct
import threading
import time
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum
from multiprocessing.connection import Client, Connection, Listener
from typing import Any

import numpy as np
from cuda.core import Buffer, Device, Stream, system
from cuda.core.utils import args_viewable_as_strided_memory

#: Seconds that a call waits for the other ranks.
TIMEOUT = 30.0
# Seconds that a rank waits beyond that for the process with the hub, and that process at its exit for the ranks.
_GRACE = 5.0
_TYPES = {np.dtype(code) for code in ("i1", "u1", "i4", "u4", "i8", "u8", "f2", "f4", "f8")}


class NcclRedOp(IntEnum):
    """Reductions of the double, with the values of ``ncclRedOp_t``."""

    SUM, PROD, MAX, MIN = range(4)


SUM, PROD, MAX, MIN = NcclRedOp
_REDUCE = {SUM: np.add, PROD: np.multiply, MAX: np.maximum, MIN: np.minimum}


class NcclInvalid(Exception):
    """An argument is invalid: nccl4py checks it before it calls NCCL."""


class NCCLError(Exception):
    """A call failed on all ranks of a communicator."""


@dataclass
class _Call:
    name: str
    # Type and number of elements, reduction, root: equal for all ranks.
    what: str
    # Calls with equal keys belong together: those of all ranks, or of the two ranks (sender, receiver).
    key: tuple[Any, ...]
    peer: str = ""
    data: bytes | None = None
    op: NcclRedOp | None = None
    dtype: str = ""

    def text(self, rank: int) -> str:
        return f"{self.name} of {self.what} on rank {rank}{self.peer}"


class _Hub:
    """Matches the calls of all ranks, in the process that made the unique id. Each rank has a connection and a thread."""

    def __init__(self) -> None:
        self.key = secrets.token_bytes(16)
        # A socket in the abstract namespace, which leaves no file.
        self.listener = Listener(f"\0nccl-double-{secrets.token_hex(16)}", authkey=self.key)
        self.ranks = 0
        self.failure = ""
        self.joined: set[int] = set()
        self.left: set[int] = set()
        # {key: {(rank, name of the call, or "" if all ranks make it): call}}, and how many ranks have their results.
        self.calls: dict[tuple[Any, ...], dict[tuple[int, str], _Call]] = {}
        self.taken: dict[tuple[Any, ...], int] = {}
        self.threads: list[threading.Thread] = []
        self.changed = threading.Condition()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while len(self.threads) < (self.ranks or 1):
            # A process without the key is not a rank.
            with contextlib.suppress(OSError, EOFError, multiprocessing.AuthenticationError):
                connection = self.listener.accept()
                rank, ranks = connection.recv()
                with self.changed:
                    if rank in self.joined:
                        self.failure = f"init: two communicators have rank {rank}"
                        self.changed.notify_all()
                    self.ranks = self.ranks or ranks
                    self.joined.add(rank)
                self.threads.append(threading.Thread(target=self.serve, args=(rank, connection), daemon=True))
                self.threads[-1].start()
        self.listener.close()

    def serve(self, rank: int, connection: Connection) -> None:
        with connection, contextlib.suppress(OSError, EOFError):
            while True:
                timeout, calls = connection.recv()
                connection.send(self.answer(rank, timeout, calls))
        with self.changed:
            self.left.add(rank)
            self.changed.notify_all()

    def answer(self, rank: int, timeout: float, calls: list[_Call]) -> list[bytes | None] | str:
        """The results of calls that a rank makes together, or the reason why the communicator failed."""
        deadline = time.monotonic() + timeout
        with self.changed:
            if self.failure:
                return self.failure
            for call in calls:
                role = call.name if call.key[0] == "pair" else ""
                self.calls.setdefault(call.key, {})[rank, role] = call
            self.changed.notify_all()
            if all(self.wait(rank, call, deadline, timeout) for call in calls):
                return [self.result(call) for call in calls]
            return self.failure

    def members(self, key: tuple[Any, ...]) -> set[tuple[int, str]]:
        if key[0] == "pair":
            return {(key[1], "send"), (key[2], "recv")}
        return {(rank, "") for rank in range(self.ranks)}

    def wait(self, rank: int, call: _Call, deadline: float, timeout: float) -> bool:
        """Waits for the other ranks of a call. Returns whether all made it. If not, the communicator has failed."""
        members, found = self.members(call.key), self.calls[call.key]

        def ranks_left() -> list[int]:
            return sorted({r for r, _ in members - found.keys()} & self.left)

        def different() -> list[str]:
            return [other.text(r) for (r, _), other in found.items() if other.what != call.what]

        def decided() -> bool:
            return bool(self.failure or ranks_left() or different() or members <= found.keys())

        self.changed.wait_for(decided, deadline - time.monotonic())
        if not different() and members <= found.keys():
            return True
        if not self.failure:
            if different():
                self.failure = f"calls differ: {call.text(rank)}; {different()[0]}"
            elif ranks_left():
                self.failure = f"{call.text(rank)}: rank {ranks_left()[0]} left: destroyed its communicator, or ended"
            else:
                absent = sorted(r for r, _ in members - found.keys())
                self.failure = f"{call.text(rank)}: no matching call of rank {absent[0]} within {timeout:g} s"
            self.changed.notify_all()
        return False

    def result(self, call: _Call) -> bytes | None:
        found = self.calls[call.key]
        self.taken[call.key] = self.taken.get(call.key, 0) + 1
        if self.taken[call.key] == len(self.members(call.key)):
            del self.calls[call.key], self.taken[call.key]
        parts = [other.data for _, other in sorted(found.items()) if other.data is not None]
        if call.op is None:
            return None if call.name == "send" or not parts else parts[0]
        with np.errstate(all="ignore"):
            arrays = [np.frombuffer(part, call.dtype) for part in parts]
            return bytes(_REDUCE[call.op].reduce(arrays, axis=0, dtype=call.dtype))


class UniqueId:
    """Names a communicator to be made. Ranks of other processes get its bytes, or a pickle."""

    def __init__(self, data: bytes = bytes(128)) -> None:
        self.as_bytes = data

    def __bytes__(self) -> bytes:
        return self.as_bytes

    @staticmethod
    def from_bytes(b: bytes | bytearray | memoryview) -> UniqueId:
        return UniqueId(bytes(b))


def get_unique_id(empty: bool = False) -> UniqueId:
    """A new unique id. The calling process must live until all ranks have left the communicator."""
    if empty:
        return UniqueId()
    hub = _Hub()

    def at_exit() -> None:
        # Other ranks may still wait for their answers. Those of this process leave first.
        for communicator in list(_communicators):
            communicator.destroy()
        deadline = time.monotonic() + _GRACE
        for thread in hub.threads:
            thread.join(max(0, deadline - time.monotonic()))

    multiprocessing.util.Finalize(None, at_exit, exitpriority=10)
    return UniqueId(struct.pack("16s112s", hub.key, hub.listener.address[1:]))


_communicators: weakref.WeakSet[Communicator] = weakref.WeakSet()
# Of each thread: how many groups are open, and their calls: (communicator, call, source, target, stream).
_groups = threading.local()


def group_start() -> None:
    """Begins a group: its calls are made together when it ends."""
    if not getattr(_groups, "depth", 0):
        _groups.depth, _groups.calls = 0, []
    _groups.depth += 1


def group_end() -> None:
    """Makes the calls of the group."""
    if not getattr(_groups, "depth", 0):
        raise NCCLError("group_end without group_start")
    _groups.depth -= 1
    if not _groups.depth:
        batches: dict[Communicator, list[tuple[Any, ...]]] = {}
        for communicator, *call in _groups.calls:
            batches.setdefault(communicator, []).append(tuple(call))
        for communicator in batches:
            communicator._live()
        for communicator, batch in batches.items():
            communicator._start(batch)
        # All answers are received, also after an error: an unread one would answer the next call.
        errors = [communicator._complete(batch) for communicator, batch in batches.items()]
        for error in filter(None, errors):
            raise error


@contextlib.contextmanager
def group() -> Iterator[None]:
    """A group as a context."""
    group_start()
    try:
        yield
    finally:
        group_end()


@contextlib.contextmanager
def _current(device: Device) -> Iterator[None]:
    before = Device()
    device.set_current()
    try:
        yield
    finally:
        before.set_current()


@args_viewable_as_strided_memory((0,))
def _view(buffer: Any) -> Any:
    return buffer.view(-1)


class Communicator:
    """A rank of a communicator of the test double. Make it with `init` or `init_all`."""

    def __init__(self, nranks: int, rank: int, unique_id: UniqueId, device: Device) -> None:
        if not 0 <= rank < nranks:
            raise NcclInvalid(f"rank {rank}: expected 0 to {nranks - 1}")
        self.nranks, self.rank, self.device = nranks, rank, device
        self._counts: dict[Any, int] = {}
        key, address = struct.unpack("16s112s", bytes(unique_id))
        try:
            self._connection: Connection | None = Client("\0" + address.rstrip(b"\0").decode(), authkey=key)
            self._connection.send((rank, nranks))
        except (OSError, EOFError, multiprocessing.AuthenticationError) as error:
            reason = f"nothing answers to the unique id (its process has ended, or all its ranks exist): {error}"
            raise NCCLError(f"rank {rank}: init of {nranks} ranks: {reason}") from error
        _communicators.add(self)
        self._call("init", f"{nranks} ranks", None, None, None)

    @classmethod
    def init(cls, nranks: int, rank: int, unique_id: UniqueId) -> Communicator:
        """The communicator of a rank, on the current device."""
        return cls(nranks, rank, unique_id, Device())

    @classmethod
    def init_all(cls, devices: int | Sequence[int] | None = None) -> list[Communicator]:
        """One communicator for each device, all of this thread: use them in groups."""
        numbers = system.get_num_devices() if devices is None else devices
        numbers = list(range(numbers)) if isinstance(numbers, int) else list(numbers)
        unique_id = get_unique_id(empty=not numbers)
        with group():
            return [cls(len(numbers), rank, unique_id, Device(number)) for rank, number in enumerate(numbers)]

    def __repr__(self) -> str:
        return f"<Communicator of the test double: rank={self.rank}/{self.nranks}, device={self.device.device_id}>"

    def finalize(self) -> None:
        """Does nothing: calls of the double are done when they return."""

    def destroy(self) -> None:
        """Leaves. Calls of other ranks that need this one fail from now on."""
        if self._connection:
            self._connection.close()
        self._connection = None

    abort = destroy

    def allreduce(self, sendbuf: Any, recvbuf: Any, op: NcclRedOp, *, stream: Any = None) -> None:
        if op not in _REDUCE:
            raise NcclInvalid(f"op {op!r}: the test double has SUM, PROD, MAX and MIN")
        source, what, dtype = self._memory(sendbuf, "sendbuf")
        target, *_ = self._memory(recvbuf, "recvbuf", expected=what)
        op = NcclRedOp(op)
        self._call("allreduce", f"{what} with {op.name}", source, target, stream, op=op, dtype=dtype)

    def broadcast(self, sendbuf: Any, recvbuf: Any, root: int, *, stream: Any = None) -> None:
        self._check_rank("root", root)
        target, what, _ = self._memory(recvbuf, "recvbuf")
        source = self._memory(sendbuf, "sendbuf", expected=what)[0] if root == self.rank else None
        self._call("broadcast", f"{what} from root {root}", source, target, stream)

    def send(self, sendbuf: Any, peer: int, *, stream: Any = None) -> None:
        self._check_rank("peer", peer)
        source, what, _ = self._memory(sendbuf, "sendbuf")
        self._call("send", what, source, None, stream, pair=(self.rank, peer), peer=f" to rank {peer}")

    def recv(self, recvbuf: Any, peer: int, *, stream: Any = None) -> None:
        self._check_rank("peer", peer)
        target, what, _ = self._memory(recvbuf, "recvbuf")
        self._call("recv", what, None, target, stream, pair=(peer, self.rank), peer=f" from rank {peer}")

    def _check_rank(self, name: str, rank: int) -> None:
        if not 0 <= rank < self.nranks:
            raise NcclInvalid(f"{name} {rank}: expected 0 to {self.nranks - 1}")

    def _memory(self, buffer: Any, name: str, expected: str = "") -> tuple[Buffer, str, str]:
        """The memory of an array without its shape; number and type of its elements as text; the type."""
        view = _view(buffer)
        count, what = math.prod(view.shape), f"{math.prod(view.shape)} {view.dtype}"
        if view.dtype not in _TYPES:
            raise NcclInvalid(f"{name}: NCCL has no type {view.dtype}")
        if not view.is_device_accessible or view.device_id != self.device.device_id:
            raise NcclInvalid(f"{name} is not on device {self.device.device_id}, the communicator's")
        dense = tuple(math.prod(view.shape[axis + 1 :]) for axis in range(len(view.shape)))
        strides = view.strides or dense
        if any(n > 1 and s != d for n, s, d in zip(view.shape, strides, dense, strict=True)):
            raise NcclInvalid(f"{name} has strides {view.strides}, which NCCL ignores; expected C-contiguous")
        if expected not in ("", what):
            raise NcclInvalid(f"{name} has {what}, the other buffer has {expected}")
        return Buffer.from_handle(view.ptr, count * view.dtype.itemsize), what, view.dtype.str

    def _call(self, name: str, what: str, source: Any, target: Any, stream: Any, pair: Any = (), **more: Any) -> None:
        # Calls are numbered: the first one of each rank belongs to the first one of the others.
        number = self._counts[name if pair else "", pair] = self._counts.get((name if pair else "", pair), 0) + 1
        call = _Call(name, what, ("pair", *pair, number) if pair else ("all", number), **more)
        group_start()
        _groups.calls.append((self, call, source, target, stream))
        group_end()

    def _live(self) -> Connection:
        if not self._connection:
            raise NcclInvalid("Communicator is destroyed")
        return self._connection

    def _stream(self, stream: Any) -> Stream:
        if stream is None:
            return self.device.default_stream
        if isinstance(stream, Stream):
            return stream
        return Stream.from_handle(stream if isinstance(stream, int) else int(stream.__cuda_stream__()[1]))

    def _start(self, batch: list[tuple[Any, ...]]) -> None:
        with _current(self.device):
            for call, source, _, stream in batch:
                if source:
                    data = np.empty(source.size, np.uint8)
                    source.copy_to(data, stream=self._stream(stream))
                    self._stream(stream).sync()
                    call.data = data.tobytes()
        try:
            self._live().send((TIMEOUT, [call for call, *_ in batch]))
        except OSError as error:
            raise NCCLError(f"{batch[0][0].text(self.rank)}: the process that made the unique id has ended") from error

    def _complete(self, batch: list[tuple[Any, ...]]) -> NCCLError | None:
        connection = self._live()
        try:
            results = connection.recv() if connection.poll(TIMEOUT + _GRACE) else "no answer"
        except (OSError, EOFError):
            results = "the process that made the unique id has ended"
        if results == "no answer":
            self.destroy()
        if isinstance(results, str):
            return NCCLError(f"rank {self.rank}: {results}")
        with _current(self.device):
            for (_, _, target, stream), data in zip(batch, results, strict=True):
                if target and data:
                    target.copy_from(np.frombuffer(data, np.uint8), stream=self._stream(stream))
        return None
