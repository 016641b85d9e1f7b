//! Semaphores of other APIs, in streams and in graphs.

use std::os::fd::{AsRawFd, IntoRawFd};
use std::time::{Duration, Instant};

use cupyrite_sys::driver::{
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS, CUgraphNodeParams,
    CUgraphNodeType,
};

use super::super::Code;
use super::external::{
    OPAQUE, TYPE_9, eventfd, import, is_open, map, memfd, read_word, semaphore, try_import,
    try_semaphore, write_word, zeroed,
};
use super::kernels::{PTX, function, launch, module};
use super::{NOT_READY, Session, busy, cu, ok};

fn params(value: u64) -> CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
    let mut params: CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS = zeroed();
    params.params.fence.value = value;
    params
}

fn wait(semaphore: u64, value: u64, stream: u64) {
    ok!(
        "cuWaitExternalSemaphoresAsync",
        &[semaphore],
        &[params(value)],
        1,
        stream
    );
}

fn signal(semaphore: u64, value: u64, stream: u64) {
    ok!(
        "cuSignalExternalSemaphoresAsync",
        &[semaphore],
        &[params(value)],
        1,
        stream
    );
}

/// A stream that does not synchronize with the default stream.
fn stream(s: &Session) -> u64 {
    s.stream(1)
}

fn is_pending(stream: u64) -> bool {
    std::thread::sleep(Duration::from_millis(20));
    cu!("cuStreamQuery", stream) == NOT_READY
}

#[test]
fn a_binary_semaphore_orders_streams_and_the_host() {
    let s = Session::new();
    let event = eventfd();
    let descriptor = event.try_clone().unwrap().into_raw_fd();
    let (status, binary) = try_semaphore(OPAQUE, descriptor, 0);
    assert_eq!(status, 0);
    assert!(!is_open(descriptor));
    let (a, b, d) = (stream(&s), stream(&s), s.alloc(8));
    wait(binary, 0, a);
    ok!("cuMemsetD32Async", d, 1, 2, a);
    assert!(is_pending(a) && !is_pending(b));
    // In stream order: after the work before it.
    busy(b, 60);
    signal(binary, 0, b);
    assert!(is_pending(a));
    ok!("cuStreamSynchronize", a);
    let mut value = 0u64;
    ok!("cuMemcpyDtoH_v2", &mut value, d, 8);
    assert_eq!(value, 0x1_0000_0001);
    // The wait has reset it.
    wait(binary, 0, a);
    assert!(is_pending(a));
    // The host signals; then it waits.
    let one = 1u64;
    assert_eq!(
        // SAFETY: writes the eight bytes of an integer.
        unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) },
        8
    );
    ok!("cuStreamSynchronize", a);
    signal(binary, 0, a);
    let mut seen = 0u64;
    assert_eq!(
        // SAFETY: reads eight bytes into an integer.
        unsafe { libc::read(event.as_raw_fd(), (&raw mut seen).cast(), 8) },
        8
    );
    assert_eq!(seen, 1);
    ok!("cuDestroyExternalSemaphore", binary);
    assert_eq!(
        cu!("cuDestroyExternalSemaphore", binary),
        Code::INVALID_HANDLE.0
    );
}

#[test]
fn two_waits_take_two_signals() {
    let s = Session::new();
    let binary = semaphore(OPAQUE, &eventfd());
    let (a, b) = (stream(&s), stream(&s));
    wait(binary, 0, a);
    assert!(is_pending(a));
    wait(binary, 0, b);
    signal(binary, 0, 0);
    ok!("cuStreamSynchronize", a);
    assert!(is_pending(b));
    signal(binary, 0, 0);
    ok!("cuStreamSynchronize", b);
}

#[test]
fn a_timeline_semaphore_counts() {
    let s = Session::new();
    let file = memfd(8);
    let timeline = semaphore(TYPE_9, &file);
    let (a, b) = (stream(&s), stream(&s));
    wait(timeline, 3, a);
    signal(timeline, 2, b);
    ok!("cuStreamSynchronize", b);
    assert_eq!(read_word(&file, 0), 2);
    assert!(is_pending(a));
    write_word(&file, 0, 1 << 40);
    ok!("cuStreamSynchronize", a);
    // The counter never decreases.
    signal(timeline, 5, a);
    ok!("cuStreamSynchronize", a);
    assert_eq!(read_word(&file, 0), 1 << 40);
    // Several semaphores in one call.
    let binary = semaphore(OPAQUE, &eventfd());
    let both = [timeline, binary];
    let values = [params((1 << 40) + 1), params(0)];
    ok!("cuWaitExternalSemaphoresAsync", &both, &values, 2, a);
    signal(binary, 0, b);
    assert!(is_pending(a));
    ok!("cuSignalExternalSemaphoresAsync", &both, &values, 1, b);
    ok!("cuStreamSynchronize", a);
}

