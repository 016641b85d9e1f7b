"""CUDA C++ of the kernels of textures.py: each thread fetches at one coordinate and stores four words."""

# Coordinates are columns of floats, one element per thread; the contents of each column.
COLUMNS = ("x", "y", "z", "layer", "lod", "dx0", "dx1", "dx2", "dy0", "dy1", "dy2")

# Kernel name without the kind of its result: the fetch. T is float4, int4 or uint4.
FETCHES = {
    "tex1Dfetch": "tex1Dfetch<T>(t, (int)x)",
    "tex1D": "tex1D<T>(t, x)",
    "tex1DLod": "tex1DLod<T>(t, x, lod)",
    "tex1DGrad": "tex1DGrad<T>(t, x, dx0, dy0)",
    "tex2D": "tex2D<T>(t, x, y)",
    "tex2DLod": "tex2DLod<T>(t, x, y, lod)",
    "tex2DGrad": "tex2DGrad<T>(t, x, y, make_float2(dx0, dx1), make_float2(dy0, dy1))",
    "tex3D": "tex3D<T>(t, x, y, z)",
    "tex3DLod": "tex3DLod<T>(t, x, y, z, lod)",
    "tex3DGrad": "tex3DGrad<T>(t, x, y, z, make_float4(dx0, dx1, dx2, 0.f), make_float4(dy0, dy1, dy2, 0.f))",
    "tex1DLayered": "tex1DLayered<T>(t, x, (int)layer)",
    "tex1DLayeredLod": "tex1DLayeredLod<T>(t, x, (int)layer, lod)",
    "tex1DLayeredGrad": "tex1DLayeredGrad<T>(t, x, (int)layer, dx0, dy0)",
    "tex2DLayered": "tex2DLayered<T>(t, x, y, (int)layer)",
    "tex2DLayeredLod": "tex2DLayeredLod<T>(t, x, y, (int)layer, lod)",
    "tex2DLayeredGrad": "tex2DLayeredGrad<T>(t, x, y, (int)layer, make_float2(dx0, dx1), make_float2(dy0, dy1))",
    "texCubemap": "texCubemap<T>(t, x, y, z)",
    "texCubemapLod": "texCubemapLod<T>(t, x, y, z, lod)",
    "texCubemapGrad": "texCubemapGrad<T>(t, x, y, z, make_float4(dx0, dx1, dx2, 0.f), make_float4(dy0, dy1, dy2, 0.f))",
    "texCubemapLayered": "texCubemapLayered<T>(t, x, y, z, (int)layer)",
    "texCubemapLayeredLod": "texCubemapLayeredLod<T>(t, x, y, z, (int)layer, lod)",
    "tex2Dgather0": "tex2Dgather<T>(t, x, y, 0)",
    "tex2Dgather1": "tex2Dgather<T>(t, x, y, 1)",
    "tex2Dgather2": "tex2Dgather<T>(t, x, y, 2)",
    "tex2Dgather3": "tex2Dgather<T>(t, x, y, 3)",
}

# Forms of `tex` with integer coordinates, which CUDA C++ cannot express: (PTX geometry, coordinates).
INTEGER_FETCHES = {
    "int1d": ("1d", ("x",)),
    "int2d": ("2d", ("x", "y")),
    "int3d": ("3d", ("x", "y", "z", "z")),
    "inta1d": ("a1d", ("layer", "x")),
    "inta2d": ("a2d", ("layer", "x", "y", "y")),
    "intlevel2d": ("level.2d", ("x", "y")),
}

# Surfaces: geometry, its coordinates. The first coordinate counts bytes in the unformatted forms.
SURFACES = {
    "1d": ("x",),
    "2d": ("x", "y"),
    "3d": ("x", "y", "z", "z"),
    "a1d": ("layer", "x"),
    "a2d": ("layer", "x", "y", "y"),
}
# Width of an access: (PTX suffix, constraint of a register, its C type, number of registers)
WIDTHS = {
    1: (".b8", "h", "unsigned short", 1),
    2: (".b16", "h", "unsigned short", 1),
    4: (".b32", "r", "unsigned", 1),
    8: (".v2.b32", "r", "unsigned", 2),
    16: (".v4.b32", "r", "unsigned", 4),
}
MODES = ("zero", "clamp", "trap")
REDUCTIONS = [
    ("add", "u32"),
    ("min", "u32"),
    ("max", "u32"),
    ("min", "s32"),
    ("max", "s32"),
    ("and", "b32"),
    ("or", "b32"),
    ("add", "u64"),
]
QUERIES = (
    "width",
    "height",
    "depth",
    "channel_data_type",
    "channel_order",
    "normalized_coords",
    "array_size",
    "num_mipmap_levels",
)
SURFACE_QUERIES = ("width", "height", "depth", "channel_data_type", "channel_order", "array_size", "memory_layout")

