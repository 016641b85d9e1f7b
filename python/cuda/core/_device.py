"""Devices and their properties."""

from cupyrite._native.core import Device, DeviceProperties

__all__ = ["Device", "DeviceProperties"]
