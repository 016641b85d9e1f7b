//! Faults of kernels, and errors of loading and launching.

use std::sync::Arc;

use cupyrite_engine::memory::AddressSpace;
use cupyrite_engine::{FaultKind, Image, LoadErrorKind};

use crate::harness::{Buffer, Launch, module};

const INDEX: &str = "
    .reg .pred %p<8>; .reg .b32 %r<32>; .reg .b64 %rd<16>;
    ld.param.u64 %rd1, [p0];
    mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r4, 4;
    add.s64 %rd3, %rd1, %rd2;
";

#[test]
fn a_store_past_the_end_is_reported_with_its_thread_and_source_line() {
    let body = format!(
        "{INDEX}
    .loc 1 7 3
    st.global.u32 [%rd3+8], %r4;
    ret;"
    );
    let ptx = format!("{}\n.file 1 \"saxpy.cu\"\n", module("", 1, &body));
    let out = Buffer::zeros(64);
    let fault = Launch::new(2, 32).run(&ptx, &[out.addr]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::IllegalAddress);
    for part in [
        "kernel `k`",
        "block (1, 0, 0), thread (30, 0, 0)",
        "`st.global.u32`: store of 4 bytes",
        "0 bytes past the end of a 256-byte allocation",
        "saxpy.cu:7",
    ] {
        assert!(fault.report.contains(part), "{part}: {}", fault.report);
    }
    assert_eq!(out.get()[63], 61);
}

/// The report of a kernel with three small variables, which lie one after the other in 512-byte slots.
fn report_of(body: &str) -> String {
    let variables = ".global .align 4 .u32 four[4]; .const .align 4 .u32 table[3] = {1, 2, 3};
        .global .align 1 .b8 text[7];";
    let body = format!(
        ".reg .pred %p<4>; .reg .b32 %r<32>; .reg .b64 %rd<16>;\nmov.u32 %r3, %tid.x;\n{body}\nret;"
    );
    // No other test allocates between them.
    let space = Arc::new(AddressSpace::new(16 << 20));
    let launched = Launch::new(1, 1).run_in(&space, &module(variables, 0, &body), &[]);
    launched.unwrap_err().report
}

#[test]
fn the_variable_that_the_address_comes_from_is_named() {
    let indexed = |index: i64| {
        report_of(&format!(
            "cvt.s64.s32 %rd1, %r3; mov.u64 %rd2, four; add.s64 %rd3, %rd1, %rd2; st.global.u32 [%rd3+{}], %r3;",
            4 * index
        ))
    };
    for (index, expected) in [
        (
            4,
            "0 bytes past the end of a 16-byte global variable `four` at 0x",
        ),
        (-1, "4 bytes before a 16-byte global variable `four` at 0x"),
        // Nearer to the next variable.
        (
            126,
            "488 bytes past the end of a 16-byte global variable `four` at 0x",
        ),
    ] {
        let report = indexed(index);
        assert!(report.contains(expected), "{expected}: {report}");
        assert_eq!(report.matches("variable").count(), 1, "{report}");
    }
    // In the next variable, which is read-only.
    let report = indexed(128);
    assert!(
        report.contains("496 bytes past the end of a 16-byte global variable `four`"),
        "{report}"
    );
    assert!(
        report.contains(", in a 12-byte constant variable `table`"),
        "{report}"
    );
    let report = report_of("mov.u64 %rd1, table; ld.const.u32 %r1, [%rd1+16];");
    assert!(
        report.contains("4 bytes past the end of a 12-byte constant variable `table`"),
        "{report}"
    );
    let report = report_of("mov.u64 %rd1, table; cvta.const.u64 %rd2, %rd1; st.u32 [%rd2+4], %r3;");
    assert!(
        report.contains("byte 4 of a 12-byte constant variable `table`"),
        "{report}"
    );
    assert!(report.contains("which is read-only"), "{report}");
}

