//! The compiler: machine code for the parts of a kernel that consist of arithmetic, loads, stores and branches.
//!
//! The code processes a warp in *chunks* of 16 or 8 lanes, one vector register per 32-bit element, from an entry until an
//! instruction that only the interpreter executes, such as a barrier. It leaves the register file as the interpreter would, so
//! that the interpreter can go on anywhere. Results are those of the interpreter bit by bit.
//!
//! Belongs here: what depends on the instruction set of the processor, x86-64 with AVX-512 or AVX2. Does not belong here: the meaning of
//! instructions, which [`VectorOp`](crate::semantics::lane::VectorOp) describes.

mod addresses;
mod approximate;
mod assembler;
mod atomic;
mod avx2;
mod bits;
mod checks;
mod collective;
mod compare;
mod conditional;
mod control;
mod convert;
mod deferred;
mod emit;
mod float;
mod flow;
mod half;
mod homes;
mod integer;
mod isa;
mod lanes;
mod local;
mod memory;
mod packed;
mod predicates;
pub mod run;
mod scattered;
mod short;
#[cfg(test)]
mod tests;
mod vectors;
mod wide;

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use self::emit::Emitter;
use self::flow::Flow;
use self::homes::Homes;
use self::isa::Isa;
use crate::bytecode::{GUARDED, Inst, InstKind, NativeCode, NativeEntry, Program};
use crate::dump;
use crate::executable_memory::ExecutableMemory;
use crate::settings::{self, TierSetting};

/// A launch of this many warps is worth compiling a kernel for, whatever they do.
const WARPS_OF_LAUNCH: u64 = 8192;
/// Nanoseconds that an instruction takes to compile, about.
const COMPILE_TIME: u64 = 8_000;
/// A kernel is worth compiling when it has been interpreted for so many times the time that compiling takes.
const FACTOR: u64 = 20;

/// The instruction set of machine code; `None` if this machine has none that the compiler knows.
fn isa() -> Option<Isa> {
    static ISA: OnceLock<Option<Isa>> = OnceLock::new();
    *ISA.get_or_init(Isa::selected)
}

/// The setting; the interpreter if the machine lacks the instructions that the compiler uses.
fn setting() -> TierSetting {
    static SETTING: OnceLock<TierSetting> = OnceLock::new();
    *SETTING.get_or_init(|| {
        if isa().is_some() {
            let setting = settings::tier().ok().flatten();
            setting.unwrap_or(TierSetting::Automatic)
        } else {
            TierSetting::Interpreter
        }
    })
}

/// Compiles a kernel before a launch of `warps` warps, if the setting says so or if it is worth it.
pub fn before_launch(program: &Program, warps: u64) {
    let worth_it = match setting() {
        TierSetting::Interpreter => false,
        TierSetting::Compiler => true,
        TierSetting::Automatic => warps >= WARPS_OF_LAUNCH || is_worth_it(program, 0),
    };
    if worth_it {
        let least = match setting() {
            TierSetting::Compiler => LEAST_INSTRUCTIONS,
            _ => LEAST_FOR_SPEED,
        };
        program
            .native
            .get_or_compile(|| compile(program, isa()?, least));
    }
}

/// Whether a kernel has been interpreted for long, in earlier launches and for `now` nanoseconds in this one.
fn is_worth_it(program: &Program, now: u64) -> bool {
    let before = program.native.interpreted.load(Ordering::Relaxed);
    before.saturating_add(now) >= FACTOR * COMPILE_TIME * program.code.len() as u64
}

/// Compiles the kernel of a launch that began at `start`, if it is worth it. Called from time to time while it is interpreted.
pub fn during_launch(program: &Program, start: Instant) {
    if program.native.is_decided() || setting() != TierSetting::Automatic {
        return;
    }
    if is_worth_it(program, start.elapsed().as_nanos() as u64) {
        program
            .native
            .get_or_compile(|| compile(program, isa()?, LEAST_FOR_SPEED));
    }
}

/// Records a launch of `time`.
pub fn after_launch(program: &Program, time: Duration) {
    if !program.native.is_decided() {
        let time = time.as_nanos() as u64;
        program
            .native
            .interpreted
            .fetch_add(time, Ordering::Relaxed);
    }
}

/// The most instructions of a function that is compiled.
const MOST_INSTRUCTIONS: usize = 50_000;
/// Instructions that machine code must execute at least to be worth entering, if there is little to do where it ends.
const LEAST_INSTRUCTIONS: u32 = 4;
/// The same where the interpreter executes an instruction for each warp, which takes as long, with entering again, as it takes
/// for so many instructions.
const LEAST_FOR_SPEED: u32 = 16;

/// An entry before the address of the code is known.
struct UnplacedEntry {
    pc: u32,
    enter: u32,
    full: u32,
    masked: Option<u32>,
    blocks: u32,
    pairs: bool,
}

