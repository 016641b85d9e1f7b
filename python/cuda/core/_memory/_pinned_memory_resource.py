"""Page-locked host memory from driver memory pools."""

from cuda.core._options import options
from cupyrite._native.core import PinnedMemoryResource

__all__ = ["PinnedMemoryResource", "PinnedMemoryResourceOptions"]


@options
class PinnedMemoryResourceOptions:
    """Options of the pool of a :class:`PinnedMemoryResource`.

    Attributes
    ----------
    ipc_enabled : bool
        Whether the memory can be shared with other processes.
    max_size : int
        Maximum size of the pool in bytes; 0 selects the driver's limit.
    numa_id : int, optional
        NUMA node of the memory. Default: the system chooses; with `ipc_enabled`, the node nearest to the current device.

    Examples
    --------
    >>> from cuda.core import PinnedMemoryResource, PinnedMemoryResourceOptions
    >>> resource = PinnedMemoryResource(PinnedMemoryResourceOptions(numa_id=0))
    >>> resource.numa_id
    0
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
