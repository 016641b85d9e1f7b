//! Kernels of pseudo-random instructions, loads, stores, branches and calls. Threads access memory of their own only, so that the
//! result does not depend on their order.

use std::fmt::Write as _;

use super::lanes::{instruction, instructions, operands};
use super::{Both, Random, module};

const WORDS: usize = 40;
const LONGS: usize = 20;
const HALVES: usize = 8;
const PREDS: usize = 6;
/// Words of results of a thread.
const RESULTS: usize = WORDS + 2 * LONGS + HALVES + PREDS;
/// Rows of memory, with one element of each width for each thread.
const ROWS: usize = 4;
/// Bytes of the elements of all widths of all rows of a thread.
const BYTES: usize = ROWS * (1 + 2 + 4 + 8 + 16);
/// The most threads of a block.
const BLOCK: usize = 100;

const FUNCTION: &str = ".func (.reg .b32 %x) f (.reg .b32 %a, .reg .b32 %b)
{
    .reg .pred %p<3>; .reg .b32 %n;
    and.b32 %n, %a, 7; mov.u32 %x, %b;
    setp.gt.s32 %p1, %b, 100; @%p1 bra L2;
    L1: mad.lo.u32 %x, %x, 5, %a; xor.b32 %x, %x, %n; add.s32 %n, %n, -1; setp.ge.s32 %p0, %n, 0; @%p0 bra L1;
    ret;
    L2: setp.gt.s32 %p2, %a, 0; @%p2 ret;
    add.u32 %x, %x, 3; shl.b32 %x, %x, 1; ret;
}";

/// Adds an operand: a register of the class that the letter of [`instruction`] stands for.
fn register(random: &mut Random, letter: char) -> String {
    match letter {
        'd' | 'a' => format!("%r{}", random.below(WORDS)),
        'D' | 'A' => format!("%q{}", random.below(LONGS)),
        'H' | 'h' => format!("%h{}", random.below(HALVES)),
        _ => format!("%p{}", random.below(PREDS)),
    }
}

/// A load or store of the thread's memory, or a load of words that all threads of a row share.
fn access(random: &mut Random, threads: usize) -> String {
    let (ty, letter, count, width) = random.of(&[
        ("u8", 'd', 1, 0),
        ("s8", 'd', 1, 0),
        ("u8", 'H', 1, 0),
        ("s8", 'H', 1, 0),
        ("u16", 'H', 1, 1),
        ("s16", 'd', 1, 1),
        ("s16", 'H', 1, 1),
        ("b32", 'd', 1, 2),
        ("f32", 'd', 1, 2),
        ("b64", 'D', 1, 3),
        ("b32", 'd', 2, 3),
        ("b32", 'd', 4, 4),
        ("b64", 'D', 2, 4),
        ("u8", 'd', 4, 2),
        ("s8", 'H', 2, 1),
        ("b16", 'H', 2, 2),
        ("s16", 'd', 4, 3),
        ("u32", 'D', 1, 2),
        ("s32", 'D', 1, 2),
        ("s16", 'D', 1, 1),
    ]);
    if random.below(8) == 0 {
        let space = random.of(&[("global", 'q'), ("shared", 'r')]);
        let op = random.of(&[
            "add.u32", "add.s32", "exch.b32", "min.s32", "max.u32", "and.b32", "inc.u32",
            "dec.u32", "add.f32",
        ]);
        let [d, a] = [0, 1].map(|_| random.below(WORDS));
        return format!("atom.{}.{op} %r{d}, [%{}62], %r{a};", space.0, space.1);
    }
    let load = random.below(2) == 0;
    let mut list: Vec<String> = Vec::new();
    while list.len() < count {
        let r = register(random, letter);
        // The destinations of a vector must differ.
        if !list.contains(&r) {
            list.push(r);
        }
    }
    let list = list.join(", ");
    let (vector, list) = match count {
        1 => (String::new(), list),
        n => (format!(".v{n}"), format!("{{{list}}}")),
    };
    let row = random.below(ROWS);
    let address = |base: char, threads: usize| {
        format!("[%{base}{}+{}]", 60 + width, (row * threads) << width)
    };
    let (space, address) = match random.below(7) {
        5 => ("local", format!("[own+{}]", row << width)),
        6 => ("local", format!("[%q72+{}]", row << width)),
        0 if load => ("global", format!("[%q70+{}]", row << width)),
        1 => ("global", format!("[%q71+{}]", row << width)),
        0..3 => ("global", address('q', threads)),
        _ => ("shared", address('r', BLOCK)),
    };
    match load {
        true => format!("ld.{space}{vector}.{ty} {list}, {address};"),
        false => format!("st.{space}{vector}.{ty} {address}, {list};"),
    }
}