#[test]
fn pending_waits_do_not_block_other_streams() {
    let s = Session::new();
    let timeline = semaphore(TYPE_9, &memfd(4096));
    // More than the device has worker threads.
    let streams: Vec<u64> = (0..300).map(|_| stream(&s)).collect();
    for &one in &streams {
        wait(timeline, 1, one);
    }
    let other = stream(&s);
    busy(other, 1);
    ok!("cuStreamSynchronize", other);
    for &one in &streams[..10] {
        assert_eq!(cu!("cuStreamQuery", one), NOT_READY);
        ok!("cuStreamDestroy_v2", one);
    }
    // Destroyed semaphores stay usable for pending work.
    signal(timeline, 1, other);
    ok!("cuDestroyExternalSemaphore", timeline);
    ok!("cuCtxSynchronize");
}

#[test]
fn a_pending_wait_ends_with_its_context() {
    let start = Instant::now();
    {
        let s = Session::new();
        let (file, a) = (memfd(4096), stream(&s));
        let memory = import(&file, 4096);
        let address = map(memory, 0, 4096);
        wait(semaphore(OPAQUE, &eventfd()), 0, a);
        ok!("cuMemsetD8Async", address, 1, 4096, a);
        // Behind other work, and in the default stream.
        busy(a, 1);
        wait(semaphore(TYPE_9, &memfd(8)), 9, 0);
        drop(s);
        assert_eq!(read_word(&file, 0), 0, "work behind the wait is skipped");
    }
    assert!(start.elapsed() < Duration::from_secs(5));
    // Work that signals is waited for.
    let file = memfd(4096);
    {
        let s = Session::new();
        let (a, b) = (stream(&s), stream(&s));
        let address = map(import(&file, 4096), 0, 4096);
        let binary = semaphore(OPAQUE, &eventfd());
        wait(binary, 0, a);
        ok!("cuMemsetD8Async", address, 1, 4096, a);
        signal(binary, 0, b);
        drop(s);
    }
    assert_eq!(read_word(&file, 0), 0x0101_0101_0101_0101);
    // And with a failure.
    let s = Session::new();
    let a = stream(&s);
    wait(semaphore(OPAQUE, &eventfd()), 0, a);
    let wild = 64u64;
    let f = function(module(PTX), "store");
    assert_eq!(
        launch(f, 2, 32, stream(&s), &[std::ptr::from_ref(&wild) as u64]),
        0
    );
    assert_eq!(cu!("cuStreamSynchronize", a), Code::ILLEGAL_ADDRESS.0);
}

#[test]
fn invalid_semaphores_are_refused() {
    let s = Session::new();
    let event = eventfd();
    let fd = event.as_raw_fd();
    for (kind, flags, status) in [
        (0, 0, Code::INVALID_VALUE),
        (2, 0, Code::NOT_SUPPORTED),
        (4, 0, Code::NOT_SUPPORTED),
        (6, 0, Code::NOT_SUPPORTED),
        (8, 0, Code::NOT_SUPPORTED),
        (10, 0, Code::NOT_SUPPORTED),
        (11, 0, Code::INVALID_VALUE),
        (1, 1, Code::INVALID_VALUE),
        (9, 0, Code::UNKNOWN),
    ] {
        assert_eq!(
            try_semaphore(kind, fd, flags),
            (status.0, 0),
            "{kind} {flags}"
        );
    }
    assert!(is_open(fd));
    let (short, object) = (memfd(7), memfd(8));
    assert_eq!(
        try_semaphore(TYPE_9, short.as_raw_fd(), 0).0,
        Code::UNKNOWN.0
    );
    assert_eq!(
        try_semaphore(OPAQUE, object.as_raw_fd(), 0).0,
        Code::UNKNOWN.0
    );
    assert_eq!(try_semaphore(OPAQUE, -1, 0).0, Code::UNKNOWN.0);
    assert_eq!(try_semaphore(TYPE_9, -1, 0).0, Code::INVALID_VALUE.0);
    let binary = semaphore(OPAQUE, &event);
    let valid = params(0);
    let (mut flagged, mut reserved, mut words) = (valid, valid, valid);
    flagged.flags = 1;
    reserved.reserved[3] = 4;
    words.params.reserved[11] = 5;
    for name in [
        "cuSignalExternalSemaphoresAsync",
        "cuWaitExternalSemaphoresAsync",
    ] {
        let list = |handles: u64, params: u64, count: u64, stream: u64| {
            super::call(name, &[handles, params, count, stream])
        };
        let at = |handle: &u64| std::ptr::from_ref(handle) as u64;
        let plain = &raw const valid as u64;
        assert_eq!(list(0, 0, 0, 0), Code::INVALID_VALUE.0);
        assert_eq!(list(0, plain, 1, 0), Code::INVALID_VALUE.0);
        assert_eq!(list(at(&binary), 0, 1, 0), Code::INVALID_VALUE.0);
        for invalid in [&flagged, &reserved, &words] {
            let invalid = std::ptr::from_ref(invalid) as u64;
            assert_eq!(list(at(&binary), invalid, 1, 0), Code::INVALID_VALUE.0);
        }
        assert_eq!(
            list(at(&binary), plain, 1, 0xdead_beef),
            Code::INVALID_HANDLE.0
        );
        assert_ne!(list(at(&binary), plain, u64::from(u32::MAX), 0), 0);
        for handle in [0, 1, s.0, 0xdead_beef] {
            assert_eq!(list(at(&handle), plain, 1, 0), Code::INVALID_HANDLE.0);
        }
    }
    assert_eq!(
        cu!("cuDestroyExternalSemaphore", 0u64),
        Code::INVALID_VALUE.0
    );
    ok!("cuCtxSynchronize");
}

