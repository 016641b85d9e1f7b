"""`cuda.core` objects in Ray programs: buffers and views in the object store, a device for each actor.

Installed with ``pip install 'cupyrite[ray]'``. :func:`init` starts Ray, :func:`register` lets a process send buffers and strided
views, :func:`device` returns the device that Ray assigned. Object code, kernels and programs need nothing from here.
"""

from __future__ import annotations

import os
import threading
from typing import Any

from cuda.core import Buffer, Device, ManagedBuffer
from cuda.core.utils import StridedMemoryView

from cupyrite import _native, serialization

try:
    import ray
    from ray.util import register_serializer
except ModuleNotFoundError as error:
    if error.name != "ray":
        raise
    raise ImportError("cupyrite.ray needs Ray: pip install 'cupyrite[ray]'", name="ray") from error

__all__ = ["device", "init", "register"]

_HOOK = "worker_process_setup_hook"
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_GIVE_ONE = "give it one with @ray.remote(num_gpus=1)"

_lock = threading.Lock()
# What Ray assigned when this process first used a device. CUDA reads CUDA_VISIBLE_DEVICES once in a process.
_first_assigned: list[str] | None = None


def init(address: str | None = None, **options: Any) -> Any:
    """Start Ray or connect to it, as :func:`ray.init` does, for programs that send `cuda.core` objects.

    All worker processes call :func:`register`, and so does this process. On the CPU device, a Ray instance that this call starts
    has a GPU resource for each CPU device, and a CPU resource for each more. Tasks and actors with ``num_gpus=1`` therefore run
    with GPUs and without.

    Parameters
    ----------
    address : str, optional
        As for :func:`ray.init`. A cluster that runs already keeps its resources: start its nodes without GPUs with
        ``ray start --num-gpus=N``, and ``CUPYRITE_CPU_DEVICES=N`` in their environment.
    **options
        As for :func:`ray.init`. `num_gpus` on the CPU device must not be above the number of CPU devices.

    Returns
    -------
    ray.client_builder.ClientContext or ray._private.worker.RayContext
        As :func:`ray.init` returns it.

    Raises
    ------
    ValueError
        `runtime_env` has a ``worker_process_setup_hook``, or `num_gpus` is above the number of CPU devices.
    RuntimeError
        ``CUPYRITE_DEVICE=gpu``, and there is no NVIDIA driver.

    Examples
    --------
    >>> import cupyrite.ray
    >>> cupyrite.ray.init()  # doctest: +SKIP
    """
    runtime_env = dict(options.pop("runtime_env", None) or {})
    if _HOOK in runtime_env:
        raise ValueError(
            f"runtime_env has a {_HOOK}, and cupyrite.ray.init() sets it to cupyrite.ray.register; use ray.init() and call "
            "cupyrite.ray.register() in the hook"
        )
    runtime_env[_HOOK] = f"{__name__}.{register.__name__}"
    added = _cpu_device_resources(options) if address in (None, "local") else {}
    try:
        context = ray.init(address, runtime_env=runtime_env, **{**options, **added})
    except ValueError as error:
        # Without an address, Ray connects to a cluster of this machine or of RAY_ADDRESS; these refuse resources.
        if not added or "existing cluster" not in str(error):
            raise
        context = ray.init(address, runtime_env=runtime_env, **options)
    register()
    return context


def register() -> None:
    """Let this process send buffers and strided views through Ray. Further calls do nothing new.

    The receiving process needs no call. :func:`init` calls it in all processes; with :func:`ray.init`, pass
    ``runtime_env={"worker_process_setup_hook": "cupyrite.ray.register"}``, and call it in the program that starts Ray.

    The objects arrive in memory of the same type. Device memory arrives on the current device of the receiving thread. Bytes in
    page-locked or host memory are copied once, to the object store. Device and managed memory is copied to the host before.
    """
    for memory_type in (Buffer, ManagedBuffer, StridedMemoryView):
        register_serializer(memory_type, serializer=serialization.serialize, deserializer=_deserialize)


