"""Worker plugin: a device for each worker, an IPC-enabled pool, a limit of device memory, code that is ready."""

from __future__ import annotations

import hashlib
import os
import pickle
import socket
import sys
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from distributed.diagnostics.plugin import WorkerPlugin

if TYPE_CHECKING:
    from cuda.core import Kernel, ObjectCode, Program
    from cuda.core.utils import ProgramCacheResource
    from distributed import Worker

__all__ = ["DevicePlugin"]

_pin_lock = threading.Lock()
# The devices visible to this process before it was pinned, and the number of its device among them.
_pinned: tuple[list[str], int] | None = None
_claims: weakref.WeakSet[socket.socket] = weakref.WeakSet()


def _after_fork() -> None:
    # A child that outlives the worker must not keep its device.
    for claim in list(_claims):
        claim.close()


os.register_at_fork(after_in_child=_after_fork)


class DevicePlugin(WorkerPlugin):
    """Gives each worker a device, as ``Device()``, and prepares it.

    Register it with ``client.register_plugin(DevicePlugin(...))``. Workers that start later are prepared as well: those that
    replace dead ones get the devices of these. Device memory then moves between workers of one machine by IPC, without a copy
    through the host.

    The device of a worker is the first in its ``CUDA_VISIBLE_DEVICES``; the others stay visible for copies between devices.

    Parameters
    ----------
    devices : sequence of int, optional
        Numbers of the devices to use, among those that are visible to each machine's workers. Default: all.
    workers_per_device : int, optional
        Number of workers that share a device. Default: 1.
    device_memory_limit : str, int or float, optional
        Device memory for results of tasks, for each worker: bytes, text such as ``"8 GiB"``, or a fraction of the device's
        memory (a float of at most 1.0). Results used least recently are copied to the host, and from there to disk as Dask's
        own settings say. Default: no limit.
    warm : sequence of Kernel, ObjectCode and Program, optional
        Code to load when a worker starts. A program is compiled to a cubin, into `cache`, for tasks that compile it with an equal
        cache.
    cache : ProgramCacheResource, optional
        Cache for the programs of `warm`, which need one. It must be picklable, as
        :class:`~cuda.core.utils.FileStreamProgramCache` and the caches of :mod:`cupyrite.program_caches` are.
    ipc : bool, optional
        Whether to use an IPC-enabled pool as the device's memory resource, and to send memory through it. Default: where the
        device supports it.

    Raises
    ------
    RuntimeError
        A worker has no device: there are more workers than devices, or its process used CUDA before and cannot change devices
        any more. ``register_plugin`` raises it. A worker that starts later logs it and stops.

    Examples
    --------
    >>> from cupyrite.dask import DevicePlugin
    >>> from distributed import Client, LocalCluster  # doctest: +SKIP
    >>> client = Client(LocalCluster(n_workers=4, threads_per_worker=1))  # doctest: +SKIP
    >>> client.register_plugin(DevicePlugin(device_memory_limit="8 GiB"))  # doctest: +SKIP
    """

    name = "cupyrite-device"

    def __init__(
        self,
        *,
        devices: Sequence[int] | None = None,
        workers_per_device: int = 1,
        device_memory_limit: str | int | float | None = None,
        warm: Sequence[Kernel | ObjectCode | Program] = (),
        cache: ProgramCacheResource | None = None,
        ipc: bool | None = None,
    ) -> None:
        if workers_per_device < 1:
            raise ValueError(f"workers_per_device is {workers_per_device}; expected at least 1")
        if devices is not None and (not devices or min(devices) < 0 or len(set(devices)) < len(devices)):
            raise ValueError(f"devices is {devices!r}; expected different numbers from 0, at least one")
        _limit_bytes(device_memory_limit, 1 << 40)
        _check_warm(warm, cache)
        self.devices = None if devices is None else list(devices)
        self.workers_per_device = workers_per_device
        self.device_memory_limit = device_memory_limit
        self.ipc = ipc
        # Loaded after the worker has its device: loading can initialize CUDA.
        self._warm = pickle.dumps((list(warm), cache))
        # On a worker: the claim of its device, and the code of `warm`.
        self._claim: socket.socket | None = None
        self._loaded: list[Any] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_claim": None, "_loaded": []}

    def setup(self, worker: Worker) -> None:
        """Prepare a worker; Dask calls it."""
        try:
            self._pin(worker)
            self._prepare(worker)
        except BaseException as error:
            self.teardown(worker)
            if not worker.periodic_callbacks["heartbeat"].is_running():
                # The worker is starting: Dask logs the error, and would let it compute without its device.
                worker.loop.call_later(0.1, worker.close, reason=f"DevicePlugin: {error}")
            raise

    def teardown(self, worker: Worker) -> None:
        """Give up the device, and offer new connections no transfers by IPC; Dask calls it. Results stay where they are."""
        from .serializers import HANDSHAKE_KEY

        worker.rpc.connection_args.get("handshake_overrides", {}).pop(HANDSHAKE_KEY, None)
        if self._claim is not None:
            self._claim.close()
            self._claim = None

    def _prepare(self, worker: Worker) -> None:
        from cuda.core import Device, DeviceMemoryResource

        from cupyrite import ipc_transfer
        from cupyrite._native.core import _set_default_memory_resource

        from .serializers import HANDSHAKE_KEY, read_without_waiting, receiver, register
        from .store import DeviceStore

        register()
        read_without_waiting()
        device = Device()
        device.set_current()
        supported = ipc_transfer.is_supported(device)
        if self.ipc and not supported:
            raise RuntimeError(f"ipc: the memory of {device.name} cannot be shared with other processes")
        if supported and self.ipc is not False:
            if not getattr(device.memory_resource, "is_ipc_enabled", False):
                # For this thread, and for those of tasks.
                device.memory_resource = DeviceMemoryResource(device, {"ipc_enabled": True})
                _set_default_memory_resource(device.device_id, device.memory_resource)
            overrides = worker.rpc.connection_args.setdefault("handshake_overrides", {})
            overrides[HANDSHAKE_KEY] = {"node": ipc_transfer.node_identity(), "address": receiver().address}
        limit = None if self.device_memory_limit is None else _limit_bytes(self.device_memory_limit, _device_memory())
        if isinstance(worker.data, DeviceStore):
            # The plugin was registered before.
            worker.data.set_limit(limit)
        elif limit is not None:
            store = DeviceStore(worker.data, limit)
            worker.memory_manager.data = worker.state.data = store
        warm, cache = pickle.loads(self._warm)
        self._loaded = [_load(item, cache) for item in warm]

    def _pin(self, worker: Worker) -> None:
        """Claim a device and make it the first of this process."""
        global _pinned
        # Two workers of one process share its environment.
        with _pin_lock:
            visible = _visible_devices() if _pinned is None else _pinned[0]
            usable = list(range(len(visible))) if self.devices is None else self.devices
            if unknown := [number for number in usable if number >= len(visible)]:
                raise RuntimeError(
                    f"devices: worker {worker.name} has no device {unknown[0]}, only {len(visible)} devices"
                )
            number = self._claim_device(worker, visible, usable)
            if _pinned is not None and _pinned[1] != number:
                raise RuntimeError(
                    f"worker {worker.name} cannot have device {number}: its process has device {_pinned[1]}; "
                    "start each worker in a process of its own: LocalCluster(processes=True)"
                )
            if number != 0 and _pinned is None:
                if _is_initialized():
                    raise RuntimeError(
                        f"worker {worker.name} cannot have device {number}: its process used CUDA before the plugin was "
                        "registered; register DevicePlugin before the first task, or restart the workers: client.restart()"
                    )
                # Rotated, so that every worker sees all devices.
                os.environ["CUDA_VISIBLE_DEVICES"] = ",".join(visible[number:] + visible[:number])
            _pinned = visible, number

    def _claim_device(self, worker: Worker, visible: list[str], usable: list[int]) -> int:
        """The number of the first device that has a place for this worker. The claim ends with the process."""
        if sys.platform != "linux":
            # Without abstract sockets, by the worker's name: a number in LocalCluster.
            try:
                return usable[int(worker.name) % len(usable)]
            except (TypeError, ValueError):
                return usable[0]
        if _pinned is not None and _pinned[1] in usable:
            # Registered again, or for another worker: the process keeps its device.
            usable = [_pinned[1]]
        # Workers of a scheduler count together, those of another do not.
        cluster = hashlib.sha256(str(worker.scheduler.address).encode()).hexdigest()[:16]
        for place in range(self.workers_per_device):
            for number in usable:
                claim = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
                try:
                    # By name: another worker can have the device under another number.
                    claim.bind(f"\0cupyrite-dask-{os.getuid()}-{cluster}-{visible[number]}-{place}")
                except OSError:
                    claim.close()
                    continue
                self._claim = claim
                _claims.add(claim)
                return number
        if _pinned is not None:
            raise RuntimeError(
                f"worker {worker.name} has no device: that of its process has {self.workers_per_device} workers already; start each "
                "worker in a process of its own: LocalCluster(processes=True), or set workers_per_device"
            )
        raise RuntimeError(
            f"worker {worker.name} has no device: other workers have all {len(usable)} devices; start fewer workers, or set "
            f"workers_per_device (now {self.workers_per_device})"
        )


