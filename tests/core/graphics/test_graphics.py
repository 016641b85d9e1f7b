"""`GraphicsResource` and the driver's graphics functions, with an OpenGL context without a window."""

import ctypes
import gc
import threading

import numpy
import pytest
from cuda.bindings import driver, runtime
from cuda.core import Buffer, Device, GraphicsResource, LaunchConfig, Program, ProgramOptions, launch
from cuda.core._utils.cuda_utils import CUDAError
from cuda.core.utils import StridedMemoryView

from helpers import egl
from helpers.device import check, on_cpu_device
from helpers.processes import process

SOURCE = """
extern "C" __global__ void add(unsigned *x, unsigned n, unsigned by) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] += by;
}
extern "C" __global__ void invert(cudaSurfaceObject_t s, int w, int h) {
    int x = threadIdx.x % w, y = threadIdx.x / w;
    if (y >= h) return;
    uchar4 p;
    surf2Dread(&p, s, x * 4, y);
    surf2Dwrite(make_uchar4(255 - p.x, 255 - p.y, 255 - p.z, p.w), s, x * 4, y);
}
"""

R = driver.CUresult


@pytest.fixture(scope="module")
def kernels(device):
    code = Program(SOURCE, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin")
    return {name: code.get_kernel(name) for name in ("add", "invert")}


@pytest.fixture
def gl(device):
    """An OpenGL context that is current in the test."""
    try:
        with egl.context(gpu=not on_cpu_device()) as gl:
            yield gl
    except egl.Unavailable as reason:
        pytest.skip(str(reason))


def _store_to_a_mapping(pipe, flags, unmap):
    device = Device(0)
    device.set_current()
    stream = device.create_stream()
    source = 'extern "C" __global__ void f(int *x) { *x = 1; }'
    kernel = Program(source, "c++", ProgramOptions(arch=f"sm_{device.arch}")).compile("cubin").get_kernel("f")
    with egl.context(gpu=False) as gl:
        resource = GraphicsResource.from_gl_buffer(gl.buffer(bytes(64)), flags=flags)
        buffer = resource.map(stream=stream)
        address = numpy.uint64(int(buffer.handle))
        if unmap:
            buffer.close()
        launch(stream, LaunchConfig(grid=1, block=1), kernel, address)
        try:
            stream.sync()
            pipe.send("no error")
        except CUDAError as error:
            pipe.send(str(error))


def words(data):
    return list(numpy.frombuffer(data, numpy.uint32))


def add(kernels, stream, buffer, by):
    count = buffer.size // 4
    config = LaunchConfig(grid=-(-count // 256), block=256)
    launch(stream, config, kernels["add"], buffer, numpy.uint32(count), numpy.uint32(by))


class TestBuffers:
    def test_a_kernel_changes_what_opengl_reads(self, gl, kernels, stream):
        name = gl.buffer(numpy.arange(1000, dtype=numpy.uint32))
        with GraphicsResource.from_gl_buffer(name) as resource:
            assert not resource.is_mapped and not resource.is_closed
            assert resource.handle == resource.resource_handle != 0
            for _ in range(3):
                with resource.map(stream=stream) as buffer:
                    assert isinstance(buffer, Buffer) and buffer.size == 4000 and buffer.handle
                    assert resource.is_mapped
                    add(kernels, stream, buffer, 7)
                assert not resource.is_mapped
                assert buffer.is_closed
        assert resource.is_closed and resource.handle == 0
        assert words(gl.content(name, 4000)) == [i + 21 for i in range(1000)]
        assert gl.glGetError() == 0

    def test_opengl_changes_what_a_kernel_reads(self, gl, stream):
        name = gl.buffer(bytes(16))
        with GraphicsResource.from_gl_buffer(name) as resource:
            for value in (b"a" * 16, b"b" * 16):
                gl.glNamedBufferSubData(name, 0, 16, value)
                with resource.map(stream=stream) as buffer:
                    host = numpy.zeros(16, numpy.uint8)
                    check(driver.cuMemcpyDtoHAsync(host.ctypes.data, int(buffer.handle), 16, stream.handle))
                    stream.sync()
                    assert bytes(host) == value

    def test_with_a_stream_entering_maps(self, gl, kernels, stream):
        name = gl.buffer(numpy.zeros(64, numpy.uint32))
        resource = GraphicsResource.from_gl_buffer(name, stream=stream)
        with resource as buffer:
            assert isinstance(buffer, Buffer)
            view = StridedMemoryView.from_buffer(buffer, shape=(64,), dtype=numpy.dtype(numpy.uint32))
            assert view.ptr == int(buffer.handle)
            del view
            add(kernels, stream, buffer, 3)
        assert resource.is_closed
        assert words(gl.content(name, 256)) == [3] * 64

    @pytest.mark.parametrize("flags", [None, "none", "write_discard", ("none", "write_discard"), []])
    def test_flags(self, gl, kernels, stream, flags):
        name = gl.buffer(numpy.zeros(8, numpy.uint32))
        with GraphicsResource.from_gl_buffer(name, flags=flags) as resource, resource.map(stream=stream) as buffer:
            buffer.fill(b"\1\0\0\0", stream=stream)
            add(kernels, stream, buffer, 1)
        assert words(gl.content(name, 32)) == [2] * 8

    def test_read_only(self, gl, stream):
        name = gl.buffer(b"0123456789abcdef")
        with GraphicsResource.from_gl_buffer(name, flags="read_only") as resource:
            with resource.map(stream=stream) as buffer:
                host = numpy.zeros(16, numpy.uint8)
                check(driver.cuMemcpyDtoHAsync(host.ctypes.data, int(buffer.handle), 16, stream.handle))
                stream.sync()
            assert bytes(host) == b"0123456789abcdef"

    def test_unmap_and_close_of_a_mapped_resource(self, gl, kernels, stream):
        name = gl.buffer(numpy.zeros(8, numpy.uint32))
        resource = GraphicsResource.from_gl_buffer(name)
        buffer = resource.map(stream=stream)
        add(kernels, stream, buffer, 1)
        resource.unmap(stream=stream)
        assert buffer.is_closed and not resource.is_mapped
        assert words(gl.content(name, 32)) == [1] * 8
        with pytest.raises(RuntimeError, match="not mapped"):
            resource.unmap()
        buffer = resource.map(stream=stream)
        add(kernels, stream, buffer, 1)
        resource.close(stream)
        assert buffer.is_closed and resource.is_closed
        assert words(gl.content(name, 32)) == [2] * 8
        resource.close()
        for call in (lambda: resource.map(stream=stream), resource.unmap, resource.__enter__):
            with pytest.raises(RuntimeError, match="closed"):
                call()

    def test_a_forgotten_buffer_unmaps(self, gl, kernels, stream):
        name = gl.buffer(numpy.zeros(8, numpy.uint32))
        resource = GraphicsResource.from_gl_buffer(name)
        buffer = resource.map(stream=stream)
        add(kernels, stream, buffer, 5)
        del buffer
        gc.collect()
        assert not resource.is_mapped
        assert words(gl.content(name, 32)) == [5] * 8
        resource.close()

    def test_the_buffer_outlives_the_resource_object(self, gl, kernels, stream):
        name = gl.buffer(numpy.zeros(8, numpy.uint32))
        buffer = GraphicsResource.from_gl_buffer(name).map(stream=stream)
        gc.collect()
        add(kernels, stream, buffer, 9)
        buffer.close()
        assert words(gl.content(name, 32)) == [9] * 8

    def test_a_slice_keeps_the_mapping(self, gl, kernels, stream):
        name = gl.buffer(numpy.zeros(8, numpy.uint32))
        with GraphicsResource.from_gl_buffer(name) as resource:
            buffer = resource.map(stream=stream)
            part = buffer[:16]
            with pytest.raises(RuntimeError, match="slices"):
                resource.unmap()
            assert buffer.is_closed and resource.is_mapped
            add(kernels, stream, part, 2)
            part.close()
            assert not resource.is_mapped
        assert words(gl.content(name, 32)) == [2] * 4 + [0] * 4

    def test_mapped_twice(self, gl, stream):
        name = gl.buffer(bytes(32))
        with GraphicsResource.from_gl_buffer(name) as resource:
            buffer = resource.map(stream=stream)
            with pytest.raises(RuntimeError, match="mapped"):
                resource.map(stream=stream)
            assert not buffer.is_closed

    def test_many_rounds_leave_nothing_behind(self, gl, kernels, stream):
        name = gl.buffer(numpy.zeros(8, numpy.uint32))
        for _ in range(200):
            with GraphicsResource.from_gl_buffer(name) as resource, resource.map(stream=stream) as buffer:
                add(kernels, stream, buffer, 1)
        assert words(gl.content(name, 32)) == [200] * 8
        assert gl.glGetError() == 0


class TestErrors:
    def test_wrong_arguments(self, gl, stream):
        name = gl.buffer(bytes(32))
        with pytest.raises(RuntimeError, match="from_gl_buffer"):
            GraphicsResource()
        for wrong in ("fast", ("read_only", "fast"), ["Read_only"]):
            with pytest.raises(ValueError, match="flags"):
                GraphicsResource.from_gl_buffer(name, flags=wrong)
        for wrong in (1, b"none", [1], {"none": 1}):
            with pytest.raises(TypeError, match="flags"):
                GraphicsResource.from_gl_buffer(name, flags=wrong)
        with pytest.raises(ValueError, match="exclude"):
            GraphicsResource.from_gl_buffer(name, flags=("read_only", "write_discard"))
        for wrong in (-1, 2**32, 2**70):
            with pytest.raises((ValueError, OverflowError)):
                GraphicsResource.from_gl_buffer(wrong)
        for wrong in (None, "1", 1.0):
            with pytest.raises(TypeError, match="gl_buffer"):
                GraphicsResource.from_gl_buffer(wrong)
        with pytest.raises(TypeError, match="stream"):
            GraphicsResource.from_gl_buffer(name, stream=0)
        with GraphicsResource.from_gl_buffer(name) as resource:
            with pytest.raises(TypeError):
                resource.map()
            with pytest.raises(TypeError):
                resource.map(stream)
            with pytest.raises(TypeError, match="stream"):
                resource.map(stream=None)
            with pytest.raises(TypeError, match="stream"):
                resource.close(7)
            assert not resource.is_closed

    def test_names_that_are_no_buffers(self, gl):
        for wrong in (0, 4_000_000_000):
            with pytest.raises(CUDAError):
                GraphicsResource.from_gl_buffer(wrong)
        with pytest.raises(CUDAError):
            GraphicsResource.from_gl_image(4_000_000_000, egl.GL_TEXTURE_2D)

    def test_a_thread_without_an_opengl_context(self, gl):
        name = gl.buffer(bytes(32))
        caught = []

        def register():
            try:
                GraphicsResource.from_gl_buffer(name)
            except CUDAError as error:
                caught.append(str(error))

        thread = threading.Thread(target=register)
        thread.start()
        thread.join()
        assert len(caught) == 1
        if on_cpu_device():
            assert "INVALID_GRAPHICS_CONTEXT" in caught[0] and "current" in caught[0]

    def test_without_opengl(self, device):
        status, *_ = driver.cuGraphicsGLRegisterBuffer(1, 0)
        # A GPU's driver says INVALID_VALUE if an OpenGL library is loaded.
        other = () if on_cpu_device() else (R.CUDA_ERROR_INVALID_VALUE,)
        assert status in (R.CUDA_ERROR_INVALID_GRAPHICS_CONTEXT, R.CUDA_ERROR_OPERATING_SYSTEM, *other)

    @pytest.mark.skipif(not on_cpu_device(), reason="a GPU keeps no list of live resources to check against")
    def test_invalid_handles(self, device):
        for wrong in (0, 1, 0xDEADBEEF, 2**64 - 1):
            assert driver.cuGraphicsUnregisterResource(wrong)[0] == R.CUDA_ERROR_INVALID_HANDLE
            assert driver.cuGraphicsResourceGetMappedPointer(wrong)[0] == R.CUDA_ERROR_INVALID_HANDLE
            assert driver.cuGraphicsSubResourceGetMappedArray(wrong, 0, 0)[0] == R.CUDA_ERROR_INVALID_HANDLE


class TestImages:
    def test_map_refuses_images(self, gl, stream):
        texture = gl.texture(4, 4, bytes(64))
        with GraphicsResource.from_gl_image(texture, egl.GL_TEXTURE_2D) as resource:
            for _ in range(2):
                with pytest.raises(CUDAError, match="NOT_MAPPED_AS_POINTER"):
                    resource.map(stream=stream)
                assert not resource.is_mapped

    def test_a_kernel_changes_a_texture(self, gl, kernels, stream):
        width, height = 5, 3
        before = bytes(range(width * height * 4))
        texture = gl.texture(width, height, before)
        gl.glPixelStorei(0x0D02, 17)  # settings of the program, which the driver neither uses nor changes
        gl.glPixelStorei(0x0CF5, 8)
        resource = GraphicsResource.from_gl_image(texture, egl.GL_TEXTURE_2D, flags="surface_load_store")
        handle = driver.CUgraphicsResource(resource.handle)
        array = self.map(handle, stream)
        described = check(driver.cuArray3DGetDescriptor(array))
        assert (described.Width, described.Height, described.Depth) == (width, height, 0)
        assert described.Format == driver.CUarray_format.CU_AD_FORMAT_UNSIGNED_INT8
        assert described.NumChannels == 4
        description = driver.CUDA_RESOURCE_DESC()
        description.resType = driver.CUresourcetype.CU_RESOURCE_TYPE_ARRAY
        description.res.array.hArray = array
        surface = check(driver.cuSurfObjectCreate(description))
        config = LaunchConfig(grid=1, block=width * height)
        launch(stream, config, kernels["invert"], int(surface), numpy.int32(width), numpy.int32(height))
        stream.sync()
        check(driver.cuSurfObjectDestroy(surface))
        if on_cpu_device():  # a GPU's driver accepts the call and crashes when it unmaps the resource
            assert driver.cuArrayDestroy(array)[0] == R.CUDA_ERROR_INVALID_HANDLE
        check(driver.cuGraphicsUnmapResources(1, handle, stream.handle))
        value = ctypes.c_int()
        gl.glGetIntegerv(0x0D02, ctypes.byref(value))
        assert value.value == 17
        gl.glPixelStorei(0x0D02, 0)
        expected = bytes(b if i % 4 == 3 else 255 - b for i, b in enumerate(before))
        assert gl.pixels(texture, len(before)) == expected
        resource.close()
        assert gl.glGetError() == 0

    @staticmethod
    def map(handle, stream, index=0, level=0):
        check(driver.cuGraphicsMapResources(1, handle, stream.handle))
        # OpenGL's work is complete for later work of this stream alone; the tests copy on the default stream.
        stream.sync()
        return check(driver.cuGraphicsSubResourceGetMappedArray(handle, index, level))

    @pytest.mark.parametrize(
        "internal, layout, dtype, channels, array_format",
        [
            (0x8229, (0x1903, 0x1401), numpy.uint8, 1, "UNSIGNED_INT8"),
            (0x822C, (0x8227, 0x1403), numpy.uint16, 2, "UNSIGNED_INT16"),
            (0x881A, (0x1908, 0x140B), numpy.float16, 4, "HALF"),
            (0x822E, (0x1903, 0x1406), numpy.float32, 1, "FLOAT"),
            (0x8814, (0x1908, 0x1406), numpy.float32, 4, "FLOAT"),
            (0x8D7C, (0x8D99, 0x1401), numpy.uint8, 4, "UNSIGNED_INT8"),
            (0x8D70, (0x8D99, 0x1405), numpy.uint32, 4, "UNSIGNED_INT32"),
            (0x8231, (0x8D94, 0x1400), numpy.int8, 1, "SIGNED_INT8"),
            (0x8239, (0x8228, 0x1402), numpy.int16, 2, "SIGNED_INT16"),
            (0x8D82, (0x8D99, 0x1404), numpy.int32, 4, "SIGNED_INT32"),
        ],
    )
    def test_formats(self, gl, stream, internal, layout, dtype, channels, array_format):
        width, height = 7, 2
        data = (numpy.arange(width * height * channels) % 100).astype(dtype)
        texture = gl.texture(width, height, data.tobytes(), internal, layout)
        with GraphicsResource.from_gl_image(texture, egl.GL_TEXTURE_2D) as resource:
            handle = driver.CUgraphicsResource(resource.handle)
            array = self.map(handle, stream)
            described = check(driver.cuArrayGetDescriptor(array))
            assert described.Format == getattr(driver.CUarray_format, f"CU_AD_FORMAT_{array_format}")
            assert described.NumChannels == channels
            copy = driver.CUDA_MEMCPY2D()
            out = numpy.zeros_like(data)
            copy.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY
            copy.srcArray = array
            copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
            copy.dstHost = out.ctypes.data
            copy.dstPitch = copy.WidthInBytes = out.nbytes // height
            copy.Height = height
            check(driver.cuMemcpy2D(copy))
            assert (out == data).all()
            check(driver.cuGraphicsUnmapResources(1, handle, stream.handle))

    def test_levels_and_errors(self, gl, stream):
        texture = gl.texture(8, 4, bytes(range(128)), levels=3)
        if on_cpu_device():  # A GPU's driver does not compare the target with the texture's.
            with pytest.raises(CUDAError):
                GraphicsResource.from_gl_image(texture, 0x806F)
        with pytest.raises(CUDAError):
            GraphicsResource.from_gl_image(texture, 7)
        with GraphicsResource.from_gl_image(texture, egl.GL_TEXTURE_2D) as resource:
            handle = driver.CUgraphicsResource(resource.handle)
            assert driver.cuGraphicsSubResourceGetMappedArray(handle, 0, 0)[0] == R.CUDA_ERROR_NOT_MAPPED
            assert driver.cuGraphicsUnmapResources(1, handle, 0)[0] == R.CUDA_ERROR_NOT_MAPPED
            array = self.map(handle, stream, level=1)
            described = check(driver.cuArrayGetDescriptor(array))
            assert (described.Width, described.Height) == (4, 2)
            assert driver.cuGraphicsMapResources(1, handle, 0)[0] == R.CUDA_ERROR_ALREADY_MAPPED
            assert driver.cuGraphicsSubResourceGetMappedArray(handle, 0, 9)[0] == R.CUDA_ERROR_INVALID_VALUE
            assert driver.cuGraphicsSubResourceGetMappedArray(handle, 1, 0)[0] == R.CUDA_ERROR_INVALID_VALUE
            assert driver.cuGraphicsResourceGetMappedPointer(handle)[0] == R.CUDA_ERROR_NOT_MAPPED_AS_POINTER
            check(driver.cuGraphicsUnmapResources(1, handle, stream.handle))


@pytest.mark.skipif(not on_cpu_device(), reason="checks of the CPU device")
class TestDiagnostics:
    @pytest.mark.parametrize("flags, unmap", [("none", True), ("read_only", False)])
    def test_access_that_the_mapping_excludes_is_a_fault(self, gl, flags, unmap):
        """After unmapping, and a store to a buffer mapped for reading. A fault destroys the context: its own process."""
        with process(_store_to_a_mapping, flags, unmap) as other:
            assert "ILLEGAL_ADDRESS" in other.receive()

    def test_a_buffer_mapped_by_the_program(self, gl, stream):
        name = gl.buffer(bytes(64))
        with GraphicsResource.from_gl_buffer(name) as resource:
            assert gl.glMapNamedBuffer(name, 0x88B8)
            with pytest.raises(CUDAError, match="MAP_FAILED"):
                resource.map(stream=stream)
            gl.glUnmapNamedBuffer(name)
            resource.map(stream=stream).close()

    def test_an_immutable_buffer_without_mapping_flags(self, gl, stream):
        name = ctypes.c_uint()
        gl.glCreateBuffers(1, ctypes.byref(name))
        gl.glNamedBufferStorage(name, 64, bytes(64), 0)
        resource = GraphicsResource.from_gl_buffer(name.value)
        with pytest.raises(CUDAError, match="GL_MAP_READ_BIT"):
            resource.map(stream=stream)
        resource.close()
        gl.glGetError()

    def test_a_deleted_buffer(self, gl, stream):
        name = ctypes.c_uint(gl.buffer(bytes(64)))
        with GraphicsResource.from_gl_buffer(name.value) as resource:
            gl.glDeleteBuffers(1, ctypes.byref(name))
            with pytest.raises(CUDAError, match="deleted"):
                resource.map(stream=stream)

    def test_layers_and_cube_faces(self, gl, stream):
        for target, layers in ((0x8C1A, 3), (0x8513, 6)):
            name = ctypes.c_uint()
            gl.glCreateTextures(target, 1, ctypes.byref(name))
            storage = gl.glTextureStorage3D if target == 0x8C1A else gl.glTextureStorage2D
            storage(name, 1, egl.GL_RGBA8, 2, 2, *([layers] if target == 0x8C1A else []))
            data = bytes(range(16 * layers))
            gl.glTextureSubImage3D(name, 0, 0, 0, 0, 2, 2, layers, egl.GL_RGBA, egl.GL_UNSIGNED_BYTE, data)
            with GraphicsResource.from_gl_image(name.value, target) as resource:
                handle = driver.CUgraphicsResource(resource.handle)
                check(driver.cuGraphicsMapResources(1, handle, stream.handle))
                for layer in reversed(range(layers)):
                    array = check(driver.cuGraphicsSubResourceGetMappedArray(handle, layer, 0))
                    copy = driver.CUDA_MEMCPY2D()
                    out = numpy.zeros(16, numpy.uint8)
                    copy.srcMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_ARRAY
                    copy.srcArray = array
                    copy.dstMemoryType = driver.CUmemorytype.CU_MEMORYTYPE_HOST
                    copy.dstHost = out.ctypes.data
                    copy.dstPitch = copy.WidthInBytes = 8
                    copy.Height = 2
                    check(driver.cuMemcpy2D(copy))
                    assert bytes(out) == data[16 * layer : 16 * layer + 16]
                    out += 100
                    copy.srcMemoryType, copy.dstMemoryType = copy.dstMemoryType, copy.srcMemoryType
                    copy.srcHost, copy.srcPitch, copy.dstArray = out.ctypes.data, 8, array
                    check(driver.cuMemcpy2D(copy))
                assert driver.cuGraphicsSubResourceGetMappedArray(handle, layers, 0)[0] == R.CUDA_ERROR_INVALID_VALUE
                check(driver.cuGraphicsUnmapResources(1, handle, stream.handle))
            assert gl.pixels(name.value, len(data)) == bytes(b + 100 for b in data)


def test_the_runtime_api(gl, kernels, stream):
    name = gl.buffer(numpy.zeros(16, numpy.uint32))
    flags = runtime.cudaGraphicsRegisterFlags.cudaGraphicsRegisterFlagsNone
    resource = check(runtime.cudaGraphicsGLRegisterBuffer(name, flags))
    none = runtime.cudaGraphicsMapFlags.cudaGraphicsMapFlagsNone
    check(runtime.cudaGraphicsResourceSetMapFlags(resource, none))
    for _ in range(2):
        check(runtime.cudaGraphicsMapResources(1, resource, stream.handle))
        address, size = check(runtime.cudaGraphicsResourceGetMappedPointer(resource))
        assert size == 64
        add(kernels, stream, Buffer.from_handle(address, size), 4)
        check(runtime.cudaGraphicsUnmapResources(1, resource, stream.handle))
    check(runtime.cudaGraphicsUnregisterResource(resource))
    assert words(gl.content(name, 64)) == [8] * 16
    devices = runtime.cudaGLGetDevices(4, runtime.cudaGLDeviceList.cudaGLDeviceListAll)
    assert devices[0] == runtime.cudaError_t.cudaSuccess and devices[1] >= 1
