//! Aligned accesses of up to 16 bytes are not torn between blocks.
//!
//! Writers store elements that are all equal, with a value that changes; readers count the accesses whose elements differ.
//! The blocks run on several threads of the host. With one processor the tests cannot fail.

use crate::harness::{Buffer, Launch, module};

/// A register list of `count` registers with this prefix, from 1 on.
fn list(prefix: &str, count: usize) -> String {
    let names: Vec<String> = (1..=count).map(|n| format!("%{prefix}{n}")).collect();
    match count {
        1 => names[0].clone(),
        _ => format!("{{{}}}", names.join(", ")),
    }
}

/// Instructions that set `%p1` if one of `count` registers of `bits` bits differs from the first, or if the halves of the
/// first differ, because a single element may be torn, too.
fn compare(prefix: &str, bits: usize, count: usize) -> String {
    let first = format!("%{prefix}1");
    let halves = match bits {
        16 => format!(
            "and.b16 %x1, {first}, 255; shr.b16 %x2, {first}, 8; setp.ne.b16 %p1, %x1, %x2;"
        ),
        32 => format!("mov.b32 {{%x1, %x2}}, {first}; setp.ne.b16 %p1, %x1, %x2;"),
        _ => format!("mov.b64 {{%y1, %y2}}, {first}; setp.ne.b32 %p1, %y1, %y2;"),
    };
    let others = (2..=count)
        .map(|n| format!("setp.ne.b{bits} %p2, {first}, %{prefix}{n}; or.pred %p1, %p1, %p2;"));
    halves + &others.collect::<String>()
}

/// A kernel whose even blocks store and whose odd blocks load. Each lane accesses `stride` bytes from the last.
fn kernel(
    store: &str,
    load: &str,
    (prefix, bits, count): (&str, usize, usize),
    stride: usize,
) -> String {
    // The same 8 bits everywhere.
    let value = match bits {
        16 => "mul.lo.u32 %r7, %r6, 0x0101; cvt.u16.u32 %h1, %r7;",
        32 => "mul.lo.u32 %v1, %r6, 0x01010101;",
        _ => "cvt.u64.u32 %d1, %r6; mul.lo.u64 %d1, %d1, 0x0101010101010101;",
    };
    let copies: String = (2..=count)
        .map(|n| format!("mov.b{bits} %{prefix}{n}, %{prefix}1;\n"))
        .collect();
    let (to_wide, from_wide) = if store.ends_with("b128") {
        ("mov.b128 %q1, {%d1, %d2};", "mov.b128 {%d1, %d2}, %q1;")
    } else {
        ("", "")
    };
    let operand = if store.ends_with("b128") {
        "%q1".to_owned()
    } else {
        list(prefix, count)
    };
    let compare = compare(prefix, bits, count);
    module(
        "",
        2,
        &format!(
            "
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b16 %x<4>; .reg .b32 %r<32>; .reg .b32 %v<8>; .reg .b32 %y<4>;
    .reg .b64 %rd<16>; .reg .b64 %d<4>; .reg .b128 %q<4>;
    ld.param.u64 %rd1, [p0]; ld.param.u64 %rd2, [p1];
    mov.u32 %r1, %ctaid.x; mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd3, %r3, {stride}; add.s64 %rd1, %rd1, %rd3;
    and.b32 %r2, %r1, 1;
    mov.u32 %r5, 0; mov.u32 %r8, 0;
    setp.eq.u32 %p3, %r2, 1;
    @%p3 bra READ;
WRITE:
    add.u32 %r6, %r5, %r1; add.u32 %r6, %r6, %r3; and.b32 %r6, %r6, 255;
    {value}
    {copies}
    {to_wide}
    {store} [%rd1], {operand};
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p4, %r5, 20000;
    @%p4 bra WRITE;
    ret;
READ:
    {load} {operand}, [%rd1];
    {from_wide}
    {compare}
    @%p1 add.u32 %r8, %r8, 1;
    add.u32 %r5, %r5, 1;
    setp.lt.u32 %p4, %r5, 20000;
    @%p4 bra READ;
    red.global.add.u32 [%rd2], %r8;
    ret;"
        ),
    )
    .replace(".version 8.3", ".version 8.6")
    .replace("sm_89", "sm_90")
}

/// Runs writers and readers, and returns the number of torn loads.
fn torn(ptx: &str) -> u32 {
    let data = Buffer::zeros(4 * 32);
    let count = Buffer::zeros(1);
    let mut launch = Launch::new(4, 32);
    launch.cooperative = true;
    launch.run(ptx, &[data.addr, count.addr]).unwrap();
    count.get()[0]
}

/// Element types, with the registers that hold them: prefix, bits, count.
const SHAPES: [(&str, (&str, usize, usize)); 10] = [
    ("u16", ("h", 16, 1)),
    ("u32", ("v", 32, 1)),
    ("u64", ("d", 64, 1)),
    ("v2.u16", ("h", 16, 2)),
    ("v4.u16", ("h", 16, 4)),
    ("v2.u32", ("v", 32, 2)),
    ("v4.u32", ("v", 32, 4)),
    ("v4.f32", ("v", 32, 4)),
    ("v2.u64", ("d", 64, 2)),
    ("b128", ("d", 64, 2)),
];

