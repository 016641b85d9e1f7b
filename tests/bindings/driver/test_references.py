"""Texture and surface references, and the launch functions before CUDA 4: PTX as old compilers write it."""

import ctypes

import numpy as np
import pytest

from helpers.arrays import FORMAT, SURFACE, Array, array_descriptor
from helpers.device import DeviceArray, Module, check, driver, synchronize

pytestmark = pytest.mark.usefixtures("shared_context")
R = driver.CUresult
INVALID_VALUE, INVALID_HANDLE, NOT_FOUND = (
    R.CUDA_ERROR_INVALID_VALUE,
    R.CUDA_ERROR_INVALID_HANDLE,
    R.CUDA_ERROR_NOT_FOUND,
)
FLOAT, UINT8 = FORMAT.CU_AD_FORMAT_FLOAT, FORMAT.CU_AD_FORMAT_UNSIGNED_INT8
OVERRIDE = 1

PTX = b"""
.version 6.0
.target sm_52
.address_size 64
.global .texref t;
.global .surfref s;
.global .u32 plain;
.visible .entry linear(.param .u64 out)
{
    .reg .f32 %f<6>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [t, {%r1}];
    st.global.f32 [%rd1], %f1;
    ret;
}
.visible .entry plane(.param .u64 out)
{
    .reg .f32 %f<8>; .reg .b32 %r<4>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    cvt.rn.f32.u32 %f5, %r1; mul.f32 %f5, %f5, 0f3F400000; add.f32 %f5, %f5, 0fBF000000; mov.f32 %f6, 0f3F000000;
    tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [t, {%f5, %f6}];
    st.global.f32 [%rd1], %f1;
    ret;
}
.visible .entry surface(.param .u64 out)
{
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4; add.s64 %rd1, %rd1, %rd2;
    shl.b32 %r2, %r1, 2; mov.u32 %r3, 0;
    suld.b.2d.b32.zero {%r4}, [s, {%r2, %r3}];
    add.u32 %r5, %r4, 1;
    sust.b.2d.b32.zero [s, {%r2, %r3}], {%r5};
    st.global.u32 [%rd1], %r4;
    ret;
}
.visible .entry report(.param .u64 out, .param .u32 a, .param .f32 b)
{
    .reg .b32 %r<8>; .reg .f32 %f<2>; .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out]; ld.param.u32 %r1, [a]; ld.param.f32 %f1, [b];
    mov.u32 %r2, %ntid.x; mov.u32 %r3, %nctaid.x; mov.u32 %r4, %nctaid.y; mov.u32 %r5, %dynamic_smem_size;
    st.global.u32 [%rd1], %r1; st.global.f32 [%rd1+4], %f1; st.global.u32 [%rd1+8], %r2; st.global.u32 [%rd1+12], %r3;
    st.global.u32 [%rd1+16], %r4; st.global.u32 [%rd1+20], %r5;
    ret;
}
"""


@pytest.fixture
def module():
    loaded = Module(PTX)
    yield loaded
    loaded.unload()


@pytest.fixture
def texture(module):
    return check(driver.cuModuleGetTexRef(module.handle, b"t"))


def run(module, kernel, dtype=np.float32):
    out = DeviceArray(np.zeros(8, dtype))
    module.launch(kernel, 1, 8, out)
    synchronize()
    found = out.get()
    out.free()
    return found.tolist()


def array(values, flags=0):
    return Array(np.array(values)[None, :, None], dimensions=2, flags=flags)


def test_linear_memory(module, texture):
    memory = DeviceArray(np.arange(1, 9, dtype=np.float32))
    check(driver.cuTexRefSetFormat(texture, FLOAT, 1))
    assert check(driver.cuTexRefSetAddress(texture, memory.address, 32)) == 0
    assert run(module, "linear") == list(range(1, 9))
    assert int(check(driver.cuTexRefGetAddress(texture))) == memory.address
    assert check(driver.cuTexRefSetAddress(texture, memory.address + 8, 16)) == 8
    assert run(module, "linear") == [1, 2, 3, 4, 5, 6, 0, 0]
    memory.free()


def test_integers_are_normalised_by_default(module, texture):
    memory = DeviceArray(np.array([0, 51, 102, 255] * 2, np.uint8))
    check(driver.cuTexRefSetFormat(texture, UINT8, 1))
    check(driver.cuTexRefSetAddress(texture, memory.address, 8))
    assert run(module, "linear") == pytest.approx([0, 0.2, 0.4, 1] * 2)
    memory.free()