fn node_params(
    kind: CUgraphNodeType,
    handles: &[u64],
    values: &[CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS],
) -> CUgraphNodeParams {
    let mut given: CUgraphNodeParams = zeroed();
    given.r#type = kind;
    given.anon0.extSemSignal.extSemArray = handles.as_ptr() as *mut _;
    given.anon0.extSemSignal.paramsArray = values.as_ptr();
    given.anon0.extSemSignal.numExtSems = handles.len() as u32;
    given
}

fn old_params(
    handles: &[u64],
    values: &[CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS],
) -> CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
    CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
        extSemArray: handles.as_ptr() as *mut _,
        paramsArray: values.as_ptr(),
        numExtSems: handles.len() as u32,
    }
}

#[test]
fn graphs_signal_and_wait() {
    let s = Session::new();
    let file = memfd(8);
    let (timeline, binary) = (semaphore(TYPE_9, &file), semaphore(OPAQUE, &eventfd()));
    let (mut graph, mut first, mut second, mut exec) = (0u64, 0u64, 0u64, 0u64);
    ok!("cuGraphCreate", &mut graph, 0);
    let (waits, signals) = ([binary], [timeline]);
    let zero = [params(0)];
    let wait_for = old_params(&waits, &zero);
    ok!(
        "cuGraphAddExternalSemaphoresWaitNode",
        &mut first,
        graph,
        0u64,
        0u64,
        &wait_for
    );
    let values = [params(4)];
    let signal_4 = node_params(
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
        &signals,
        &values,
    );
    ok!(
        "cuGraphAddNode_v2",
        &mut second,
        graph,
        &first,
        0u64,
        1u64,
        &signal_4
    );
    let mut kind = 0u32;
    ok!("cuGraphNodeGetType", first, &mut kind);
    assert_eq!(kind, CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT.0);
    let mut given: CUDA_EXT_SEM_SIGNAL_NODE_PARAMS = zeroed();
    ok!(
        "cuGraphExternalSemaphoresSignalNodeGetParams",
        second,
        &mut given
    );
    assert_eq!(given.numExtSems, 1);
    // SAFETY: the node's own arrays of one element each.
    unsafe {
        assert_eq!(given.extSemArray.read() as u64, timeline);
        assert_eq!(given.paramsArray.read().params.fence.value, 4);
    }
    let mut generic: CUgraphNodeParams = zeroed();
    ok!("cuGraphNodeGetParams", second, &mut generic);
    ok!("cuGraphNodeSetParams", second, &generic);
    assert_ne!(
        cu!(
            "cuGraphExternalSemaphoresWaitNodeGetParams",
            second,
            &mut given
        ),
        0
    );
    assert_ne!(
        cu!(
            "cuGraphExternalSemaphoresWaitNodeSetParams",
            second,
            &wait_for
        ),
        0
    );
    ok!("cuGraphInstantiateWithFlags", &mut exec, graph, 0u64);
    let a = stream(&s);
    ok!("cuGraphLaunch", exec, a);
    assert!(is_pending(a));
    assert_eq!(read_word(&file, 0), 0);
    signal(binary, 0, stream(&s));
    ok!("cuStreamSynchronize", a);
    assert_eq!(read_word(&file, 0), 4);
    // Another value in the executable graph only.
    let values = [params(6)];
    ok!(
        "cuGraphExecExternalSemaphoresSignalNodeSetParams",
        exec,
        second,
        &old_params(&signals, &values)
    );
    let (both, values_of_both) = ([timeline, timeline], [params(7), params(8)]);
    let two = old_params(&both, &values_of_both);
    let status = cu!(
        "cuGraphExecExternalSemaphoresSignalNodeSetParams",
        exec,
        second,
        &two
    );
    assert_eq!(
        status,
        Code::INVALID_VALUE.0,
        "the number of semaphores is fixed"
    );
    assert_ne!(
        cu!(
            "cuGraphExecExternalSemaphoresWaitNodeSetParams",
            exec,
            second,
            &wait_for
        ),
        0
    );
    signal(binary, 0, a);
    ok!("cuGraphLaunch", exec, a);
    ok!("cuStreamSynchronize", a);
    assert_eq!(read_word(&file, 0), 6);
    // Of the whole graph.
    ok!(
        "cuGraphExternalSemaphoresSignalNodeSetParams",
        second,
        &old_params(&signals, &[params(9)])
    );
    let mut result = [0u64; 3];
    ok!("cuGraphExecUpdate_v2", exec, graph, &mut result);
    signal(binary, 0, a);
    ok!("cuGraphLaunch", exec, a);
    ok!("cuStreamSynchronize", a);
    assert_eq!(read_word(&file, 0), 9);
    ok!("cuGraphExternalSemaphoresSignalNodeSetParams", second, &two);
    assert_eq!(
        cu!("cuGraphExecUpdate_v2", exec, graph, &mut result),
        Code::GRAPH_EXEC_UPDATE_FAILURE.0
    );
    // Empty lists are valid nodes.
    let mut third = 0u64;
    ok!(
        "cuGraphAddExternalSemaphoresSignalNode",
        &mut third,
        graph,
        0u64,
        0u64,
        &old_params(&[], &[])
    );
    let unknown = [0xdead_beef];
    let invalid = old_params(&unknown, &zero);
    let status = cu!(
        "cuGraphAddExternalSemaphoresSignalNode",
        &mut third,
        graph,
        0u64,
        0u64,
        &invalid
    );
    assert_eq!(status, Code::INVALID_HANDLE.0);
    let path = std::env::temp_dir().join(format!("cupyrite-external-{}.dot", std::process::id()));
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    ok!("cuGraphDebugDotPrint", graph, name.as_c_str(), 0x180);
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(path).unwrap();
    assert!(
        text.contains("EXT_SEMAS_WAIT")
            && text.contains(&format!("semaphore {timeline:#x}, value 8")),
        "{text}"
    );
    // A launch that waits ends with its context.
    ok!("cuGraphLaunch", exec, a);
    drop(s);
}