#[test]
fn ordered_accesses_are_not_torn() {
    let orders = [
        ("relaxed.gpu.global", "relaxed.gpu.global"),
        ("relaxed.sys", "relaxed.sys"),
        ("release.gpu", "acquire.gpu"),
        ("volatile.global", "volatile.global"),
        ("volatile", "volatile"),
    ];
    for (shape, registers) in SHAPES {
        for (store, load) in orders {
            let ptx = kernel(
                &format!("st.{store}.{shape}"),
                &format!("ld.{load}.{shape}"),
                registers,
                0,
            );
            assert_eq!(torn(&ptx), 0, "st.{store}.{shape}, ld.{load}.{shape}");
        }
    }
}

#[test]
fn weak_accesses_are_not_torn() {
    for (shape, registers) in SHAPES {
        let bytes = registers.1 / 8 * registers.2;
        // All lanes at one address, each lane at its own, and lanes with gaps between them.
        for stride in [0, bytes, 2 * bytes].into_iter().filter(|s| s * 32 <= 512) {
            for space in ["", ".global"] {
                let ptx = kernel(
                    &format!("st{space}.{shape}"),
                    &format!("ld{space}.{shape}"),
                    registers,
                    stride,
                );
                assert_eq!(torn(&ptx), 0, "{shape}{space}, {stride} bytes apart");
            }
        }
    }
}

#[test]
fn wide_atomics_and_vectors_are_coherent() {
    // Writers exchange; readers load vectors, and the reverse.
    let exchange = kernel("st.b128", "ld.relaxed.gpu.v2.u64", ("d", 64, 2), 0)
        .replace(
            "st.b128 [%rd1], %q1;",
            "atom.relaxed.gpu.global.exch.b128 %q2, [%rd1], %q1;",
        )
        .replace(
            "ld.relaxed.gpu.v2.u64 %q1",
            "ld.relaxed.gpu.v2.u64 {%d1, %d2}",
        )
        .replace("mov.b128 {%d1, %d2}, %q1;", "");
    assert_eq!(torn(&exchange), 0);
    let swap = "atom.relaxed.gpu.global.cas.b128 %q1, [%rd1], %q1, %q1";
    let compare = kernel("st.relaxed.gpu.b128", "ld.b128", ("d", 64, 2), 0)
        .replace("ld.b128 %q1, [%rd1]", swap);
    assert_eq!(torn(&compare), 0);
}

/// Every width in shared memory, by its own and by generic addresses, reads back what it wrote.
#[test]
fn shared_accesses_of_every_width_round_trip() {
    for (shape, (prefix, bits, count)) in SHAPES {
        if shape == "b128" {
            continue;
        }
        let bytes = bits / 8 * count;
        let stored: String = (1..=count)
            .map(|n| match bits {
                16 => format!("add.u32 %r5, %r3, {n}; cvt.u16.u32 %h{n}, %r5;"),
                32 => format!("add.u32 %v{n}, %r3, {n};"),
                _ => format!("add.u32 %r5, %r3, {n}; cvt.u64.u32 %d{n}, %r5;"),
            })
            .collect();
        let sum: String = (1..=count)
            .map(|n| format!("cvt.u32.u{bits} %r6, %{prefix}{n}; mad.lo.u32 %r7, %r6, {n}, %r7;"))
            .collect();
        let registers = list(prefix, count);
        let cleared: String = (1..=count)
            .map(|n| format!("mov.b{bits} %{prefix}{n}, 0;"))
            .collect();
        for (store, load) in [
            (".shared", ""),
            ("", ".shared"),
            (".volatile.shared", ".relaxed.cta"),
        ] {
            let (to, from) = (
                if store.contains("shared") {
                    "%rd4"
                } else {
                    "%rd5"
                },
                if load.contains("shared") {
                    "%rd4"
                } else {
                    "%rd5"
                },
            );
            let body = format!(
                "
    .reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b32 %v<8>; .reg .b64 %rd<16>; .reg .b64 %d<4>;
    .shared .align 16 .b8 s[512];
    ld.param.u64 %rd1, [p0];
    mov.u32 %r3, %tid.x;
    mul.wide.u32 %rd2, %r3, 4; add.s64 %rd1, %rd1, %rd2;
    mov.u64 %rd4, s; mul.wide.u32 %rd3, %r3, {bytes}; add.s64 %rd4, %rd4, %rd3;
    cvta.shared.u64 %rd5, %rd4;
    {stored}
    st{store}.{shape} [{to}], {registers};
    {cleared}
    ld{load}.{shape} {registers}, [{from}];
    mov.u32 %r7, 0;
    {sum}
    st.global.u32 [%rd1], %r7;
    ret;"
            );
            let out = Buffer::zeros(32);
            Launch::new(1, 32)
                .run(&module("", 1, &body), &[out.addr])
                .unwrap();
            let n = count as u32;
            let squares: u32 = (1..=n).map(|k| k * k).sum();
            let want: Vec<u32> = (0..32).map(|t| t * n * (n + 1) / 2 + squares).collect();
            assert_eq!(out.get(), want, "st{store}.{shape}, ld{load}.{shape}");
        }
    }
}
