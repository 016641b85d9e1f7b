"""Option classes: data classes without the cost of importing `dataclasses`, which is more than all else here.

A class under :func:`options` has what ``@dataclasses.dataclass`` would have given it; what only the module
`dataclasses` itself asks for (``dataclasses.fields``, ``replace``, ``asdict``) is made when it asks.
"""

import sys as _sys


class _OnDemand:
    """An attribute of a class that is computed when it is first read, and then there."""

    def __init__(self, owner, name, frozen):
        self.owner, self.name, self.frozen = owner, name, frozen

    def __get__(self, instance, owner=None):
        import dataclasses

        owner = self.owner
        fields = []
        for name, kind in owner.__annotations__.items():
            if name in owner._option_defaults:
                fields.append((name, kind, dataclasses.field(default=owner._option_defaults[name])))
            else:
                fields.append((name, kind))
        like = dataclasses.make_dataclass(owner.__name__, fields, frozen=self.frozen)
        owner.__dataclass_params__ = like.__dataclass_params__
        owner.__dataclass_fields__ = like.__dataclass_fields__
        return getattr(owner, self.name)


def _initialiser(cls, names, defaults, frozen):
    """``__init__`` with the fields as its parameters, in their order."""
    parameters = ["self"]
    for name in names:
        parameters.append(f"{name}=_defaults[{name!r}]" if name in defaults else name)
    # Straight into the dictionary: ``__setattr__`` is for assignments from outside, and would cost more than the rest.
    # A class derived from this one may have properties in the place of fields, and gets them set.
    body = [" if type(self) is _cls:", "  fields = self.__dict__"]
    body += [f"  fields[{name!r}] = {name}" for name in names]
    body += [" else:", "  _assign(self, locals())"]
    if hasattr(cls, "__post_init__"):
        body.append(" self.__post_init__()")
    put = object.__setattr__ if frozen else setattr

    def assign(self, values):
        for name in names:
            put(self, name, values[name])

    scope = {"_assign": assign, "_cls": cls, "_defaults": defaults}
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(body), scope)
    made = scope["__init__"]
    made.__annotations__ = {**{name: cls.__annotations__[name] for name in names}, "return": None}
    return made


def options(cls=None, *, frozen=False):
    """Makes a class with annotated fields an option class.

    Parameters
    ----------
    cls : type
        The class; its annotations are the fields, class attributes of the same names their defaults. A method
        ``__post_init__`` runs at the end of ``__init__``.
    frozen : bool
        Whether fields never change; such instances can be hashed. Those of other classes can be changed, and have no
        attributes but the fields.
    """
    if cls is None:
        return lambda cls: options(cls, frozen=frozen)
    names = tuple(cls.__annotations__)
    defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}

    def __repr__(self):
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

    def __eq__(self, other):
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self):
        return hash(tuple([getattr(self, name) for name in names]))

    def refuse_unknown(self, name, value):
        # A misspelt option would be one that nobody reads. Derived classes may have attributes of their own.
        if type(self) is cls and name not in names and not (name[:2] == name[-2:] == "__"):
            raise AttributeError(
                f"{cls.__name__} has no option {name!r}; its options are {', '.join(names)}", name=name, obj=self
            )
        super(cls, self).__setattr__(name, value)

    def refuse_changes(self, name, value):
        if type(self) is cls or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot assign to field {name!r}")
        super(cls, self).__setattr__(name, value)

    def __delattr__(self, name):
        if type(self) is cls or name in names:
            from dataclasses import FrozenInstanceError

            raise FrozenInstanceError(f"cannot delete field {name!r}")
        super(cls, self).__delattr__(name)

    def __replace__(self, /, **changes):
        from dataclasses import replace

        return replace(self, **changes)

    __setattr__ = refuse_changes if frozen else refuse_unknown
    __setattr__.__name__ = "__setattr__"
    methods = [_initialiser(cls, names, defaults, frozen), __setattr__]
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
        # As for every class that has its own idea of equality and can be changed.
        cls.__hash__ = None
    cls.__match_args__ = names  # type: ignore[misc]
    cls._option_defaults = defaults
    for name in ("__dataclass_fields__", "__dataclass_params__"):
        setattr(cls, name, _OnDemand(cls, name, frozen))
    return cls
