//! Allocation, copies, fills, and pointer attributes.

use cupyrite_sys::runtime::{
    cudaExtent, cudaMemcpy3DParms, cudaMemcpyKind, cudaMemoryType, cudaPitchedPtr,
    cudaPointerAttributes, cudaPos,
};

use super::*;

const TO_DEVICE: u32 = 1;
const TO_HOST: u32 = 2;
const ON_DEVICE: u32 = 3;
const DEFAULT: u32 = 4;

fn malloc(bytes: usize) -> u64 {
    let mut p = 0u64;
    ok!("cudaMalloc", &mut p, bytes);
    assert_ne!(p, 0);
    p
}

#[test]
fn empty_allocations_are_null_pointers() {
    let mut p = 7u64;
    ok!("cudaMalloc", &mut p, 0);
    assert_eq!(p, 0);
    ok!("cudaFree", 0);
    ok!("cudaFreeHost", 0);
    assert_eq!(rt!("cudaFree", 0x1234u64), Error::INVALID_VALUE);
    assert_eq!(
        rt!("cudaMalloc", &mut p, 1usize << 60),
        Error::MEMORY_ALLOCATION
    );
}

#[test]
fn copies_work_in_every_direction_on_both_default_streams() {
    let from: Vec<u32> = (0..1000).collect();
    for (copy, copy_async) in [
        ("cudaMemcpy", "cudaMemcpyAsync"),
        ("cudaMemcpy_ptds", "cudaMemcpyAsync_ptsz"),
    ] {
        let run = |args: &[u64]| assert_eq!(call(copy, args), 0);
        let queue = |args: &[u64]| assert_eq!(call(copy_async, args), 0);
        let (a, b) = (malloc(4000), malloc(4000));
        let mut to = vec![0u32; 1000];
        let (source, target) = (from.as_ptr() as u64, to.as_mut_ptr() as u64);
        run(&[a, source, 4000, TO_DEVICE.into()]);
        run(&[b, a, 4000, ON_DEVICE.into()]);
        run(&[target, b, 4000, TO_HOST.into()]);
        assert_eq!(from, to);
        to.fill(0);
        queue(&[a, source + 400, 3600, DEFAULT.into(), 0]);
        queue(&[b, a, 3600, DEFAULT.into(), 0]);
        queue(&[target, b, 3600, DEFAULT.into(), 0]);
        ok!("cudaDeviceSynchronize");
        assert_eq!(from[100..], to[..900]);
        to.fill(0);
        run(&[target, source, 4000, 0]);
        assert_eq!(from, to);
        ok!("cudaFree", a);
        ok!("cudaFree", b);
    }
    assert_eq!(
        rt!("cudaMemcpy", 0, 0, 0, 5),
        Error::INVALID_MEMCPY_DIRECTION
    );
    ok!("cudaMemcpy", 0, 0, 0, TO_DEVICE);
    assert_eq!(
        rt!("cudaMemcpy", 64, &from[0], 4, TO_DEVICE),
        Error::INVALID_VALUE
    );
}

#[test]
fn pitched_rows_are_filled_and_copied() {
    let (mut p, mut pitch) = (0u64, 0usize);
    ok!("cudaMallocPitch", &mut p, &mut pitch, 100, 7);
    assert!(pitch >= 100 && pitch % 32 == 0);
    ok!("cudaMemset2D", p, pitch, 0x11, 100, 7);
    ok!("cudaMemset2DAsync", p + 10, pitch, 0x22, 20, 3, 0);
    let mut rows = [[0u8; 100]; 7];
    ok!("cudaMemcpy2D", &mut rows, 100, p, pitch, 100, 7, TO_HOST);
    for (y, row) in rows.iter().enumerate() {
        for (x, &byte) in row.iter().enumerate() {
            let inside = y < 3 && (10..30).contains(&x);
            assert_eq!(byte, if inside { 0x22 } else { 0x11 }, "{x} {y}");
        }
    }
    assert_eq!(
        rt!("cudaMemcpy2D", &mut rows, 99, p, pitch, 100, 7, TO_HOST),
        Error::INVALID_PITCH_VALUE
    );
    ok!("cudaFree", p);
}