def device() -> Device:
    """The device that Ray assigned to the calling task or actor, made current for the calling thread.

    Several assigned devices (``num_gpus=2``) are those of ``Device.get_all_devices()``, and this is the first. In the program that
    started Ray, it is ``Device()``.

    Raises
    ------
    RuntimeError
        Ray assigned no device, or one that CUDA does not have, or the process has used another device before.

    Examples
    --------
    >>> import ray
    >>> @ray.remote(num_gpus=1)
    ... class Solver:
    ...     def __init__(self):
    ...         self.device = cupyrite.ray.device()
    """
    if _in_worker() and not _assigned():
        raise RuntimeError(f"this Ray task or actor has no device: {_GIVE_ONE}")
    found = _visible_device()
    found.set_current()
    return found


def _in_worker() -> bool:
    return ray.is_initialized() and ray.get_runtime_context().worker.mode == ray.WORKER_MODE


def _assigned() -> list[str]:
    return [str(number) for number in ray.get_runtime_context().get_accelerator_ids().get("GPU", [])]


def _visible_device() -> Device:
    """``Device()``, with errors in terms of Ray."""
    global _first_assigned
    assigned = _assigned() if _in_worker() else []
    if assigned:
        if os.environ.get(_VISIBLE) != ",".join(assigned):
            raise RuntimeError(
                f"Ray assigned device {', '.join(assigned)}, but {_VISIBLE} is {os.environ.get(_VISIBLE)!r}; unset "
                "RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES, or choose the device with Device(n)"
            )
        with _lock:
            if _first_assigned is None:
                _first_assigned = assigned
            elif _first_assigned != assigned:
                raise RuntimeError(
                    f"Ray assigned device {', '.join(assigned)}, but this process has used device {', '.join(_first_assigned)} in "
                    "an earlier task and cannot change it; write @ray.remote(num_gpus=1), which gives each task a process of its "
                    "own, instead of .options(num_gpus=1), or use an actor"
                )
    try:
        return Device()
    except Exception as error:
        if not _in_worker():
            raise
        if not assigned:
            raise RuntimeError(f"this Ray task or actor has no device: {_GIVE_ONE}") from error
        raise RuntimeError(
            f"Ray assigned device {', '.join(assigned)}, but this machine does not have it; on the CPU device, set "
            "CUPYRITE_CPU_DEVICES to the num_gpus of this node before Ray starts"
        ) from error


def _deserialize(sent: tuple[dict[str, Any], list[Any]]) -> Buffer | StridedMemoryView:
    header, frames = sent
    if header["memory"] != "host":
        _visible_device()
    return serialization.deserialize(header, frames)


def _cpu_device_resources(options: dict[str, Any]) -> dict[str, float]:
    """Resources of the CPU devices that the options for Ray leave open; none on a GPU."""
    if _native.device() != "cpu":
        return {}
    try:
        count = len(Device.get_all_devices())
    except Exception:
        # CUDA_VISIBLE_DEVICES hides all.
        count = 0
    if visible := os.environ.get(_VISIBLE):
        # Ray counts names, of which the CPU device shows all devices.
        count = min(count, len(visible.split(",")))
    wanted = options.get("num_gpus")
    if wanted is not None and wanted > count:
        raise ValueError(
            f"num_gpus is {wanted}, and there are {count} CPU devices; set CUPYRITE_CPU_DEVICES={int(wanted)}, from 1 to 16"
        )
    added: dict[str, float] = {} if wanted is not None else {"num_gpus": count}
    if options.get("num_cpus") is None:
        # An actor with a device also takes a CPU: without these, some actors never start on a small machine.
        added["num_cpus"] = _cpus() + int(count if wanted is None else wanted)
    return added


def _cpus() -> int:
    """Processors of this machine as Ray counts them: a container can have fewer."""
    try:
        from ray._private.utils import get_num_cpus
    except ImportError:
        return os.cpu_count() or 1
    return int(get_num_cpus())