/// A guard, with a probability of 1 in `n`.
fn guard(random: &mut Random, n: usize) -> String {
    match random.below(n) {
        0 => format!("@{}%p{} ", random.of(&["", "!"]), random.below(PREDS)),
        _ => String::new(),
    }
}

/// The end of block `n` of `blocks`.
fn branch(random: &mut Random, n: usize, blocks: usize) -> String {
    let mut ahead = || n + 1 + random.below((blocks - n).min(4));
    let (to, other) = (ahead(), ahead());
    let back = n - random.below(n.min(4) + 1);
    let p = random.below(PREDS);
    let not = random.of(&["", "!"]);
    match random.below(12) {
        0..4 => format!("@{not}%p{p} bra L{to};"),
        4 => format!("bra L{to};"),
        5..8 => format!(
            "add.s32 %r50, %r50, -1; setp.gt.s32 %p50, %r50, 0; and.pred %p50, %p50, %p{p}; @%p50 bra L{back};"
        ),
        8 => format!(
            "and.b32 %r51, %r{p}, 3; T{n}: .branchtargets L{to}, L{other}, L{to}, L{blocks}; brx.idx %r51, T{n};"
        ),
        9 => format!(
            "call (%r{p}), f, (%r{}, %r{});",
            random.below(WORDS),
            random.below(WORDS)
        ),
        10 if n > 2 => format!("@%p{p} bra L{blocks};"),
        _ => String::new(),
    }
}

fn kernel(random: &mut Random, rows: &[String], threads: usize) -> String {
    let mut body = format!(
        ".reg .b16 %h<99>; .reg .b32 %r<99>; .reg .b64 %q<99>; .reg .pred %p<99>; .reg .b32 %tx;
        .shared .align 16 .b8 memory[{}]; .local .align 16 .b8 own[256];
        mov.u32 %r80, %ctaid.x; mov.u32 %r81, %ntid.x; mov.u32 %tx, %tid.x; mad.lo.u32 %r83, %r80, %r81, %tx;
        ld.param.u64 %q80, [p0]; ld.param.u64 %q81, [p1]; ld.param.u64 %q82, [p2]; mov.u32 %r50, 60; add.cc.u32 %r84, %r83, %r83;
        mul.wide.u32 %q83, %r83, 4; add.u64 %q84, %q80, %q83; mul.wide.u32 %q83, %r83, 8; add.u64 %q85, %q80, %q83;
        shr.u32 %r84, %r83, 4; mul.wide.u32 %q83, %r84, 16; add.u64 %q70, %q80, %q83;
        mul.wide.u32 %q83, %r83, {}; add.u64 %q71, %q82, %q83; add.u64 %q71, %q71, {};
        mov.u32 %r85, memory;\n",
        BLOCK * BYTES,
        16 * ROWS,
        (BYTES * threads).next_multiple_of(16) + 128,
    );
    for width in 0..5 {
        let at = ROWS * threads * ((1 << width) - 1);
        let shared = ROWS * BLOCK * ((1 << width) - 1);
        // Sections of larger elements follow those of smaller ones.
        let at = at.next_multiple_of(16) + 16 * width;
        let shared = shared.next_multiple_of(16);
        let _ = writeln!(
            body,
            "mul.wide.u32 %q83, %r83, {0}; add.u64 %q83, %q83, {at}; add.u64 %q{1}, %q82, %q83;
            mad.lo.u32 %r{1}, %tx, {0}, %r85; add.u32 %r{1}, %r{1}, {shared};",
            1 << width,
            60 + width
        );
        for row in 0..ROWS {
            let value = ["%h0", "%h0", "%r83", "%q83", "{%q83, %q84}"][width];
            let ty = ["u8", "u16", "u32", "u64", "v2.u64"][width];
            let at = (row * BLOCK) << width;
            let _ = writeln!(
                body,
                "mov.u16 %h0, {row}; mov.u64 %q84, {row}; st.shared.{ty} [%r{}+{at}], {value};",
                60 + width
            );
        }
    }
    // Offsets that are equal in some rows of lanes, and different in others.
    body += "and.b32 %r85, %tx, 37; and.b32 %r84, %r85, 5; mul.wide.u32 %q83, %r84, 16;
        mov.u64 %q72, own; add.u64 %q72, %q72, %q83;\n";
    for at in (0..256).step_by(16) {
        let _ = writeln!(body, "st.local.v2.u64 [own+{at}], {{%q72, %q85}};");
    }
    body += "add.u64 %q84, %q85, 0; mul.wide.u32 %q83, %r83, 4; add.u64 %q84, %q80, %q83;\n";
    for n in 0..WORDS {
        let _ = writeln!(
            body,
            "ld.global.u32 %r{n}, [%q84+{}];",
            4 * random.below(8 * threads)
        );
    }
    for n in 0..LONGS {
        let at = 16 * threads + 8 * random.below(2 * threads);
        let _ = writeln!(body, "ld.global.u64 %q{n}, [%q85+{at}];");
    }
    for n in 0..HALVES {
        let _ = writeln!(body, "cvt.u16.u32 %h{n}, %r{n};");
    }
    for n in 0..PREDS {
        let _ = writeln!(body, "setp.lt.s32 %p{n}, %r{n}, %r{};", n + 9);
    }
    let most = random.of(&[9, 9, 30, 90]);
    let blocks = 3 + random.below(most);
    for n in 0..blocks {
        let _ = writeln!(body, "L{n}:");
        for _ in 0..random.below(16) {
            let g = guard(random, 4);
            let text = if random.below(4) == 0 {
                access(random, threads)
            } else {
                let row = &rows[random.below(rows.len())];
                instruction(row, |letter, _| register(random, letter))
            };
            let _ = writeln!(body, "{g}{text}");
        }
        let _ = writeln!(body, "{}", branch(random, n, blocks));
    }
    let _ = writeln!(
        body,
        "L{blocks}: mul.wide.u32 %q83, %r83, {}; add.u64 %q84, %q81, %q83;",
        4 * RESULTS
    );
    for n in 0..LONGS {
        let _ = writeln!(body, "st.global.u64 [%q84+{}], %q{n};", 8 * n);
    }
    let mut at = 8 * LONGS;
    for n in 0..WORDS {
        let _ = writeln!(body, "st.global.u32 [%q84+{at}], %r{n};");
        at += 4;
    }
    for n in 0..HALVES {
        let _ = writeln!(
            body,
            "cvt.u32.u16 %r85, %h{n}; st.global.u32 [%q84+{at}], %r85;"
        );
        at += 4;
    }
    for n in 0..PREDS {
        let _ = writeln!(
            body,
            "selp.u32 %r85, 1, 0, %p{n}; st.global.u32 [%q84+{at}], %r85;"
        );
        at += 4;
    }
    module(FUNCTION, 3, &(body + "ret;"))
}