KINDS = {"f": "float4", "i": "int4", "u": "uint4"}

HEAD = """
typedef unsigned long long u64;
__device__ inline void put(unsigned *out, int i, int n, unsigned a, unsigned b, unsigned c, unsigned d) {
    out[i] = a; out[n + i] = b; out[2 * n + i] = c; out[3 * n + i] = d;
}
__device__ inline unsigned word(float v) { return __float_as_uint(v); }
__device__ inline unsigned word(int v) { return (unsigned)v; }
__device__ inline unsigned word(unsigned v) { return v; }
"""


def _columns(used):
    return "".join(f" const float {c} = in[{i} * n + i_];" for i, c in enumerate(COLUMNS) if c in used)


def _kernel(name, body, loop=False):
    """One kernel; with `loop` a single thread does everything in order, so that the last write is known."""
    if loop:
        return (
            f'extern "C" __global__ void {name}(u64 t, const float *in, unsigned *out, int n) {{\n'
            f"    for (int i_ = 0; i_ < n; i_++) {{{_columns(COLUMNS)} {body} }}\n}}\n"
        )
    return (
        f'extern "C" __global__ void {name}(u64 t, const float *in, unsigned *out, int n) {{\n'
        f"    const int i_ = blockIdx.x * blockDim.x + threadIdx.x;\n    if (i_ >= n) return;\n   {_columns(COLUMNS)}\n    {body}\n}}\n"
    )


def _fetches(kind):
    out = []
    for name, call in FETCHES.items():
        body = f"{KINDS[kind]} r = {call.replace('<T>', f'<{KINDS[kind]}>')}; put(out, i_, n, word(r.x), word(r.y), word(r.z), word(r.w));"
        out.append(_kernel(f"{name}_{kind}", body))
    return HEAD + "".join(out)


def _integers():
    out = []
    for name, (geometry, coordinates) in INTEGER_FETCHES.items():
        for kind, letter in (("f", "f32"), ("u", "u32"), ("i", "s32")):
            n = len(coordinates)
            places = ", ".join(f"%{5 + k}" for k in range(n))
            level = f", %{5 + n}" if geometry.startswith("level") else ""
            inputs = ", ".join(f'"r"((int){c})' for c in coordinates) + (', "r"((int)lod)' if level else "")
            register, of = ("f", "float") if kind == "f" else ("r", "unsigned")
            body = (
                f"{of} a, b, c, d; "
                f'asm volatile("tex.{geometry}.v4.{letter}.s32 {{%0, %1, %2, %3}}, [%4, {{{places}}}]{level};" '
                f': "={register}"(a), "={register}"(b), "={register}"(c), "={register}"(d) : "l"(t), {inputs}); '
                "put(out, i_, n, word(a), word(b), word(c), word(d));"
            )
            out.append(_kernel(f"{name}_{kind}", body))
    return HEAD + "".join(out)


def _surfaces(mode):
    out = []
    for geometry, coordinates in SURFACES.items():
        n = len(coordinates)
        inputs = ", ".join(f'"r"((int){c})' for c in coordinates)
        for size, (suffix, letter, of, count) in WIDTHS.items():
            registers = [f"r{k}" for k in range(count)]
            vector = "{" + ", ".join(f"%{k}" for k in range(count)) + "}" if count > 1 else "%0"
            places = ", ".join(f"%{count + 1 + k}" for k in range(n))
            body = (
                f"{of} {', '.join(f'{r} = 0' for r in registers)}; "
                f'asm volatile("suld.b.{geometry}{suffix}.{mode} {vector}, [%{count}, {{{places}}}];" : '
                + ", ".join(f'"={letter}"({r})' for r in registers)
                + f' : "l"(t), {inputs}); put(out, i_, n, {", ".join([*registers, *["0"] * (4 - count)])});'
            )
            out.append(_kernel(f"suld_{geometry}_{size}_{mode}", body))
            places = ", ".join(f"%{1 + k}" for k in range(n))
            vector = "{" + ", ".join(f"%{n + 1 + k}" for k in range(count)) + "}" if count > 1 else f"%{n + 1}"
            values = ", ".join(f'"{letter}"(({of})(0x1010101u * (i_ + 1) + {k}u))' for k in range(count))
            body = f'asm volatile("sust.b.{geometry}{suffix}.{mode} [%0, {{{places}}}], {vector};" :: "l"(t), {inputs}, {values} : "memory");'
            out.append(_kernel(f"sust_{geometry}_{size}_{mode}", body, loop=True))
    return HEAD + "".join(out)


