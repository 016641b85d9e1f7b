//! Graphs and stream capture.

use std::ffi::{CStr, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

use super::super::Code;
use super::{Session, cu, ok};

const INVALID: u32 = Code::INVALID_VALUE.0;

const ADD: &CStr = c".version 7.0
.target sm_52
.address_size 64
.visible .entry add(.param .u64 p, .param .u32 n)
{
  .reg .b64 %rd<3>;
  .reg .b32 %r<4>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  cvta.to.global.u64 %rd2, %rd1;
  ld.global.u32 %r2, [%rd2];
  add.u32 %r3, %r2, %r1;
  st.global.u32 [%rd2], %r3;
  ret;
}
";

pub(super) fn graph() -> u64 {
    let mut g = 0u64;
    ok!("cuGraphCreate", &mut g, 0);
    g
}

fn empty(g: u64, before: &[u64]) -> u64 {
    let mut n = 0u64;
    let first = before.as_ptr() as u64;
    ok!("cuGraphAddEmptyNode", &mut n, g, first, before.len());
    n
}

pub(super) fn instantiate(g: u64) -> u64 {
    let mut e = 0u64;
    ok!("cuGraphInstantiateWithFlags", &mut e, g, 0u64);
    e
}

pub(super) fn count(g: u64) -> u64 {
    let mut n = 0u64;
    ok!("cuGraphGetNodes", g, 0u64, &mut n);
    n
}

fn function() -> u64 {
    let (mut module, mut f) = (0u64, 0u64);
    ok!("cuModuleLoadData", &mut module, ADD);
    ok!("cuModuleGetFunction", &mut f, module, c"add");
    f
}

fn kernel(g: u64, before: &[u64], f: u64, p: u64, n: u32) -> u64 {
    let mut node = 0u64;
    let arguments = [&p as *const u64 as u64, &n as *const u32 as u64];
    let words = [
        f,
        1 | 1 << 32,
        1 | 1 << 32,
        1 | 1 << 32,
        0,
        arguments.as_ptr() as u64,
        0,
        0,
        0,
    ];
    let first = before.as_ptr() as u64;
    ok!(
        "cuGraphAddKernelNode_v2",
        &mut node,
        g,
        first,
        before.len(),
        &words
    );
    node
}

fn read(p: u64) -> u32 {
    let mut value = 0u32;
    ok!("cuMemcpyDtoH_v2", &mut value, p, 4u64);
    value
}

#[test]
fn graphs_run_in_order_any_number_of_times() {
    let s = Session::new();
    let (f, stream, p) = (function(), s.stream(1), s.alloc(64));
    let g = graph();
    let mut set = 0u64;
    let words = [p, 0, 7 | 4 << 32, 4, 1];
    ok!("cuGraphAddMemsetNode", &mut set, g, 0u64, 0u64, &words, s.0);
    let mut last = set;
    for n in 1..=10 {
        last = kernel(g, &[last], f, p, n);
    }
    let e = instantiate(g);
    for _ in 0..3 {
        ok!("cuGraphLaunch", e, stream);
    }
    ok!("cuStreamSynchronize", stream);
    assert_eq!(read(p), 7 + 55);
    // Updates change the executable graph but not the graph.
    let (target, three) = (p + 4, 3u32);
    let arguments = [&target as *const u64 as u64, &three as *const u32 as u64];
    let words = [
        f,
        1 | 1 << 32,
        1 | 1 << 32,
        1 | 1 << 32,
        0,
        arguments.as_ptr() as u64,
        0,
        0,
        0,
    ];
    ok!("cuGraphExecKernelNodeSetParams_v2", e, last, &words);
    ok!("cuMemsetD32_v2", p, 0u32, 16u64);
    ok!("cuGraphLaunch", e, stream);
    ok!("cuStreamSynchronize", stream);
    assert_eq!((read(p), read(p + 4)), (7 + 45, 7 + 3));
    // Disabled, and enabled again.
    ok!("cuGraphNodeSetEnabled", e, set, 0u32);
    let mut on = 9u32;
    ok!("cuGraphNodeGetEnabled", e, set, &mut on);
    assert_eq!(on, 0);
    ok!("cuGraphLaunch", e, stream);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(read(p), 52 + 45);
    // Destroyed while it may still run.
    ok!("cuGraphNodeSetEnabled", e, set, 1u32);
    ok!("cuGraphLaunch", e, stream);
    ok!("cuGraphExecDestroy", e);
    ok!("cuGraphDestroy", g);
    assert_eq!(cu!("cuGraphLaunch", e, stream), INVALID);
    assert_eq!(cu!("cuGraphDestroy", g), INVALID);
    assert_eq!(cu!("cuGraphDestroyNode", last), INVALID);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(read(p), 52);
}

static NOTES: Mutex<Vec<u64>> = Mutex::new(Vec::new());
unsafe extern "C" fn note(n: *mut c_void) {
    std::thread::sleep(std::time::Duration::from_millis(1));
    NOTES.lock().push(n as u64);
}

#[test]
fn branches_and_child_graphs_run_in_order() {
    let s = Session::new();
    let stream = s.stream(0);
    let host = |g: u64, before: &[u64], n: u64| {
        let mut node = 0u64;
        let words = [note as *const () as u64, n];
        let first = before.as_ptr() as u64;
        ok!(
            "cuGraphAddHostNode",
            &mut node,
            g,
            first,
            before.len(),
            &words
        );
        node
    };
    let child = graph();
    let c = host(child, &[], 10);
    host(child, &[c], 11);
    let g = graph();
    let a = host(g, &[], 1);
    let (b1, b2) = (host(g, &[a], 2), host(g, &[a], 3));
    let mut inner = 0u64;
    let before = [b1, b2];
    ok!(
        "cuGraphAddChildGraphNode",
        &mut inner,
        g,
        &before,
        2u64,
        child
    );
    host(g, &[inner], 4);
    // Later changes of the child graph do not affect the parent.
    host(child, &[], 99);
    ok!("cuGraphDestroy", child);
    let mut embedded = 0u64;
    ok!("cuGraphChildGraphNodeGetGraph", inner, &mut embedded);
    assert_eq!(count(embedded), 2);
    assert_eq!(cu!("cuGraphDestroy", embedded), INVALID);
    let e = instantiate(g);
    ok!("cuGraphLaunch", e, stream);
    ok!("cuGraphLaunch", e, stream);
    ok!("cuStreamSynchronize", stream);
    let notes = NOTES.lock().clone();
    assert_eq!(notes.len(), 12);
    for run in notes.chunks(6) {
        assert_eq!(run[0], 1);
        assert!(run[1..3] == [2, 3] || run[1..3] == [3, 2], "{run:?}");
        assert_eq!(run[3..], [10, 11, 4]);
    }
}

#[test]
fn invalid_structures_are_refused() {
    let _s = Session::new();
    let (g, other) = (graph(), graph());
    let (a, b, x) = (empty(g, &[]), empty(g, &[]), empty(other, &[]));
    let add = |from: u64, to: u64| cu!("cuGraphAddDependencies_v2", g, &from, &to, 0u64, 1u64);
    assert_eq!(add(a, b), 0);
    assert_eq!(add(a, b), INVALID);
    assert_eq!(add(a, a), INVALID);
    assert_eq!(add(a, x), INVALID);
    assert_eq!(add(x, a), INVALID);
    assert_eq!(add(0, a), INVALID);
    // A cycle can be created but not instantiated; the node at fault is reported.
    assert_eq!(add(b, a), 0);
    let mut e = 0u64;
    let mut params = [0u64; 4];
    assert_eq!(
        cu!("cuGraphInstantiateWithParams", &mut e, g, &mut params),
        INVALID
    );
    assert!(params[2] == a || params[2] == b);
    assert_eq!(params[3], 2);
    assert_eq!(cu!("cuGraphInstantiateWithFlags", &mut e, g, 0u64), INVALID);
    ok!("cuGraphRemoveDependencies_v2", g, &b, &a, 0u64, 1u64);
    assert_eq!(
        cu!("cuGraphRemoveDependencies_v2", g, &b, &a, 0u64, 1u64),
        INVALID
    );
    let mut n = 0u64;
    let twice = [a, a];
    assert_eq!(cu!("cuGraphAddEmptyNode", &mut n, g, &twice, 2u64), INVALID);
    assert_eq!(cu!("cuGraphAddEmptyNode", &mut n, g, &x, 1u64), INVALID);
    assert_eq!(cu!("cuGraphAddEmptyNode", &mut n, g, 0u64, 1u64), INVALID);
    assert_eq!(cu!("cuGraphAddEmptyNode", &mut n, g, &a, u64::MAX), INVALID);
    // A graph embedded in itself is a copy of its earlier state.
    ok!("cuGraphAddChildGraphNode", &mut n, g, 0u64, 0u64, g);
    assert_eq!(count(g), 3);
    // Programmatic edges connect kernels.
    let data = [1u8, 0, 1, 0, 0, 0, 0, 0];
    assert_eq!(
        cu!("cuGraphAddDependencies_v2", g, &n, &a, &data, 1u64),
        INVALID
    );
    ok!("cuGraphDestroyNode", a);
    let mut left = 7u64;
    ok!("cuGraphNodeGetDependencies", b, 0u64, &mut left);
    assert_eq!(left, 0);
    // The list is limited to the given room; the rest is zeroed.
    let (mut list, mut room) = ([9u64; 4], 4u64);
    ok!("cuGraphGetNodes", g, &mut list, &mut room);
    assert_eq!((room, list[0], list[2], list[3]), (2, b, 0, 0));
    for handle in [0, 1, x, g, e, u64::MAX] {
        assert_eq!(cu!("cuGraphLaunch", handle, 0u64), INVALID);
        assert_eq!(cu!("cuGraphNodeGetType", handle, &mut n) != 0, handle != x);
    }
}

#[test]
fn many_nodes_and_deep_chains() {
    let s = Session::new();
    let g = graph();
    let mut last = empty(g, &[]);
    for _ in 0..10_000 {
        last = empty(g, &[last]);
    }
    let wide = graph();
    let root = empty(wide, &[]);
    for _ in 0..10_000 {
        empty(wide, &[root]);
    }
    let stream = s.stream(0);
    for g in [g, wide] {
        let e = instantiate(g);
        ok!("cuGraphLaunch", e, stream);
        let mut info = [0u64; 3];
        ok!("cuGraphExecUpdate_v2", e, g, &mut info);
        ok!("cuGraphLaunch", e, stream);
        ok!("cuGraphExecDestroy", e);
    }
    ok!("cuStreamSynchronize", stream);
    // The nesting depth of graphs is limited.
    let mut inner = graph();
    empty(inner, &[]);
    let mut depth = 0;
    loop {
        let (outer, mut n) = (graph(), 0u64);
        if cu!("cuGraphAddChildGraphNode", &mut n, outer, 0u64, 0u64, inner) != 0 {
            break;
        }
        depth += 1;
        ok!("cuGraphDestroy", inner);
        inner = outer;
    }
    assert_eq!(depth, 127);
    ok!("cuGraphLaunch", instantiate(inner), stream);
    ok!("cuStreamSynchronize", stream);
    ok!("cuGraphDestroy", inner);
    ok!("cuGraphDestroy", g);
}

#[test]
fn matching_updates_are_applied() {
    let s = Session::new();
    let (f, p, stream) = (function(), s.alloc(64), s.stream(0));
    let build = |n: u32, kernels: usize| {
        let g = graph();
        let mut last = empty(g, &[]);
        for _ in 0..kernels {
            last = kernel(g, &[last], f, p, n);
        }
        (g, last)
    };
    let (a, _) = build(1, 2);
    let e = instantiate(a);
    let mut info = [0u64; 3];
    let (b, _) = build(10, 2);
    ok!("cuGraphExecUpdate_v2", e, b, &mut info);
    ok!("cuMemsetD32_v2", p, 0u32, 1u64);
    ok!("cuGraphLaunch", e, stream);
    ok!("cuStreamSynchronize", stream);
    assert_eq!((info, read(p)), ([0; 3], 20));
    let (c, _) = build(10, 3);
    let failure = Code::GRAPH_EXEC_UPDATE_FAILURE.0;
    assert_eq!(cu!("cuGraphExecUpdate_v2", e, c, &mut info), failure);
    assert_eq!(info[0], 2);
    let d = graph();
    let first = empty(d, &[]);
    let second = empty(d, &[first]);
    kernel(d, &[second], f, p, 1);
    assert_eq!(cu!("cuGraphExecUpdate_v2", e, d, &mut info), failure);
    assert_eq!(info, [3, second, 0]);
    // A refused update changes nothing.
    ok!("cuGraphLaunch", e, stream);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(read(p), 40);
}

static DESTROYED: AtomicU64 = AtomicU64::new(0);
unsafe extern "C" fn destroyed(n: *mut c_void) {
    DESTROYED.fetch_add(n as u64, Ordering::SeqCst);
}

fn wait_for(value: u64) {
    for _ in 0..500 {
        if DESTROYED.load(Ordering::SeqCst) == value {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    panic!("{}", DESTROYED.load(Ordering::SeqCst));
}

#[test]
fn user_objects_live_until_the_last_release() {
    let s = Session::new();
    let mut object = 0u64;
    let function = destroyed as *const () as u64;
    assert_eq!(
        cu!(
            "cuUserObjectCreate",
            &mut object,
            5u64,
            function,
            1u32,
            0u32
        ),
        INVALID
    );
    assert_eq!(
        cu!("cuUserObjectCreate", &mut object, 5u64, 8u64, 1u32, 1u32),
        INVALID
    );
    ok!(
        "cuUserObjectCreate",
        &mut object,
        5u64,
        function,
        1u32,
        1u32
    );
    let g = graph();
    ok!("cuGraphRetainUserObject", g, object, 1u32, 1u32);
    let mut clone = 0u64;
    ok!("cuGraphClone", &mut clone, g);
    let e = instantiate(clone);
    ok!("cuGraphDestroy", g);
    ok!("cuGraphDestroy", clone);
    let stream = s.stream(0);
    // Nothing after this runs before the value is written.
    let gate = s.pinned(4);
    ok!("cuMemsetD32_v2", gate, 0u32, 1u64);
    ok!("cuStreamWaitValue32_v2", stream, gate, 1u32, 1u32);
    ok!("cuGraphLaunch", e, stream);
    ok!("cuUserObjectRetain", object, 1u32);
    assert_eq!(cu!("cuUserObjectRelease", object, 9u32), INVALID);
    ok!("cuUserObjectRelease", object, 1u32);
    ok!("cuGraphExecDestroy", e);
    assert_eq!(
        DESTROYED.load(Ordering::SeqCst),
        0,
        "destroyed while a launch needs it"
    );
    let open = s.stream(1);
    ok!("cuMemsetD32Async", gate, 1u32, 1u64, open);
    ok!("cuStreamSynchronize", stream);
    wait_for(5);
    assert_eq!(cu!("cuUserObjectRetain", object, 1u32), INVALID);
}

#[test]
fn graph_memory_is_live_between_allocation_and_free() {
    let s = Session::new();
    let (f, stream) = (function(), s.stream(0));
    let g = graph();
    // PINNED on device 0, 4096 bytes.
    let mut params = [0u64; 15];
    (params[0], params[1], params[13]) = (1, 1, 4096);
    let mut alloc = 0u64;
    ok!(
        "cuGraphAddMemAllocNode",
        &mut alloc,
        g,
        0u64,
        0u64,
        &mut params
    );
    let p = params[14];
    let mut set = 0u64;
    let words = [p, 0, 4 << 32, 8, 1];
    ok!(
        "cuGraphAddMemsetNode",
        &mut set,
        g,
        &alloc,
        1u64,
        &words,
        s.0
    );
    let last = kernel(g, &[set], f, p, 6);
    assert_eq!(
        cu!("cuGraphRemoveDependencies_v2", g, &set, &last, 0u64, 1u64),
        Code::NOT_SUPPORTED.0
    );
    assert_eq!(cu!("cuGraphDestroyNode", last), Code::NOT_SUPPORTED.0);
    let e = instantiate(g);
    let mut again = 0u64;
    assert_eq!(
        cu!("cuGraphInstantiateWithFlags", &mut again, g, 0u64),
        Code::NOT_SUPPORTED.0
    );
    assert_eq!(cu!("cuMemcpyDtoH_v2", &mut again, p, 4u64), INVALID);
    ok!("cuGraphLaunch", e, stream);
    assert_eq!(cu!("cuGraphLaunch", e, stream), INVALID);
    ok!("cuStreamSynchronize", stream);
    assert_eq!(read(p), 6);
    let mut used = 0u64;
    ok!("cuDeviceGetGraphMemAttribute", 0, 0u32, &mut used);
    assert!(used >= 4096);
    ok!("cuMemFreeAsync", p, stream);
    assert_eq!(cu!("cuMemFreeAsync", p, stream), INVALID);
    ok!("cuGraphLaunch", e, stream);
    ok!("cuStreamSynchronize", stream);
    // Live memory outlives its graph.
    ok!("cuGraphExecDestroy", e);
    ok!("cuGraphDestroy", g);
    assert_eq!(read(p), 6);
    ok!("cuMemFree_v2", p);
    assert_eq!(cu!("cuMemFree_v2", p), INVALID);
}

#[test]
fn capture_creates_a_graph() {
    let s = Session::new();
    let (f, p) = (function(), s.alloc(64));
    let (a, b, e1, e2) = (s.stream(1), s.stream(1), s.event(), s.event());
    let launch = |stream: u64, at: u64, n: u32| {
        let arguments = [&at as *const u64 as u64, &n as *const u32 as u64];
        ok!(
            "cuLaunchKernel",
            f,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            stream,
            &arguments,
            0u64
        );
    };
    ok!("cuMemsetD32_v2", p, 0u32, 16u64);
    ok!("cuStreamBeginCapture_v2", a, 1u32);
    ok!("cuMemsetD32Async", p, 1u32, 2u64, a);
    ok!("cuEventRecord", e1, a);
    ok!("cuStreamWaitEvent", b, e1, 0u32);
    launch(a, p, 10);
    launch(b, p + 4, 20);
    ok!("cuEventRecord", e2, b);
    ok!("cuStreamWaitEvent", a, e2, 0u32);
    let (mut status, mut id, mut g, mut list, mut n) = (0u32, 0u64, 0u64, 0u64, 0u64);
    ok!(
        "cuStreamGetCaptureInfo_v2",
        a,
        &mut status,
        &mut id,
        &mut g,
        &mut list,
        &mut n
    );
    assert_eq!((status, n, count(g)), (1, 2, 3));
    launch(a, p, 100);
    assert_eq!(cu!("cuEventQuery", e1), Code::CAPTURED_EVENT.0);
    let mut ended = 1u64;
    assert_eq!(
        cu!("cuStreamEndCapture", a, &mut ended),
        Code::STREAM_CAPTURE_INVALIDATED.0
    );
    assert_eq!(ended, 0);
    assert_eq!(cu!("cuGraphDestroy", g), INVALID);
    assert_eq!(read(p), 0);
    // Again, without an error.
    ok!("cuStreamBeginCapture_v2", a, 1u32);
    ok!("cuMemsetD32Async", p, 1u32, 2u64, a);
    ok!("cuEventRecord", e1, a);
    ok!("cuStreamWaitEvent", b, e1, 0u32);
    launch(a, p, 10);
    launch(b, p + 4, 20);
    ok!("cuEventRecord", e2, b);
    ok!("cuStreamWaitEvent", a, e2, 0u32);
    launch(a, p, 100);
    ok!("cuStreamEndCapture", a, &mut g);
    assert_eq!(count(g), 4);
    let e = instantiate(g);
    ok!("cuGraphLaunch", e, a);
    ok!("cuStreamSynchronize", a);
    assert_eq!((read(p), read(p + 4)), (111, 21));
    // Graph launches cannot be captured, as on hardware.
    ok!("cuStreamBeginCapture_v2", b, 2u32);
    assert_eq!(
        cu!("cuGraphLaunch", e, b),
        Code::STREAM_CAPTURE_UNSUPPORTED.0
    );
    assert_eq!(
        cu!("cuStreamEndCapture", b, &mut g),
        Code::STREAM_CAPTURE_INVALIDATED.0
    );
}

#[test]
fn captures_are_isolated() {
    let s = Session::new();
    let (a, b, blocking, e) = (s.stream(1), s.stream(1), s.stream(0), s.event());
    let (mut g, mut status) = (0u64, 0u32);
    let code = |c: Code| c.0;
    assert_eq!(
        cu!("cuStreamBeginCapture_v2", 0u64, 0u32),
        code(Code::STREAM_CAPTURE_UNSUPPORTED)
    );
    assert_eq!(cu!("cuStreamBeginCapture_v2", a, 3u32), INVALID);
    assert_eq!(
        cu!("cuStreamEndCapture", a, &mut g),
        code(Code::ILLEGAL_STATE)
    );
    // Unjoined work.
    ok!("cuStreamBeginCapture_v2", a, 2u32);
    assert_eq!(
        cu!("cuStreamBeginCapture_v2", a, 2u32),
        code(Code::ILLEGAL_STATE)
    );
    super::busy(a, 1);
    ok!("cuEventRecord", e, a);
    ok!("cuStreamWaitEvent", b, e, 0u32);
    super::busy(b, 1);
    assert_eq!(
        cu!("cuStreamEndCapture", a, &mut g),
        code(Code::STREAM_CAPTURE_UNJOINED)
    );
    ok!("cuStreamQuery", b);
    // Ended in another stream, and by another thread.
    ok!("cuStreamBeginCapture_v2", a, 1u32);
    ok!("cuEventRecord", e, a);
    ok!("cuStreamWaitEvent", b, e, 0u32);
    assert_eq!(
        cu!("cuStreamEndCapture", b, &mut g),
        code(Code::STREAM_CAPTURE_UNMATCHED)
    );
    assert_eq!(
        cu!("cuStreamEndCapture", a, &mut g),
        code(Code::STREAM_CAPTURE_INVALIDATED)
    );
    ok!("cuStreamBeginCapture_v2", a, 1u32);
    let context = s.0;
    std::thread::spawn(move || {
        ok!("cuCtxSetCurrent", context);
        let mut g = 0u64;
        assert_eq!(
            cu!("cuStreamEndCapture", a, &mut g),
            Code::STREAM_CAPTURE_WRONG_THREAD.0
        );
    })
    .join()
    .unwrap();
    assert_ne!(cu!("cuStreamEndCapture", a, &mut g), 0);
    // Captures cannot merge, and cannot depend on outside work.
    ok!("cuStreamBeginCapture_v2", a, 2u32);
    ok!("cuStreamBeginCapture_v2", b, 2u32);
    ok!("cuEventRecord", e, a);
    assert_eq!(
        cu!("cuStreamWaitEvent", b, e, 0u32),
        code(Code::STREAM_CAPTURE_MERGE)
    );
    assert_ne!(cu!("cuStreamEndCapture", a, &mut g), 0);
    assert_ne!(cu!("cuStreamEndCapture", b, &mut g), 0);
    ok!("cuEventRecord", e, a);
    ok!("cuStreamBeginCapture_v2", b, 2u32);
    assert_eq!(
        cu!("cuStreamWaitEvent", b, e, 0u32),
        code(Code::STREAM_CAPTURE_ISOLATION)
    );
    assert_ne!(cu!("cuStreamEndCapture", b, &mut g), 0);
    // The legacy stream synchronises with the blocking stream.
    ok!("cuStreamBeginCapture_v2", blocking, 2u32);
    assert_eq!(
        cu!("cuStreamIsCapturing", 0u64, &mut status),
        code(Code::STREAM_CAPTURE_IMPLICIT)
    );
    ok!("cuStreamIsCapturing", blocking, &mut status);
    assert_eq!(status, 1);
    assert_eq!(
        cu!("cuStreamSynchronize", 0u64),
        code(Code::STREAM_CAPTURE_IMPLICIT)
    );
    ok!("cuStreamIsCapturing", blocking, &mut status);
    assert_eq!(status, 2);
    assert_eq!(
        cu!("cuStreamEndCapture", blocking, &mut g),
        code(Code::STREAM_CAPTURE_INVALIDATED)
    );
    ok!("cuStreamSynchronize", 0u64);
    // Destroying the stream ends its capture.
    ok!("cuStreamBeginCapture_v2", a, 2u32);
    ok!("cuStreamDestroy_v2", a);
    ok!("cuCtxSynchronize");
}

#[test]
fn calls_refused_during_capture_change_nothing() {
    let s = Session::new();
    let (a, b) = (s.stream(1), s.stream(1));
    // PINNED on device 0, as words of 32 bits.
    let mut props = [0u32; 22];
    (props[0], props[2]) = (1, 1);
    let (mut pool, mut p, mut library, mut module) = (0u64, 0u64, 0u64, 0u64);
    ok!("cuMemPoolCreate", &mut pool, &props);
    ok!("cuMemAllocFromPoolAsync", &mut p, 64u64, pool, b);
    ok!(
        "cuLibraryLoadData",
        &mut library,
        ADD,
        0u64,
        0u64,
        0u32,
        0u64,
        0u64,
        0u32
    );
    ok!("cuModuleLoadData", &mut module, ADD);
    let g = graph();
    let e = instantiate(g);
    let (threshold, mut made, mut ended) = (4096u64, 7u64, 0u64);
    let mut calls: [Box<dyn FnMut() -> u32>; 6] = [
        Box::new(|| cu!("cuMemFreeAsync", p, b)),
        Box::new(|| cu!("cuMemPoolCreate", &mut made, &props)),
        Box::new(|| cu!("cuMemPoolSetAttribute", pool, 4u32, &threshold)),
        Box::new(|| cu!("cuLibraryUnload", library)),
        Box::new(|| cu!("cuModuleUnload", module)),
        Box::new(|| cu!("cuGraphExecDestroy", e)),
    ];
    for call in &mut calls {
        ok!("cuStreamBeginCapture_v2", a, 1u32);
        assert_eq!(call(), Code::STREAM_CAPTURE_UNSUPPORTED.0);
        assert_eq!(
            cu!("cuStreamEndCapture", a, &mut ended),
            Code::STREAM_CAPTURE_INVALIDATED.0
        );
    }
    drop(calls);
    assert_eq!(made, 7, "a pool handle was written");
    let mut value = 1u64;
    ok!("cuMemPoolGetAttribute", pool, 4u32, &mut value);
    assert_eq!(value, 0, "the threshold changed");
    ok!("cuMemsetD8_v2", p, 1u8, 64u64);
    ok!("cuGraphLaunch", e, b);
    // Everything can still be destroyed, also during a capture in relaxed mode.
    let mut mode = 2u32;
    ok!("cuThreadExchangeStreamCaptureMode", &mut mode);
    ok!("cuStreamBeginCapture_v2", a, 1u32);
    ok!("cuMemFreeAsync", p, b);
    ok!("cuLibraryUnload", library);
    ok!("cuModuleUnload", module);
    ok!("cuGraphExecDestroy", e);
    ok!("cuMemPoolSetAttribute", pool, 4u32, &threshold);
    ok!("cuMemPoolCreate", &mut made, &props);
    ok!("cuStreamEndCapture", a, &mut ended);
    ok!("cuThreadExchangeStreamCaptureMode", &mut mode);
    for pool in [pool, made] {
        ok!("cuMemPoolDestroy", pool);
    }
}

#[test]
fn memory_operations_write_and_wait() {
    let s = Session::new();
    let (a, b, p) = (s.stream(1), s.stream(1), s.alloc(64));
    ok!("cuMemsetD32_v2", p, 0u32, 16u64);
    let mut g = 0u64;
    ok!("cuStreamBeginCapture_v2", a, 2u32);
    ok!("cuStreamWaitValue32_v2", a, p, 5u32, 1u32);
    ok!("cuStreamWriteValue64_v2", a, p + 8, 9u64, 0u32);
    ok!("cuStreamEndCapture", a, &mut g);
    let mut nodes = [0u64; 2];
    let mut n = 2u64;
    ok!("cuGraphGetNodes", g, &mut nodes, &mut n);
    let mut words = [0u64; 4];
    ok!("cuGraphBatchMemOpNodeGetParams", nodes[1], &mut words);
    assert_eq!((words[0], words[1] as u32), (s.0, 1));
    // The same as a node of another graph.
    let (other, mut node) = (graph(), 0u64);
    ok!(
        "cuGraphAddBatchMemOpNode",
        &mut node,
        other,
        0u64,
        0u64,
        &words
    );
    let mut kind = 0u32;
    ok!("cuGraphNodeGetType", node, &mut kind);
    assert_eq!(kind, 12);
    words[1] = 0;
    assert_eq!(cu!("cuGraphBatchMemOpNodeSetParams", node, &words), INVALID);
    ok!("cuGraphLaunch", instantiate(g), a);
    std::thread::sleep(std::time::Duration::from_millis(10));
    assert_eq!(cu!("cuStreamQuery", a), super::NOT_READY);
    ok!("cuStreamWriteValue32_v2", b, p, 5u32, 0u32);
    ok!("cuStreamSynchronize", a);
    assert_eq!(read(p + 8), 9);
}

#[test]
fn reported_parameters_have_zeros_between_their_fields() {
    let s = Session::new();
    let (f, p) = (function(), s.alloc(64));
    let g = graph();
    let node = kernel(g, &[], f, p, 1);
    let (mut words, mut generic) = ([u64::MAX; 9], [u64::MAX; 32]);
    ok!("cuGraphKernelNodeGetParams_v2", node, &mut words);
    assert_eq!(words[..5], [f, 1 | 1 << 32, 1 | 1 << 32, 1 | 1 << 32, 0]);
    ok!("cuGraphNodeGetParams", node, &mut generic);
    assert_eq!((&generic[..2], &generic[2..11]), (&[0; 2][..], &words[..]));
    assert_eq!(generic[11..], [0; 21]);
    let (mut copy, mut told, mut node) = ([0u64; 25], [u64::MAX; 25], 0u64);
    // Device memory on both sides.
    (copy[4], copy[6], copy[15], copy[17]) = (2, p, 2, p + 32);
    copy[22..].copy_from_slice(&[8, 1, 1]);
    let none = (0u64, 0u64);
    ok!(
        "cuGraphAddMemcpyNode",
        &mut node,
        g,
        none.0,
        none.1,
        &copy,
        s.0
    );
    ok!("cuGraphMemcpyNodeGetParams", node, &mut told);
    assert_eq!(told, copy);
    generic.fill(u64::MAX);
    ok!("cuGraphNodeGetParams", node, &mut generic);
    assert_eq!(
        (&generic[..4], &generic[4..29]),
        (&[1, 0, 0, s.0][..], &copy[..])
    );
}
