"""An OpenGL context without a window, through EGL and ctypes: on the GPU of CUDA device 0, or Mesa's software renderer."""

import contextlib
import ctypes
import ctypes.util

EGL_OPENGL_API = 0x30A2
EGL_CUDA_DEVICE_NV = 0x323A
EGL_PLATFORM_DEVICE_EXT = 0x313F
EGL_PLATFORM_SURFACELESS_MESA = 0x31DD
EGL_CONTEXT_MAJOR_VERSION = 0x3098
EGL_CONTEXT_MINOR_VERSION = 0x30FB
EGL_NONE = 0x3038

GL_UNPACK_ALIGNMENT = 0x0CF5
GL_PACK_ALIGNMENT = 0x0D05
GL_DYNAMIC_DRAW = 0x88E8
GL_TEXTURE_2D = 0x0DE1
GL_RGBA8 = 0x8058
GL_RGBA = 0x1908
GL_UNSIGNED_BYTE = 0x1401

_P = ctypes.c_void_p
_SIGNATURES = {
    "glCreateBuffers": (None, [ctypes.c_int, _P]),
    "glDeleteBuffers": (None, [ctypes.c_int, _P]),
    "glNamedBufferData": (None, [ctypes.c_uint, ctypes.c_ssize_t, _P, ctypes.c_uint]),
    "glNamedBufferStorage": (None, [ctypes.c_uint, ctypes.c_ssize_t, _P, ctypes.c_uint]),
    "glNamedBufferSubData": (None, [ctypes.c_uint, ctypes.c_ssize_t, ctypes.c_ssize_t, _P]),
    "glGetNamedBufferSubData": (None, [ctypes.c_uint, ctypes.c_ssize_t, ctypes.c_ssize_t, _P]),
    "glMapNamedBuffer": (_P, [ctypes.c_uint, ctypes.c_uint]),
    "glUnmapNamedBuffer": (ctypes.c_ubyte, [ctypes.c_uint]),
    "glCreateTextures": (None, [ctypes.c_uint, ctypes.c_int, _P]),
    "glDeleteTextures": (None, [ctypes.c_int, _P]),
    "glTextureStorage2D": (None, [ctypes.c_uint, ctypes.c_int, ctypes.c_uint, ctypes.c_int, ctypes.c_int]),
    "glTextureStorage3D": (None, [ctypes.c_uint, ctypes.c_int, ctypes.c_uint] + [ctypes.c_int] * 3),
    "glTextureSubImage2D": (None, [ctypes.c_uint] + [ctypes.c_int] * 5 + [ctypes.c_uint] * 2 + [_P]),
    "glTextureSubImage3D": (None, [ctypes.c_uint] + [ctypes.c_int] * 7 + [ctypes.c_uint] * 2 + [_P]),
    "glGetTextureImage": (None, [ctypes.c_uint, ctypes.c_int, ctypes.c_uint, ctypes.c_uint, ctypes.c_int, _P]),
    "glPixelStorei": (None, [ctypes.c_uint, ctypes.c_int]),
    "glGetIntegerv": (None, [ctypes.c_uint, _P]),
    "glGetError": (ctypes.c_uint, []),
    "glGetString": (ctypes.c_char_p, [ctypes.c_uint]),
    "glFinish": (None, []),
}


class Unavailable(Exception):
    """This machine has no OpenGL context for the CUDA device."""


