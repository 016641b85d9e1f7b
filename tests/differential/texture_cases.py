"""The cases of textures.py: texture contents, coordinates, and the list of fetches. Standard library only."""

import functools
import math
import random
import struct
from typing import NamedTuple

# name: (CUarray_format, struct code, bytes)
FORMATS = {
    "u8": (1, "B", 1),
    "u16": (2, "H", 2),
    "u32": (3, "I", 4),
    "s8": (8, "b", 1),
    "s16": (9, "h", 2),
    "s32": (10, "i", 4),
    "f16": (16, "e", 2),
    "f32": (32, "f", 4),
}
# Formats that hold their channels themselves: (CUarray_format, channels, bytes of an element)
PACKED = {
    "unorm8x1": (0xC0, 1, 1),
    "unorm8x2": (0xC1, 2, 2),
    "unorm8x4": (0xC2, 4, 4),
    "unorm16x1": (0xC3, 1, 2),
    "unorm16x2": (0xC4, 2, 4),
    "unorm16x4": (0xC5, 4, 8),
    "snorm8x1": (0xC6, 1, 1),
    "snorm8x2": (0xC7, 2, 2),
    "snorm8x4": (0xC8, 4, 4),
    "snorm16x1": (0xC9, 1, 2),
    "snorm16x2": (0xCA, 2, 4),
    "snorm16x4": (0xCB, 4, 8),
    "unorm1010102": (0x50, 4, 4),
}
# Block-compressed formats: (CUarray_format, channels, bytes of a 4 x 4 block)
BLOCKS = {
    "bc1": (0x91, 4, 8),
    "bc1srgb": (0x92, 4, 8),
    "bc2": (0x93, 4, 16),
    "bc3": (0x95, 4, 16),
    "bc4u": (0x97, 1, 8),
    "bc4s": (0x98, 1, 8),
    "bc5u": (0x99, 2, 16),
    "bc5s": (0x9A, 2, 16),
    "bc6u": (0x9B, 3, 16),
    "bc6s": (0x9C, 3, 16),
    "bc7": (0x9D, 4, 16),
    "bc7srgb": (0x9E, 4, 16),
}
LAYERED, SURFACE, CUBEMAP, GATHER = 1, 2, 4, 8
AS_INTEGER, NORMALIZED, SRGB, NO_TRILINEAR, SEAMLESS = 1, 2, 0x10, 0x20, 0x40
WRAP, CLAMP, MIRROR, BORDER = range(4)
ADDRESSES = ("wrap", "clamp", "mirror", "border")
POINT, LINEAR = 0, 1
FILTERS = ("point", "linear")


