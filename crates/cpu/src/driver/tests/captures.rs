//! The ends of captures, and memory that captured graphs allocate.

use super::super::Code;
use super::graphs::{count, graph, instantiate};
use super::{Session, cu, ok};

const INVALID: u32 = Code::INVALID_VALUE.0;

#[test]
fn a_destroyed_stream_leaves_its_capture() {
    let s = Session::new();
    let a = s.stream(1);
    let (fork, join) = (s.event(), s.event());
    let capture = |joins: [bool; 2]| {
        let b = s.stream(1);
        let mut graph = 0u64;
        ok!("cuStreamBeginCapture_v2", a, 1u32);
        ok!("cuEventRecord", fork, a);
        ok!("cuStreamWaitEvent", b, fork, 0u32);
        super::busy(b, 1);
        ok!("cuEventRecord", join, b);
        if joins[0] {
            ok!("cuStreamWaitEvent", a, join, 0u32);
        }
        ok!("cuStreamDestroy_v2", b);
        if joins[1] {
            ok!("cuStreamWaitEvent", a, join, 0u32);
        }
        (cu!("cuStreamEndCapture", a, &mut graph), graph)
    };
    for joins in [[true, false], [false, true]] {
        let (status, graph) = capture(joins);
        assert_eq!((status, count(graph)), (0, 1), "{joins:?}");
    }
    let (status, _) = capture([false, false]);
    assert_eq!(status, Code::STREAM_CAPTURE_UNJOINED.0);
}

#[test]
fn a_capture_ends_without_returning_its_graph() {
    let s = Session::new();
    let (a, g) = (s.stream(1), graph());
    ok!("cuStreamBeginCaptureToGraph", a, g, 0u64, 0u64, 0u64, 1u32);
    super::busy(a, 1);
    ok!("cuStreamEndCapture", a, 0u64);
    assert_eq!(count(g), 1);
    // The status is that of an H100.
    ok!("cuStreamBeginCapture_v2", a, 1u32);
    super::busy(a, 1);
    ok!("cuStreamEndCapture", a, 0u64);
    assert_eq!(cu!("cuStreamEndCapture", a, 0u64), Code::ILLEGAL_STATE.0);
}

#[test]
fn graph_memory_can_be_used_after_a_queued_launch() {
    let s = Session::new();
    let a = s.stream(1);
    let (mut p, mut g) = (0u64, 0u64);
    ok!("cuStreamBeginCapture_v2", a, 1u32);
    ok!("cuMemAllocAsync", &mut p, 256u64, a);
    ok!("cuMemsetD8Async", p, 1u8, 256u64, a);
    ok!("cuStreamEndCapture", a, &mut g);
    let e = instantiate(g);
    let h = s.pinned(256);
    let pageable = [9u8; 64];
    let copies = || {
        [
            cu!("cuMemsetD8Async", p + 64, 2u8, 64u64, a),
            cu!("cuMemcpyDtoDAsync_v2", p + 128, p + 64, 64u64, a),
            cu!("cuMemcpyHtoDAsync_v2", p + 192, &pageable, 64u64, a),
            cu!("cuMemcpyDtoHAsync_v2", h, p, 256u64, a),
        ]
    };
    assert_eq!(copies(), [INVALID; 4], "before the launch");
    for _ in 0..2 {
        // The graph has not run when the copies are enqueued.
        super::busy(a, 40);
        ok!("cuGraphLaunch", e, a);
        assert_eq!(copies(), [0; 4]);
        assert_eq!(cu!("cuMemcpyDtoHAsync_v2", h, p, 257u64, a), INVALID);
        ok!("cuMemFreeAsync", p, a);
        assert_eq!(copies(), [INVALID; 4], "after the free");
        ok!("cuStreamSynchronize", a);
        // SAFETY: the host allocation has 256 bytes and no operation is pending.
        let got = unsafe { std::slice::from_raw_parts(h as *const u8, 256) };
        let expected = [[1u8; 64], [2; 64], [2; 64], [9; 64]];
        assert_eq!(got, expected.as_flattened());
    }
}
