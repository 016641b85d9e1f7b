"""PTX of kernels that do nothing."""


def empty_kernels(kernels):
    """PTX of empty kernels; `kernels` maps a name to its parameter types."""

    def entry(name, types):
        parameters = ",\n".join(f"    .param .{kind} p{number}" for number, kind in enumerate(types))
        return f".visible .entry {name}(\n{parameters}\n)\n{{\n    ret;\n}}\n"

    head = ".version 7.8\n.target sm_80\n.address_size 64\n\n"
    return head + "\n".join(entry(name, types) for name, types in kernels.items())


# Kernels of the bindings' benchmarks: 16 mixed parameters, and 512 ints.
FOR_BINDINGS = {"sixteen": ("u32", "f32", "u64", "f64") * 4, "many": ("u32",) * 512}

# Kernels of cuda.core's benchmarks.
FOR_CORE = {"none": (), "three": ("f32", "u64", "u64"), "sixteen": ("u64", "f32", "u32", "u64") * 4}
