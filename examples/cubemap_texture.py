"""A cubemap texture: six faces around a point, fetched by direction.

Every face has its own values. A kernel fetches in the direction of each texel's center and must get exactly that texel;
filtered fetches between two texels must return their mean.
"""

import sys

import numpy as np
from cuda.core import Device, LaunchConfig, Program, launch
from cuda.core.texture import OpaqueArrayOptions, ResourceDescriptor, TextureObjectOptions

SOURCE = r"""
// Looks along `direction` (three floats a thread).
extern "C" __global__ void look(cudaTextureObject_t cube, const float *direction, float *found, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n)
        found[i] = texCubemap<float>(cube, direction[3 * i], direction[3 * i + 1], direction[3 * i + 2]);
}
"""


def first_device():
    """The first device, made current. Exit status 77 means "skipped" to test programs."""
    try:
        device = Device(0)
        device.set_current()
    except Exception as reason:
        print(f"skipped: no device: {reason}")
        sys.exit(77)
    print(f"on {device.name}")
    return device


def verify(holds, what):
    """Ends the program with an error unless the result is right."""
    if not holds:
        sys.exit(f"wrong result: {what}")


def directions(u, v):
    """Directions through (u, v) of each face, from -1 to 1: arrays of shape (6, ..., 3), in the order +x, -x, +y, -y,
    +z, -z.

    The CUDA programming guide defines the axes of each face, "Cubemap Textures".
    """
    one = np.ones_like(u)
    faces = [(one, -v, -u), (-one, -v, u), (u, one, v), (u, -one, -v), (u, -v, one), (-u, -v, -one)]
    return np.stack([np.stack(face, axis=-1) for face in faces]).astype(np.float32)


def main():
    device = first_device()
    stream = device.create_stream()
    kernel = Program(SOURCE, "c++").compile("cubin").get_kernel("look")

    # One number per texel: its face, row and column, exact in single precision and with the filter's weights.
    width = 16
    faces = np.arange(6 * width * width, dtype=np.float32).reshape(6, width, width)
    array = device.create_opaque_array(OpaqueArrayOptions((width, width, 6), "float32", 1, is_cubemap=True))
    array.copy_from(faces, stream=stream)
    resource = ResourceDescriptor.from_opaque_array(array)

    def look(filter_mode, towards):
        """The texture's values in directions of shape (..., 3)."""
        options = TextureObjectOptions(address_mode="clamp", filter_mode=filter_mode, normalized_coords=True)
        found = np.empty(towards.shape[:-1], np.float32)
        with device.create_texture_object(resource=resource, options=options) as texture:
            there, out = (device.allocate(array.nbytes, stream=stream) for array in (towards, found))
            there.copy_from(towards, stream=stream)
            config = LaunchConfig(grid=-(-found.size // 128), block=128)
            launch(stream, config, kernel, np.uint64(texture.handle), there, out, np.int32(found.size))
            out.copy_to(found, stream=stream)
            stream.sync()
        return found

    centres = (np.arange(width) + 0.5) / width * 2 - 1
    v, u = np.meshgrid(centres, centres, indexing="ij")
    found = look("point", directions(u, v))
    verify((found == faces).all(), "a fetch at a texel's center returned another texel")

    # Half way between two columns of a row: the mean of the two, up to the precision of the filter's weights (1/256).
    between = centres[:-1] + 1 / width
    v, u = np.meshgrid(centres, between, indexing="ij")
    found = look("linear", directions(u, v))
    wanted = (faces[:, :, :-1] + faces[:, :, 1:]) / 2
    # Adjacent rows differ by `width`: a weight off by 1/256 in the direction of rows shows up as that.
    verify(abs(found - wanted).max() <= 2 * (width + 1) / 256, "a filtered fetch between two texels")
    print(f"{faces.size} texels of six faces fetched, and {found.size} points between them")
    print("done: the results are right")


if __name__ == "__main__":
    main()
