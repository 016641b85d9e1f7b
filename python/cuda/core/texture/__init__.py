"""Textures and surfaces: arrays in a layout of the driver's choice, and the handles with which kernels use them."""

from cuda.core.texture._array import OpaqueArray, OpaqueArrayOptions
from cuda.core.texture._mipmapped_array import MipmappedArray, MipmappedArrayOptions
from cuda.core.texture._surface import SurfaceObject
from cuda.core.texture._texture import ResourceDescriptor, TextureObject, TextureObjectOptions

__all__ = [
    "MipmappedArray",
    "MipmappedArrayOptions",
    "OpaqueArray",
    "OpaqueArrayOptions",
    "ResourceDescriptor",
    "SurfaceObject",
    "TextureObject",
    "TextureObjectOptions",
]