#[test]
fn captured_calls_become_nodes() {
    let s = Session::new();
    let file = memfd(8);
    let timeline = semaphore(TYPE_9, &file);
    let a = stream(&s);
    let (mut graph, mut exec, mut count) = (0u64, 0u64, 0u64);
    ok!("cuStreamBeginCapture_v2", a, 2);
    wait(timeline, 1, a);
    signal(timeline, 2, a);
    ok!("cuStreamEndCapture", a, &mut graph);
    ok!("cuGraphGetNodes", graph, 0u64, &mut count);
    assert_eq!(count, 2);
    ok!("cuGraphInstantiateWithFlags", &mut exec, graph, 0u64);
    assert_eq!(read_word(&file, 0), 0);
    ok!("cuGraphLaunch", exec, a);
    assert!(is_pending(a));
    write_word(&file, 0, 1);
    ok!("cuStreamSynchronize", a);
    assert_eq!(read_word(&file, 0), 2);
    // Imports are prohibited during a capture.
    let other = memfd(4096);
    ok!("cuStreamBeginCapture_v2", a, 1);
    assert_eq!(
        try_import(OPAQUE, other.as_raw_fd(), 4096, 0).0,
        Code::STREAM_CAPTURE_UNSUPPORTED.0
    );
    assert_eq!(
        cu!("cuStreamEndCapture", a, &mut graph),
        Code::STREAM_CAPTURE_INVALIDATED.0
    );
}
