"""Object code and its kernels."""

from _thread import RLock

from cupyrite._native.core import Kernel, KernelAttributes, KernelOccupancy, ObjectCode

__all__ = ["Kernel", "ObjectCode"]


def __getattr__(name):
    # Created on first use: creating a named tuple costs more than importing the rest of this module.
    fields = _NAMED_TUPLES.get(name)
    if fields is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from collections import namedtuple

    return globals().setdefault(name, namedtuple(name, fields, module=__name__))


_NAMED_TUPLES = {
    "MaxPotentialBlockSizeOccupancyResult": ("min_grid_size", "max_block_size"),
    "ParamInfo": ("offset", "size"),
}


# Unpickled code, the most recently used last. A worker that receives the same kernel with every task loads it once.
_UNPICKLED_LIMIT = 64
_unpickled = {}
_unpickled_lock = RLock()


def _object_code(code, code_type, name, symbol_mapping):
    """Unpickle an `ObjectCode`. Equal pickles return the same object while it is among the last 64 of its process."""
    make = getattr(ObjectCode, f"from_{code_type}")
    if type(code) is not bytes:
        # A path: the file may change.
        return make(code, name=name, symbol_mapping=symbol_mapping)
    key = (code, code_type, name, tuple(symbol_mapping.items()))
    with _unpickled_lock:
        found = _unpickled.pop(key, None) or make(code, name=name, symbol_mapping=symbol_mapping)
        _unpickled[key] = found
        dropped = _unpickled.pop(next(iter(_unpickled))) if len(_unpickled) > _UNPICKLED_LIMIT else None
    # After the lock: unloading calls the driver.
    del dropped
    return found


def _kernel(code, name):
    """Unpickle a `Kernel`; `name` is the symbol name in the code."""
    return ObjectCode.get_kernel(code, name)


class _AttributeValue(int):
    """Integer kernel attribute that is also callable, as in cuda.core 0.x: ``attributes.num_regs()``."""

    def __call__(self, device_id=None):
        from warnings import warn

        name = self._name
        warn(
            f"calling KernelAttributes.{name} is deprecated: it is a property; use attributes[device].{name} for another "
            "device",
            DeprecationWarning,
            stacklevel=2,
        )
        if device_id is None:
            return int(self)
        return int(getattr(self._attributes[device_id], name))

    def __reduce__(self):
        return int, (int(self),)