class GL:
    """The functions of OpenGL as attributes, and shortcuts for the objects that tests need."""

    def __init__(self, egl):
        for name, (result, arguments) in _SIGNATURES.items():
            address = egl.eglGetProcAddress(name.encode())
            if not address:
                raise Unavailable(f"OpenGL lacks {name}")
            setattr(self, name, ctypes.CFUNCTYPE(result, *arguments)(address))

    def buffer(self, data):
        """A buffer with these bytes."""
        name, data = ctypes.c_uint(), bytes(data)
        self.glCreateBuffers(1, ctypes.byref(name))
        self.glNamedBufferData(name, len(data), data, GL_DYNAMIC_DRAW)
        return name.value

    def content(self, buffer, size):
        """The bytes of a buffer."""
        out = ctypes.create_string_buffer(size)
        self.glGetNamedBufferSubData(buffer, 0, size, out)
        return out.raw

    def texture(self, width, height, data, internal=GL_RGBA8, layout=(GL_RGBA, GL_UNSIGNED_BYTE), levels=1):
        """A 2-D texture with these bytes in level 0."""
        name = ctypes.c_uint()
        self.glCreateTextures(GL_TEXTURE_2D, 1, ctypes.byref(name))
        self.glTextureStorage2D(name, levels, internal, width, height)
        self.glPixelStorei(GL_UNPACK_ALIGNMENT, 1)
        self.glTextureSubImage2D(name, 0, 0, 0, width, height, *layout, bytes(data))
        return name.value

    def pixels(self, texture, size, layout=(GL_RGBA, GL_UNSIGNED_BYTE), level=0):
        """The bytes of a level of a texture."""
        out = ctypes.create_string_buffer(size)
        self.glPixelStorei(GL_PACK_ALIGNMENT, 1)
        self.glGetTextureImage(texture, level, *layout, size, out)
        return out.raw


def _function(egl, name, result, *arguments):
    address = egl.eglGetProcAddress(name)
    if not address:
        raise Unavailable(f"EGL lacks {name.decode()}")
    return ctypes.CFUNCTYPE(result, *arguments)(address)


def _display(egl, gpu):
    get = _function(egl, b"eglGetPlatformDisplayEXT", _P, ctypes.c_uint, _P, _P)
    if not gpu:
        return get(EGL_PLATFORM_SURFACELESS_MESA, None, None)
    query = _function(egl, b"eglQueryDevicesEXT", ctypes.c_uint, ctypes.c_int, _P, _P)
    attribute = _function(egl, b"eglQueryDeviceAttribEXT", ctypes.c_uint, _P, ctypes.c_int, _P)
    devices, count = (_P * 64)(), ctypes.c_int()
    if not query(64, devices, ctypes.byref(count)):
        raise Unavailable("EGL lists no devices")
    for device in devices[: count.value]:
        ordinal = ctypes.c_ssize_t(-1)
        if attribute(device, EGL_CUDA_DEVICE_NV, ctypes.byref(ordinal)) and ordinal.value == 0:
            return get(EGL_PLATFORM_DEVICE_EXT, device, None)
    raise Unavailable("EGL has no device that is CUDA device 0")


@contextlib.contextmanager
def context(gpu):
    """Makes an OpenGL 4.5 context current; yields a `GL`. `gpu` selects CUDA device 0, else Mesa's software renderer."""
    try:
        egl = ctypes.CDLL("libEGL.so.1")
    except OSError as error:
        raise Unavailable(f"libEGL.so.1 is missing: {error}") from None
    egl.eglGetProcAddress.restype = _P
    egl.eglGetProcAddress.argtypes = [ctypes.c_char_p]
    egl.eglInitialize.argtypes = [_P, _P, _P]
    egl.eglBindAPI.argtypes = [ctypes.c_uint]
    egl.eglCreateContext.restype = _P
    egl.eglCreateContext.argtypes = [_P, _P, _P, _P]
    egl.eglMakeCurrent.argtypes = [_P] * 4
    egl.eglDestroyContext.argtypes = [_P, _P]
    display = _display(egl, gpu)
    if not display or not egl.eglInitialize(display, None, None):
        raise Unavailable("EGL has no display")
    egl.eglBindAPI(EGL_OPENGL_API)
    attributes = (ctypes.c_int * 5)(EGL_CONTEXT_MAJOR_VERSION, 4, EGL_CONTEXT_MINOR_VERSION, 5, EGL_NONE)
    made = egl.eglCreateContext(display, None, None, attributes)
    if not made or not egl.eglMakeCurrent(display, None, None, made):
        raise Unavailable("EGL makes no OpenGL 4.5 context without a surface")
    try:
        yield GL(egl)
    finally:
        egl.eglMakeCurrent(display, None, None, None)
        egl.eglDestroyContext(display, made)
