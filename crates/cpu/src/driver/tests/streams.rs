//! Ordering and asynchrony: streams, default streams, events, callbacks.

use std::ffi::c_void;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::super::Code;
use super::{NOT_READY, Session, busy, cu, ok, sleep_ms};

/// Appends its argument to a list.
unsafe extern "C" fn note(n: *mut c_void) {
    NOTES.lock().push(n as u64);
}
static NOTES: Mutex<Vec<u64>> = Mutex::new(Vec::new());

unsafe extern "C" fn note_status(_stream: u64, status: u32, n: *mut c_void) {
    NOTES.lock().push(n as u64 + u64::from(status));
}

#[test]
fn async_copies_overlap_with_the_host() {
    let s = Session::new();
    let (stream, n) = (s.stream(0), 1 << 20);
    let (d, h) = (s.alloc(n), s.pinned(n));
    let (before, after) = (s.event(), s.event());
    assert_eq!(cu!("cuEventQuery", before), 0);
    let mut ms = 0f32;
    assert_eq!(
        cu!("cuEventElapsedTime", &mut ms, before, after),
        Code::INVALID_HANDLE.0
    );
    let start = Instant::now();
    ok!("cuEventRecord", before, stream);
    busy(stream, 60);
    ok!("cuMemcpyHtoDAsync_v2", d, h, n, stream);
    ok!("cuMemsetD8Async", d, 3u8, n / 2, stream);
    ok!("cuMemcpyDtoHAsync_v2", h, d, n, stream);
    ok!("cuEventRecord", after, stream);
    assert!(start.elapsed().as_millis() < 50, "the calls must not wait");
    assert_eq!(cu!("cuStreamQuery", stream), NOT_READY);
    assert_eq!(cu!("cuEventQuery", after), NOT_READY);
    assert_eq!(cu!("cuEventElapsedTime", &mut ms, before, after), NOT_READY);
    ok!("cuEventSynchronize", after);
    ok!("cuEventQuery", after);
    ok!("cuStreamQuery", stream);
    ok!("cuEventElapsedTime_v2", &mut ms, before, after);
    assert!((55.0..500.0).contains(&ms), "{ms}");
    // SAFETY: the host allocation has `n` bytes and no operation is pending.
    let bytes = unsafe { std::slice::from_raw_parts(h as *const u8, n) };
    assert_eq!((bytes[0], bytes[n / 2 - 1]), (3, 3));
}

#[test]
fn pageable_memory_may_be_modified_after_the_call() {
    let s = Session::new();
    let stream = s.stream(0);
    let d = s.alloc(1000);
    let mut source = vec![1u8; 1000];
    busy(stream, 30);
    ok!("cuMemcpyHtoDAsync_v2", d, &source[0], 1000u64, stream);
    source.fill(9);
    let mut back = vec![0u8; 1000];
    ok!("cuMemcpyDtoHAsync_v2", &mut back[0], d, 1000u64, stream);
    assert!(back.iter().all(|&b| b == 1));
}

#[test]
fn legacy_stream_synchronises_with_blocking_streams() {
    let s = Session::new();
    let (blocking, free) = (s.stream(0), s.stream(1));
    let e = s.event();
    busy(blocking, 60);
    ok!("cuEventRecord", e, 0u64);
    assert_eq!(cu!("cuEventQuery", e), NOT_READY);
    assert_eq!(cu!("cuStreamQuery", 0u64), NOT_READY);
    assert_eq!(cu!("cuStreamQuery", 1u64), NOT_READY);
    ok!("cuStreamQuery", free);
    ok!("cuStreamSynchronize", 0u64);
    ok!("cuStreamQuery", blocking);
    // In the opposite direction.
    busy(0, 60);
    ok!("cuEventRecord", e, blocking);
    assert_eq!(cu!("cuEventQuery", e), NOT_READY);
    ok!("cuEventRecord", e, free);
    ok!("cuEventQuery", e);
    // The per-thread default stream is a blocking stream, too.
    ok!("cuEventRecord_ptsz", e, 0u64);
    assert_eq!(cu!("cuEventQuery", e), NOT_READY);
    ok!("cuCtxSynchronize");
    busy(2, 40);
    assert_eq!(cu!("cuStreamQuery_ptsz", 0u64), NOT_READY);
    assert_eq!(cu!("cuStreamQuery", 0u64), NOT_READY);
    ok!("cuStreamQuery", free);
    // A non-blocking stream does not synchronise with it.
    ok!("cuCtxSynchronize");
    busy(free, 60);
    ok!("cuStreamQuery", 0u64);
    ok!("cuStreamSynchronize", 0u64);
    assert_eq!(cu!("cuStreamQuery", free), NOT_READY);
}