/// Compares the kernels of these seeds. After a change of the compiler, a range of thousands is worth a run.
fn check(seeds: std::ops::Range<u64>) {
    let rows = instructions();
    let mut failed = Vec::new();
    for seed in seeds {
        let mut random = Random(seed << 32);
        let block = random.of(&[32, 20, 48, 100, 64, 7]);
        let grid = 1 + random.below(3);
        let threads = grid * block;
        let ptx = kernel(&mut random, &rows, threads);
        // `p2`: rows of all widths, then bytes of each thread.
        let memory: Vec<u32> = (0..2 * threads * BYTES / 4 + 256)
            .map(|_| random.bits() as u32)
            .collect();
        let contents = vec![operands(threads), vec![0; threads * RESULTS], memory];
        let Some(both) = Both::new(ptx) else {
            return;
        };
        let pairs = both.pairs([grid as u32, 1, 1], [block as u32, 1, 1], contents);
        for (n, [e, f]) in
            pairs.flat_map(|[e, f]| e.into_iter().zip(f).map(|(e, f)| [e, f]).enumerate())
        {
            let different: Vec<String> = (0..e.len())
                .filter(|&k| e[k] != f[k])
                .map(|k| {
                    format!(
                        "thread {} result {}: {:#x}, expected {:#x}",
                        k / RESULTS,
                        k % RESULTS,
                        f[k],
                        e[k]
                    )
                })
                .collect();
            if !different.is_empty() {
                if failed.is_empty() {
                    eprintln!("{}", both.ptx);
                }
                eprintln!("seed {seed}, buffer {n}, grid {grid}, block {block}: {different:?}");
                failed.push(seed);
            }
        }
    }
    assert!(failed.is_empty(), "seeds {failed:?}");
}

#[test]
fn random_kernels() {
    check(0..40);
}

#[test]
fn more_random_kernels() {
    check(1000..1040);
}
