//! Loads and stores of local memory: equal and different offsets, all sizes, frames of functions, and faults.

use std::fmt::Write as _;

use super::{Both, Buffers, Random, module};
use crate::memory::AddressSpace;
use crate::{FaultKind, Image, LaunchConfig, launch};

/// Accesses: type with vector, registers, bytes.
const ACCESSES: [(&str, &str, u32); 16] = [
    ("u8", "%r0", 1),
    ("s8", "%r0", 1),
    ("s8", "%h0", 1),
    ("u16", "%h0", 2),
    ("s16", "%h0", 2),
    ("s16", "%r0", 2),
    ("f32", "%r0", 4),
    ("b64", "%q0", 8),
    ("v2.u32", "{%r0, %r1}", 8),
    ("v4.f32", "{%r0, %r1, %r2, %r3}", 16),
    ("v2.b64", "{%q0, %q1}", 16),
    ("v2.s8", "{%r0, %r1}", 2),
    ("v4.u8", "{%h0, %h1, %h2, %h3}", 4),
    ("v2.b16", "{%h0, %h1}", 4),
    ("v2.s16", "{%r0, %r1}", 4),
    ("v4.b16", "{%h0, %h1, %h2, %h3}", 8),
];

/// Bytes of the array of a thread.
const BYTES: u32 = 512;

/// How the accesses are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    Plain,
    Guarded,
    Divergent,
}

/// How the address is formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// 64 bits.
    Wide,
    /// 32 bits.
    Narrow,
    /// 64 bits, in the frame of a function.
    Function,
    /// A generic address of 64 bits.
    Generic,
}

/// A kernel whose threads load or store at the offset `p0[thread]` of their array, if `p1[thread]` is set. `p2` receives the array,
/// and `p3` what has been loaded.
fn kernel(
    form: Form,
    (ty, list, _): (&str, &str, u32),
    offsets: &[i64],
    mode: Mode,
    store: bool,
) -> String {
    let guard = if mode == Mode::Guarded { "@%p0 " } else { "" };
    let (base, address) = match form {
        Form::Narrow => ("cvt.u32.u64 %r20, %q20; add.u32 %r20, %r20, %r10;", "%r20"),
        Form::Generic => (
            "cvta.local.u64 %q21, %q20; cvt.s64.s32 %q10, %r10; add.s64 %q10, %q10, %q21;",
            "%q10",
        ),
        _ => ("cvt.s64.s32 %q10, %r10; add.s64 %q10, %q10, %q20;", "%q10"),
    };
    let space = if form == Form::Generic { "" } else { ".local" };
    let parameters = match form {
        Form::Function => "mov.u64 %q5, %a0; mov.u64 %q6, %a1; mov.u64 %q7, %a2; mov.u64 %q8, %a3;",
        _ => {
            "ld.param.u64 %q5, [p0]; ld.param.u64 %q6, [p1]; ld.param.u64 %q7, [p2]; ld.param.u64 %q8, [p3];"
        }
    };
    let mut body = format!(
        ".reg .b16 %h<99>; .reg .b32 %r<99>; .reg .b64 %q<99>; .reg .pred %p<99>; .local .align 16 .b8 memory[{BYTES}];
        mov.u32 %r9, %tid.x; mul.wide.u32 %q4, %r9, 4; {parameters}
        add.u64 %q5, %q5, %q4; add.u64 %q6, %q6, %q4; mul.wide.u32 %q4, %r9, 128; add.u64 %q8, %q8, %q4;
        mul.wide.u32 %q4, %r9, {BYTES}; add.u64 %q7, %q7, %q4;
        mov.u64 %q20, memory; mov.u32 %r11, 0;
        IN: cvt.u64.u32 %q21, %r11; add.u64 %q21, %q21, %q20; mad.lo.u32 %r12, %r9, 0x51a3c9b7, %r11;
        mad.lo.u32 %r12, %r12, %r12, 0xff817e55; st.local.u32 [%q21], %r12;
        add.u32 %r11, %r11, 4; setp.lt.u32 %p3, %r11, {BYTES}; @%p3 bra IN;
        ld.global.u32 %r10, [%q5]; ld.global.u32 %r11, [%q6]; setp.ne.u32 %p0, %r11, 0;
        mad.lo.u32 %r0, %r9, 0x01020304, 0xfe80; not.b32 %r1, %r0; shl.b32 %r2, %r0, 5; neg.s32 %r3, %r0;
        cvt.u16.u32 %h0, %r0; cvt.u16.u32 %h1, %r1; cvt.u16.u32 %h2, %r2; cvt.u16.u32 %h3, %r3;
        mul.wide.u32 %q0, %r0, %r1; not.b64 %q1, %q0; {base}\n",
    );
    if mode == Mode::Divergent {
        body += "@!%p0 bra BEHIND;\n";
    }
    for (n, offset) in offsets.iter().enumerate() {
        if store {
            let _ = writeln!(body, "{guard}st{space}.{ty} [{address}+{offset}], {list};");
            continue;
        }
        let _ = writeln!(body, "{guard}ld{space}.{ty} {list}, [{address}+{offset}];");
        let result = if list.contains("%h") {
            "cvt.u32.u16 %r0, %h0; cvt.u32.u16 %r1, %h1; cvt.u32.u16 %r2, %h2; cvt.u32.u16 %r3, %h3;"
        } else if list.contains("%q") {
            "cvt.u32.u64 %r0, %q0; shr.u64 %q2, %q0, 32; cvt.u32.u64 %r1, %q2; cvt.u32.u64 %r2, %q1; shr.u64 %q2, %q1, 32; cvt.u32.u64 %r3, %q2;"
        } else {
            ""
        };
        let _ = writeln!(
            body,
            "{result} st.global.v4.u32 [%q8+{}], {{%r0, %r1, %r2, %r3}};",
            16 * n
        );
    }
    let _ = writeln!(
        body,
        "BEHIND: add.u32 %r0, %r0, 1; st.global.u32 [%q8+112], %r0; ld.local.u32 %r1, [memory+{}]; st.global.u32 [%q8+116], %r1;
        mov.u32 %r11, 0;
        OUT: cvt.u64.u32 %q21, %r11; add.u64 %q22, %q21, %q20; ld.local.u32 %r12, [%q22]; add.u64 %q22, %q21, %q7;
        st.global.u32 [%q22], %r12; add.u32 %r11, %r11, 4; setp.lt.u32 %p3, %r11, {BYTES}; @%p3 bra OUT; ret;",
        BYTES - 12
    );
    if form != Form::Function {
        return module("", 4, &body);
    }
    let function = format!(
        ".func f (.reg .b64 %a0, .reg .b64 %a1, .reg .b64 %a2, .reg .b64 %a3)\n{{\n{body}\n}}"
    );
    module(
        &function,
        4,
        ".reg .b64 %q<9>; .reg .b32 %r<9>; .local .align 8 .b8 own[72]; mov.u32 %r1, %tid.x; st.local.u32 [own+68], %r1; st.local.u32 [own+4], 5;
        ld.param.u64 %q1, [p0]; ld.param.u64 %q2, [p1]; ld.param.u64 %q3, [p2]; ld.param.u64 %q4, [p3];
        call f, (%q1, %q2, %q3, %q4); ld.local.u32 %r2, [own+68]; mul.wide.u32 %q5, %r1, 128; add.u64 %q5, %q5, %q4;
        st.global.u32 [%q5+120], %r2; ret;",
    )
}

