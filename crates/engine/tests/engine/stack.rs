//! `CU_LIMIT_STACK_SIZE` limits recursion.

use cupyrite_engine::{Fault, FaultKind};

use crate::harness::{Buffer, Launch, module};

/// A kernel that calls itself `depth` deep through `down`, which has `local` bytes of local variables. Returns the depth
/// that it reached.
fn recurse(local: u32, depth: u32, limit: u32) -> Result<u32, Fault> {
    let variable = match local {
        0 => String::new(),
        n => format!(".local .align 4 .b8 a[{n}]; st.local.u32 [a], %r1;"),
    };
    let head = format!(
        "
.func (.param .b32 r) down(.param .b32 n)
{{
    .reg .pred %p<2>; .reg .b32 %r<8>;
    ld.param.u32 %r1, [n];
    {variable}
    mov.u32 %r3, 0;
    setp.le.u32 %p1, %r1, 1;
    @%p1 bra D;
    {{ .param .b32 a; .param .b32 b;
    sub.u32 %r2, %r1, 1;
    st.param.b32 [a], %r2;
    call (b), down, (a);
    ld.param.b32 %r3, [b]; }}
D:  add.u32 %r4, %r3, 1;
    st.param.b32 [r], %r4;
    ret;
}}"
    );
    let body = format!(
        "
    .reg .b32 %r<8>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p0];
    .param .b32 a; .param .b32 b;
    mov.u32 %r1, {depth};
    st.param.b32 [a], %r1;
    call (b), down, (a);
    ld.param.b32 %r2, [b];
    st.global.u32 [%rd1], %r2;
    ret;"
    );
    let out = Buffer::zeros(1);
    let mut launch = Launch::new(1, 32);
    launch.stack = limit;
    // Twice in a row: the second block starts with an empty stack.
    launch.grid = [2, 1, 1];
    launch.run(&module(&head, 1, &body), &[out.addr])?;
    Ok(out.get()[0])
}

#[test]
fn recursion_is_limited_by_the_stack_size() {
    // Frames of 24 bytes; the first one is known before the launch. An H100 fails at a depth of 43.
    assert_eq!(recurse(0, 43, 1024).unwrap(), 43);
    let fault = recurse(0, 44, 1024).unwrap_err();
    assert_eq!(fault.kind, FaultKind::StackOverflow);
    for part in [
        "kernel `k`",
        "at least 1056 bytes of stack",
        "the limit is 1024 bytes",
        "cuCtxSetLimit(CU_LIMIT_STACK_SIZE",
        "in function `down`",
    ] {
        assert!(fault.report.contains(part), "{part}: {}", fault.report);
    }
    assert_eq!(recurse(0, 1300, 32 << 10).unwrap(), 1300);
    // Local variables count.
    assert_eq!(recurse(240, 5, 1024).unwrap(), 5);
    let fault = recurse(240, 6, 1024).unwrap_err();
    assert_eq!(fault.kind, FaultKind::StackOverflow);
    assert_eq!(recurse(240, 100, 32 << 10).unwrap(), 100);
}