def _visible_devices() -> list[str]:
    """Names of the devices of this process in its order, without initializing CUDA."""
    listed = os.environ.get("CUDA_VISIBLE_DEVICES")
    if listed:
        return [name.strip() for name in listed.split(",") if name.strip()]
    from cuda.core import system

    count = system.get_num_devices()
    if count == 0:
        raise RuntimeError("this machine has no CUDA device; set CUPYRITE_DEVICE=cpu to use the CPU device")
    return [str(number) for number in range(count)]


def _is_initialized() -> bool:
    from cuda.bindings import driver

    return driver.cuDeviceGetCount()[0] != driver.CUresult.CUDA_ERROR_NOT_INITIALIZED


def _device_memory() -> int:
    """Memory of the current device in bytes."""
    from cuda.bindings import driver

    status, _, total = driver.cuMemGetInfo()
    if status != driver.CUresult.CUDA_SUCCESS:
        raise RuntimeError(f"the size of the device's memory is unknown: cuMemGetInfo returned {status.name}")
    return int(total)


def _limit_bytes(limit: str | int | float | None, total: int) -> int:
    """A limit in bytes; `total` is the device's memory in bytes."""
    from dask.utils import parse_bytes

    if limit is None:
        return total
    if isinstance(limit, float) and 0 < limit <= 1:
        return int(limit * total)
    try:
        size = parse_bytes(limit)
    except (TypeError, ValueError):
        size = 0
    if size <= 0:
        raise ValueError(
            f"device_memory_limit is {limit!r}; expected bytes, such as 8 * 2**30 or '8 GiB', or a fraction of the device's memory "
            "above 0.0 and up to 1.0"
        )
    return int(size)


def _check_warm(warm: Sequence[Any], cache: Any) -> None:
    from cuda.core import Kernel, ObjectCode, Program

    for item in warm:
        if not isinstance(item, (Kernel, ObjectCode, Program)):
            raise TypeError(f"warm contains a {type(item).__name__}; expected Kernel, ObjectCode or Program")
        if isinstance(item, Program) and cache is None:
            raise ValueError("warm contains a Program; expected `cache` as well: tasks find the compiled code there")


def _load(item: Kernel | ObjectCode | Program, cache: ProgramCacheResource | None) -> Any:
    from cuda.core import ObjectCode, Program

    if isinstance(item, Program):
        return item.compile("cubin", cache=cache)
    if isinstance(item, ObjectCode):
        # Loads the code.
        _ = item.handle
    return item
