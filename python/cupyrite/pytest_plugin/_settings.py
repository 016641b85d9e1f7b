"""The options, settings and environment variables of the plugin, combined.

A command-line option has precedence over the environment variable, and that over the setting in the configuration file.
"""

from __future__ import annotations

import dataclasses
import os
import re

import pytest

from . import ACTIONS, DEVICES

#: The environment variable of each option.
VARIABLES = {
    "cuda_device": "CUPYRITE_DEVICE",
    "cuda_devices": "CUPYRITE_CPU_DEVICES",
    "cuda_arch": "CUPYRITE_CPU_COMPUTE_CAPABILITY",
}
MAX_DEVICES = 16


@dataclasses.dataclass(frozen=True)
class Settings:
    """What a run asks for. None: the default of the device."""

    device: str
    devices: str | None
    arch: str | None
    #: Where `arch` was given, for a message.
    arch_place: str
    errors: str
    leaks: str

    @classmethod
    def read(cls, config: pytest.Config) -> Settings:
        """The settings of a run. Raises UsageError for an invalid value, with the place where it was given."""
        device, place = _value(config, "cuda_device")
        device = (device or "auto").lower()
        if device not in DEVICES:
            raise pytest.UsageError(f"{place}{device!r}: expected {', '.join(DEVICES[:-1])} or {DEVICES[-1]}")
        devices, place = _value(config, "cuda_devices")
        if devices is not None and not (devices.isdecimal() and 1 <= int(devices) <= MAX_DEVICES):
            raise pytest.UsageError(f"{place}{devices!r}: expected an integer from 1 to {MAX_DEVICES}")
        arch, place = _value(config, "cuda_arch")
        if arch is not None and not re.fullmatch(r"([5-9]|1[0-2])\.[0-9]", arch):
            raise pytest.UsageError(f"{place}{arch!r}: expected a version from 5.0 to 12.9, such as 9.0")
        errors, leaks = _action(config, "cuda_errors", "error"), _action(config, "cuda_leaks", "warn")
        return cls(device, devices, arch, place, errors, leaks)


def _value(config: pytest.Config, name: str) -> tuple[str | None, str]:
    """The value of an option, and the place where it was given, for a message."""
    # `config.option` lacks the options until the first conftest.py files are loaded.
    for options in (config.option, config.known_args_namespace):
        if (given := getattr(options, name, None)) is not None:
            return str(given), f"--{name.replace('_', '-')}="
    variable = VARIABLES[name]
    if value := os.environ.get(variable, "").strip():
        return value, f"{variable}="
    value = str(config.getini(name) or "").strip()
    return value or None, f"the setting {name} = "


def _action(config: pytest.Config, name: str, default: str) -> str:
    value = str(config.getini(name) or default).strip()
    if value not in ACTIONS:
        raise pytest.UsageError(f"the setting {name} = {value!r}: expected error, warn or ignore")
    return value
