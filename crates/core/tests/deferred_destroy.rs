//! Deferred destruction of pools. The tests run one after the other: they count deferred pools.

use std::ffi::c_void;
use std::os::fd::AsFd;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;

use cupyrite::sys::driver::{self, CUgraph, CUresult, CUstreamCaptureMode};
use cupyrite::{
    Device, DeviceBuffer, MemoryPool, PoolAttribute, PoolOptions, RelaxedCapture, Stream,
    deferred_pool_count,
};

const OK: CUresult = CUresult::CUDA_SUCCESS;

fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

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

/// Does something while a stream is captured, which must not spoil that.
fn captured(stream: &Stream, body: impl FnOnce()) {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: a live stream.
    let status = unsafe { driver::cuStreamBeginCapture(stream.handle(), mode) };
    assert_eq!(status.unwrap(), OK);
    body();
    let mut graph: CUgraph = std::ptr::null_mut();
    // SAFETY: a live stream and a place for the result; the graph is destroyed once.
    unsafe {
        let ended = driver::cuStreamEndCapture(stream.handle(), &mut graph);
        assert_eq!(ended.unwrap(), OK);
        assert_eq!(driver::cuGraphDestroy(graph).unwrap(), OK);
    }
}

#[test]
fn pools_are_destroyed_when_their_memory_is_free() {
    let _alone = alone();
    let device = Device::new(0).unwrap();
    let (first, second, other) = (
        device.create_stream().unwrap(),
        device.create_stream().unwrap(),
        device.create_stream().unwrap(),
    );
    assert_eq!(deferred_pool_count(), 0);

    // Nothing to free, or freed already: it is gone at once.
    leave(&device, &[]);
    assert_eq!(deferred_pool_count(), 0);
    let pool = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    drop(pool.allocate(4096, &first).unwrap());
    first.synchronize().unwrap();
    drop(pool);
    assert_eq!(deferred_pool_count(), 0);

    // To be freed by streams that wait for something: kept aside, and nobody waits.
    let gate = close_gate(&first);
    leave(&device, &[&first, &second]);
    leave(&device, &[&first]);
    assert_eq!(deferred_pool_count(), 2);
    // Waits that do not help, the pools that come and go meanwhile, and those that are made from now on.
    other.synchronize().unwrap();
    for _ in 0..20 {
        leave(&device, &[]);
        second.synchronize().unwrap();
    }
    assert_eq!(deferred_pool_count(), 2);
    gate.send(()).unwrap();
    first.synchronize().unwrap();
    // They rest between two looks, unless the device is waited for.
    for _ in 0..32 {
        other.synchronize().unwrap();
    }
    assert_eq!(deferred_pool_count(), 0);

    // An event and a device are waited for, too.
    for wait_for_event in [true, false] {
        let gate = close_gate(&first);
        leave(&device, &[&first]);
        assert_eq!(deferred_pool_count(), 1);
        gate.send(()).unwrap();
        if wait_for_event {
            first.record().unwrap().synchronize().unwrap();
        }
        device.synchronize().unwrap();
        assert_eq!(deferred_pool_count(), 0);
    }

    // The device's current pool is never one that has ended.
    let before = MemoryPool::default_for(&device).unwrap();
    let gate = close_gate(&first);
    let pool = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    // SAFETY: a device and a pool of it.
    let status = unsafe { driver::cuDeviceSetMemPool(device.handle(), pool.handle()) };
    assert_eq!(status.unwrap(), OK);
    drop(pool.allocate(64, &first).unwrap());
    drop(pool);
    assert_eq!(deferred_pool_count(), 1);
    assert_eq!(MemoryPool::current(&device).unwrap(), before);
    gate.send(()).unwrap();
    device.synchronize().unwrap();
    assert_eq!(deferred_pool_count(), 0);

    // The end of a pool is no part of a capture, and does not spoil it, whether it can be destroyed or not.
    let gate = close_gate(&second);
    let idle = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    let busy = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    drop(busy.allocate(64, &second).unwrap());
    captured(&first, || {
        drop((idle, busy));
        assert_eq!(deferred_pool_count(), 1);
    });
    gate.send(()).unwrap();
    device.synchronize().unwrap();
    assert_eq!(deferred_pool_count(), 0);

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
        assert_eq!(deferred_pool_count(), 1);
    }
    // SAFETY: the memory is freed once.
    let status = unsafe { driver::cuMemFreeAsync(address, other.handle()) };
    assert_eq!(status.unwrap(), OK);
    device.synchronize().unwrap();
    assert_eq!(deferred_pool_count(), 0);

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
    assert_eq!(deferred_pool_count(), 0);
}

/// A pool whose memory the same process imports, which drivers of GPUs need not do.
struct Shared {
    theirs: MemoryPool,
    buffers: Vec<DeviceBuffer>,
}

impl Shared {
    fn new(device: &Device, stream: &Stream, count: usize) -> Option<Shared> {
        let options = PoolOptions::default().shareable(true);
        let pool = MemoryPool::new(device, &options).ok()?;
        let buffers = (0..count).map(|_| pool.allocate(4096, stream).unwrap());
        let buffers = buffers.collect();
        stream.synchronize().unwrap();
        let theirs = MemoryPool::import(device, pool.export().unwrap().as_fd()).ok()?;
        Some(Shared { theirs, buffers })
    }

