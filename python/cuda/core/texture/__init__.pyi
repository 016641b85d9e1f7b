"""Textures and surfaces: arrays in a layout of the driver's choice, and the handles with which kernels use them."""

from cuda.core.texture._array import OpaqueArray as OpaqueArray
from cuda.core.texture._array import OpaqueArrayOptions as OpaqueArrayOptions
from cuda.core.texture._mipmapped_array import MipmappedArray as MipmappedArray
from cuda.core.texture._mipmapped_array import MipmappedArrayOptions as MipmappedArrayOptions
from cuda.core.texture._surface import SurfaceObject as SurfaceObject
from cuda.core.texture._texture import ResourceDescriptor as ResourceDescriptor
from cuda.core.texture._texture import TextureObject as TextureObject
from cuda.core.texture._texture import TextureObjectOptions as TextureObjectOptions

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
