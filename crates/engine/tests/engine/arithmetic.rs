//! Arithmetic of several instructions: what they exchange through the carry flag.

use crate::harness::{Buffer, Launch, module};

/// Runs `body` with the 64-bit values `x` in `%x` and `y` in `%y`; returns the results, which it leaves in `%o0` to `%o3`.
fn results(body: &str, x: u64, y: u64) -> [u64; 4] {
    let body = format!(
        "
    .reg .b64 %x, %y, %out, %o<4>; .reg .b32 %xl, %xh, %yl, %yh, %r<8>;
    ld.param.u64 %out, [p0]; ld.param.u64 %x, [p1]; ld.param.u64 %y, [p2];
    mov.b64 {{%xl, %xh}}, %x; mov.b64 {{%yl, %yh}}, %y;
    mov.u64 %o0, 0; mov.u64 %o1, 0; mov.u64 %o2, 0; mov.u64 %o3, 0;
    {body}
    st.global.v2.u64 [%out], {{%o0, %o1}};
    st.global.v2.u64 [%out+16], {{%o2, %o3}};
    ret;"
    );
    let out = Buffer::zeros(8);
    Launch::new(1, 1)
        .run(&module("", 3, &body), &[out.addr, x, y])
        .unwrap();
    let words = out.get();
    std::array::from_fn(|n| u64::from(words[2 * n]) | u64::from(words[2 * n + 1]) << 32)
}

const VALUES: [u64; 7] = [
    0,
    1,
    0xffff_ffff,
    0x1_0000_0000,
    0x8000_0000_7fff_ffff,
    u64::MAX - 1,
    u64::MAX,
];

fn pairs() -> impl Iterator<Item = (u64, u64)> {
    VALUES.into_iter().flat_map(|x| VALUES.map(|y| (x, y)))
}

#[test]
fn a_subtraction_sets_the_carry_flag_if_there_is_no_borrow() {
    for (x, y) in pairs() {
        // The flag of each subtraction, as `addc` reads it.
        let got = results(
            "sub.cc.u64 %o0, %x, %y; addc.u64 %o1, 0, 0;
    sub.cc.u32 %r0, %xl, %yl; addc.cc.u32 %r1, 0, 0; cvt.u64.u32 %o2, %r1;
    sub.cc.u32 %r0, %xl, %yl; subc.cc.u32 %r1, %xh, %yh; addc.u32 %r2, 0, 0; cvt.u64.u32 %o3, %r2;",
            x,
            y,
        );
        let want = [
            x.wrapping_sub(y),
            u64::from(x >= y),
            u64::from(x as u32 >= y as u32),
            u64::from(x >= y),
        ];
        assert_eq!(got, want, "{x:#x}, {y:#x}");
    }
}

#[test]
fn a_subtraction_borrows_if_the_carry_flag_of_an_addition_is_clear() {
    for (x, y) in pairs() {
        let got = results(
            "add.cc.u64 %o0, %x, %y; subc.u64 %o1, 5, 3;
    add.cc.u32 %r0, %xl, %yl; subc.u32 %r1, 5, 3; cvt.u64.u32 %o2, %r1;
    mad.hi.cc.u64 %o3, %x, %y, %x; subc.u64 %o3, 5, 3;",
            x,
            y,
        );
        let product = ((u128::from(x) * u128::from(y)) >> 64) as u64;
        let want = [
            x.wrapping_add(y),
            1 + u64::from(x.checked_add(y).is_none()),
            1 + u64::from((x as u32).checked_add(y as u32).is_none()),
            1 + u64::from(product.checked_add(x).is_none()),
        ];
        assert_eq!(got, want, "{x:#x}, {y:#x}");
    }
}

#[test]
fn carry_chains_compute_with_more_than_64_bits() {
    for (x, y) in pairs() {
        // (2^64 * y + x) - (2^64 * x + y) in words of 64 and of 32 bits.
        let got = results(
            "sub.cc.u64 %o0, %x, %y; subc.u64 %o1, %y, %x;
    sub.cc.u32 %r0, %xl, %yl; subc.cc.u32 %r1, %xh, %yh; subc.cc.u32 %r2, %yl, %xl; subc.u32 %r3, %yh, %xh;
    mov.b64 %o2, {%r0, %r1}; mov.b64 %o3, {%r2, %r3};",
            x,
            y,
        );
        let wide = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let d = wide(y, x).wrapping_sub(wide(x, y));
        let (low, high) = (d as u64, (d >> 64) as u64);
        assert_eq!(got, [low, high, low, high], "{x:#x}, {y:#x}");
        // The product of two numbers of 64 bits, and the same sum.
        let got = results(
            "mul.lo.u64 %o0, %x, %y; mul.hi.u64 %o1, %x, %y;
    add.cc.u64 %o0, %o0, %y; addc.u64 %o1, %o1, 0;
    mad.lo.cc.u64 %o2, %x, %y, %y; madc.hi.u64 %o3, %x, %y, 0;",
            x,
            y,
        );
        let d = u128::from(x) * u128::from(y) + u128::from(y);
        let (low, high) = (d as u64, (d >> 64) as u64);
        assert_eq!(got, [low, high, low, high], "{x:#x}, {y:#x}");
    }
}