    /// The pool's buffers, imported: one for each of these streams, which frees it.
    fn import(&self, streams: &[&Stream]) -> Vec<DeviceBuffer> {
        let pairs = self.buffers.iter().zip(streams);
        pairs
            .map(|(buffer, stream)| {
                let descriptor = buffer.descriptor().unwrap();
                self.theirs.import_buffer(&descriptor, stream).unwrap()
            })
            .collect()
    }

    /// Ends the imported pool; the buffers that are left of the other one end when this is dropped.
    fn end(self) -> Vec<DeviceBuffer> {
        self.buffers
    }
}

#[test]
fn imported_pools_are_destroyed_when_their_memory_is_free() {
    let _alone = alone();
    let device = Device::new(0).unwrap();
    let (first, second, other) = (
        device.create_stream().unwrap(),
        device.create_stream().unwrap(),
        device.create_stream().unwrap(),
    );
    let Some(idle) = Shared::new(&device, &first, 0) else {
        return eprintln!("left out: the driver does not let a process import its own pool");
    };
    let shared = || Shared::new(&device, &other, 3).unwrap();

    // Nothing was ever imported, or what was is free already: it is gone at once.
    drop(idle.end());
    let pool = shared();
    drop(pool.import(&[&first, &second, &first]));
    first.synchronize().unwrap();
    second.synchronize().unwrap();
    let rest = pool.end();
    assert_eq!(deferred_pool_count(), 0);
    drop(rest);
    device.synchronize().unwrap();

    // To be freed by a stream that waits for something: kept aside, and nobody waits.
    let gate = close_gate(&first);
    let mut rest = Vec::new();
    for streams in [[&first, &second, &other], [&second, &first, &other]] {
        let pool = shared();
        drop(pool.import(&streams));
        rest.extend(pool.end());
    }
    assert_eq!(deferred_pool_count(), 2);
    for _ in 0..40 {
        second.synchronize().unwrap();
    }
    // Nor do they hold up others.
    drop(shared().end());
    assert_eq!(deferred_pool_count(), 2);
    gate.send(()).unwrap();
    first.synchronize().unwrap();
    for _ in 0..32 {
        other.synchronize().unwrap();
    }
    assert_eq!(deferred_pool_count(), 0);
    drop(rest);
    device.synchronize().unwrap();

    // The next one that is imported is as good as a wait: a process that imports may never wait, nor make pools.
    let gate = close_gate(&first);
    let pool = shared();
    drop(pool.import(&[&first]));
    let rest = pool.end();
    assert_eq!(deferred_pool_count(), 1);
    let descriptor = MemoryPool::new(&device, &PoolOptions::default().shareable(true))
        .unwrap()
        .export()
        .unwrap();
    gate.send(()).unwrap();
    while !first.is_done().unwrap() {
        thread::yield_now();
    }
    assert_eq!(deferred_pool_count(), 1);
    // The pool itself is gone by now.
    let _ = MemoryPool::import(&device, descriptor.as_fd());
    assert_eq!(deferred_pool_count(), 0);
    drop(rest);

    // Memory that several buffers had is freed with the last of them, after what the others' streams hold.
    let gate = close_gate(&first);
    let pool = shared();
    let (slow, fast) = (pool.import(&[&first]), pool.import(&[&second]));
    drop(slow);
    drop(fast);
    let rest = pool.end();
    for _ in 0..40 {
        other.synchronize().unwrap();
    }
    assert_eq!(deferred_pool_count(), 1);
    gate.send(()).unwrap();
    device.synchronize().unwrap();
    assert_eq!(deferred_pool_count(), 0);
    drop(rest);

    // Neither the end of memory nor that of its pool is a part of a capture, or spoils it.
    for in_thread in [false, true] {
        let gate = close_gate(&second);
        let (idle, busy) = (shared(), shared());
        let (free, used) = (idle.import(&[&other]), busy.import(&[&other, &second]));
        let mut rest = Vec::new();
        captured(&first, || {
            let end = || {
                drop((free, used));
                let relaxed = RelaxedCapture::enter();
                other.synchronize().unwrap();
                drop(relaxed);
                rest.extend(idle.end());
                rest.extend(busy.end());
                assert_eq!(deferred_pool_count(), 1);
            };
            if in_thread {
                thread::scope(|scope| drop(scope.spawn(end)));
            } else {
                end();
            }
        });
        gate.send(()).unwrap();
        device.synchronize().unwrap();
        assert_eq!(deferred_pool_count(), 0);
    }

    // Threads that import, free, end pools and wait, all at once. None of them has a current context.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let (mine, yours) = (device.create_stream(), device.create_stream());
                let (mine, yours) = (mine.unwrap(), yours.unwrap());
                for round in 0..50 {
                    let pool = Shared::new(&device, &yours, 3).unwrap();
                    let gate = close_gate(&mine);
                    drop(pool.import(&[&mine, &yours, &mine]));
                    let rest = pool.end();
                    gate.send(()).unwrap();
                    if round % 2 == 0 {
                        mine.synchronize().unwrap();
                    }
                    // Their maker frees them last.
                    mine.wait_for_stream(&yours).unwrap();
                    mine.synchronize().unwrap();
                    drop(rest);
                }
            });
        }
    });
    device.synchronize().unwrap();
    assert_eq!(deferred_pool_count(), 0);
}
