"""Devices and what they can do."""

from cupyrite._native.core import Device, DeviceProperties

__all__ = ["Device", "DeviceProperties"]