#[test]
fn threads_have_separate_default_streams() {
    let s = Session::new();
    let context = s.0;
    busy(2, 80);
    std::thread::spawn(move || {
        ok!("cuCtxSetCurrent", context);
        ok!("cuStreamQuery", 2u64);
        ok!("cuStreamSynchronize_ptsz", 0u64);
    })
    .join()
    .unwrap();
    assert_eq!(cu!("cuStreamQuery", 2u64), NOT_READY);
}

#[test]
fn events_order_streams() {
    let s = Session::new();
    let (a, b) = (s.stream(1), s.stream(1));
    let e = s.event();
    ok!("cuStreamWaitEvent", b, e, 0); // never recorded: no wait
    ok!("cuStreamQuery", b);
    busy(a, 50);
    ok!("cuEventRecord", e, a);
    ok!("cuStreamWaitEvent", b, e, 0);
    // The dependency remains after the event is destroyed.
    ok!("cuEventDestroy_v2", e);
    assert_eq!(cu!("cuEventQuery", e), Code::INVALID_HANDLE.0);
    assert_eq!(cu!("cuStreamQuery", b), NOT_READY);
    ok!("cuStreamSynchronize", b);
    ok!("cuStreamQuery", a);
    let mut quiet = 0u64;
    ok!("cuEventCreate", &mut quiet, 2);
    ok!("cuEventRecord", quiet, a);
    let (mut ms, timed) = (0f32, s.event());
    ok!("cuEventRecord", timed, a);
    ok!("cuStreamSynchronize", a);
    assert_eq!(
        cu!("cuEventElapsedTime", &mut ms, quiet, timed),
        Code::INVALID_HANDLE.0
    );
    assert_eq!(cu!("cuEventCreate", &mut quiet, 8), Code::INVALID_VALUE.0);
    assert_eq!(cu!("cuEventCreate", &mut quiet, 4), Code::INVALID_VALUE.0);
}

#[test]
fn callbacks_run_in_order() {
    let s = Session::new();
    let stream = s.stream(0);
    NOTES.lock().clear();
    for i in 0..200u64 {
        if i % 50 == 7 {
            busy(stream, 2);
        }
        if i % 2 == 0 {
            ok!("cuLaunchHostFunc", stream, note as *const () as u64, i);
        } else {
            ok!(
                "cuStreamAddCallback",
                stream,
                note_status as *const () as u64,
                i,
                0
            );
        }
    }
    ok!("cuStreamSynchronize", stream);
    assert_eq!(*NOTES.lock(), (0..200).collect::<Vec<_>>());
    for bad in [
        0u64,
        1,
        0xdead_beef,
        s.0,
        Instant::now as *const () as u64 & 1,
    ] {
        assert_eq!(
            cu!("cuLaunchHostFunc", stream, bad, 0u64),
            Code::INVALID_VALUE.0
        );
        assert_eq!(
            cu!("cuStreamAddCallback", stream, bad, 0u64, 0),
            Code::INVALID_VALUE.0
        );
    }
    assert_eq!(
        cu!(
            "cuStreamAddCallback",
            stream,
            sleep_ms as *const () as u64,
            0u64,
            1
        ),
        Code::INVALID_VALUE.0
    );
}

#[test]
fn destroyed_streams_finish_their_work() {
    let s = Session::new();
    let (stream, d) = (s.stream(0), s.alloc(16));
    ok!("cuMemsetD8_v2", d, 0u8, 16);
    busy(stream, 40);
    ok!("cuMemsetD8Async", d, 5u8, 16, stream);
    ok!("cuStreamDestroy_v2", stream);
    assert_eq!(cu!("cuStreamQuery", stream), Code::INVALID_HANDLE.0);
    assert_eq!(cu!("cuStreamDestroy_v2", stream), Code::INVALID_HANDLE.0);
    let mut back = [0u8; 16];
    ok!("cuMemcpyDtoH_v2", &mut back, d, 16);
    assert_eq!(back, [5; 16]);
    for default in [0u64, 1, 2] {
        assert_eq!(cu!("cuStreamDestroy_v2", default), Code::INVALID_HANDLE.0);
    }
}

