"""Calls of NVML for `cuda.core.system`: initialisation, device handles, and errors that name the call.

NVML is initialised on the first call of each process. A forked child initialises it again. If another library shut NVML
down more often than it had initialised it, NVML is initialised once more and the call is repeated. Handles may be
different after that, so every device has a `Handle` that looks the device up again.
"""

from __future__ import annotations

import os
import threading

from cuda.bindings import nvml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, SupportsInt

__all__ = ["Handle", "call", "generation", "handle_of", "initialize", "is_initialized", "symbol"]

_lock = threading.Lock()
_generation = 0  # Number of initialisations, forks included; handles of earlier generations are looked up again.
_initialized_in: int | None = None  # The process that `nvmlInit` was called in.


def _after_fork() -> None:
    global _lock, _initialized_in
    # Another thread of the parent may have held the lock.
    _lock = threading.Lock()
    _initialized_in = None


os.register_at_fork(after_in_child=_after_fork)


def is_initialized() -> bool:
    """Whether this module initialised NVML in this process."""
    return _initialized_in is not None


def initialize() -> None:
    """Initialise NVML once per process.

    Raises
    ------
    NvmlError
        If NVML cannot be initialised: the driver is not loaded, or the user has no permission for the devices.
    """
    global _generation, _initialized_in
    if _initialized_in is not None:
        return
    with _lock:
        if _initialized_in is None:
            try:
                nvml.init_v2()
            except nvml.NvmlError as error:
                _explain(error, nvml.init_v2)
                raise
            _generation += 1
            _initialized_in = os.getpid()


def generation() -> int:
    """Number of the current initialisation."""
    initialize()
    return _generation


def _initialize_again(seen: int) -> None:
    """Initialise NVML after a call of generation `seen` found it shut down."""
    global _initialized_in
    with _lock:
        if _generation == seen:
            _initialized_in = None
    initialize()


class Handle:
    """The handle of a device, with what is needed to look it up again.

    Parameters
    ----------
    function : str
        Function of the bindings that returns the handle.
    key : object
        Its argument.
    """

    __slots__ = ("_function", "_generation", "_key", "_value")

    def __init__(self, function: str, key: object) -> None:
        self._function, self._key = function, key
        self._generation = -1
        self._value = call(function, key)
        self._generation = _generation

    @classmethod
    def of(cls, value: int) -> Handle:
        """The handle with that value. It is looked up again by its UUID."""
        self = cls.__new__(cls)
        self._function, self._key = "device_get_handle_by_uuid", call("device_get_uuid", value)
        self._value, self._generation = value, _generation
        return self

    def __int__(self) -> int:
        if self._generation != generation():
            self._value = call(self._function, self._key)
            self._generation = _generation
        return int(self._value)


def handle_of(value: SupportsInt) -> Handle:
    """A `Handle` as it is; the `Handle` of a number."""
    return value if isinstance(value, Handle) else Handle.of(int(value))


def call(name: str, *arguments: object) -> Any:
    """Call the function `name` of `cuda.bindings.nvml`; `Handle` arguments are passed as numbers.

    Raises
    ------
    NvmlError
        The class for the status. The message begins with NVML's name of the function, and ends with what the call needs.
    """
    function = getattr(nvml, name)
    for attempt in (0, 1):
        initialize()
        seen = _generation
        try:
            return function(*[int(a) if type(a) is Handle else a for a in arguments])
        except nvml.UninitializedError as error:
            if attempt:
                _explain(error, function)
                raise
            _initialize_again(seen)
        except nvml.NvmlError as error:
            _explain(error, function)
            raise


def symbol(name: str) -> str:
    """The C function that the function `name` of the bindings calls, with the suffix of its version."""
    return str(getattr(nvml, name)._symbol)


# What a call needs: a word of its name, and the devices or permissions for which NVIDIA documents it.
_NEEDS = (
    ("fan", "a discrete product with fans; changing a fan requires root"),
    ("cooler", "a discrete product with fans"),
    ("inforom", "a product with an InfoROM"),
    ("serial", "a product with an InfoROM"),
    ("board_part_number", "a product with an InfoROM"),
    ("bbx", "a product with an InfoROM"),
    ("device_set_mig", "a GPU with MIG (Ampere or newer) and root"),
    ("mig", "a GPU with MIG (Ampere or newer)"),
    ("attributes", "a GPU with MIG (Ampere or newer), on Linux"),
    ("nvlink", "a GPU with NVLink"),
    ("c2c", "a GPU with a chip-to-chip interconnect"),
    ("set_persistence", "root, on Linux"),
    ("set_cpu_affinity", "Linux, and a GPU whose topology the system reports"),
    ("affinity", "Linux, and a GPU whose topology the system reports"),
    ("topology", "Linux, and GPUs whose topology the system reports"),
    ("numa_node", "a platform where GPUs are NUMA nodes"),
    ("addressing_mode", "a GPU and a kernel that share page tables (HMM or ATS)"),
    ("repair", "Ampere or newer"),
    ("clear_field_values", "root"),
    ("auto_boosted", "a GPU with auto-boosted clocks"),
    ("clock_offsets", "Maxwell or newer"),
    ("system_event", "Linux, and root or access to the driver's event files"),
    ("system_register", "Linux, and root or access to the driver's event files"),
    ("event", "Linux, and a GPU that reports the type (ECC events: ECC enabled)"),
    ("pcie_throughput", "Maxwell or newer, not in a virtual machine with vGPU"),
    ("pcie", "a GPU on a PCIe bus"),
    ("thermal", "a GPU with thermal sensors"),
    ("temperature", "a GPU with a temperature sensor"),
    ("bar1", "a GPU on a PCIe bus"),
)

_PERMISSION = "the user lacks the permission: run as root, or ask the administrator for access"


def _explain(error: nvml.NvmlError, function: Any) -> None:
    """Prefix the error's text with NVML's name of the function, and append what the call needs."""
    text = f"{symbol(function.__name__)}: {error}"
    if isinstance(error, nvml.NoPermissionError):
        text += f"; {_PERMISSION}"
    if isinstance(error, nvml.NoPermissionError | nvml.NotSupportedError | nvml.FunctionNotFoundError):
        needed = next((needs for word, needs in _NEEDS if word in function.__name__), None)
        if needed:
            text += f"; the call needs {needed}"
        elif isinstance(error, nvml.FunctionNotFoundError):
            text += "; a newer driver has it"
    error.args = (text,)
