"""One side of textures.py: times arrays, textures, surfaces and tensor maps of cuda.core in this interpreter and prints JSON.
Runs with Cupyrite and with its peer.

    textures_side.py ROUNDS
"""

import contextlib
import json
import sys

import numpy
from cuda.core import Device
from cuda.core.texture import OpaqueArrayOptions, ResourceDescriptor, TextureObjectOptions
from cuda.core.utils import StridedMemoryView

from harness.timing import calling, smallest_mean


def main():
    rounds = int(sys.argv[1])
    device = Device()
    device.set_current()
    stream = device.create_stream()
    options = OpaqueArrayOptions((64, 64), "float32", 1, True)
    array = device.create_opaque_array(options)
    resource = ResourceDescriptor.from_opaque_array(array)
    sampling = TextureObjectOptions()
    buffer = device.memory_resource.allocate(1 << 16, stream=stream)
    view = StridedMemoryView.from_buffer(buffer, (64, 64), dtype=numpy.dtype("float32"))

    def create_array():
        device.create_opaque_array(options).close()

    def create_texture():
        device.create_texture_object(resource=resource, options=sampling).close()

    def create_surface():
        device.create_surface_object(resource=resource).close()

    def copy():
        array.copy_from(buffer, stream=stream)

    rows = {
        "OpaqueArrayOptions": lambda: OpaqueArrayOptions((64, 64), "float32", 1, True),
        "create and close an array": create_array,
        "ResourceDescriptor.from_opaque_array": lambda: ResourceDescriptor.from_opaque_array(array),
        "create and close a texture": create_texture,
        "create and close a surface": create_surface,
        "copy of a Buffer to an array": copy,
    }
    tensor_map = None
    # Before compute capability 9.0, NVIDIA's driver encodes none.
    with contextlib.suppress(Exception):
        tensor_map = view.as_tensor_map((16, 16))
    rows["as_tensor_map"] = (lambda: view.as_tensor_map((16, 16))) if tensor_map else None
    rows["replace_address"] = (lambda: tensor_map.replace_address(view)) if tensor_map else None
    found = [call and smallest_mean(rounds, 200, calling(call), stream.sync) for call in rows.values()]
    print(json.dumps({"device": device.name, "rows": list(rows), "python": found}))


if __name__ == "__main__":
    main()
