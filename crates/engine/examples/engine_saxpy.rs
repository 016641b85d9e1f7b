//! Times saxpy on the PTX engine and in plain Rust: `cargo run --release --example engine_saxpy -p cupyrite-engine`.

use std::time::Instant;

use cupyrite_engine::memory::{AddressSpace, RegionKind};
use cupyrite_engine::{Image, LaunchConfig, launch};

const PTX: &str = r"
.version 8.0
.target sm_89
.address_size 64
.visible .entry saxpy(.param .f32 a, .param .u64 x, .param .u64 y, .param .u64 out, .param .u64 n)
{
    .reg .pred %p<2>;
    .reg .f32 %f<5>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<14>;
    ld.param.f32 %f1, [a];
    ld.param.u64 %rd2, [x];
    ld.param.u64 %rd3, [y];
    ld.param.u64 %rd4, [out];
    ld.param.u64 %rd5, [n];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    cvt.u64.u32 %rd1, %r4;
    setp.ge.u64 %p1, %rd1, %rd5;
    @%p1 bra $L__BB0_2;
    cvta.to.global.u64 %rd6, %rd2;
    shl.b64 %rd7, %rd1, 2;
    add.s64 %rd8, %rd6, %rd7;
    ld.global.f32 %f2, [%rd8];
    cvta.to.global.u64 %rd9, %rd3;
    add.s64 %rd10, %rd9, %rd7;
    ld.global.f32 %f3, [%rd10];
    fma.rn.f32 %f4, %f1, %f2, %f3;
    cvta.to.global.u64 %rd11, %rd4;
    add.s64 %rd12, %rd11, %rd7;
    st.global.f32 [%rd12], %f4;
$L__BB0_2:
    ret;
}
";

fn main() {
    let n: usize = std::env::args()
        .nth(1)
        .and_then(|s| s.parse().ok())
        .unwrap_or(16 << 20);
    let space = AddressSpace::global();
    let image = match Image::load(PTX, space) {
        Ok(i) => i,
        Err(e) => return eprintln!("{e}"),
    };
    let Some(kernel) = image.kernel("saxpy") else {
        return;
    };
    let alloc = || {
        space
            .alloc(4 * n as u64, 256, RegionKind::Device)
            .unwrap_or(0)
    };
    let (x, y, out) = (alloc(), alloc(), alloc());
    // SAFETY: three allocations of `n` floats.
    let (xs, ys, os) = unsafe {
        (
            std::slice::from_raw_parts_mut(x as *mut f32, n),
            std::slice::from_raw_parts_mut(y as *mut f32, n),
            std::slice::from_raw_parts_mut(out as *mut f32, n),
        )
    };
    for i in 0..n {
        xs[i] = i as f32;
        ys[i] = 1.0;
        os[i] = 0.0;
    }
    let mut params = Vec::new();
    params.extend(2.0f32.to_le_bytes());
    params.extend([0; 4]);
    for v in [x, y, out, n as u64] {
        params.extend(v.to_le_bytes());
    }
    let config = LaunchConfig::new([n.div_ceil(256) as u32, 1, 1], [256, 1, 1], &params);
    let rounds = if n > 4 << 20 { 5 } else { 300 };
    let (mut engine, mut plain, mut wrong) = (f64::MAX, f64::MAX, 0);
    for _ in 0..rounds {
        let t = Instant::now();
        if let Err(f) = launch(&kernel, &config) {
            return eprint!("{f}");
        }
        engine = engine.min(t.elapsed().as_secs_f64());
        wrong += (0..n)
            .filter(|&i| os[i] != 2.0f32.mul_add(i as f32, 1.0))
            .count();
        let t = Instant::now();
        for ((o, x), y) in os.iter_mut().zip(&*xs).zip(&*ys) {
            *o = 2.0 * x + y;
        }
        std::hint::black_box(&mut *os);
        plain = plain.min(t.elapsed().as_secs_f64());
    }
    println!(
        "best of {rounds}: engine {:.3} ms ({:.3} ns per thread), plain {:.3} ms, ratio {:.2}, wrong {wrong}",
        engine * 1e3,
        engine * 1e9 / n as f64,
        plain * 1e3,
        engine / plain
    );
}