def _formatted(mode):
    """Formatted stores: the first coordinate counts elements, the value is converted to the surface's format."""
    out = []
    for geometry in ("1d", "2d", "3d"):
        coordinates = SURFACES[geometry]
        n = len(coordinates)
        inputs = ", ".join(f'"r"((int){c})' for c in coordinates)
        places = ", ".join(f"%{1 + k}" for k in range(n))
        for kind in ("f", "u"):
            if kind == "f":
                values = [f"__float_as_uint((i_ - 20) * 0.0625f + {k})" for k in range(4)]
            else:
                values = [f"(0x1020304u * i_ + {k}u - 300u)" for k in range(4)]
            values = ", ".join(f'"r"({value})' for value in values)
            vector = "{" + ", ".join(f"%{n + 1 + k}" for k in range(4)) + "}"
            body = f'asm volatile("sust.p.{geometry}.v4.b32.{mode} [%0, {{{places}}}], {vector};" :: "l"(t), {inputs}, {values} : "memory");'
            out.append(_kernel(f"sustp_{geometry}_{kind}_{mode}", body, loop=True))
    return HEAD + "".join(out)


def _reductions(mode):
    out = []
    for geometry, coordinates in SURFACES.items():
        if geometry not in ("1d", "2d", "3d"):
            continue
        n = len(coordinates)
        inputs = ", ".join(f'"r"((int){c})' for c in coordinates)
        places = ", ".join(f"%{1 + k}" for k in range(n))
        for op, kind in REDUCTIONS:
            value = (
                '"l"(0x9e3779b97f4a7c15ull * (u64)(i_ + 1))'
                if kind == "u64"
                else '"r"(0x9e3779b9u * (unsigned)(i_ + 1))'
            )
            body = f'asm volatile("sured.b.{op}.{geometry}.{kind}.{mode} [%0, {{{places}}}], %{n + 1};" :: "l"(t), {inputs}, {value} : "memory");'
            out.append(_kernel(f"sured_{geometry}_{op}_{kind}_{mode}", body, loop=True))
    return HEAD + "".join(out)


def _query(instruction, query):
    body = f'unsigned a; asm volatile("{instruction}.{query}.b32 %0, [%1];" : "=r"(a) : "l"(t)); put(out, i_, n, a, 0, 0, 0);'
    return HEAD + _kernel(f"{instruction}_{query}", body)


def _level_query(query):
    body = f'unsigned a; asm volatile("txq.level.{query}.b32 %0, [%1], %2;" : "=r"(a) : "l"(t), "r"(i_)); put(out, i_, n, a, 0, 0, 0);'
    return HEAD + _kernel(f"txqlevel_{query}", body)


def modules():
    """{module's name: CUDA C++}. Kernels that a compiler may refuse have modules of their own."""
    out = {f"fetch_{kind}": _fetches(kind) for kind in KINDS}
    out["integers"] = _integers()
    for mode in MODES:
        out[f"surface_{mode}"] = _surfaces(mode)
        out[f"formatted_{mode}"] = _formatted(mode)
        out[f"reduction_{mode}"] = _reductions(mode)
    for query in QUERIES:
        out[f"txq_{query}"] = _query("txq", query)
    for query in SURFACE_QUERIES:
        out[f"suq_{query}"] = _query("suq", query)
    for query in ("width", "height", "depth"):
        out[f"txqlevel_{query}"] = _level_query(query)
    return out


def module_of(kernel):
    """The module that holds a kernel."""
    start, _, rest = kernel.partition("_")
    if start in ("txq", "suq", "txqlevel"):
        return kernel
    if start in FETCHES:
        return f"fetch_{rest}"
    if start in INTEGER_FETCHES:
        return "integers"
    mode = kernel.rpartition("_")[2]
    return {"suld": "surface_", "sust": "surface_", "sustp": "formatted_", "sured": "reduction_"}[start] + mode
