"""Option classes: data classes that do not import `dataclasses`, which costs more than the rest of the package.

The decorator :func:`options` adds the methods that ``@dataclasses.dataclass`` adds. The metadata that ``fields``,
``replace`` and ``asdict`` of `dataclasses` read is computed on first access.

For type checkers, :func:`options` is ``@dataclasses.dataclass``.
"""

from __future__ import annotations

import sys as _sys

__all__ = ["options"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

#: Whether Python's own message for an unexpected keyword argument names the nearest parameter.
_SUGGESTS_KEYWORDS = _sys.version_info >= (3, 13)


class _LazyMetadata:
    """Class attribute of `dataclasses` metadata, computed on first access and then stored in the class."""

    def __init__(self, owner: Any, name: str, frozen: bool) -> None:
        self.owner, self.name, self.frozen = owner, name, frozen

    def __get__(self, instance: object, owner: Any = None) -> object:
        import dataclasses

        owner = self.owner
        fields: list[Any] = []
        for name, annotation in owner.__annotations__.items():
            if name in owner._option_defaults:
                fields.append((name, annotation, dataclasses.field(default=owner._option_defaults[name])))
            else:
                fields.append((name, annotation))
        like: Any = dataclasses.make_dataclass(owner.__name__, fields, frozen=self.frozen)
        owner.__dataclass_params__ = like.__dataclass_params__
        owner.__dataclass_fields__ = like.__dataclass_fields__
        return getattr(owner, self.name)


def _make_init(cls: type, names: Sequence[str], defaults: dict[str, object], frozen: bool) -> Any:
    """Build ``__init__`` with one parameter per field, in declaration order."""
    parameters = ["self"]
    for name in names:
        parameters.append(f"{name}=_defaults[{name!r}]" if name in defaults else name)
    # Fast path for the class itself: write the instance dictionary directly, since ``__setattr__`` dominates the cost.
    # A subclass may replace fields by properties, so its fields are assigned with ``setattr``.
    body = [" if type(self) is _cls:", "  fields = self.__dict__"]
    body += [f"  fields[{name!r}] = {name}" for name in names]
    body += [" else:", "  _assign(self, locals())"]
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    signature = f"def __init__({', '.join(parameters)}):\n"
    if not _SUGGESTS_KEYWORDS:
        parameters.append("**_unknown")
        body.insert(0, " if _unknown: _refuse(_unknown)")
    set_field: Callable[[object, str, object], None] = object.__setattr__ if frozen else setattr

    def assign(self: object, values: dict[str, object]) -> None:
        for name in names:
            set_field(self, name, values[name])

    def refuse(unknown: dict[str, object]) -> None:
        from difflib import get_close_matches

        name = next(iter(unknown))
        near = get_close_matches(name, names, n=1)
        hint = f". Did you mean {near[0]!r}?" if near else ""
        raise TypeError(f"{cls.__qualname__}.__init__() got an unexpected keyword argument {name!r}{hint}")

    scope: dict[str, Any] = {"_assign": assign, "_cls": cls, "_defaults": defaults, "_refuse": refuse}
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(body), scope)
    init = scope["__init__"]
    init.__annotations__ = {**{name: cls.__annotations__[name] for name in names}, "return": None}
    if not _SUGGESTS_KEYWORDS:
        # The signature that `inspect` shows.
        exec(signature + " pass", scope)
        init.__wrapped__ = scope["__init__"]
        init.__wrapped__.__annotations__ = init.__annotations__
    return init


def _option_class(cls: Any = None, *, frozen: bool = False) -> Any:
    """Class decorator that makes a class with annotated fields an option class.

    Parameters
    ----------
    cls : type
        The class. Its annotations declare the fields; class attributes of the same names are the defaults.
        ``__post_init__``, if defined, runs at the end of ``__init__``.
    frozen : bool
        Whether instances are immutable and hashable. Instances of other option classes are mutable and reject unknown
        attributes.
    """
    if cls is None:
        return lambda cls: _option_class(cls, frozen=frozen)
    names = tuple(cls.__annotations__)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}

    def __repr__(self: object) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __eq__(self: object, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self: object) -> int:
        return hash(tuple([getattr(self, name) for name in names]))

    def reject_unknown(self: object, name: str, value: object) -> None:
        # A misspelt option would have no effect. Subclasses may define further attributes.
        if type(self) is cls and name not in names and not (name[:2] == name[-2:] == "__"):
            raise AttributeError(
                f"{cls.__name__} has no option {name!r}; its options are {', '.join(names)}", name=name, obj=self
            )
        super(cls, self).__setattr__(name, value)

    def reject_assignment(self: object, name: str, value: object) -> None:
        if type(self) is cls or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self: object, name: str) -> None:
        if type(self) is cls or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    def __replace__(self: Any, /, **changes: object) -> Any:
        from dataclasses import replace

        return replace(self, **changes)

    __setattr__ = reject_assignment if frozen else reject_unknown
    __setattr__.__name__ = "__setattr__"
    methods: list[Any] = [_make_init(cls, names, defaults, frozen), __setattr__]
    methods += [method for method in (__repr__, __eq__) if method.__name__ not in cls.__dict__]
    if frozen:
        methods += [__hash__, __delattr__]
    if _sys.version_info >= (3, 13):
        methods.append(__replace__)
    for method in methods:
        method.__module__ = cls.__module__
        method.__qualname__ = f"{cls.__qualname__}.{method.__name__}"
        setattr(cls, method.__name__, method)
    if not frozen:
        # Mutable classes that define `__eq__` are not hashable.
        cls.__hash__ = None
    cls.__match_args__ = names  # type: ignore[misc]
    cls._option_defaults = defaults
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        setattr(cls, name, _LazyMetadata(cls, name, frozen))
    return cls


if TYPE_CHECKING:
    from dataclasses import dataclass as options
else:
    options = _option_class