#[test]
fn freeing_waits_for_the_device() {
    let s = Session::new();
    let (stream, d) = (s.stream(1), s.alloc(16));
    busy(stream, 40);
    let start = Instant::now();
    ok!("cuMemFree_v2", d);
    assert!(start.elapsed().as_millis() >= 35);
}

#[test]
fn stream_properties() {
    let s = Session::new();
    let mut stream = 0u64;
    ok!("cuStreamCreateWithPriority", &mut stream, 1, -100);
    let (mut priority, mut flags, mut id, mut context, mut device) = (0i32, 0u32, 0u64, 0u64, 7i32);
    ok!("cuStreamGetPriority", stream, &mut priority);
    ok!("cuStreamGetFlags", stream, &mut flags);
    ok!("cuStreamGetId", stream, &mut id);
    ok!("cuStreamGetCtx", stream, &mut context);
    ok!("cuStreamGetDevice", stream, &mut device);
    assert_eq!((priority, flags, context, device), (-5, 1, s.0, 0));
    let mut other = 0u64;
    ok!("cuStreamGetId", 0u64, &mut other);
    assert_ne!(id, other);
    let mut status = 9u32;
    ok!("cuStreamIsCapturing", stream, &mut status);
    assert_eq!(status, 0);
    assert_eq!(
        cu!("cuStreamBeginCapture_v2", stream, 3),
        Code::INVALID_VALUE.0
    );
    let mut value = [1u8; 64];
    ok!("cuStreamGetAttribute", stream, 3, &mut value);
    assert_eq!(value, [0; 64]);
    value[0] = 2;
    ok!("cuStreamSetAttribute", stream, 3, &value);
    let target = s.stream(0);
    ok!("cuStreamCopyAttributes", target, stream);
    value[0] = 0;
    ok!("cuStreamGetAttribute", target, 3, &mut value);
    assert_eq!(value[0], 2);
    assert_eq!(cu!("cuStreamCreate", &mut stream, 2), Code::INVALID_VALUE.0);
}

#[test]
fn many_threads_and_streams() {
    let s = Session::new();
    let context = s.0;
    let threads: Vec<_> = (0..6u32)
        .map(|t| {
            std::thread::spawn(move || {
                ok!("cuCtxSetCurrent", context);
                for i in 0..40u32 {
                    let (mut stream, mut event, mut d) = (0u64, 0u64, 0u64);
                    ok!("cuStreamCreate", &mut stream, i % 2);
                    ok!("cuEventCreate", &mut event, 0);
                    ok!("cuMemAlloc_v2", &mut d, 4096);
                    ok!("cuMemsetD32Async", d, t * 1000 + i, 1024, stream);
                    ok!("cuEventRecord", event, stream);
                    ok!("cuStreamWaitEvent", 2u64, event, 0);
                    let mut back = [0u32; 1024];
                    ok!("cuMemcpyDtoH_v2_ptds", &mut back, d, 4096);
                    assert!(back.iter().all(|&v| v == t * 1000 + i));
                    ok!("cuMemFree_v2", d);
                    ok!("cuEventDestroy_v2", event);
                    ok!("cuStreamDestroy_v2", stream);
                }
            })
        })
        .collect();
    for t in threads {
        t.join().unwrap();
    }
}

#[test]
fn full_backlog_blocks_the_caller() {
    let s = Session::new();
    let (stream, d) = (s.stream(0), s.alloc(4));
    busy(stream, 20);
    for i in 0..10_000u32 {
        ok!("cuMemsetD32Async", d, i, 1, stream);
    }
    let mut last = 0u32;
    ok!("cuMemcpyDtoHAsync_v2", &mut last, d, 4, stream);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(last, 9999);
}

#[test]
fn callbacks_may_not_wait() {
    static ANSWER: AtomicU32 = AtomicU32::new(0);
    unsafe extern "C" fn waits(stream: *mut c_void) {
        ANSWER.store(cu!("cuStreamSynchronize", stream as u64), Ordering::SeqCst);
    }
    let s = Session::new();
    let stream = s.stream(1);
    ok!(
        "cuLaunchHostFunc",
        stream,
        waits as *const () as u64,
        stream
    );
    ok!("cuStreamSynchronize", stream);
    assert_eq!(ANSWER.load(Ordering::SeqCst), Code::NOT_PERMITTED.0);
}

