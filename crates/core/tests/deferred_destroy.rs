//! Deferred destruction of memory pools. The tests run serially: they count deferred pools.

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
    // SAFETY: `close_gate` passed ownership of the box to this single call.
    let gate = unsafe { Box::from_raw(gate.cast::<Receiver<()>>()) };
    // Returns when the sender sends, or when a failed test drops it.
    let _ = gate.recv();
}

/// Blocks a stream until the returned sender sends.
fn close_gate(stream: &Stream) -> Sender<()> {
    let (opens, gate) = channel();
    let gate = Box::into_raw(Box::new(gate)).cast();
    // SAFETY: the driver calls `wait_here` once, which takes ownership of `gate`.
    let status = unsafe { driver::cuLaunchHostFunc(stream.handle(), Some(wait_here), gate) };
    assert_eq!(status.unwrap(), OK);
    opens
}

/// Creates and drops a pool with one pending free in each of the streams.
fn leave(device: &Device, streams: &[&Stream]) {
    let pool = MemoryPool::new(device, &PoolOptions::default()).unwrap();
    pool.set_attribute(PoolAttribute::ReleaseThreshold, u64::MAX)
        .unwrap();
    for stream in streams {
        drop(pool.allocate(4096, stream).unwrap());
    }
}

/// Runs `body` while a stream is captured; the capture must stay valid.
fn captured(stream: &Stream, body: impl FnOnce()) {
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: `stream` is live.
    let status = unsafe { driver::cuStreamBeginCapture(stream.handle(), mode) };
    assert_eq!(status.unwrap(), OK);
    body();
    let mut graph: CUgraph = std::ptr::null_mut();
    // SAFETY: `stream` is live and `graph` is valid for the result; the graph is destroyed once.
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

    // No pending frees: the pool is destroyed at once.
    leave(&device, &[]);
    assert_eq!(deferred_pool_count(), 0);
    let pool = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    drop(pool.allocate(4096, &first).unwrap());
    first.synchronize().unwrap();
    drop(pool);
    assert_eq!(deferred_pool_count(), 0);

    // Pending frees in blocked streams: destruction is deferred, and dropping the pool does not wait.
    let gate = close_gate(&first);
    leave(&device, &[&first, &second]);
    leave(&device, &[&first]);
    assert_eq!(deferred_pool_count(), 2);
    // Waiting for other streams, and creating and dropping other pools, does not change that.
    other.synchronize().unwrap();
    for _ in 0..20 {
        leave(&device, &[]);
        second.synchronize().unwrap();
    }
    assert_eq!(deferred_pool_count(), 2);
    gate.send(()).unwrap();
    first.synchronize().unwrap();
    // Stream waits check deferred pools only occasionally; a device wait always does.
    for _ in 0..32 {
        other.synchronize().unwrap();
    }
    assert_eq!(deferred_pool_count(), 0);

    // Waiting for an event or the device also completes the destruction.
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

    // A dropped pool stops being the device's current pool.
    let before = MemoryPool::default_for(&device).unwrap();
    let gate = close_gate(&first);
    let pool = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    // SAFETY: `pool` is a live pool of `device`.
    let status = unsafe { driver::cuDeviceSetMemPool(device.handle(), pool.handle()) };
    assert_eq!(status.unwrap(), OK);
    drop(pool.allocate(64, &first).unwrap());
    drop(pool);
    assert_eq!(deferred_pool_count(), 1);
    assert_eq!(MemoryPool::current(&device).unwrap(), before);
    gate.send(()).unwrap();
    device.synchronize().unwrap();
    assert_eq!(deferred_pool_count(), 0);

    // Dropping a pool, idle or busy, is not captured and does not invalidate a capture.
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

    // Memory allocated by direct driver calls keeps its pool alive until it is freed.
    let pool = MemoryPool::new(&device, &PoolOptions::default()).unwrap();
    let mut address = 0;
    // SAFETY: `address` is valid for the result; the pool and the stream are live.
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

    // Threads drop pools and wait concurrently.
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

/// A pool that this process both exports and imports; GPU drivers may refuse that.
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

    /// Imports one buffer for each stream; that stream frees it.
    fn import(&self, streams: &[&Stream]) -> Vec<DeviceBuffer> {
        let pairs = self.buffers.iter().zip(streams);
        pairs
            .map(|(buffer, stream)| {
                let descriptor = buffer.descriptor().unwrap();
                self.theirs.import_buffer(&descriptor, stream).unwrap()
            })
            .collect()
    }

    /// Drops the imported pool; returns the remaining buffers of the exported pool.
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

    // No imports, or all of them freed: the pool is destroyed at once.
    drop(idle.end());
    let pool = shared();
    drop(pool.import(&[&first, &second, &first]));
    first.synchronize().unwrap();
    second.synchronize().unwrap();
    let rest = pool.end();
    assert_eq!(deferred_pool_count(), 0);
    drop(rest);
    device.synchronize().unwrap();

    // A pending free in a blocked stream: destruction is deferred, and dropping the pool does not wait.
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
    // Deferred pools do not delay the destruction of others.
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

    // An import also destroys deferred pools: an importing process may never wait or create pools.
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
    // The exported pool is already destroyed, so this import may fail.
    let _ = MemoryPool::import(&device, descriptor.as_fd());
    assert_eq!(deferred_pool_count(), 0);
    drop(rest);

    // Memory imported several times is freed with its last buffer, after the pending work of the other streams.
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

    // Dropping imported memory or its pool is not captured and does not invalidate a capture.
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

    // Threads without a current context import, free, drop pools and wait concurrently.
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
                    // The exporter frees its buffers last.
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