#[test]
fn volumes_are_copied_between_pitched_memory() {
    // Structures of more than two words are passed in memory, so these two are called by their own types.
    type Malloc3D = unsafe extern "C" fn(*mut cudaPitchedPtr, cudaExtent) -> u32;
    type Memset3D = unsafe extern "C" fn(cudaPitchedPtr, i32, cudaExtent) -> u32;
    ok!("cudaFree", 0);
    let extent = cudaExtent {
        width: 10,
        height: 5,
        depth: 4,
    };
    let mut made = cudaPitchedPtr::default();
    // SAFETY: the functions have these signatures; pointers refer to locals or to memory they allocated.
    unsafe {
        let malloc = std::mem::transmute::<*const c_void, Malloc3D>(address("cudaMalloc3D"));
        assert_eq!(malloc(&mut made, extent), 0);
        assert_eq!((made.xsize, made.ysize), (10, 5));
        let set = std::mem::transmute::<*const c_void, Memset3D>(address("cudaMemset3D"));
        assert_eq!(set(made, 3, extent), 0);
        let part = cudaExtent {
            width: 4,
            height: 2,
            depth: 3,
        };
        assert_eq!(set(made, 9, part), 0);
    }
    let mut host = [[[0u8; 10]; 5]; 4];
    let copy = cudaMemcpy3DParms {
        srcPtr: made,
        dstPtr: cudaPitchedPtr {
            ptr: host.as_mut_ptr().cast(),
            pitch: 10,
            xsize: 10,
            ysize: 5,
        },
        dstPos: cudaPos { x: 1, y: 0, z: 1 },
        extent: cudaExtent {
            width: 9,
            height: 5,
            depth: 3,
        },
        kind: cudaMemcpyKind::cudaMemcpyDefault,
        ..cudaMemcpy3DParms::default()
    };
    ok!("cudaMemcpy3D", &copy);
    for (z, slice) in host.iter().enumerate() {
        for (y, row) in slice.iter().enumerate() {
            for (x, &byte) in row.iter().enumerate() {
                let expected = match (x, y, z) {
                    (0, _, _) | (_, _, 0) => 0,
                    _ if x < 5 && y < 2 => 9,
                    _ => 3,
                };
                assert_eq!(byte, expected, "{x} {y} {z}");
            }
        }
    }
    let none = cudaMemcpy3DParms {
        srcPtr: cudaPitchedPtr::default(),
        ..copy
    };
    assert_eq!(rt!("cudaMemcpy3D", &none), Error::INVALID_VALUE);
    ok!("cudaFree", made.ptr as u64);
}

#[test]
fn pointer_attributes() {
    let attributes = |address: u64| {
        let mut a = cudaPointerAttributes::default();
        ok!("cudaPointerGetAttributes", &mut a, address);
        a
    };
    let device = malloc(64);
    let a = attributes(device + 5);
    assert_eq!(a.r#type, cudaMemoryType::cudaMemoryTypeDevice);
    assert_eq!(
        (a.device, a.devicePointer as u64, a.hostPointer as u64),
        (0, device + 5, 0)
    );
    let mut host = 0u64;
    ok!("cudaHostAlloc", &mut host, 64, 2);
    let a = attributes(host);
    assert_eq!(a.r#type, cudaMemoryType::cudaMemoryTypeHost);
    assert_eq!(a.hostPointer as u64, host);
    let mut managed = 0u64;
    ok!("cudaMallocManaged", &mut managed, 64, 1);
    let a = attributes(managed);
    assert_eq!(a.r#type, cudaMemoryType::cudaMemoryTypeManaged);
    assert_eq!(
        (a.devicePointer as u64, a.hostPointer as u64),
        (managed, managed)
    );
    let mine = 0u64;
    let a = attributes(&mine as *const u64 as u64);
    assert_eq!(a.r#type, cudaMemoryType::cudaMemoryTypeUnregistered);
    assert_eq!(a.device, -2);
    ok!("cudaFree", device);
    ok!("cudaFree", managed);
    ok!("cudaFreeHost", host);
}

#[test]
fn stream_ordered_allocation() {
    let mut stream = 0u64;
    ok!("cudaStreamCreate", &mut stream);
    let mut p = 0u64;
    ok!("cudaMallocAsync", &mut p, 1 << 16, stream);
    ok!("cudaMemsetAsync", p, 5, 1 << 16, stream);
    let mut byte = [0u8; 1];
    ok!("cudaMemcpyAsync", &mut byte, p + 777, 1, TO_HOST, stream);
    ok!("cudaFreeAsync", p, stream);
    ok!("cudaStreamSynchronize", stream);
    assert_eq!(byte, [5]);
    let mut pool = 0u64;
    ok!("cudaDeviceGetDefaultMemPool", &mut pool, 0);
    ok!("cudaMallocFromPoolAsync", &mut p, 64, pool, stream);
    ok!("cudaFree", p);
    ok!("cudaStreamDestroy", stream);
}