@pytest.mark.parametrize(
    "mode, linear, want",
    [
        (None, False, [10, 10, 20, 20, 30, 40, 40, 40]),
        (1, True, [10, 10, 15, 22.5, 30, 37.5, 40, 40]),
        (3, True, [0, 7.5, 15, 22.5, 30, 37.5, 20, 0]),
    ],
    ids=["default", "clamped", "border"],
)
def test_array(module, texture, mode, linear, want):
    source = array(np.float32([10, 20, 30, 40]))
    check(driver.cuTexRefSetArray(texture, source.handle, OVERRIDE))
    if mode is not None:
        for dim in range(2):
            check(driver.cuTexRefSetAddressMode(texture, dim, driver.CUaddress_mode(mode)))
    if linear:
        check(driver.cuTexRefSetFilterMode(texture, driver.CUfilter_mode.CU_TR_FILTER_MODE_LINEAR))
    assert run(module, "plane") == want
    assert int(check(driver.cuTexRefGetArray(texture))) == int(source.handle)
    source.destroy()
    assert driver.cuTexRefGetArray(texture)[0] == INVALID_VALUE


def test_a_launch_uses_the_binding_of_its_time(module, texture):
    first, second = array(np.full(4, 1, np.float32)), array(np.full(4, 2, np.float32))
    outputs = [DeviceArray(np.zeros(8, np.float32)) for _ in range(2)]
    for source, out in zip((first, second), outputs, strict=True):
        check(driver.cuTexRefSetArray(texture, source.handle, OVERRIDE))
        module.launch("plane", 1, 8, out)
    synchronize()
    assert [out.get().tolist() for out in outputs] == [[1] * 8, [2] * 8]
    for thing in (first, second):
        thing.destroy()
    for out in outputs:
        out.free()


def test_surface(module):
    reference = check(driver.cuModuleGetSurfRef(module.handle, b"s"))
    assert driver.cuSurfRefGetArray(reference)[0] == INVALID_VALUE
    source = array(np.uint32([1, 2, 3, 4]), SURFACE)
    check(driver.cuSurfRefSetArray(reference, source.handle, 0))
    assert int(check(driver.cuSurfRefGetArray(reference))) == int(source.handle)
    assert run(module, "surface", np.uint32) == [1, 2, 3, 4, 0, 0, 0, 0]
    assert source.get().ravel().tolist() == [2, 3, 4, 5]
    assert driver.cuSurfRefSetArray(reference, source.handle, 1)[0] == INVALID_VALUE
    ordinary = array(np.uint32([1, 2, 3, 4]))
    assert driver.cuSurfRefSetArray(reference, ordinary.handle, 0)[0] == INVALID_VALUE
    for thing in (source, ordinary):
        thing.destroy()


def test_defaults(texture):
    own = check(driver.cuTexRefCreate())
    for reference in (texture, own):
        assert [int(check(driver.cuTexRefGetAddressMode(reference, dim))) for dim in range(3)] == [1, 1, 1]
        assert int(check(driver.cuTexRefGetFilterMode(reference))) == 0
        assert check(driver.cuTexRefGetFlags(reference)) == 0
        assert check(driver.cuTexRefGetFormat(reference)) == (FLOAT, 1)
        assert check(driver.cuTexRefGetMaxAnisotropy(reference)) == 0
        assert check(driver.cuTexRefGetMipmapLevelBias(reference)) == 0
        assert check(driver.cuTexRefGetMipmapLevelClamp(reference)) == (0, 0)
        for query in (driver.cuTexRefGetArray, driver.cuTexRefGetMipmappedArray, driver.cuTexRefGetAddress):
            assert query(reference)[0] == INVALID_VALUE
    check(driver.cuTexRefDestroy(own))


def test_levels_of_detail_are_returned(texture):
    check(driver.cuTexRefSetMipmapLevelBias(texture, 1.5))
    check(driver.cuTexRefSetMipmapLevelClamp(texture, 0.5, 3))
    assert check(driver.cuTexRefGetMipmapLevelBias(texture)) == 1.5
    assert check(driver.cuTexRefGetMipmapLevelClamp(texture)) == (0.5, 3)


def test_references_are_found_by_name(module):
    for name in (b"s", b"plain", b"linear", b"nothing"):
        assert driver.cuModuleGetTexRef(module.handle, name)[0] == NOT_FOUND
    for name in (b"t", b"plain", b"nothing"):
        assert driver.cuModuleGetSurfRef(module.handle, name)[0] == NOT_FOUND
    assert driver.cuModuleGetTexRef(module.handle, b"")[0] == INVALID_VALUE
    assert driver.cuModuleGetTexRef(0, b"t")[0] == INVALID_HANDLE
    assert driver.cuModuleGetGlobal(module.handle, b"t")[0] == INVALID_VALUE