/// Compiles a kernel, with entries where `least` instructions follow until one that the interpreter executes; `None` if nothing of it is worth it, or if the operating system refuses memory for code.
pub fn compile(program: &Program, isa: Isa, least: u32) -> Option<NativeCode> {
    let start = Instant::now();
    let mut bytes = Vec::new();
    let mut entries = Vec::new();
    let mut blocks = Vec::new();
    for (n, f) in program.functions.iter().enumerate() {
        let end = program.functions.get(n + 1);
        let end = end.map_or(program.code.len() as u32, |f| f.entry);
        compile_function(
            program,
            (isa, least),
            f.entry..end,
            &mut bytes,
            &mut entries,
            &mut blocks,
        );
    }
    if entries.is_empty() {
        return None;
    }
    let memory = match ExecutableMemory::new(&bytes) {
        Ok(memory) => memory,
        Err(e) => {
            log::warn!("no memory for machine code, the interpreter runs kernels: {e}");
            return None;
        }
    };
    if let Ok(Some(dump)) = dump::requested()
        && dump.point == dump::CODE
    {
        dump.write(&program.name, &bytes);
    }
    log::debug!(
        "compiled {}: {} instructions, {} bytes of machine code, {:?}",
        program.name,
        program.code.len(),
        bytes.len(),
        start.elapsed()
    );
    let address = |offset: u32| memory.base() + u64::from(offset);
    let mut code = program.code.clone();
    for (n, e) in entries.iter().enumerate() {
        let mut inst = Inst::new(InstKind::Native);
        inst.target = n as u32;
        code[e.pc as usize] = inst;
    }
    Some(NativeCode {
        lanes: isa.lanes(),
        code,
        entries: entries
            .iter()
            .map(|e| NativeEntry {
                enter: address(e.enter),
                full: address(e.full),
                masked: e.masked.map_or(0, address),
                blocks: e.blocks,
                pairs: e.pairs,
            })
            .collect(),
        blocks: blocks.iter().map(|&(at, _)| address(at)).collect(),
        positions: blocks.iter().map(|&(_, pc)| pc).collect(),
        accesses_local: (program.code.iter()).any(|i| local::access(program, i).is_some()),
        memory,
    })
}

fn compile_function(
    program: &Program,
    (isa, least): (Isa, u32),
    range: Range<u32>,
    bytes: &mut Vec<u8>,
    entries: &mut Vec<UnplacedEntry>,
    blocks: &mut Vec<(u32, u32)>,
) {
    if range.len() > MOST_INSTRUCTIONS {
        return;
    }
    let flow = Flow::new(program, range, isa);
    let starts: Vec<usize> = (0..flow.blocks.len())
        .filter(|&n| is_worth_entering(program, &flow, n, least))
        .collect();
    if starts.is_empty() {
        return;
    }
    let homes = Homes::new(program, &flow, isa);
    let mut e = Emitter::new(program, &flow, &homes, isa);
    let enter = e.asm.here();
    e.prologue();
    e.blocks(false);
    let bodies = flow.can_wait.then(|| e.blocks(true));
    e.finish_translation();
    e.dispatch_waiting();
    e.end();
    if flow.has_collectives() {
        e.suspend_chunk();
    }
    e.execute_instruction();
    let mut labels = Vec::new();
    for &n in &starts {
        let full = e.enter_full(n);
        let masked = bodies.as_ref().map(|b| e.enter_masked(b[n]));
        labels.push((n, full, masked));
    }
    let partial = e.partial.clone();
    let pairs = flow.has_collectives();
    let encoded = match e.asm.encode() {
        Ok(encoded) => encoded,
        Err(e) => {
            log::error!("internal error: machine code of {}: {e}", program.name);
            return;
        }
    };
    let base = bytes.len() as u32;
    let first = blocks.len() as u32;
    let offset = |label| encoded.offset(label).map(|o| base + o);
    let Some(enter) = offset(enter) else { return };
    if flow.can_wait {
        let waiting = flow.blocks.iter().enumerate();
        let waiting = waiting.filter(|(_, b)| b.waiting.is_some());
        blocks.extend(waiting.filter_map(|(n, b)| Some((offset(partial[n])?, b.code.start))));
    }
    for (n, full, masked) in labels {
        if let Some(full) = offset(full) {
            entries.push(UnplacedEntry {
                pc: flow.blocks[n].code.start,
                enter,
                full,
                masked: masked.and_then(offset),
                blocks: first,
                pairs,
            });
        }
    }
    bytes.extend_from_slice(&encoded.bytes);
    bytes.resize(bytes.len().next_multiple_of(64), 0xcc);
}

/// Whether enough instructions follow the start of a block until one that the interpreter executes.
fn is_worth_entering(program: &Program, flow: &Flow, block: usize, least: u32) -> bool {
    let mut count = 0;
    // If the interpreter has executed a collective that code would have reached, some lanes are elsewhere, and it probably
    // executes the next one, too.
    let behind_collective = block > 1 && {
        let [before, last] = [&flow.blocks[block - 2], &flow.blocks[block - 1]];
        let starts_loop = last.depth > before.depth;
        last.collective && !before.interpreted && !starts_loop
    };
    for b in &flow.blocks[block..] {
        if b.interpreted {
            // Barriers and ends are passed for all warps of a block together.
            let kind = program.code[b.code.start as usize].kind;
            let together = matches!(kind, InstKind::Bar | InstKind::Ret);
            return together && count >= LEAST_INSTRUCTIONS;
        }
        if b.collective && (count == 0 || behind_collective) {
            return false;
        }
        count += b.code.len() as u32;
        let last = &program.code[b.code.end as usize - 1];
        let loops = last.kind == InstKind::Bra && last.target <= b.code.start;
        if count >= least || loops {
            return true;
        }
        if last.kind == InstKind::Bra && last.flags & GUARDED == 0 {
            return false;
        }
    }
    false
}
