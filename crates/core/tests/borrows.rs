//! Borrowed host memory: the device has left it when a borrow ends, also if a wait fails. One test binary: captures of one
//! thread affect the others.

use std::panic::panic_any;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use std::{array, thread};

use cupyrite::graph::{CaptureMode, Graph, GraphBuilder, GraphDefinition, InstantiateOptions};
use cupyrite::sys::driver::CUresult;
use cupyrite::{
    ArrayFormat, ArrayOptions, Buffer, Device, DeviceBuffer, Error, HostBuffer, MemoryPool,
    OpaqueArray, Stream,
};

const LEN: usize = 4096;

/// One test at a time.
fn alone() -> (MutexGuard<'static, ()>, Device) {
    static LOCK: Mutex<()> = Mutex::new(());
    let lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    (lock, Device::new(0).unwrap())
}

fn allocate(device: &Device, stream: &Stream) -> DeviceBuffer {
    let pool = MemoryPool::current(device).unwrap();
    pool.allocate(LEN, stream).unwrap()
}

/// A graph with one callback.
fn graph_of(callback: impl Fn() + Send + Sync + 'static) -> Graph {
    let definition = GraphDefinition::new().unwrap();
    definition.callback(&[], callback).unwrap();
    definition
        .instantiate(&InstantiateOptions::default())
        .unwrap()
}

/// Work that takes 200 ms, and whether it is done.
fn slow_work() -> (Graph, Arc<AtomicBool>) {
    let done = Arc::new(AtomicBool::new(false));
    let set = done.clone();
    let graph = graph_of(move || {
        thread::sleep(Duration::from_millis(200));
        set.store(true, Ordering::SeqCst);
    });
    (graph, done)
}

#[test]
fn a_scope_ends_after_copies_before_a_capture() {
    let (_alone, device) = alone();
    let stream = device.create_stream().unwrap();
    let there = device.buffer_from(&vec![7u8; LEN]).unwrap();
    let mut back = HostBuffer::filled(LEN, 1u8).unwrap();
    let (work, done) = slow_work();
    let mut builder = None;
    stream
        .scope(|scope| {
            work.launch(&stream)?;
            scope.download(&there, &mut back)?;
            builder = Some(GraphBuilder::begin(&stream, CaptureMode::Relaxed)?);
            Ok(())
        })
        .unwrap();
    assert!(done.load(Ordering::SeqCst));
    assert_eq!(back[..], [7u8; LEN]);
    // The capture goes on.
    let builder = builder.unwrap();
    builder.callback(|| {}).unwrap();
    builder.complete(&InstantiateOptions::default()).unwrap();
}

#[test]
fn a_scope_ends_after_its_copies_if_its_body_fails_in_a_capture() {
    let (_alone, device) = alone();
    let stream = device.create_stream().unwrap();
    let there = device.buffer_from(&vec![7u8; LEN]).unwrap();
    let mut back = HostBuffer::filled(LEN, 1u8).unwrap();
    let (work, done) = slow_work();
    let mut builder = None;
    let failed = stream.scope(|scope| {
        work.launch(&stream)?;
        scope.download(&there, &mut back)?;
        builder = Some(GraphBuilder::begin(&stream, CaptureMode::Global)?);
        scope.upload(&[1u8], &there)
    });
    assert!(failed.is_err());
    assert!(done.load(Ordering::SeqCst));
    assert_eq!(back[..], [7u8; LEN]);
}

#[test]
fn captured_streams_borrow_no_host_memory() {
    let (_alone, device) = alone();
    let base = device.create_stream().unwrap();
    let buffer = allocate(&device, &base);
    buffer.write(&[7u8; LEN], &base).unwrap();
    let array = array_of(&device);
    let builder = GraphBuilder::begin(&base, CaptureMode::Relaxed).unwrap();
    for stream in [&base, builder.stream()] {
        let mut out = [1u8; LEN];
        let refused = [
            buffer.read(&mut out, stream),
            buffer.write(&out, stream),
            array.copy_to(&mut out, stream),
            array.copy_from(&out, stream),
        ];
        for error in refused.map(Result::unwrap_err) {
            assert!(error.to_string().contains("is being captured"), "{error}");
        }
        assert_eq!(out, [1; LEN]);
    }
    // The capture is valid, and has recorded nothing.
    assert!(builder.definition().nodes().unwrap().is_empty());
    builder.complete(&InstantiateOptions::default()).unwrap();
}

fn array_of(device: &Device) -> OpaqueArray {
    let options = ArrayOptions::new(&[LEN], ArrayFormat::Uint8, 1);
    device.create_opaque_array(&options).unwrap()
}

