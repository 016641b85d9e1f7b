from .plugin import DevicePlugin as DevicePlugin
from .serializers import register as register

__all__ = ["DevicePlugin", "register"]
