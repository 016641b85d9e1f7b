//! Instructions for the tests of lane functions: comparisons with modifiers, integers of 16 and 64 bits, bits, carries,
//! conversions and half precision.

use super::{Both, module};

/// Rows of [`lanes::instructions`](super::lanes::instructions).
pub(super) fn instructions() -> Vec<String> {
    let mut list = Vec::new();
    comparisons(&mut list);
    integers(&mut list);
    bits(&mut list);
    carries(&mut list);
    conversions(&mut list);
    halves(&mut list);
    list
}

fn comparisons(list: &mut Vec<String>) {
    let types = [
        ("u16", "h"),
        ("s16", "h"),
        ("u32", "a"),
        ("s32", "a"),
        ("u64", "A"),
        ("s64", "A"),
        ("f32", "a"),
        ("ftz.f32", "a"),
        ("f64", "A"),
    ];
    for (t, s) in types {
        for cmp in ["eq", "ne", "lt", "le", "gt", "ge"] {
            list.push(format!("setp.{cmp}.{t} P {s} {s}"));
        }
        for (op, p) in [("and", "p"), ("or", "p"), ("xor", "!p"), ("and", "!p")] {
            list.push(format!("setp.le.{op}.{t} P {s} {s} {p}"));
            list.push(format!("setp.ne.{op}.{t} _|P {s} {s} {p}"));
        }
        list.push(format!("setp.gt.{t} P|_ {s} {s}"));
        list.push(format!("setp.gt.{t} _|P {s} {s}"));
        if !t.ends_with("16") {
            list.push(format!(
                "set.lt.u32.{} d {s} {s}",
                t.trim_start_matches("ftz.")
            ));
            list.push(format!(
                "set.ge.xor.f32.{} d {s} {s} !p",
                t.trim_start_matches("ftz.")
            ));
        }
    }
    list.push("setp.eq.b16 P h h".into());
    list.push("setp.hs.u16 P h h".into());
    list.push("setp.nan.ftz.f32 P a a".into());
    for t in ["f16", "bf16"] {
        for cmp in ["eq", "ne", "lt", "ge", "ltu", "num", "nan"] {
            list.push(format!("setp.{cmp}.{t} P h h"));
        }
        list.push(format!("setp.gt.or.{t} P h h !p"));
    }
    for test in [
        "finite",
        "infinite",
        "number",
        "notanumber",
        "normal",
        "subnormal",
    ] {
        list.push(format!("testp.{test}.f32 P a"));
        list.push(format!("testp.{test}.f64 P A"));
    }
    for (t, r) in [
        ("u32", "d a a"),
        ("f32", "d a a"),
        ("s64", "D A A"),
        ("f64", "D A A"),
    ] {
        list.push(format!("slct.{t}.s32 {r} a"));
        list.push(format!("slct.{t}.f32 {r} a"));
        list.push(format!("slct.ftz.{t}.f32 {r} a"));
    }
}

