"""Utilities: caches of compiled programs."""

# Public name -> module of this package that has it.
_HOMES = {
    "FileStreamProgramCache": "_program_cache",
    "InMemoryProgramCache": "_program_cache",
    "ProgramCacheResource": "_program_cache",
    "make_program_cache_key": "_program_cache",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    from importlib import import_module

    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *_HOMES})