/// Offsets of 100 threads and their flags; the threads with a flag access elements of `size` bytes of their array.
fn patterns(size: u32) -> Vec<(&'static str, Vec<u32>, Vec<u32>)> {
    let mut random = Random(size.into());
    let some: Vec<u32> = (0..100).map(|_| random.below(2) as u32).collect();
    let all = vec![1; 100];
    let last = BYTES / size - 1;
    let of = |f: &mut dyn FnMut(u32) -> u32| {
        (0..100)
            .map(|i| f(i).wrapping_mul(size))
            .collect::<Vec<u32>>()
    };
    let wrong = |i: u32, right: u32| match some[i as usize] {
        0 => 0x0100_0000 + i,
        _ => right,
    };
    vec![
        ("equal", of(&mut |_| 5), some.clone()),
        ("all equal", of(&mut |_| 3), all.clone()),
        ("equal in a row", of(&mut |i| i / 16), all.clone()),
        ("random", of(&mut |_| random.below(20) as u32), some.clone()),
        ("all different", of(&mut |i| i % 13), all.clone()),
        ("equal where active", of(&mut |i| wrong(i, 6)), some.clone()),
        (
            "different where active",
            of(&mut |i| wrong(i, i % 7)),
            some.clone(),
        ),
        ("last", of(&mut |_| last), all.clone()),
        ("end", of(&mut |i| last - i % 2), some.clone()),
        ("none", of(&mut |i| i + 0x0100_0000), vec![0; 100]),
    ]
}

fn contents(offsets: &[u32], flags: &[u32]) -> Vec<Vec<u32>> {
    vec![
        offsets.to_vec(),
        flags.to_vec(),
        vec![0; 100 * BYTES as usize / 4],
        vec![0; 3200],
    ]
}

fn check(form: Form, store: bool) {
    for access in ACCESSES {
        let size = access.2;
        for mode in [Mode::Plain, Mode::Guarded, Mode::Divergent] {
            let one = Both::new(kernel(form, access, &[0], mode, store));
            let far = 3 * i64::from(size);
            let several = Both::new(kernel(form, access, &[far, 0, -far, far], mode, store));
            let (Some(one), Some(several)) = (one, several) else {
                return;
            };
            for (name, offsets, flags) in patterns(size) {
                let outside = name.contains("active") || name == "none";
                if mode == Mode::Plain && outside {
                    continue;
                }
                for block in [20, 100] {
                    one.same(1, block, contents(&offsets, &flags));
                }
                if name.starts_with("all") || name == "none" {
                    let inside: Vec<u32> = offsets.iter().map(|o| o + 3 * size).collect();
                    several.same(2, 48, contents(&inside, &flags));
                }
            }
        }
    }
}