class Resource(NamedTuple):
    """The memory of a texture or a surface: an array, a mipmapped array or linear memory."""

    kind: str  # array, mipmap, linear, pitch2d
    size: tuple  # width, height, depth or layers, as cuArray3DCreate takes them
    format: str
    channels: int
    flags: int = 0
    levels: int = 1
    content: str = "random"  # random, step, special, ramp

    @property
    def element(self):
        """Bytes of an element (a block, if compressed)."""
        if self.format in FORMATS:
            return FORMATS[self.format][2] * self.channels
        return (PACKED.get(self.format) or BLOCKS[self.format])[2]

    @property
    def code(self):
        """(CUarray_format, channels)"""
        if self.format in FORMATS:
            return FORMATS[self.format][0], self.channels
        return (PACKED.get(self.format) or BLOCKS[self.format])[:2]

    def extent(self, level):
        """(elements in a row, rows, slices) of a level."""
        w, h, d = self.size
        cube = self.flags & CUBEMAP
        w, h = max(1, w >> level), max(1, h >> level) if h else 1
        d = max(1, d) if self.flags & LAYERED or cube else (max(1, d >> level) if d else 1)
        if self.format in BLOCKS:
            w, h = (w + 3) // 4, (h + 3) // 4
        return w, h, d

    def data(self, level=0):
        """The bytes of a level."""
        w, h, d = self.extent(level)
        rng = random.Random(f"{self.format} {self.channels} {level} {self.content}")
        n = w * h * d * (self.element if self.format not in FORMATS else self.channels)
        if self.format not in FORMATS:
            return bytes(rng.getrandbits(8) for _ in range(n))
        code = FORMATS[self.format][1]
        if code in "ef":
            values = [(rng.getrandbits(24) - (1 << 23)) / (1 << 23) for _ in range(n)]
            if self.content == "step":
                values = [float((i // self.channels) % 2) for i in range(n)]
            elif self.content == "special":
                odd = [
                    math.inf,
                    1.0,
                    -math.inf,
                    2.0,
                    math.nan,
                    3.0,
                    -0.0,
                    0.0,
                    6e-8,
                    1e-40,
                    -1e-42,
                    65504.0,
                    3e38,
                    -3e38,
                    1e-30,
                ]
                values = [odd[i % len(odd)] for i in range(n)]
                if code == "e":
                    values = [v if not math.isfinite(v) or abs(v) <= 65504 else 65504.0 for v in values]
            return struct.pack(f"<{n}{code}", *values)
        if self.content == "ramp":
            return bytes((i // self.channels + 64 * (i % self.channels)) & 255 for i in range(n))
        return bytes(rng.getrandbits(8) for _ in range(n * FORMATS[self.format][2]))

    def __str__(self):
        size = "x".join(str(s) for s in self.size if s)
        extra = "".join(f" {name}" for bit, name in ((LAYERED, "layered"), (CUBEMAP, "cube")) if self.flags & bit)
        extra += f" levels{self.levels}" if self.kind == "mipmap" else ""
        extra += "" if self.content == "random" else f" {self.content}"
        channels = f"x{self.channels}" if self.format in FORMATS else ""
        return f"{self.kind} {size}{extra} {self.format}{channels}"


class Texture(NamedTuple):
    """How a texture object samples its resource: CUDA_TEXTURE_DESC."""

    filter: int = POINT
    address: tuple = (CLAMP, CLAMP, CLAMP)
    flags: int = 0
    border: tuple = (0.0, 0.0, 0.0, 0.0)
    mip_filter: int = POINT
    bias: float = 0.0
    clamp: tuple = (0.0, 0.0)
    anisotropy: int = 0

    def __str__(self):
        words = [FILTERS[self.filter], "-".join(dict.fromkeys(ADDRESSES[a] for a in self.address)) if len(set(self.address)) == 1
                 else "-".join(ADDRESSES[a] for a in self.address)]  # fmt: skip
        words += [
            n
            for bit, n in (
                (AS_INTEGER, "integer"),
                (NORMALIZED, "norm"),
                (SRGB, "srgb"),
                (NO_TRILINEAR, "notri"),
                (SEAMLESS, "seamless"),
            )
            if self.flags & bit
        ]
        if any(self.border):
            words.append("border" + ",".join(map(str, self.border)))
        if self.mip_filter or self.bias or any(self.clamp):
            words.append(f"mip-{FILTERS[self.mip_filter]} bias{self.bias} clamp{self.clamp[0]}..{self.clamp[1]}")
        if self.anisotropy:
            words.append(f"aniso{self.anisotropy}")
        return " ".join(words)


class Case(NamedTuple):
    """A texture object and its fetches."""

    resource: Resource
    texture: Texture
    kernels: tuple  # kernels' names with the kind of result
    coordinates: str  # name of the set
    view: tuple = ()  # (format, width, height, depth, first level, last, first layer, last)

    def key(self, kernel):
        view = f" view{self.view}" if self.view else ""
        return f"{self.resource} | {self.texture}{view} | {kernel} {self.coordinates}"


# ----------------------------------------------------------------------------------------------------------
# Coordinates


def f32(value):
    """The nearest single, as a float."""
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def next_after(value, steps):
    """The single that is `steps` further from zero."""
    return struct.unpack("<f", struct.pack("<i", struct.unpack("<i", struct.pack("<f", value))[0] + steps))[0]


def edges(n):
    """Coordinates of one axis of `n` texels, in texels, around all discontinuities."""
    out = [
        0.0,
        -0.0,
        0.25,
        0.5,
        0.75,
        1.0,
        1.25,
        1.5,
        2.0,
        n - 1.0,
        n - 0.75,
        n - 0.5,
        n - 0.25,
        float(n),
        n + 0.25,
        n + 0.5,
        n + 0.75,
        n + 1.0,
    ]
    out += [
        -0.25,
        -0.5,
        -0.75,
        -1.0,
        -1.25,
        -1.5,
        -float(n),
        -n - 0.5,
        2 * n - 0.3,
        2.0 * n,
        2 * n + 0.3,
        3 * n + 0.6,
        -2 * n - 0.4,
        -3.0 * n,
    ]
    out += [next_after(f32(v), s) for v in (0.5, 1.0, n - 0.5, float(n), 2.0 * n) for s in (-1, 1)]
    out += [
        1e-40,
        -1e-40,
        1e-30,
        -1e-30,
        1e-8,
        -1e-8,
        511.75,
        -512.25,
        65535.5,
        65536.5,
        1e5 + 0.5,
        -1e5,
        2.0**22 + 0.5,
        2.0**23,
        2.0**24 + 2,
        -(2.0**24),
    ]
    out += [2.0**30, 2.0**31, -(2.0**31), 2.0**32, 1e10, -1e10, 1e20, 3.4e38, -3.4e38, math.inf, -math.inf, math.nan]
    return out


DIRECTIONS = [
    (0.0, 0.0, 0.0), (1.0, 1.0, 1.0), (-1.0, 1.0, 1.0), (1.0, -1.0, 1.0), (1.0, 1.0, -1.0), (-1.0, -1.0, -1.0), (-0.0, 0.0, -0.0),
    (1.0, 1.0, 0.0), (1.0, -1.0, 0.0), (0.0, 1.0, 1.0), (0.0, 1.0, -1.0), (1.0, 0.0, 1.0), (-1.0, 0.0, 1.0), (1e30, 1e30, 1.0), (1e-30, 0.0, 0.0),
    (math.inf, 0.0, 0.0), (0.0, -math.inf, 1.0), (math.inf, math.inf, 1.0), (math.nan, 1.0, 0.0), (1.0, math.nan, 0.0), (0.0, 0.0, math.nan), (1e-40, 1e-41, 0.0),
    (3e38, 1.0, 3e38), (1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, -1.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, -1.0),
]  # fmt: skip


@functools.cache
def coordinates(name):
    """The columns (texture_kernels.COLUMNS) of a set, each a list of floats.

    The name selects the set: "1d:13 full", "2d:9x7 some norm", "3d:5x4x3 ...", "cube some", "... layers3", "... lods",
    "... grads", "2d:9x7 dense" (weights of linear filtering), "... grid" (integers in and out of range), "... within"
    (integers in range).
    """
    words = name.split()
    rng = random.Random(name.replace(" norm", ""))
    shape, _, size = words[0].partition(":")
    size = [int(s) for s in size.split("x")] if size else [1, 1, 1]
    options = words[1:]
    amount = {"full": 420, "some": 90, "few": 24}.get(options[0], 160)
    points = []

    def inside(n):
        return rng.choice((rng.randrange(4 * n + 1) / 4, rng.random() * n, rng.randrange(256 * n) / 256 + 1 / 512))

    def around(n):
        return rng.uniform(-n - 1, 2 * n + 1)

    dims = {"1d": 1, "2d": 2, "3d": 3, "cube": 3}[shape]
    if shape == "cube":
        points += DIRECTIONS
        for _ in range(amount):
            direction = [rng.uniform(-1, 1) for _ in range(3)]
            if rng.random() < 0.4:  # Near an edge of the cube.
                direction[rng.randrange(3)] = rng.choice((-1.0, 1.0))
                direction[rng.randrange(3)] = rng.choice((-1.0, 1.0, 0.999, -0.999, 0.98))
            points.append(tuple(v * rng.choice((1.0, 1.0, 3.0, 1e-3)) for v in direction))
    elif options[0] == "dense":
        if dims == 1:
            points += [(1.5 + k / 1024,) for k in range(1025)]
            points += [(next_after(f32(1.5 + (2 * k + 1) / 512), s),) for k in range(0, 256, 5) for s in (-1, 1)]
        else:
            points += [tuple(rng.randrange(512 * (n - 1)) / 512 + 0.5 for n in size) for _ in range(400)]
            points += [
                tuple(1.5 + k / 512 if axis == a else 1.5 for axis in range(dims))
                for a in range(dims)
                for k in range(0, 513, 3)
            ]
    elif options[0] == "within":
        points += [
            (float(x), float(y), float(z))
            for z in range([*size, 1, 1][2])
            for y in range([*size, 1][1])
            for x in range(size[0])
        ]
        points = [p[:dims] for p in points]
    elif options[0] == "grid":
        axes = [
            [-(2.0**31), -100.0, -2.0, -1.0, *map(float, range(n)), float(n), n + 1.0, n + 100.0, 2.0**30] for n in size
        ]
        if dims == 1:
            points += [(x,) for x in axes[0]]
        else:
            points += [tuple(rng.choice(a) for a in axes) for _ in range(120)]
            points += [tuple(a if i == axis else 1.0 for i in range(dims)) for axis in range(dims) for a in axes[axis]]
    else:
        for axis in range(dims):
            special = edges(size[axis])
            if options[0] == "few":
                special = [*special[::4], math.nan]
            for value in special:
                points.append(tuple(value if i == axis else inside(n) for i, n in enumerate(size)))
        if dims > 1 and options[0] == "full":
            points += [tuple(rng.choice(edges(n)) for n in size) for _ in range(amount // 3)]
        points += [tuple(map(inside, size)) for _ in range(amount // 2)]
        points += [tuple(map(around, size)) for _ in range(amount // 2)]
    layers = next((int(o[6:]) for o in options if o.startswith("layers")), 0)
    columns = [[] for _ in range(11)]
    for point in points:
        point = [*point, 0.0, 0.0, 0.0][:3]
        if "norm" in options and shape != "cube":
            point = [v / n for v, n in zip(point, [*size, 1, 1][:3], strict=True)]
        layer = rng.choice((0, 0, 1, layers - 1, layers, layers + 3, -1, -2, 2**31)) if layers else 0
        row = [*point, float(layer)]
        if "lods" in options:
            row.append(
                rng.choice(
                    (
                        rng.uniform(-1, 5),
                        rng.randrange(-2, 11) / 2,
                        rng.randrange(0, 1024) / 512 + rng.choice((0, 1 / 1024)),
                        math.nan,
                        math.inf,
                        -math.inf,
                        100.0,
                        0.0,
                    )
                )
            )
        else:
            row.append(0.0)
        if "grads" in options:
            row += [
                rng.choice((0.0, 2.0 ** rng.randrange(-6, 2), rng.uniform(-0.5, 0.5), rng.uniform(-0.05, 0.05)))
                for _ in range(6)
            ]
        else:
            row += [0.0] * 6
        for column, value in zip(columns, row, strict=True):
            column.append(f32(value))
    return columns


# ----------------------------------------------------------------------------------------------------------
# Cases


def kind_of(resource, texture):
    """The matching kind of result: f, i or u."""
    if resource.format in ("f16", "f32") or resource.format not in FORMATS:
        return "f"
    if texture.flags & AS_INTEGER or resource.format in ("u32", "s32"):
        return "i" if resource.format[0] == "s" else "u"
    return "f"


# geometry: (sizes, flags, fetch, set's stem, dimensions that have an address mode)
GEOMETRIES = {
    "1d": ((13, 0, 0), 0, "tex1D", "1d:13", 1),
    "1d16": ((16, 0, 0), 0, "tex1D", "1d:16", 1),
    "2d": ((9, 7, 0), 0, "tex2D", "2d:9x7", 2),
    "2d8": ((8, 8, 0), 0, "tex2D", "2d:8x8", 2),
    "3d": ((5, 4, 3), 0, "tex3D", "3d:5x4x3", 3),
    "1dl": ((11, 0, 3), LAYERED, "tex1DLayered", "1d:11", 1),
    "2dl": ((8, 6, 3), LAYERED, "tex2DLayered", "2d:8x6", 2),
    "cube": ((8, 8, 6), CUBEMAP, "texCubemap", "cube", 2),
    "cubel": ((4, 4, 12), CUBEMAP | LAYERED, "texCubemapLayered", "cube", 2),
}


def case(geometry, fmt, channels, texture, amount, content="random", kernels=None, view=()):
    """A case on an array of a geometry."""
    size, flags, fetch, stem, _ = GEOMETRIES[geometry]
    resource = Resource("array", size, fmt, channels, flags, content=content)
    name = f"{stem} {amount}"
    if flags & LAYERED:
        name += f" layers{size[2] // (6 if flags & CUBEMAP else 1)}"
    if texture.flags & NORMALIZED:
        name += " norm"
    return Case(resource, texture, kernels or (f"{fetch}_{kind_of(resource, texture)}",), name, view)


def same(address):
    return (address,) * 3


def every_address():
    """Each filter, address mode and kind of coordinate, for each geometry."""
    border = (0.25, -1.5, 3.0, 0.625)
    for geometry, (*_, dimensions) in GEOMETRIES.items():
        for fmt, channels in (("f32", 4), ("u8", 4), ("u16", 1)):
            for filter in (POINT, LINEAR):
                for address in range(4):
                    for norm in (0, NORMALIZED):
                        amount = "full" if fmt == "f32" else "some"
                        texture = Texture(filter, same(address), norm, border if address == BORDER else (0.0,) * 4)
                        yield case(geometry, fmt, channels, texture, amount)
        if dimensions > 1:
            for address in (
                (WRAP, CLAMP, MIRROR),
                (BORDER, WRAP, CLAMP),
                (MIRROR, BORDER, WRAP),
                (CLAMP, MIRROR, BORDER),
            ):
                for filter in (POINT, LINEAR):
                    yield case(geometry, "f32", 1, Texture(filter, address, NORMALIZED, border), "some")
                    yield case(geometry, "f32", 1, Texture(filter, address, 0, border), "some")


def every_format():
    """Each format, number of channels and read mode."""
    for geometry in ("1d", "2d", "3d", "2dl", "cube"):
        for fmt in FORMATS:
            for channels in (1, 2, 4):
                flags = [0, AS_INTEGER] if fmt in ("u8", "s8", "u16", "s16", "u32", "s32") else [0]
                for flag in flags:
                    for filter in (POINT, LINEAR):
                        if filter == LINEAR and (flag or fmt in ("u32", "s32")):
                            continue
                        for address in (CLAMP, BORDER):
                            border = (0.5, 2.0, -1.0, 7.25) if address == BORDER else (0.0,) * 4
                            if address == BORDER and geometry not in ("1d", "2d"):
                                continue
                            yield case(geometry, fmt, channels, Texture(filter, same(address), flag, border), "few")
    for fmt in ("u8", "s8", "u16", "f16", "f32"):
        for channels in (1, 2, 4):
            for filter in (POINT, LINEAR):
                yield case("2d", fmt, channels, Texture(filter, same(CLAMP), SRGB), "some")
                yield case("2d", fmt, channels, Texture(filter, same(BORDER), SRGB, (0.5, 0.25, 0.125, 0.75)), "few")
    for fmt in PACKED:
        resource = Resource("array", (9, 7, 0), fmt, PACKED[fmt][1])
        for filter in (POINT, LINEAR):
            for flags in (0, SRGB):
                yield Case(resource, Texture(filter, same(CLAMP), flags), ("tex2D_f",), "2d:9x7 few")
    for fmt in BLOCKS:
        resource = Resource("array", (16, 12, 0), fmt, BLOCKS[fmt][1])
        for filter in (POINT, LINEAR):
            yield Case(
                resource,
                Texture(filter, same(CLAMP), SRGB if fmt.endswith("srgb") else 0),
                ("tex2D_f",),
                "2d:16x12 full",
            )
    # Unsupported filters, and every value of 8 and 16 bits.
    for fmt in ("u32", "s32", "u8", "s16"):
        yield case("2d", fmt, 1, Texture(LINEAR, same(CLAMP), AS_INTEGER), "few")
    for fmt, flags in (("u8", 0), ("s8", 0), ("u8", SRGB)):
        resource = Resource("array", (256, 0, 0), fmt, 1, content="ramp")
        yield Case(resource, Texture(POINT, same(CLAMP), flags), ("tex1D_f",), "1d:256 grid")
        resource = Resource("array", (256, 0, 0), fmt, 4, content="ramp")
        yield Case(resource, Texture(LINEAR, same(CLAMP), flags), ("tex1D_f",), "1d:256 full")


def weights():
    """Linear filtering: its weights in small steps, and values that reveal mixing."""
    for geometry in ("1d", "2d", "3d"):
        for fmt in ("f32", "f16"):
            for content in ("step", "random", "special"):
                for norm in (0, NORMALIZED):
                    yield case(geometry, fmt, 1, Texture(LINEAR, same(CLAMP), norm), "dense", content)
        for fmt in ("u8", "s8", "u16", "s16"):
            for flags in (0, SRGB) if fmt == "u8" else (0,):
                yield case(geometry, fmt, 1, Texture(LINEAR, same(CLAMP), flags), "dense")
    for address in range(4):
        yield case(
            "1d16", "f32", 1, Texture(LINEAR, same(address), NORMALIZED, (2.0, 0.0, 0.0, 0.0)), "dense", "random"
        )
        yield case("2d", "f32", 1, Texture(POINT, same(address), NORMALIZED, (2.0, 0.0, 0.0, 0.0)), "full", "special")


def gathers():
    """tex2Dgather: each component, address mode and kind of format."""
    for fmt, channels in (("f32", 4), ("u8", 4), ("s16", 2), ("f32", 1), ("u32", 4)):
        for flags in {0, AS_INTEGER if fmt[0] != "f" else 0}:
            for address in range(4):
                for norm in (0, NORMALIZED):
                    for filter in (POINT, LINEAR):
                        if filter == LINEAR and (flags or fmt == "u32"):
                            continue
                        resource = Resource("array", (9, 7, 0), fmt, channels, GATHER)
                        texture = Texture(
                            filter,
                            same(address),
                            flags | norm,
                            (0.5, 0.25, 2.0, 4.0) if address == BORDER else (0.0,) * 4,
                        )
                        kind = kind_of(resource, texture)
                        components = range(4) if filter == POINT else (1,)
                        yield Case(
                            resource,
                            texture,
                            tuple(f"tex2Dgather{c}_{kind}" for c in components),
                            "2d:9x7 some" + (" norm" if norm else ""),
                        )


MIPMAPS = {
    "1d": ((16, 0, 0), 0, 5, ("tex1DLod", "tex1DGrad", "tex1D"), "1d:16"),
    "2d": ((16, 8, 0), 0, 5, ("tex2DLod", "tex2DGrad", "tex2D"), "2d:16x8"),
    "3d": ((8, 8, 4), 0, 4, ("tex3DLod", "tex3DGrad", "tex3D"), "3d:8x8x4"),
    "1dl": ((16, 0, 2), LAYERED, 5, ("tex1DLayeredLod", "tex1DLayeredGrad"), "1d:16"),
    "2dl": ((8, 8, 2), LAYERED, 4, ("tex2DLayeredLod", "tex2DLayeredGrad"), "2d:8x8"),
    "cube": ((8, 8, 6), CUBEMAP, 4, ("texCubemapLod", "texCubemapGrad", "texCubemap"), "cube"),
    "cubel": ((4, 4, 12), CUBEMAP | LAYERED, 3, ("texCubemapLayeredLod",), "cube"),
}


def mipmaps():
    """Levels: filters between them, bias, clamps, explicit levels and gradients."""
    for size, flags, levels, fetches, stem in MIPMAPS.values():
        layers = f" layers{size[2] // (6 if flags & CUBEMAP else 1)}" if flags & LAYERED else ""
        for fmt, channels in (("f32", 1), ("u8", 4)):
            resource = Resource("mipmap", size, fmt, channels, flags, levels)
            for filter in (POINT, LINEAR):
                for mip in (POINT, LINEAR):
                    variants = [(CLAMP, 0.0, (0.0, levels - 1.0), NORMALIZED)]
                    if fmt == "f32":
                        variants += [
                            (WRAP, 0.0, (0.0, 100.0), NORMALIZED),
                            (BORDER, 0.75, (0.0, 100.0), NORMALIZED),
                            (MIRROR, -1.3, (0.5, 2.25), NORMALIZED),
                            (CLAMP, 0.0, (0.0, 0.0), NORMALIZED),
                            (CLAMP, 0.0, (0.0, 100.0), NORMALIZED | NO_TRILINEAR),
                            (CLAMP, 0.0, (0.0, 100.0), 0),
                        ]
                        if flags & CUBEMAP:
                            variants.append((CLAMP, 0.0, (0.0, 100.0), NORMALIZED | SEAMLESS))
                    for address, bias, clamp, flag in variants:
                        texture = Texture(
                            filter,
                            same(address),
                            flag,
                            (2.0, 0.0, 0.0, 0.0) if address == BORDER else (0.0,) * 4,
                            mip,
                            bias,
                            clamp,
                        )
                        kernels = tuple(f"{f}_f" for f in fetches)
                        norm = " norm" if flag & NORMALIZED else ""
                        yield Case(resource, texture, kernels, f"{stem} some{layers} lods grads{norm}")
    for anisotropy in (1, 2, 4, 16):
        resource = Resource("mipmap", (16, 8, 0), "f32", 1, 0, 5)
        texture = Texture(LINEAR, same(CLAMP), NORMALIZED, mip_filter=LINEAR, clamp=(0.0, 100.0), anisotropy=anisotropy)
        yield Case(resource, texture, ("tex2DGrad_f", "tex2DLod_f"), "2d:16x8 some lods grads norm")
    # A level of a resource with a single level.
    for kernel in ("tex2DLod_f", "tex2DGrad_f"):
        yield case("2d", "f32", 1, Texture(LINEAR, same(CLAMP), NORMALIZED), "some lods grads", kernels=(kernel,))
    for geometry in ("cube", "cubel"):
        for filter in (POINT, LINEAR):
            yield case(geometry, "f32", 1, Texture(filter, same(CLAMP), NORMALIZED | SEAMLESS), "full")


def integer_coordinates():
    """Forms of `tex` whose coordinates are integers, and linear memory."""
    for geometry, kernel in (("1d", "int1d"), ("2d", "int2d"), ("3d", "int3d"), ("1dl", "inta1d"), ("2dl", "inta2d")):
        for fmt, channels, flags in (("f32", 4, 0), ("u8", 4, AS_INTEGER), ("s16", 2, 0), ("s32", 1, AS_INTEGER)):
            for address in range(4):
                for filter in (POINT, LINEAR):
                    if filter == LINEAR and flags:
                        continue
                    border = (0.5, 2.0, -1.0, 7.25) if address == BORDER else (0.0,) * 4
                    base = case(geometry, fmt, channels, Texture(filter, same(address), flags, border), "grid")
                    yield base._replace(kernels=(f"{kernel}_{kind_of(base.resource, base.texture)}",))
    for fmt in FORMATS:
        for channels in (1, 2, 4):
            for flags in (0, AS_INTEGER) if fmt[0] != "f" else (0,):
                resource = Resource("linear", (37, 0, 0), fmt, channels)
                texture = Texture(POINT, same(CLAMP), flags)
                kind = kind_of(resource, texture)
                yield Case(resource, texture, (f"tex1Dfetch_{kind}", f"int1d_{kind}"), "1d:37 grid")
    for address in range(4):
        for filter in (POINT, LINEAR):
            for norm in (0, NORMALIZED):
                resource = Resource("linear", (37, 0, 0), "f32", 1)
                name = "1d:37 few" + (" norm" if norm else "")
                yield Case(resource, Texture(filter, same(address), norm), ("tex1Dfetch_f", "tex1D_f"), name)
    for fmt, channels in (("f32", 1), ("f32", 4), ("u8", 4), ("s16", 2), ("f16", 2), ("u8", 1)):
        for address in range(4):
            for filter in (POINT, LINEAR):
                for norm in (0, NORMALIZED):
                    resource = Resource("pitch2d", (19, 11, 0), fmt, channels)
                    texture = Texture(
                        filter, same(address), norm, (0.5, 2.0, -1.0, 7.25) if address == BORDER else (0.0,) * 4
                    )
                    yield Case(resource, texture, ("tex2D_f",), "2d:19x11 some" + (" norm" if norm else ""))
    # An integer level of a mipmapped array.
    resource = Resource("mipmap", (16, 8, 0), "f32", 1, 0, 5)
    yield Case(resource, Texture(clamp=(0.0, 100.0)), ("intlevel2d_f",), "2d:16x8 grid lods")
    yield Case(resource, Texture(clamp=(0.0, 100.0), flags=NORMALIZED), ("intlevel2d_f",), "2d:16x8 grid lods")


def views():
    """Resource views: another format, fewer layers or levels."""
    linear = Texture(LINEAR, same(CLAMP), NORMALIZED)
    for fmt, channels, view in (
        ("u8", 4, (3, 8, 6, 0, 0, 0, 0, 0)),  # UINT_4X8
        ("u8", 4, (6, 8, 6, 0, 0, 0, 0, 0)),  # SINT_4X8
        ("u32", 1, (22, 8, 6, 0, 0, 0, 0, 0)),  # FLOAT_1X32
        ("u32", 1, (20, 8, 6, 0, 0, 0, 0, 0)),  # FLOAT_2X16
        ("u32", 1, (3, 8, 6, 0, 0, 0, 0, 0)),
        ("f32", 1, (13, 8, 6, 0, 0, 0, 0, 0)),  # UINT_1X32
        ("u32", 2, (25, 32, 24, 0, 0, 0, 0, 0)),  # UNSIGNED_BC1 in elements of 8 bytes
        ("u32", 4, (27, 32, 24, 0, 0, 0, 0, 0)),
        ("u32", 4, (34, 32, 24, 0, 0, 0, 0, 0)),
    ):
        resource = Resource("array", (8, 6, 0), fmt, channels)
        for texture in (linear, Texture(POINT, same(CLAMP), 0), Texture(POINT, same(CLAMP), AS_INTEGER)):
            kinds = ("tex2D_f", "tex2D_u")
            yield Case(
                resource,
                texture,
                kinds,
                f"2d:{view[1]}x{view[2]} some" + (" norm" if texture.flags & NORMALIZED else ""),
                view,
            )
    resource = Resource("array", (8, 6, 4), "f32", 1, LAYERED)
    yield Case(resource, linear, ("tex2DLayered_f",), "2d:8x6 some layers2 norm", (22, 8, 6, 2, 0, 0, 1, 2))
    resource = Resource("mipmap", (16, 8, 0), "f32", 1, 0, 5)
    texture = Texture(LINEAR, same(CLAMP), NORMALIZED, mip_filter=LINEAR, clamp=(0.0, 100.0))
    yield Case(resource, texture, ("tex2DLod_f",), "2d:16x8 some lods norm", (22, 16, 8, 0, 1, 3, 0, 0))
    yield Case(resource, texture, ("tex2DLod_f",), "2d:16x8 some lods norm", (22, 8, 4, 0, 1, 3, 0, 0))


def queries():
    """txq of different textures."""
    from texture_kernels import QUERIES

    kernels = tuple(f"txq_{q}" for q in QUERIES) + tuple(f"txqlevel_{q}" for q in ("width", "height", "depth"))
    for fmt, channels in (
        ("f32", 1),
        ("f32", 4),
        ("u8", 4),
        ("s8", 2),
        ("u16", 1),
        ("s16", 4),
        ("u32", 2),
        ("s32", 1),
        ("f16", 2),
    ):
        for flags in {0, AS_INTEGER if fmt[0] != "f" else 0, NORMALIZED}:
            yield Case(Resource("array", (9, 7, 0), fmt, channels), Texture(flags=flags), kernels, "1d:8 grid")
    for geometry in ("1d", "3d", "1dl", "2dl", "cube", "cubel"):
        yield case(geometry, "f32", 1, Texture(), "few", kernels=kernels)
    for size, flags, levels, _, _ in MIPMAPS.values():
        yield Case(Resource("mipmap", size, "f32", 1, flags, levels), Texture(clamp=(0.0, 9.0)), kernels, "1d:8 grid")
    yield Case(Resource("linear", (37, 0, 0), "f32", 1), Texture(), kernels, "1d:8 grid")
    yield Case(Resource("pitch2d", (19, 11, 0), "f32", 1), Texture(), kernels, "1d:8 grid")


GROUPS = {
    f.__name__: f for f in (every_address, every_format, weights, gathers, mipmaps, integer_coordinates, views, queries)
}


# ----------------------------------------------------------------------------------------------------------
# Surfaces


class SurfaceCase(NamedTuple):
    """A surface and one kernel on it; `bytes_`: the first coordinate is multiplied by this (unformatted accesses)."""

    resource: Resource
    kernel: str
    coordinates: str
    bytes_: int = 1

    def key(self):
        unit = f" in bytes of {self.bytes_}" if self.kernel.startswith("sustp") else ""
        return f"surface {self.resource} | {self.kernel} {self.coordinates}{unit}"


SURFACE_SHAPES = {
    "1d": ((13, 0, 0), 0, "1d:13 grid"),
    "2d": ((9, 7, 0), 0, "2d:9x7 grid"),
    "3d": ((5, 4, 3), 0, "3d:5x4x3 grid"),
    "a1d": ((11, 0, 3), LAYERED, "1d:11 grid layers3"),
    "a2d": ((8, 6, 3), LAYERED, "2d:8x6 grid layers3"),
    "cube": ((8, 8, 6), CUBEMAP, "2d:8x8 grid layers6"),
    "cubel": ((4, 4, 12), CUBEMAP | LAYERED, "2d:4x4 grid layers12"),
}
BY_BYTES = {1: ("u8", 1), 2: ("u16", 1), 4: ("f32", 1), 8: ("f16", 4), 16: ("u32", 4)}


def surfaces():
    """Reads, writes and reductions with the boundary modes that answer (`trap` is among the faults)."""
    from texture_kernels import REDUCTIONS, SURFACE_QUERIES

    for shape, (size, flags, name) in SURFACE_SHAPES.items():
        geometry = "a2d" if shape.startswith("cube") else shape
        for mode in ("zero", "clamp"):
            for width, (fmt, channels) in BY_BYTES.items():
                resource = Resource("array", size, fmt, channels, flags | SURFACE)
                yield SurfaceCase(resource, f"suld_{geometry}_{width}_{mode}", name, width)
                yield SurfaceCase(resource, f"sust_{geometry}_{width}_{mode}", name, width)
            # Accesses narrower and wider than an element.
            for width, fmt, channels in ((1, "u8", 4), (4, "u8", 1), (2, "u32", 1), (8, "f32", 4), (16, "u32", 1)):
                if shape in ("1d", "2d"):
                    resource = Resource("array", size, fmt, channels, flags | SURFACE)
                    yield SurfaceCase(resource, f"suld_{geometry}_{width}_{mode}", name, max(width, resource.element))
    for geometry in ("1d", "2d", "3d"):
        size, flags, name = SURFACE_SHAPES[geometry]
        for mode in ("zero", "clamp"):
            for fmt, channels in ((f, c) for f in FORMATS for c in (1, 2, 4)):
                resource = Resource("array", size, fmt, channels, flags | SURFACE)
                for kind in ("f", "u"):
                    for unit in sorted({1, resource.element}):
                        yield SurfaceCase(resource, f"sustp_{geometry}_{kind}_{mode}", name, unit)
                        yield SurfaceCase(
                            resource, f"sustp_{geometry}_{kind}_{mode}", name.replace("grid", "within"), unit
                        )
            for op, kind in REDUCTIONS:
                fmt, channels = ("u32", 2) if kind == "u64" else (kind if kind != "b32" else "u32", 1)
                resource = Resource("array", size, fmt, channels, flags | SURFACE)
                yield SurfaceCase(resource, f"sured_{geometry}_{op}_{kind}_{mode}", name, resource.element)
    for size, flags, name in SURFACE_SHAPES.values():
        for query in SURFACE_QUERIES:
            yield SurfaceCase(Resource("array", size, "s16", 2, flags | SURFACE), f"suq_{query}", name)
