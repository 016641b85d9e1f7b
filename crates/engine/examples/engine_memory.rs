//! Times kernels that mostly access memory: a vector addition, a reduction in shared memory, a histogram with atomics and a
//! permutation: `cargo run --release --example engine_memory -p cupyrite-engine [ROUNDS]`.

use std::time::Instant;

use cupyrite_engine::memory::{AddressSpace, RegionKind};
use cupyrite_engine::{Image, LaunchConfig, launch};

/// Elements, one a thread.
const N: usize = 1 << 22;

const HEAD: &str = "
    .reg .pred %p<4>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    .reg .f32 %f<4>;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd4, %r4, 4;
";

const ADD: &str = "
    add.s64 %rd5, %rd1, %rd4;
    add.s64 %rd6, %rd2, %rd4;
    add.s64 %rd7, %rd3, %rd4;
    ld.global.f32 %f1, [%rd5];
    ld.global.f32 %f2, [%rd6];
    add.f32 %f3, %f1, %f2;
    st.global.f32 [%rd7], %f3;
    ret;
";

const REDUCE: &str = "
    .shared .align 4 .b8 sums[1024];
    mov.u32 %r5, sums;
    shl.b32 %r6, %r3, 2;
    add.s32 %r5, %r5, %r6;
    add.s64 %rd5, %rd1, %rd4;
    ld.global.u32 %r7, [%rd5];
    st.shared.u32 [%r5], %r7;
    mov.u32 %r8, 128;
STEP:
    bar.sync 0;
    setp.ge.u32 %p1, %r3, %r8;
    @%p1 bra NEXT;
    shl.b32 %r9, %r8, 2;
    add.s32 %r10, %r5, %r9;
    ld.shared.u32 %r11, [%r10];
    ld.shared.u32 %r12, [%r5];
    add.s32 %r12, %r12, %r11;
    st.shared.u32 [%r5], %r12;
NEXT:
    shr.u32 %r8, %r8, 1;
    setp.ne.u32 %p2, %r8, 0;
    @%p2 bra STEP;
    setp.ne.u32 %p3, %r3, 0;
    @%p3 bra DONE;
    mul.wide.u32 %rd6, %r1, 4;
    add.s64 %rd7, %rd3, %rd6;
    st.global.u32 [%rd7], %r12;
DONE:
    ret;
";

const HISTOGRAM: &str = "
    add.s64 %rd5, %rd1, %rd4;
    ld.global.u32 %r5, [%rd5];
    and.b32 %r5, %r5, 255;
    mul.wide.u32 %rd6, %r5, 4;
    add.s64 %rd7, %rd3, %rd6;
    red.global.add.u32 [%rd7], 1;
    ret;
";

const PERMUTE: &str = "
    mul.lo.u32 %r5, %r4, 2654435761;
    and.b32 %r5, %r5, 4194303;
    mul.wide.u32 %rd6, %r5, 4;
    add.s64 %rd5, %rd1, %rd6;
    add.s64 %rd7, %rd3, %rd4;
    ld.global.u32 %r6, [%rd5];
    st.global.u32 [%rd7], %r6;
    ret;
";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds: usize = std::env::args()
        .nth(1)
        .and_then(|s| s.parse().ok())
        .unwrap_or(5);
    let space = AddressSpace::global();
    let mut params = Vec::new();
    for _ in 0..3 {
        let base = space.alloc(4 * N as u64, 256, RegionKind::Device)?;
        // SAFETY: the allocation has this size, and no kernel runs.
        let words = unsafe { std::slice::from_raw_parts_mut(base as *mut u32, N) };
        for (i, w) in words.iter_mut().enumerate() {
            *w = (i as u32).wrapping_mul(747_796_405) >> 9;
        }
        params.extend(base.to_le_bytes());
    }
    for (name, body) in [
        ("vector addition", ADD),
        ("reduction, shared memory", REDUCE),
        ("histogram, atomics", HISTOGRAM),
        ("permutation", PERMUTE),
    ] {
        let ptx = format!(
            ".version 8.3\n.target sm_89\n.address_size 64\n\
             .visible .entry k(.param .u64 a, .param .u64 b, .param .u64 c)\n{{{HEAD}{body}}}\n"
        );
        let image = Image::load(&ptx, space)?;
        let Some(kernel) = image.kernel("k") else {
            continue;
        };
        let config = LaunchConfig::new([(N / 256) as u32, 1, 1], [256, 1, 1], &params);
        let mut best = f64::MAX;
        for _ in 0..rounds {
            let begin = Instant::now();
            launch(&kernel, &config)?;
            best = best.min(begin.elapsed().as_secs_f64());
        }
        println!(
            "{name:25} {:8.3} ms, {:6.3} ns per thread, best of {rounds}",
            best * 1e3,
            best * 1e9 / N as f64
        );
    }
    Ok(())
}
