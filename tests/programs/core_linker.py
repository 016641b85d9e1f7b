"""cuda.core: two relocatable objects, linked and run."""

import numpy as np
from cuda.core import Device, LaunchConfig, Linker, LinkerOptions, Program, ProgramOptions, launch

CALLEE = 'extern "C" __device__ int triple(int value) { return 3 * value; }'
CALLER = """
extern "C" __device__ int triple(int value);
extern "C" __global__ void map(int *values, size_t count)
{
    if (threadIdx.x < count)
        values[threadIdx.x] = triple(values[threadIdx.x]);
}
"""

device = Device()
device.set_current()
arch = f"sm_{device.arch}"
options = ProgramOptions(arch=arch, relocatable_device_code=True)
parts = [Program(source, code_type="c++", options=options).compile("cubin") for source in (CALLEE, CALLER)]
linker_options = LinkerOptions(name="tripled", arch=arch, link_time_optimization=False, debug=False)
linker = Linker(*parts, options=linker_options)
code = linker.link(target_type="cubin")
assert linker.backend in ("nvJitLink", "driver")
assert isinstance(linker.get_info_log(), str)
print("errors:", repr(linker.get_error_log()))

stream = device.create_stream()
values = np.arange(60, dtype=np.int32)
buffer = device.allocate(values.nbytes, stream=stream)
buffer.copy_from(values, stream=stream)
launch(stream, LaunchConfig(grid=1, block=64), code.get_kernel("map"), buffer, np.uint64(values.size))
out = np.zeros_like(values)
buffer.copy_to(out, stream=stream)
stream.sync()
assert np.array_equal(out, 3 * values)
print("tripled", values.size, "numbers")
linker.close()
