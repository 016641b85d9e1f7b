"""Compiled code and its kernels."""

from cupyrite._native.core import Kernel, KernelAttributes, KernelOccupancy, ObjectCode

__all__ = ["Kernel", "ObjectCode"]


def __getattr__(name):
    # Named tuples take longer to make than all else here to import.
    fields = _NAMED_TUPLES.get(name)
    if fields is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from collections import namedtuple

    return globals().setdefault(name, namedtuple(name, fields, module=__name__))


_NAMED_TUPLES = {
    "MaxPotentialBlockSizeOccupancyResult": ("min_grid_size", "max_block_size"),
    "ParamInfo": ("offset", "size"),
}


def _object_code(code, code_type, name, symbol_mapping):
    """What a pickled object code is made with."""
    return getattr(ObjectCode, f"from_{code_type}")(code, name=name, symbol_mapping=symbol_mapping)


def _kernel(code, name):
    """What a pickled kernel is made with; the name is that in the code."""
    return ObjectCode.get_kernel(code, name)


class _AttributeValue(int):
    """A number among a kernel's attributes, which can be called as in cuda.core 0.x: ``attributes.num_regs()``."""

    def __call__(self, device_id=None):
        from warnings import warn

        name = self._name
        warn(
            f"KernelAttributes.{name} is a property: leave the call away, and take attributes[device].{name} for "
            "another device",
            DeprecationWarning,
            stacklevel=2,
        )
        if device_id is None:
            return int(self)
        return int(getattr(self._attributes[device_id], name))

    def __reduce__(self):
        return int, (int(self),)
