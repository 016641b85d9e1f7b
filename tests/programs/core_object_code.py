"""cuda.core: object code from files and bytes, attributes of kernels with the spelling of 0.x, occupancy."""

import pathlib
import tempfile

from cuda.core import Device, ObjectCode, Program, ProgramOptions

device = Device()
device.set_current()
options = ProgramOptions(arch=f"sm_{device.arch}")
source = 'extern "C" __global__ void increase(int *values) { ++values[threadIdx.x]; }'
cubin = Program(source, code_type="c++", options=options).compile("cubin").code
with tempfile.TemporaryDirectory() as folder:
    path = pathlib.Path(folder) / "increase.cubin"
    path.write_bytes(cubin)
    assert ObjectCode.from_cubin(str(path)).get_kernel("increase") is not None
code = ObjectCode.from_cubin(cubin, name="counting")
kernel = code.get_kernel("increase")
assert int(code.handle) != 0
print(code.name, code.code_type)

source = "template <typename T> __global__ void halve(T *values) { values[threadIdx.x] /= 2; }"
ptx = Program(source, code_type="c++", options=options).compile("ptx", name_expressions=("halve<double>",)).code
mapped = ObjectCode.from_ptx(ptx, symbol_mapping={"halve<double>": "_Z5halveIdEvPT_"})
assert mapped.get_kernel("halve<double>") is not None

attributes = kernel.attributes
assert attributes.max_threads_per_block() > 0 and attributes.num_regs() >= 0 and attributes.local_size_bytes() >= 0
print("shared memory:", attributes.shared_size_bytes())
occupancy = kernel.occupancy
assert occupancy.max_active_blocks_per_multiprocessor(block_size=128, dynamic_shared_memory_size=0) > 0
best = occupancy.max_potential_block_size(dynamic_shared_memory_needed=0, block_size_limit=0)
assert best.min_grid_size > 0 and best.max_block_size > 0