fn integers(list: &mut Vec<String>) {
    for t in ["u16", "s16"] {
        for op in ["add", "sub", "mul.lo", "mul.hi", "min", "max", "div"] {
            list.push(format!("{op}.{t} H h h"));
        }
        list.push(format!("mad.lo.{t} H h h h"));
        list.push(format!("mad.wide.{t} d h h a"));
        list.push(format!("shr.{t} H h a"));
        for distance in [0, 3, 15, 16, 40] {
            list.push(format!("shr.{t} H h {distance}"));
        }
    }
    for op in ["and.b16", "or.b16", "xor.b16"] {
        list.push(format!("{op} H h h"));
    }
    for op in ["not.b16", "neg.s16", "abs.s16", "mov.b16"] {
        list.push(format!("{op} H h"));
    }
    list.push("shl.b16 H h a".into());
    list.push("shl.b16 H h 9".into());
    list.push("selp.b16 H h h p".into());
    for t in ["u64", "s64"] {
        for op in ["mul.hi", "div", "rem"] {
            list.push(format!("{op}.{t} D A A"));
        }
        list.push(format!("div.{t} D A 10"));
        list.push(format!("rem.{t} D A 7"));
        list.push(format!("mad.hi.{t} D A A A"));
        list.push(format!("sad.{t} D A A A"));
    }
    for t in ["u32", "s32"] {
        for op in ["mad.hi", "sad", "mad24.lo", "mad24.hi"] {
            list.push(format!("{op}.{t} d a a a"));
        }
        list.push(format!("mul24.lo.{t} d a a"));
    }
    list.push("mov.b32 d {h,h}".into());
    list.push("mov.b32 {H,_} a".into());
    list.push("mov.b32 {_,H} a".into());
    list.push("mov.b64 D {a,a}".into());
    list.push("mov.b64 D {h,h,h,h}".into());
    list.push("mov.b64 {d,_} A".into());
    list.push("mov.b64 {_,d} A".into());
    for parts in ["{H,_,_,_}", "{_,H,_,_}", "{_,_,H,_}", "{_,_,_,H}"] {
        list.push(format!("mov.b64 {parts} A"));
    }
}

fn bits(list: &mut Vec<String>) {
    for (t, d, s) in [("32", "d", "a"), ("64", "D", "A")] {
        list.push(format!("popc.b{t} d {s}"));
        list.push(format!("clz.b{t} d {s}"));
        list.push(format!("brev.b{t} {d} {s}"));
        list.push(format!("bfi.b{t} {d} {s} {s} a a"));
        list.push(format!("bfi.b{t} {d} {s} {s} 5 9"));
        list.push(format!("copysign.f{t} {d} {s} {s}"));
        for sign in ["u", "s"] {
            list.push(format!("bfind.{sign}{t} d {s}"));
            list.push(format!("bfind.shiftamt.{sign}{t} d {s}"));
            list.push(format!("bfe.{sign}{t} {d} {s} a a"));
            for (position, length) in [(0, 8), (7, 0), (24, 16), (40, 30), (255, 255)] {
                list.push(format!("bfe.{sign}{t} {d} {s} {position} {length}"));
            }
        }
    }
    for direction in ["l", "r"] {
        for mode in ["wrap", "clamp"] {
            list.push(format!("shf.{direction}.{mode}.b32 d a a a"));
            for distance in [0, 8, 31, 32, 33] {
                list.push(format!("shf.{direction}.{mode}.b32 d a a {distance}"));
            }
        }
    }
    for selector in [
        0x3210, 0x5410, 0x7632, 0x0123, 0x1032, 0x7770, 0x4442, 0xba98, 0xfedc, 0x8091, 0x3340,
    ] {
        list.push(format!("prmt.b32 d a a {selector}"));
    }
    list.push("prmt.b32 d a a a".into());
    list.push("prmt.b32.f4e d a a 1".into());
}

fn carries(list: &mut Vec<String>) {
    for t in ["u32", "s32", "u64", "s64"] {
        let (d, s) = if t.ends_with("32") {
            ("d", "a")
        } else {
            ("D", "A")
        };
        for op in ["add.cc", "addc.cc", "addc", "sub.cc", "subc.cc", "subc"] {
            list.push(format!("{op}.{t} {d} {s} {s}"));
        }
        for op in [
            "mad.lo.cc",
            "madc.hi.cc",
            "madc.lo.cc",
            "madc.lo",
            "mad.hi.cc",
            "madc.hi",
        ] {
            list.push(format!("{op}.{t} {d} {s} {s} {s}"));
        }
    }
}

