//! Prints how the time to load a module and to compile its kernels grows with its size, for shapes of code that are hard on a
//! compiler: `cargo run --release --example engine_load -p cupyrite-engine [SHAPE]`.

use std::fmt::Write;
use std::time::Instant;

use cupyrite_engine::Image;
use cupyrite_engine::memory::AddressSpace;

const REGISTERS: &str = ".reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n";

fn kernel(name: &str, body: &str) -> String {
    format!(".visible .entry {name}(.param .u64 out)\n{{\n{REGISTERS}{body}ret;\n}}\n")
}

/// Kernels of a few instructions.
fn entries(n: usize) -> String {
    let body = "ld.param.u64 %rd1, [out];\nmov.u32 %r1, %tid.x;\nst.global.u32 [%rd1], %r1;\n";
    (0..n).map(|k| kernel(&format!("k{k}"), body)).collect()
}

/// One block of instructions.
fn straight(n: usize) -> String {
    kernel("k", &"add.s32 %r1, %r2, %r3;\n".repeat(n))
}

/// Functions that call the next one.
fn calls(n: usize) -> String {
    let mut text = String::from(".func f0() { ret; }\n");
    for k in 1..n {
        let _ = writeln!(text, ".func f{k}() {{ call f{}; ret; }}", k - 1);
    }
    text + &kernel("k", &format!("call f{};\n", n.max(1) - 1))
}

/// Branches around branches.
fn nested(n: usize) -> String {
    let mut body = String::new();
    for k in 0..n {
        let _ = writeln!(
            body,
            "setp.eq.s32 %p1, %r1, {k};\n@%p1 bra E{k};\nadd.s32 %r2, %r2, 1;"
        );
    }
    for k in (0..n).rev() {
        let _ = writeln!(body, "E{k}:\nadd.s32 %r3, %r3, 1;");
    }
    kernel("k", &body)
}

/// Loops with two entries.
fn irreducible(n: usize) -> String {
    let mut body = String::new();
    for k in 0..n {
        let _ = writeln!(
            body,
            "setp.eq.s32 %p1, %r1, {k};\n@%p1 bra B{k};\nA{k}: add.s32 %r1, %r1, 1;\nB{k}: setp.lt.s32 %p2, %r1, %r2;\n@%p2 bra A{k};"
        );
    }
    kernel("k", &body)
}

/// A chain of definitions that are the same in all threads.
fn uniform(n: usize) -> String {
    let mut body = format!(".reg .b32 %u<{}>;\nmov.u32 %u0, %ntid.x;\n", n + 1);
    // In reverse order, so that one pass over the code finds one of them.
    for k in (0..n).rev() {
        let _ = writeln!(body, "add.s32 %u{}, %u{k}, 1;", k + 1);
    }
    kernel("k", &body)
}

type Shape = (&'static str, fn(usize) -> String, &'static [usize]);

const SHAPES: [Shape; 6] = [
    ("entries", entries, &[1_000, 10_000, 100_000]),
    ("straight", straight, &[10_000, 100_000, 200_000, 1_000_000]),
    ("calls", calls, &[1_000, 5_000, 20_000]),
    ("nested", nested, &[100, 1_000, 10_000]),
    ("irreducible", irreducible, &[100, 1_000, 10_000]),
    ("uniform", uniform, &[100, 1_000, 10_000]),
];

fn main() {
    let only = std::env::args().nth(1);
    println!(
        "{:12} {:>9} {:>10} {:>10} {:>10}",
        "shape", "size", "bytes", "load ms", "first ms"
    );
    for (name, make, sizes) in SHAPES {
        if only.as_ref().is_some_and(|only| only != name) {
            continue;
        }
        for &size in sizes {
            let text = format!(
                ".version 8.3\n.target sm_80\n.address_size 64\n{}",
                make(size)
            );
            let begin = Instant::now();
            let image = match Image::load(&text, AddressSpace::global()) {
                Ok(image) => image,
                Err(error) => {
                    println!("{name:12} {size:>9} {error}");
                    continue;
                }
            };
            let load = begin.elapsed().as_secs_f64() * 1e3;
            let begin = Instant::now();
            let refused = image
                .kernels()
                .first()
                .and_then(|kernel| kernel.unsupported());
            let first = begin.elapsed().as_secs_f64() * 1e3;
            println!(
                "{name:12} {size:>9} {:>10} {load:>10.1} {first:>10.1} {}",
                text.len(),
                refused.unwrap_or_default()
            );
        }
    }
}
