//! Live ranges of varying registers, for register allocation.
//!
//! Except in warp collectives and warp functions, a lane reads only what it wrote itself, and an instruction writes only the
//! elements of the lanes that execute it. Two registers can therefore share a slot if their live ranges do not overlap, however
//! the lanes of a warp diverge. Warp collectives and warp functions read elements of other lanes. Sharing is safe there too:
//! while lanes wait at such an instruction, its sources are live in them, and the remaining lanes do not write their elements.

use crate::kir::{Action, BlockId, Function, Instruction, Reg, Role, Source, Uniformity};

/// A range of positions. Instruction `n` of a function reads at `2 * n` and writes at `2 * n + 1`. Lane functions read all
/// sources before they write; any other instruction may write a destination before it has read all sources, so its reads count
/// at `2 * n + 1` instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveRange {
    /// First position.
    pub from: u32,
    /// Last position.
    pub to: u32,
}

impl LiveRange {
    const EMPTY: Self = Self {
        from: u32::MAX,
        to: 0,
    };

    fn extend(&mut self, from: u32, to: u32) {
        self.from = self.from.min(from);
        self.to = self.to.max(to);
    }
}

/// Limit of the data-flow analysis: registers that are not local to a block, times blocks. Above it, these registers count as
/// live in the whole function.
const MOST_WORK: usize = 1 << 28;

/// What the first scan of the instructions finds out about a register.
#[derive(Clone, Copy)]
struct Seen {
    /// The block of its first instruction.
    block: u32,
    /// Whether no other block names it, and its first instruction defines it in all lanes.
    local: bool,
}

/// For each varying register that instructions write, a range that contains every position at which it is live; `None` for
/// other registers and for unused ones.
pub fn live_ranges(f: &Function) -> Vec<Option<LiveRange>> {
    let varying = |r: Reg| {
        let own = &f.registers[r.at as usize];
        own.uniformity == Uniformity::Varying
            && matches!(own.source, Source::Declared(..) | Source::Temporary)
    };
    let mut seen: Vec<Option<Seen>> = vec![None; f.registers.len()];
    let mut ranges = vec![LiveRange::EMPTY; f.registers.len()];
    let mut starts = Vec::with_capacity(f.blocks.len() + 1);
    let mut n = 0;
    for (block, b) in f.blocks.iter().enumerate() {
        starts.push(2 * n);
        for i in &b.instructions {
            for_each_operand(i, |role, r| {
                if !varying(r) {
                    return;
                }
                let block = block as u32;
                let defines = role == Role::Write && i.guard.is_none();
                let first = Seen {
                    block,
                    local: defines,
                };
                let seen = seen[r.at as usize].get_or_insert(first);
                seen.local &= seen.block == block;
                let at = 2 * n + u32::from(role == Role::Write || !reads_before_writing(i));
                ranges[r.at as usize].extend(at, at);
            });
            n += 1;
        }
    }
    starts.push(2 * n);
    let global = |(_, s): &(usize, &Option<Seen>)| s.is_some_and(|s| !s.local);
    let globals: Vec<usize> = seen
        .iter()
        .enumerate()
        .filter(global)
        .map(|(r, _)| r)
        .collect();
    if globals.len() * f.blocks.len() > MOST_WORK {
        for &r in &globals {
            ranges[r].extend(0, 2 * n);
        }
    } else if !globals.is_empty() {
        extend_across_blocks(f, &globals, &starts, &mut ranges);
    }
    let ranges = ranges.into_iter().zip(seen);
    ranges.map(|(range, seen)| seen.map(|_| range)).collect()
}

/// Whether an instruction reads its sources before it writes the first destination, in every lane, so that a destination may
/// have the slot of a source.
fn reads_before_writing(i: &Instruction) -> bool {
    matches!(i.action, Action::Lanes(_))
}

/// Calls `f` for the guard and for every operand, sources first.
fn for_each_operand(i: &Instruction, mut f: impl FnMut(Role, Reg)) {
    if let Some(g) = i.guard {
        f(Role::Read, g.predicate);
    }
    i.action.for_each(&mut |role, r| f(role, *r));
}

/// A set of registers.
#[derive(Clone)]
struct Set(Vec<u64>);

impl Set {
    fn new(size: usize) -> Self {
        Self(vec![0; size.div_ceil(64)])
    }

    fn insert(&mut self, n: usize) {
        self.0[n / 64] |= 1 << (n % 64);
    }

    fn contains(&self, n: usize) -> bool {
        self.0[n / 64] >> (n % 64) & 1 != 0
    }

    fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(k, &word)| {
            let bits = std::iter::successors(Some(word), |w| Some(w & w.wrapping_sub(1)));
            bits.take_while(|w| *w != 0)
                .map(move |w| 64 * k + w.trailing_zeros() as usize)
        })
    }
}

/// Extends the ranges of the registers `globals` to the block boundaries at which they are live: backward data-flow analysis of
/// live variables.
fn extend_across_blocks(f: &Function, globals: &[usize], starts: &[u32], ranges: &mut [LiveRange]) {
    // Positions in `globals`.
    let mut index: Vec<Option<u32>> = vec![None; f.registers.len()];
    for (n, &r) in globals.iter().enumerate() {
        index[r] = Some(n as u32);
    }
    // Registers that a block reads before it defines them, and those that it defines.
    let mut live_in = Vec::with_capacity(f.blocks.len());
    let mut defined = Vec::with_capacity(f.blocks.len());
    for b in &f.blocks {
        let (mut reads, mut defines) = (Set::new(globals.len()), Set::new(globals.len()));
        for i in &b.instructions {
            for_each_operand(i, |role, r| {
                let Some(n) = index[r.at as usize].map(|n| n as usize) else {
                    return;
                };
                match role {
                    Role::Write if i.guard.is_none() => defines.insert(n),
                    Role::Read if !defines.contains(n) => reads.insert(n),
                    _ => {}
                }
            });
        }
        live_in.push(reads);
        defined.push(defines);
    }
    let successors: Vec<Vec<BlockId>> = (0..f.blocks.len() as u32)
        .map(|b| f.successors(BlockId(b)))
        .collect();
    let live_out = |live_in: &[Set], block: usize| {
        let mut out = Set::new(globals.len());
        for s in &successors[block] {
            let of = &live_in[s.0 as usize].0;
            out.0.iter_mut().zip(of).for_each(|(to, from)| *to |= from);
        }
        out
    };
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..f.blocks.len()).rev() {
            let out = live_out(&live_in, block);
            let own = &mut live_in[block].0;
            for ((to, from), defined) in own.iter_mut().zip(&out.0).zip(&defined[block].0) {
                let new = *to | from & !defined;
                changed |= new != *to;
                *to = new;
            }
        }
    }
    for block in 0..f.blocks.len() {
        let (from, to) = (starts[block], starts[block + 1]);
        for n in live_in[block].iter() {
            ranges[globals[n]].extend(from, from);
        }
        for n in live_out(&live_in, block).iter() {
            ranges[globals[n]].extend(to, to);
        }
    }
}