#[test]
fn an_address_of_two_variables_or_none_names_its_neighbours() {
    // 488 bytes past `four`, 8 bytes before `table`.
    let either = report_of(
        "setp.eq.u32 %p1, %r3, 0; mov.u64 %rd1, four; mov.u64 %rd2, text; selp.b64 %rd3, %rd1, %rd2, %p1;
         st.global.u32 [%rd3+504], %r3;",
    );
    let loaded =
        report_of("mov.u64 %rd1, four; or.b64 %rd2, %rd1, 0; st.global.u32 [%rd2+504], %r3;");
    for report in [either, loaded] {
        let expected = "8 bytes before a 12-byte constant variable `table`";
        assert!(report.contains(expected), "{report}");
        let expected = ", 488 bytes past the end of a 16-byte global variable `four`";
        assert!(report.contains(expected), "{report}");
    }
}

#[test]
fn a_report_without_a_source_line_says_how_to_get_it() {
    let (_, report) = kind_of("ld.global.u32 %r5, [%rd3];", 0);
    assert!(report.contains("lineinfo=True"), "{report}");
    let ptx = module("", 0, ".file 1 \"a.cu\"\n.loc 1 7 3\ntrap;");
    let fault = Launch::new(1, 1).run(&ptx, &[]).unwrap_err();
    assert!(!fault.report.contains("lineinfo"), "{}", fault.report);
}

#[test]
fn a_breakpoint_without_a_debugger_ends_the_launch() {
    let (kind, report) = kind_of("setp.eq.u32 %p1, %r3, 3; @%p1 brkpt;", 0);
    assert_eq!(kind, FaultKind::Trap);
    assert!(report.contains("without a debugger"), "{report}");
    let not_reached = format!("{INDEX} setp.ne.u32 %p1, %r3, %r3; @%p1 brkpt; ret;");
    Launch::new(1, 32)
        .run(&module("", 1, &not_reached), &[0])
        .unwrap();
}

fn kind_of(body: &str, arg: u64) -> (FaultKind, String) {
    let f = Launch::new(1, 32)
        .run(&module("", 1, &format!("{INDEX}{body}\n ret;")), &[arg])
        .unwrap_err();
    (f.kind, f.report)
}

#[test]
fn a_failed_assertion_has_the_format_of_a_gpu() {
    let head = "
.extern .func __assertfail(.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 expr[] = {120, 62, 48, 0};
.global .align 1 .b8 file[] = {97, 46, 99, 117, 0};
.global .align 1 .b8 func[] = {102, 40, 41, 0};
";
    let body = format!(
        "{INDEX}
    setp.ne.u32 %p1, %r4, 5;
    @%p1 bra D;
    .param .b64 a; .param .b64 b; .param .b32 c; .param .b64 d; .param .b64 e;
    mov.u64 %rd4, expr; st.param.b64 [a], %rd4;
    mov.u64 %rd5, file; st.param.b64 [b], %rd5;
    st.param.b32 [c], 12;
    mov.u64 %rd6, func; st.param.b64 [d], %rd6;
    st.param.b64 [e], 1;
    call __assertfail, (a, b, c, d, e);
D:  ret;"
    );
    let fault = Launch::new(1, 32)
        .run(&module(head, 1, &body), &[0])
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::Assert);
    let line = "a.cu:12: f(): block: [0,0,0], thread: [5,0,0] Assertion `x>0` failed.";
    assert!(fault.report.contains(line), "{}", fault.report);
}

#[test]
fn launches_that_exceed_a_limit_are_refused() {
    let ptx = module("", 0, "ret;");
    let fault = Launch::new(1, 2048).run(&ptx, &[]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::LaunchOutOfResources);
    let mut l = Launch::new(1, 32);
    l.shared = 1 << 20;
    let fault = l.run(&ptx, &[]).unwrap_err();
    assert_eq!(fault.kind, FaultKind::LaunchOutOfResources);
}

#[test]
fn invalid_modules_are_refused() {
    let kind = |ptx: &str| Image::load(ptx, AddressSpace::global()).unwrap_err().kind;
    assert_eq!(kind("garbage"), LoadErrorKind::InvalidPtx);
    assert_eq!(
        kind(".version 99.0\n.target sm_89\n.address_size 64\n"),
        LoadErrorKind::UnsupportedPtxVersion
    );
    let call = module(".extern .func missing();", 0, "call missing; ret;");
    assert_eq!(kind(&call), LoadErrorKind::UnresolvedSymbol);
}