fn conversions(list: &mut Vec<String>) {
    for to in ["rni", "rzi", "rmi", "rpi"] {
        for d in ["u32", "s32", "u64", "s64"] {
            let r = if d.ends_with("32") { "d" } else { "D" };
            list.push(format!("cvt.{to}.{d}.f64 {r} A"));
            if r == "D" {
                list.push(format!("cvt.{to}.{d}.f32 {r} a"));
                list.push(format!("cvt.{to}.ftz.{d}.f32 {r} a"));
            }
        }
        for d in ["u8", "s8", "u16", "s16"] {
            list.push(format!("cvt.{to}.{d}.f32 H a"));
            list.push(format!("cvt.{to}.{d}.f32 d a"));
        }
        list.push(format!("cvt.{to}.f32.f32 d a"));
        list.push(format!("cvt.{to}.ftz.f32.f32 d a"));
        list.push(format!("cvt.{to}.sat.f32.f32 d a"));
        list.push(format!("cvt.{to}.f64.f64 D A"));
    }
    for rounding in ["rn", "rz", "rm", "rp"] {
        for s in ["u32", "s32", "u64", "s64"] {
            let r = if s.ends_with("32") { "a" } else { "A" };
            list.push(format!("cvt.{rounding}.f32.{s} d {r}"));
            list.push(format!("cvt.{rounding}.f64.{s} D {r}"));
        }
        for s in ["u8", "s8", "u16", "s16"] {
            list.push(format!("cvt.{rounding}.f32.{s} d h"));
            list.push(format!("cvt.{rounding}.f64.{s} D h"));
        }
        list.push(format!("cvt.{rounding}.f32.f64 d A"));
        list.push(format!("cvt.{rounding}.ftz.f32.f64 d A"));
        list.push(format!("cvt.{rounding}.sat.f32.f64 d A"));
    }
    for op in [
        "tanh.approx.f32 d a",
        "rcp.approx.ftz.f64 D A",
        "rsqrt.approx.ftz.f64 D A",
    ] {
        list.push(op.into());
    }
}

fn halves(list: &mut Vec<String>) {
    for (t, d, s) in [
        ("f16", "H", "h"),
        ("bf16", "H", "h"),
        ("f16x2", "d", "a"),
        ("bf16x2", "d", "a"),
    ] {
        for op in ["add", "sub", "mul", "min", "max"] {
            list.push(format!("{op}.{t} {d} {s} {s}"));
        }
        list.push(format!("fma.rn.{t} {d} {s} {s} {s}"));
        list.push(format!("neg.{t} {d} {s}"));
        list.push(format!("abs.{t} {d} {s}"));
        let sources = if d == "d" { "a a" } else { "a" };
        for rounding in ["rn", "rz"] {
            list.push(format!("cvt.{rounding}.{t}.f32 {d} {sources}"));
        }
    }
    list.push("cvt.f32.f16 d h".into());
    list.push("cvt.f32.bf16 d h".into());
    list.push("add.sat.f16 H h h".into());
    list.push("fma.rn.relu.f16x2 d a a a".into());
}

