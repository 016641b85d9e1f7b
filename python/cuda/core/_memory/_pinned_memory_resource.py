"""Page-locked memory of the host, from pools of the driver's."""

from cupyrite._native.core import PinnedMemoryResource

from cuda.core._options import options

__all__ = ["PinnedMemoryResource", "PinnedMemoryResourceOptions"]


@options
class PinnedMemoryResourceOptions:
    """How the pool of a :class:`PinnedMemoryResource` is made.

    Attributes
    ----------
    ipc_enabled : bool
        Whether its memory can be shared with other processes.
    max_size : int
        Most bytes that the pool takes; 0 leaves the limit to the driver.
    numa_id : int, optional
        The NUMA node of the memory. By default the system chooses, or with `ipc_enabled` it is the one that is nearest to the
        current device.
    """

    ipc_enabled: "bool" = False
    max_size: "int" = 0
    numa_id: "int | None" = None

    def __post_init__(self):
        self.ipc_enabled = bool(self.ipc_enabled)
        for name in ("max_size", "numa_id"):
            given = getattr(self, name)
            if given is not None and not hasattr(given, "__index__"):
                raise TypeError(f"PinnedMemoryResourceOptions.{name} is {given!r}; expected an int")
