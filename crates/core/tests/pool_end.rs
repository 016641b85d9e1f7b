//! Pools that end while their memory is still to be freed. Alone in its process: what is kept aside is counted.

use std::ffi::c_void;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use cupyrite::sys::driver::{self, CUgraph, CUresult, CUstreamCaptureMode};
use cupyrite::{Device, MemoryPool, PoolAttribute, PoolOptions, Stream, pools_kept_aside};

const OK: CUresult = CUresult::CUDA_SUCCESS;

unsafe extern "C" fn wait_here(gate: *mut c_void) {
    // SAFETY: `Gate::close` gave it away for this call.
    let gate = unsafe { Box::from_raw(gate.cast::<Receiver<()>>()) };
    // Opened, or dropped by a test that failed.
    let _ = gate.recv();
}

/// Keeps a stream from going on.
fn close_gate(stream: &Stream) -> Sender<()> {
    let (opens, gate) = channel();
    let gate = Box::into_raw(Box::new(gate)).cast();
    // SAFETY: the function takes what it is given, once.
    let status = unsafe { driver::cuLaunchHostFunc(stream.handle(), Some(wait_here), gate) };
    assert_eq!(status.unwrap(), OK);
    opens
}

/// A pool with memory that a stream is to free; the pool is dropped.
fn leave(device: &Device, streams: &[&Stream]) {
    let pool = MemoryPool::new(device, &PoolOptions::default()).unwrap();
    pool.set_attribute(PoolAttribute::ReleaseThreshold, u64::MAX)
        .unwrap();
    for stream in streams {
        drop(pool.allocate(4096, stream).unwrap());
    }
}

#[test]
fn pools_end_when_their_memory_is_free() {
    let device = Device::new(0).unwrap();
    let (first, second, other) = (
        device.create_stream().unwrap(),
        device.create_stream().unwrap(),
        device.create_stream().unwrap(),
    );
    assert_eq!(pools_kept_aside(), 0);

    // Nothing to free, or freed already: it is gone at once.
    leave(&device, &[]);
    assert_eq!(pools_kept_aside(), 0);
    let pool = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    drop(pool.allocate(4096, &first).unwrap());
    first.synchronize().unwrap();
    drop(pool);
    assert_eq!(pools_kept_aside(), 0);

    // To be freed by streams that wait for something: kept aside, and nobody waits.
    let gate = close_gate(&first);
    leave(&device, &[&first, &second]);
    leave(&device, &[&first]);
    assert_eq!(pools_kept_aside(), 2);
    // Waits that do not help, the pools that come and go meanwhile, and those that are made from now on.
    other.synchronize().unwrap();
    for _ in 0..20 {
        leave(&device, &[]);
        second.synchronize().unwrap();
    }
    assert_eq!(pools_kept_aside(), 2);
    gate.send(()).unwrap();
    first.synchronize().unwrap();
    // They rest between two looks, unless the device is waited for.
    for _ in 0..32 {
        other.synchronize().unwrap();
    }
    assert_eq!(pools_kept_aside(), 0);

    // An event and a device are waited for, too.
    for wait_for_event in [true, false] {
        let gate = close_gate(&first);
        leave(&device, &[&first]);
        assert_eq!(pools_kept_aside(), 1);
        gate.send(()).unwrap();
        if wait_for_event {
            first.record().unwrap().synchronize().unwrap();
        }
        device.synchronize().unwrap();
        assert_eq!(pools_kept_aside(), 0);
    }

    // The device's current pool is never one that has ended.
    let before = MemoryPool::default_of(&device).unwrap();
    let gate = close_gate(&first);
    let pool = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    // SAFETY: a device and a pool of it.
    let status = unsafe { driver::cuDeviceSetMemPool(device.handle(), pool.handle()) };
    assert_eq!(status.unwrap(), OK);
    drop(pool.allocate(64, &first).unwrap());
    drop(pool);
    assert_eq!(pools_kept_aside(), 1);
    assert_eq!(MemoryPool::current(&device).unwrap(), before);
    gate.send(()).unwrap();
    device.synchronize().unwrap();
    assert_eq!(pools_kept_aside(), 0);

    // The end of a pool is no part of a capture, and does not spoil it, whether it can be destroyed or not.
    let gate = close_gate(&second);
    let idle = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    let busy = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    drop(busy.allocate(64, &second).unwrap());
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: a live stream.
    let status = unsafe { driver::cuStreamBeginCapture(first.handle(), mode) };
    assert_eq!(status.unwrap(), OK);
    drop((idle, busy));
    assert_eq!(pools_kept_aside(), 1);
    let mut graph: CUgraph = std::ptr::null_mut();
    // SAFETY: a live stream and a place for the result; the graph is destroyed once.
    unsafe {
        let ended = driver::cuStreamEndCapture(first.handle(), &mut graph);
        assert_eq!(ended.unwrap(), OK);
        assert_eq!(driver::cuGraphDestroy(graph).unwrap(), OK);
    }
    gate.send(()).unwrap();
    device.synchronize().unwrap();
    assert_eq!(pools_kept_aside(), 0);

    // Memory that somebody took by the driver's own calls keeps its pool, until it is freed.
    let pool = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    let mut address = 0;
    // SAFETY: a place for the result, a live pool and a live stream.
    let status =
        unsafe { driver::cuMemAllocFromPoolAsync(&mut address, 64, pool.handle(), other.handle()) };
    assert_eq!(status.unwrap(), OK);
    drop(pool);
    for _ in 0..100 {
        device.synchronize().unwrap();
        assert_eq!(pools_kept_aside(), 1);
    }
    // SAFETY: the memory is freed once.
    let status = unsafe { driver::cuMemFreeAsync(address, other.handle()) };
    assert_eq!(status.unwrap(), OK);
    device.synchronize().unwrap();
    assert_eq!(pools_kept_aside(), 0);

    // Threads that end pools and wait, all at once.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (mine, yours) = (device.create_stream(), device.create_stream());
                let (mine, yours) = (mine.unwrap(), yours.unwrap());
                for round in 0..50 {
                    let gate = close_gate(&mine);
                    leave(&device, &[&mine, &yours]);
                    gate.send(()).unwrap();
                    if round % 2 == 0 {
                        mine.synchronize().unwrap();
                    }
                }
                mine.synchronize().unwrap();
            });
        }
    });
    device.synchronize().unwrap();
    assert_eq!(pools_kept_aside(), 0);
}