/// A call that a host function makes, and its status.
struct CallFromHost {
    context: u64,
    name: &'static str,
    args: Vec<u64>,
    status: AtomicU32,
}

unsafe extern "C" fn make_call(call: *mut c_void) {
    // SAFETY: the test passes a `CallFromHost` that outlives the stream's work.
    let call = unsafe { &*call.cast::<CallFromHost>() };
    ok!("cuCtxSetCurrent", call.context);
    let status = super::call(call.name, &call.args);
    call.status.store(status, Ordering::SeqCst);
}

/// The status of a call that a host function of `stream` makes.
fn call_from_host(stream: u64, name: &'static str, args: &[u64]) -> u32 {
    let mut context = 0u64;
    ok!("cuCtxGetCurrent", &mut context);
    let call = CallFromHost {
        context,
        name,
        args: args.to_vec(),
        status: AtomicU32::new(u32::MAX),
    };
    ok!(
        "cuLaunchHostFunc",
        stream,
        make_call as *const () as u64,
        &call
    );
    ok!("cuStreamSynchronize", stream);
    call.status.load(Ordering::SeqCst)
}

#[test]
fn calls_refused_in_a_host_function_have_no_effect() {
    let s = Session::new();
    // A blocking stream: the copies in the default stream would wait for the host function.
    let stream = s.stream(0);
    let d = s.alloc(16);
    ok!("cuMemsetD8_v2", d, 5u8, 16);
    let mut host = [1u8; 16];
    let target = host.as_mut_ptr() as u64;
    let refused = Code::NOT_PERMITTED.0;
    assert_eq!(
        call_from_host(stream, "cuMemcpyDtoH_v2", &[target, d, 16]),
        refused
    );
    assert_eq!(
        call_from_host(stream, "cuMemcpyHtoD_v2", &[d, target, 16]),
        refused
    );
    ok!("cuCtxSynchronize");
    assert_eq!(host, [1; 16], "a refused copy wrote to the host");
    ok!("cuMemcpyDtoH_v2", &mut host, d, 16);
    assert_eq!(host, [5; 16], "a refused copy wrote to the device");
    // Memory that was not freed can be freed once.
    assert_eq!(call_from_host(stream, "cuMemFree_v2", &[d]), refused);
    ok!("cuMemFree_v2", d);
    // A context that was not destroyed remains current.
    assert_eq!(call_from_host(stream, "cuCtxDestroy_v2", &[s.0]), refused);
    assert_eq!(s.alloc(16) % 16, 0);
}

#[test]
fn a_refused_free_keeps_graph_memory_and_array_levels() {
    let s = Session::new();
    let stream = s.stream(0);
    let refused = Code::NOT_PERMITTED.0;
    let mut graph = 0u64;
    ok!("cuStreamBeginCapture_v2", stream, 0);
    let mut d = 0u64;
    ok!("cuMemAllocAsync", &mut d, 64u64, stream);
    ok!("cuStreamEndCapture", stream, &mut graph);
    let mut exec = 0u64;
    ok!("cuGraphInstantiateWithFlags", &mut exec, graph, 0u64);
    ok!("cuGraphLaunch", exec, stream);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(call_from_host(stream, "cuMemFree_v2", &[d]), refused);
    ok!("cuMemFree_v2", d);
    assert_eq!(cu!("cuMemFree_v2", d), Code::INVALID_VALUE.0);

    // CUDA_ARRAY3D_DESCRIPTOR: width, height, depth; format and channels; flags.
    let descriptor = [8u64, 8, 0, 0x20 | 1 << 32, 0];
    let (mut mipmapped, mut level, mut again) = (0u64, 0u64, 0u64);
    ok!("cuMipmappedArrayCreate", &mut mipmapped, &descriptor, 2);
    ok!("cuMipmappedArrayGetLevel", &mut level, mipmapped, 1);
    assert_eq!(call_from_host(stream, "cuArrayDestroy", &[level]), refused);
    ok!("cuMipmappedArrayGetLevel", &mut again, mipmapped, 1);
    assert_eq!(again, level);
}