#[test]
fn loads() {
    check(Form::Wide, false);
    check(Form::Narrow, false);
}

#[test]
fn stores() {
    check(Form::Wide, true);
    check(Form::Narrow, true);
}

#[test]
fn frames_of_functions() {
    check(Form::Function, false);
    check(Form::Function, true);
}

#[test]
fn generic_addresses() {
    check(Form::Generic, false);
    check(Form::Generic, true);
}

#[test]
fn faults() {
    for form in [Form::Wide, Form::Narrow, Form::Function, Form::Generic] {
        for access in [0, 3, 6, 7, 9, 12].map(|n| ACCESSES[n]) {
            let size = access.2;
            for (lane, mode, store) in [
                (0, Mode::Plain, false),
                (13, Mode::Plain, true),
                (29, Mode::Guarded, false),
                (3, Mode::Divergent, true),
            ] {
                let Some(both) = Both::new(kernel(form, access, &[0], mode, store)) else {
                    return;
                };
                for equal in [false, true] {
                    for (wrong, kind) in [
                        (0x10_0000, FaultKind::IllegalAddress),
                        (0x7000_0000, FaultKind::IllegalAddress),
                        (0u32.wrapping_sub(1024 * size), FaultKind::IllegalAddress),
                        (3 * size + size / 2, FaultKind::MisalignedAddress),
                    ] {
                        if size == 1 && kind == FaultKind::MisalignedAddress {
                            continue;
                        }
                        let mut lanes: Vec<u32> = (0..32).map(|i| i % 9 * size).collect();
                        if equal {
                            lanes.fill(wrong);
                        }
                        lanes[lane] = wrong;
                        let flags: Vec<u32> =
                            (0..32).map(|i| u32::from(i % 3 == lane % 3)).collect();
                        let found = both.compare([1; 3], [32, 1, 1], contents(&lanes, &flags));
                        assert_eq!(
                            found.err().map(|f| super::address_fault(f.kind)),
                            Some(kind),
                            "{form:?} {access:?} {mode:?} {wrong:#x}\n{}",
                            both.ptx
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn warps_have_their_own_memory() {
    // The value is stored before a barrier, and loaded behind it, by blocks that follow each other.
    let body = ".reg .b32 %r<9>; .reg .b64 %q<9>; .reg .pred %p<3>; .local .align 4 .b8 memory[64]; ld.param.u64 %q1, [p0];
        mov.u32 %r1, %tid.x; mov.u32 %r2, %ctaid.x; mad.lo.u32 %r3, %r2, 200, %r1; mul.wide.u32 %q2, %r3, 4; add.u64 %q1, %q1, %q2;
        and.b32 %r4, %r1, 15; mul.wide.u32 %q3, %r4, 4; mov.u64 %q4, memory; add.u64 %q3, %q3, %q4; st.local.u32 [%q3], %r3;
        bar.sync 0; ld.local.u32 %r5, [%q3]; mad.lo.u32 %r5, %r5, 3, %r4; st.global.u32 [%q1], %r5; ret;";
    let turn = body.replace("bar.sync 0;", "");
    for body in [body, &turn] {
        let Some(both) = Both::new(module("", 1, body)) else {
            return;
        };
        let words = both.same(40, 200, vec![vec![0; 8000]]);
        let expected: Vec<u32> = (0..8000u32).map(|i| 3 * i + i % 200 % 16).collect();
        assert_eq!(words[0], expected);
    }
}

#[test]
fn lane_indices_are_no_part_of_uniform_addresses() {
    let body = ".reg .b32 %r<9>; .reg .b64 %q<9>; ld.param.u64 %q1, [p0]; mov.u32 %r1, %tid.x; mul.wide.u32 %q2, %r1, 4;
        mov.u32 %r2, %laneid; mul.wide.u32 %q3, %r2, 4; add.u64 %q4, %q1, %q2; add.u64 %q6, %q4, %q3; add.u64 %q5, %q2, %q3;
        add.u64 %q7, %q5, %q1; ld.global.u32 %r3, [%q6]; ld.global.u32 %r4, [%q7+4]; mad.lo.u32 %r3, %r3, 7, %r4; add.u64 %q1, %q1, %q2;
        st.global.u32 [%q1+512], %r3; ret;";
    let image = Image::load(&module("", 1, body), AddressSpace::global()).unwrap();
    let buffers = Buffers::new(vec![(0..256).collect()]);
    buffers.fill();
    let params = buffers.parameters();
    let config = LaunchConfig::new([1; 3], [32, 1, 1], &params);
    launch(&image.kernels()[0], &config).unwrap();
    let expected: Vec<u32> = (0..32).map(|i| 2 * i * 7 + 2 * i + 1).collect();
    assert_eq!(buffers.words()[0][128..160], expected);
}