#[test]
fn instructions_with_several_results() {
    let body = ".reg .b16 %h<9>; .reg .b32 %r<19>; .reg .b64 %q<9>; .reg .pred %p<9>; ld.param.u64 %q1, [p0]; mov.u32 %r0, %tid.x;
        mul.wide.u32 %q2, %r0, 16; add.u64 %q1, %q1, %q2; ld.global.u32 %r1, [%q1]; ld.global.u32 %r2, [%q1+4];
        ld.global.u64 %q3, [%q1+8]; setp.lt.u32 %p0, %r1, 2000000000; setp.gt.s32 %p1, %r2, 0;
        setp.lt.or.s32 %p2|%p3, %r1, %r2, !%p1; @%p0 setp.ge.xor.u64 %p2|%p4, %q3, %q2, %p3; setp.ne.f32 %p5|%p2, %r1, %r2;
        mov.b64 {%r1, %r2}, %q3; @!%p2 mov.b64 {%r2, %r1}, %q3; mov.b32 {%h0, %h1}, %r1; mov.b32 {%h2, %h2}, %r2;
        mov.b64 {%h1, %h3, %h4, %h5}, %q3; @%p0 bra L; mov.b32 {%h4, %h3}, %r2; setp.le.and.s64 %p4|%p3, %q3, %q1, %p4;
        L: selp.u32 %r3, 1, 0, %p2; @%p3 add.u32 %r3, %r3, 2; @%p4 add.u32 %r3, %r3, 4; @%p5 add.u32 %r3, %r3, 8;
        cvt.u32.u16 %r4, %h0; mad.lo.u32 %r3, %r4, 10000, %r3; cvt.u32.u16 %r4, %h1; mad.lo.u32 %r2, %r4, 77, %r2;
        cvt.u32.u16 %r4, %h2; mad.lo.u32 %r1, %r4, 7070, %r1; cvt.u32.u16 %r4, %h3; mad.lo.u32 %r2, %r4, 3333, %r2;
        cvt.u32.u16 %r4, %h4; mad.lo.u32 %r3, %r4, 9191, %r3; cvt.u32.u16 %r4, %h5; xor.b32 %r3, %r3, %r4;
        st.global.u32 [%q1], %r1; st.global.u32 [%q1+4], %r2; st.global.u32 [%q1+8], %r3; ret;";
    let Some(both) = Both::new(module("", 1, body)) else {
        return;
    };
    for block in [32, 48, 20] {
        let mut random = super::Random(u64::from(block));
        let words = (0..8 * block).map(|_| random.bits() as u32).collect();
        both.same(2, block, vec![words]);
    }
}

#[test]
fn comparisons_leave_the_carry_flag() {
    let body = ".reg .b16 %h<9>; .reg .b32 %r<9>; .reg .b64 %q<9>; .reg .pred %p<9>; ld.param.u64 %q1, [p0]; mov.u32 %r0, %tid.x;
        mul.wide.u32 %q2, %r0, 4; add.u64 %q1, %q1, %q2; ld.global.u32 %r1, [%q1]; cvt.u16.u32 %h1, %r1;
        add.cc.u32 %r2, %r1, %r1; setp.lt.ftz.f32 %p1, %r1, %r2; setp.lt.u16 %p2, %h1, 77; addc.u32 %r3, %r1, 5;
        @%p1 add.u32 %r3, %r3, 100; @%p2 add.u32 %r3, %r3, 1000; st.global.u32 [%q1], %r3; ret;";
    let Some(both) = Both::new(module("", 1, body)) else {
        return;
    };
    let mut random = super::Random(9);
    both.same(1, 48, vec![(0..48).map(|_| random.bits() as u32).collect()]);
}

#[test]
fn divisions_of_small_integers_do_not_need_the_engine_and_large_ones_do() {
    let body = ".reg .b32 %r<9>; .reg .b64 %q<19>; ld.param.u64 %q1, [p0]; mov.u32 %r0, %tid.x; mul.wide.u32 %q2, %r0, 16;
        add.u64 %q1, %q1, %q2; ld.global.u64 %q3, [%q1]; ld.global.u64 %q4, [%q1+8];
        div.s64 %q5, %q3, %q4; rem.s64 %q6, %q3, %q4; div.u64 %q3, %q3, %q4; rem.u64 %q4, %q3, %q4;
        add.s64 %q3, %q3, %q5; add.s64 %q4, %q4, %q6; st.global.u64 [%q1], %q3; st.global.u64 [%q1+8], %q4; ret;";
    let Some(both) = Both::new(module("", 1, body)) else {
        return;
    };
    let mut random = super::Random(5);
    for shift in [1, 11, 12, 13, 30, 50] {
        let long = |x: u64| [x as u32, (x >> 32) as u32];
        let words =
            (0..2 * 64).flat_map(|n| long(random.bits() >> if n % 2 == 0 { shift } else { 40 }));
        both.same(1, 64, vec![words.collect()]);
        let near = (0..64).flat_map(|_| {
            // Quotients just below an integer.
            let b = (random.bits() >> 40) | 1;
            let q = (1u64 << 52) / b;
            [long((q * b).wrapping_sub(1)), long(b)].concat()
        });
        both.same(1, 64, vec![near.collect()]);
    }
}