def test_references_end_with_their_module():
    loaded = Module(PTX)
    texture = check(driver.cuModuleGetTexRef(loaded.handle, b"t"))
    loaded.unload()
    # On a GPU, the handle is a pointer to freed memory.
    if check(driver.cuDeviceGetName(256, check(driver.cuDeviceGet(0)))).startswith(b"CPU"):
        assert driver.cuTexRefGetFlags(texture)[0] == INVALID_HANDLE


def test_invalid_settings_are_refused(texture):
    assert driver.cuTexRefSetAddressMode(texture, 3, driver.CUaddress_mode(1))[0] == INVALID_VALUE
    assert driver.cuTexRefSetFlags(texture, 0x40)[0] == INVALID_VALUE
    assert driver.cuTexRefSetFormat(texture, FLOAT, 3)[0] == INVALID_VALUE
    assert driver.cuTexRefSetArray(texture, 0, OVERRIDE)[0] == INVALID_HANDLE
    assert driver.cuTexRefSetFlags(0, 0)[0] == INVALID_HANDLE
    plain = check(driver.cuArray3DCreate(array_descriptor(4, 1)))
    assert driver.cuTexRefSetArray(texture, plain, 2)[0] == INVALID_VALUE
    check(driver.cuArrayDestroy(plain))


# ---- the launch functions before CUDA 4


def prepare(module, out):
    """Sets the parameters of `report` and returns the function."""
    f = module.function("report")
    address = ctypes.c_uint64(out.address)
    check(driver.cuParamSetv(f, 0, ctypes.addressof(address), 8))
    check(driver.cuParamSeti(f, 8, 42))
    check(driver.cuParamSetf(f, 12, 1.5))
    check(driver.cuParamSetSize(f, 16))
    return f


def reported(out):
    synchronize()
    words = out.get()
    return words[0], words[1:2].view(np.float32)[0], words[2:6].tolist()


def test_launches_use_the_settings_of_the_function(module):
    out = DeviceArray(np.zeros(8, np.uint32))
    f = prepare(module, out)
    check(driver.cuLaunch(f))
    assert reported(out) == (42, 1.5, [1, 1, 1, 0])
    check(driver.cuFuncSetBlockShape(f, 8, 1, 1))
    check(driver.cuFuncSetSharedSize(f, 128))
    check(driver.cuLaunchGrid(f, 3, 2))
    assert reported(out) == (42, 1.5, [8, 3, 2, 128])
    check(driver.cuParamSeti(f, 8, 43))
    check(driver.cuLaunchGridAsync(f, 2, 1, 0))
    assert reported(out) == (43, 1.5, [8, 2, 1, 128])
    out.free()


def test_invalid_launch_settings_are_refused(module):
    out = DeviceArray(np.zeros(8, np.uint32))
    f = prepare(module, out)
    for shape in ((0, 1, 1), (1025, 1, 1), (32, 64, 1), (1, 1, 65)):
        assert driver.cuFuncSetBlockShape(f, *shape)[0] == INVALID_VALUE
    assert driver.cuFuncSetSharedSize(f, 49153)[0] == INVALID_VALUE
    assert driver.cuParamSetSize(f, 65536)[0] == INVALID_VALUE
    for width, height in ((0, 1), (1, 0), (1, 65536)):
        assert driver.cuLaunchGrid(f, width, height)[0] == INVALID_VALUE
    check(driver.cuParamSetSize(f, 20))
    assert driver.cuLaunch(f)[0] == R.CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
    for call in (
        lambda: driver.cuLaunch(0),
        lambda: driver.cuFuncSetBlockShape(0, 1, 1, 1),
        lambda: driver.cuParamSeti(0, 0, 0),
    ):
        assert call()[0] == INVALID_HANDLE
    out.free()


def test_usage_count_of_a_context():
    context = check(driver.cuCtxCreate(None, 0, check(driver.cuDeviceGet(0))))
    assert driver.cuCtxAttach(1)[0] == INVALID_VALUE
    assert int(check(driver.cuCtxAttach(0))) == int(context)
    check(driver.cuCtxDetach(context))
    assert int(check(driver.cuCtxGetCurrent())) == int(context)
    check(driver.cuCtxDetach(context))
    assert int(check(driver.cuCtxGetCurrent())) != int(context)