#[test]
fn copies_are_refused_where_a_capture_forbids_the_wait() {
    let (_alone, device) = alone();
    let [captured, stream] = array::from_fn(|_| device.create_stream().unwrap());
    let buffer = allocate(&device, &stream);
    let pinned = HostBuffer::filled(LEN, 7u8).unwrap();
    buffer.write(&pinned, &stream).unwrap();
    let (work, done) = slow_work();
    let mut out = HostBuffer::filled(LEN, 1u8).unwrap();
    work.launch(&stream).unwrap();
    let builder = GraphBuilder::begin(&captured, CaptureMode::Global).unwrap();
    let refused = buffer.read(&mut out, &stream).unwrap_err();
    assert_eq!(
        refused.status(),
        Some(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    );
    drop(builder);
    stream.synchronize().unwrap();
    assert!(done.load(Ordering::SeqCst));
    assert_eq!(out[..], [1u8; LEN], "nothing was queued");
}

#[test]
fn host_callbacks_borrow_no_host_memory() {
    let (_alone, device) = alone();
    let stream = device.create_stream().unwrap();
    let buffer = Arc::new(allocate(&device, &stream));
    buffer.write(&[7u8; LEN], &stream).unwrap();
    let there = device.buffer_from(&[7u8; LEN]).unwrap();
    let array = array_of(&device);
    let found = Arc::new(Mutex::new(Vec::new()));
    // Page-locked: a copy to it is queued without waiting.
    let pinned = Arc::new(Mutex::new(HostBuffer::filled(LEN, 1u8).unwrap()));
    let graph = {
        let (buffer, stream, found) = (buffer.clone(), stream.clone(), found.clone());
        let pinned = pinned.clone();
        graph_of(move || {
            let mut out = [1u8; LEN];
            let mut pinned = pinned.lock().unwrap();
            let results = [
                buffer.read(&mut out, &stream),
                buffer.write(&out, &stream),
                array.copy_to(&mut out, &stream),
                array.copy_from(&out, &stream),
                stream.scope(|scope| scope.download(&there, &mut pinned)),
            ];
            let status = |result: cupyrite::Result<()>| result.err().and_then(|e| e.status());
            *found.lock().unwrap() = results.map(status).to_vec();
        })
    };
    graph.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    let refused = Some(CUresult::CUDA_ERROR_NOT_PERMITTED);
    assert_eq!(*found.lock().unwrap(), [refused; 5]);
    device.synchronize().unwrap();
    assert_eq!(pinned.lock().unwrap()[..], [1u8; LEN]);
    let mut out = [0u8; LEN];
    buffer.read(&mut out, &stream).unwrap();
    assert_eq!(out, [7; LEN]);
}

#[test]
fn a_per_thread_stream_lends_in_its_own_thread_only() {
    let (_alone, device) = alone();
    let stream = Stream::per_thread_default();
    let there = device.buffer_from(&[7u8; LEN]).unwrap();
    let (mut here, mut elsewhere) = ([1u8; LEN], [1u8; LEN]);
    let refused = stream
        .scope(|scope| {
            scope.download(&there, &mut here)?;
            let other = thread::scope(|threads| {
                let copy = threads.spawn(|| scope.download(&there, &mut elsewhere));
                copy.join().unwrap()
            });
            Ok(other.unwrap_err().to_string())
        })
        .unwrap();
    assert!(refused.contains("per-thread default stream of another thread"));
    assert_eq!((here, elsewhere), ([7; LEN], [1; LEN]));
}

#[test]
fn a_panic_payload_that_panics_does_not_abort() {
    struct Trap(Arc<AtomicUsize>);
    impl Drop for Trap {
        fn drop(&mut self) {
            if self.0.fetch_add(1, Ordering::SeqCst) < 2 {
                panic_any(Trap(self.0.clone()));
            }
        }
    }
    let (_alone, device) = alone();
    let stream = device.create_stream().unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    let graph = {
        let drops = drops.clone();
        graph_of(move || panic_any(Trap(drops.clone())))
    };
    graph.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

#[test]
fn a_recorded_copy_retains_its_buffers() {
    let (_alone, device) = alone();
    let stream = device.create_stream().unwrap();
    let source = device.buffer_from(&[7u32; LEN]).unwrap();
    let middle: Buffer<u32> = device.buffer_zeroed(LEN).unwrap();
    let last: Buffer<u32> = device.buffer_zeroed(LEN).unwrap();
    let builder = GraphBuilder::begin(&stream, CaptureMode::Relaxed).unwrap();
    let error = middle.copy_from_buffer(&stream, &source).unwrap_err();
    assert!(matches!(error, Error::InvalidArgument { .. }), "{error}");
    middle.copy_from_buffer(builder.stream(), &source).unwrap();
    last.copy_from_buffer(builder.stream(), &middle).unwrap();
    let graph = builder.complete(&InstantiateOptions::default()).unwrap();
    let addresses = [source.address(), middle.address()];
    drop((source, middle));
    // What is allocated now does not take their place.
    let others: Vec<Buffer<u32>> = (0..64)
        .map(|_| device.buffer_zeroed(LEN).unwrap())
        .collect();
    for other in &others {
        assert!(!addresses.contains(&other.address()));
    }
    graph.launch(&stream).unwrap();
    stream.synchronize().unwrap();
    assert_eq!(last.to_vec().unwrap(), [7; LEN]);
}
