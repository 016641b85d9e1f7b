"""Arrays, mipmapped arrays, resource descriptors, textures and surfaces."""

from .devices import CURRENT

TEXTURES = (
    CURRENT
    + """
from cuda.core.texture import *
from cuda.core.typing import *
s = d.create_stream()
O, M, R, T = OpaqueArrayOptions, MipmappedArrayOptions, ResourceDescriptor, TextureObjectOptions
src, dst = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
a = d.create_opaque_array(O((8, 4), "float32", 2, True))
plain = d.create_opaque_array(O((8, 4), "float32", 1))
m = d.create_mipmapped_array(M((8, 4), "float32", 1, 3, True))
b = d.memory_resource.allocate(1024, stream=s)
def modes(x):
    t = driver.cuTexObjectGetTextureDesc(x.handle)[1]
    return [int(n) for n in t.addressMode], int(t.filterMode), t.flags, t.maxAnisotropy, t.mipmapLevelBias, list(t.borderColor)
"""
)

GROUPS = {
    "texture: options": (
        TEXTURES,
        """
        public(O)
        public(M)
        public(T)
        O((8,), "float32", 1)
        O([8, 4], "float32", 1)
        O((8, 4), np.float32, 1)
        O((8, 4), np.dtype("int16"), 4, True)
        O((8, 4), "f4", 1)
        O((8, 4), "float64", 1)
        O((8, 4), np.float64, 1)
        O((8, 4), "float32", 3)
        O((), "float32", 1)
        O((1, 2, 3, 4), "float32", 1)
        O((0,), "float32", 1)
        O((8, -1), "float32", 1)
        O(8, "float32", 1)
        O("88", "float32", 1)
        O((8,), "float32", "1")
        O((8,), "float32", True)
        O((8.5,), "float32", 1)
        O((8,), None, 1)
        O((8,), 7, 1)
        O((8,), "FLOAT32", 1)
        O((8, 4), "float32", 1) == O([8, 4], np.float32, 1)
        hash(O((8,), "float32", 1))
        dataclasses.replace(O((8,), "float32", 1), num_channels=4)
        M((8, 4), "float32", 1, 3)
        M((8, 4), "float32", 1, 0)
        M((8, 4), "float32", 1, -1)
        M((8, 4), "float32", 1, 2.5)
        M((8, 4), "float32", 1)
        T()
        T(filter_mode="linear", read_mode="normalized_float", mipmap_filter_mode="linear")
        T(filter_mode="x")
        T(filter_mode=None)
        T(read_mode="x")
        T(mipmap_filter_mode=1)
        T("wrap").address_mode
        T(foo=1)
        [f.name for f in dataclasses.fields(T)]
        """,
    ),
    "texture: arrays": (
        TEXTURES,
        """
        public(OpaqueArray)
        public(MipmappedArray)
        OpaqueArray()
        MipmappedArray()
        d.create_opaque_array()
        d.create_opaque_array(None)
        d.create_opaque_array(5)
        d.create_opaque_array({"shape": (8,), "format": "float32", "num_channels": 1})
        d.create_opaque_array({"shape": (8,)})
        d.create_opaque_array(O((1 << 40,), "float32", 1))
        a
        a.shape, a.format, a.num_channels, a.element_bytes, a.size_bytes, type(a.handle), a.device is d, a.is_closed, a.is_surface_load_store
        a.shape = (1,)
        a.__enter__() is a
        weakref.ref(a)
        m
        m.shape, m.format, m.num_channels, m.num_levels, type(m.handle), m.device is d, m.is_closed, m.is_surface_load_store
        [m.get_level(n).shape for n in range(3)]
        l = m.get_level(1); l, l.size_bytes, l.is_surface_load_store, l.device is d
        m.get_level(3)
        m.get_level(-1)
        m.get_level("1")
        m.get_level(1.0)
        d.create_mipmapped_array(M((8, 4), "float32", 1, 5))
        a.copy_from(src, stream=s)
        a.copy_to(dst, stream=s) is dst
        s.sync(); np.array_equal(src, dst)
        a.copy_to(b, stream=s) is b
        a.copy_from(b, stream=s)
        a.copy_from(np.zeros(100, np.float32), stream=s)
        a.copy_from(src[:10], stream=s)
        a.copy_from(src[::2], stream=s)
        a.copy_from(bytes(256), stream=s)
        a.copy_to(bytes(256), stream=s)
        a.copy_from(5, stream=s)
        a.copy_from(a, stream=s)
        a.copy_from(src)
        a.copy_from(src, stream=None)
        a.copy_from(src, stream=0)
        a.copy_to(d.memory_resource.allocate(64, stream=s), stream=s)
        m.close(); m, m.handle, m.is_closed
        m.get_level(0)
        l.copy_from(src[:8], stream=s)
        l.close(); l.handle, l.is_closed, l.shape
        a.close(); a.close(); a, a.handle, a.is_closed, a.shape, a.device is d
        a.copy_from(src, stream=s)
        R.from_opaque_array(a)
        pickle.dumps(plain)
        copy.copy(plain)
        """,
    ),
    "texture: resources": (
        TEXTURES,
        """
        public(R)
        R()
        R.from_opaque_array(a)
        R.from_opaque_array(m)
        R.from_opaque_array(None)
        R.from_mipmapped_array(m)
        R.from_mipmapped_array(a)
        r = R.from_linear(b, format="float32", num_channels=1); r, r.kind, r.source is b, r.format, r.num_channels, r.size_bytes, r.width, r.height, r.pitch_bytes
        R.from_linear(b, format=np.uint8, num_channels=4, size_bytes=64).size_bytes
        R.from_linear(b, format="float32", num_channels=1, size_bytes=4096)
        R.from_linear(b, format="float32", num_channels=1, size_bytes=0)
        R.from_linear(b, format="float32", num_channels=1, size_bytes=-1)
        R.from_linear(b, format="float32", num_channels=1, size_bytes=7)
        R.from_linear(b, format="float32", num_channels=3)
        R.from_linear(src, format="float32", num_channels=1)
        R.from_linear(b, format="bad", num_channels=1)
        R.from_linear(b)
        p = R.from_pitch2d(b, format="float32", num_channels=1, width=8, height=4, pitch_bytes=32); p, p.kind, p.source is b, p.size_bytes, p.width, p.height, p.pitch_bytes
        R.from_pitch2d(b, format="float32", num_channels=1, width=8, height=4, pitch_bytes=16)
        R.from_pitch2d(b, format="float32", num_channels=1, width=8, height=40, pitch_bytes=64)
        R.from_pitch2d(b, format="float32", num_channels=1, width=0, height=4, pitch_bytes=64)
        R.from_pitch2d(b, format="float32", num_channels=1, width=8, height=-1, pitch_bytes=64)
        R.from_pitch2d(b, format="float32", num_channels=1, width="8", height=4, pitch_bytes=32)
        e = R.from_opaque_array(a); e.kind, e.source is a, e.format, e.num_channels, e.size_bytes, e.width
        copy.copy(e)
        b.close()
        R.from_linear(b, format="float32", num_channels=1)
        d.create_texture_object(resource=r)
        """,
    ),
    "texture: objects": (
        TEXTURES
        + """
e = R.from_opaque_array(a)
x, y = d.create_texture_object(resource=e), d.create_surface_object(resource=e)
def made(**options):
    return modes(d.create_texture_object(resource=e, options=T(**options)))
""",
        """
        public(TextureObject)
        public(SurfaceObject)
        TextureObject()
        SurfaceObject()
        repr(x) == f"TextureObject(handle={x.handle:#x})", repr(y) == f"SurfaceObject(handle={y.handle:#x})"
        x.resource is e, x.options == T(), x.device is d, x.is_closed, type(x.handle)
        y.resource is e, y.device is d, y.is_closed, type(y.handle)
        y.options
        d.create_texture_object(e)
        d.create_texture_object()
        d.create_texture_object(resource=a)
        d.create_texture_object(resource=None)
        d.create_texture_object(resource=e, options=5)
        d.create_texture_object(resource=e, options={"foo": 1})
        modes(d.create_texture_object(resource=e, options={"srgb": True}))
        made()
        made(address_mode="wrap")
        made(address_mode=("wrap",))
        made(address_mode=("wrap", "mirror"))
        made(address_mode=["wrap", "mirror", "border"])
        made(address_mode=("wrap",) * 4)
        made(address_mode=())
        made(address_mode="x")
        made(address_mode=1)
        made(address_mode=("wrap", 1))
        made(border_color=(1, 2, 3, 4))
        made(border_color=[1, 2, 3, 4])
        made(border_color=(1, 2, 3))
        made(border_color=(1, "x", 3, 4))
        made(border_color=1)
        made(max_anisotropy=-1)
        made(max_anisotropy=17)
        made(max_anisotropy=1 << 32)
        made(max_anisotropy=1.5)
        made(normalized_coords=2)
        made(mipmap_level_bias="x")
        made(mipmap_level_bias=0.5)
        made(read_mode="normalized_float", filter_mode="linear")
        made(srgb=1, disable_trilinear_optimization="yes")
        made(seamless_cubemap=True)
        modes(d.create_texture_object(resource=R.from_mipmapped_array(m), options=T(mipmap_filter_mode="linear", normalized_coords=True)))
        modes(d.create_texture_object(resource=R.from_linear(b, format="float32", num_channels=1), options=T(filter_mode="linear")))
        modes(d.create_texture_object(resource=R.from_pitch2d(b, format="float32", num_channels=1, width=8, height=4, pitch_bytes=32)))
        d.create_texture_object(resource=R.from_pitch2d(b, format="int8", num_channels=1, width=5, height=7, pitch_bytes=33))
        d.create_surface_object(resource=R.from_opaque_array(plain))
        d.create_surface_object(resource=R.from_mipmapped_array(m))
        d.create_surface_object(resource=R.from_linear(b, format="float32", num_channels=1))
        d.create_surface_object(resource=None)
        x.close(); x.close(); x.handle, x.is_closed, x.resource, x.options == T(), repr(x)
        y.close(); y.handle, y.is_closed, y.resource, repr(y)
        with d.create_texture_object(resource=e) as z: z.is_closed
        z.is_closed
        a.close(); d.create_texture_object(resource=e)
        """,
    ),
}
