//! Which registers hold one value for the whole launch, or for a whole block.
//!
//! A register with a single, unguarded definition by a pure instruction whose sources are all of that sort never
//! changes, whatever the control flow: its definition can run once, ahead of the threads. This covers kernel
//! parameters, immediates, grid and block coordinates and everything computed from them. Registers that are copies of
//! `%tid` are read in place.

use cupyrite_ptx::ir::{Base, Body, Instr, Op, Operand, RegId, Space, Special, VarId};

use crate::engine::ops::{self, Selected};

/// How often a value changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Once a launch.
    Launch,
    /// Once a block.
    Block,
    /// A copy of `%tid` (axis).
    Tid(u8),
    /// Anything else.
    Varying,
}

/// The result for one function.
#[derive(Debug)]
pub struct Classes {
    /// Class of each register.
    pub regs: Vec<Class>,
    /// Instructions to run early, in an order in which sources come before their users.
    pub early: Vec<u32>,
    /// For each instruction, whether it is among `early` or needs no code at all.
    pub gone: Vec<bool>,
}

/// Class of a special register, if it is constant for a block.
pub fn special_class(s: Special) -> Option<Class> {
    use Special::*;
    Some(match s {
        Ntid(_)
        | Nctaid(_)
        | LaneId
        | NWarpId
        | NSmId
        | GridId
        | LaneMaskEq
        | LaneMaskLe
        | LaneMaskLt
        | LaneMaskGe
        | LaneMaskGt
        | NClusterId(_)
        | ClusterNCtaId(_)
        | ClusterNCtaRank
        | IsExplicitCluster
        | DynamicSmemSize
        | TotalSmemSize
        | AggrSmemSize
        | ReservedSmemOffset(_)
        | CurrentGraphExec
        | EnvReg(_)
        | Pm(_)
        | Pm64(_)
        | ClusterCtaId(_)
        | ClusterCtaRank => Class::Launch,
        Ctaid(_) | ClusterId(_) | SmId => Class::Block,
        Tid(_) | WarpId | Clock | ClockHi | Clock64 | GlobalTimer | GlobalTimerLo
        | GlobalTimerHi => return None,
    })
}

/// Registers that an operand writes when it stands in a destination position.
fn written(o: &Operand, out: &mut Vec<RegId>) {
    match o {
        Operand::Reg(r) | Operand::RegComponent(r, _) | Operand::RegSelect(r, _) => out.push(*r),
        Operand::Pair(a, b) => {
            written(a, out);
            written(b, out);
        }
        Operand::Vector(v) | Operand::Args(v) => v.iter().for_each(|o| written(o, out)),
        _ => {}
    }
}

/// Registers that an operand reads, addresses included.
pub fn read(o: &Operand, out: &mut Vec<RegId>) {
    match o {
        Operand::Reg(r)
        | Operand::RegComponent(r, _)
        | Operand::RegSelect(r, _)
        | Operand::NotReg(r) => out.push(*r),
        Operand::Neg(o) => read(o, out),
        Operand::Addr(Base::Reg(r), _) => out.push(*r),
        Operand::Pair(a, b) => {
            read(a, out);
            read(b, out);
        }
        Operand::Vector(v) | Operand::Args(v) | Operand::TexAddr(v) => {
            v.iter().for_each(|o| read(o, out))
        }
        _ => {}
    }
}

/// Whether the first operand is a destination.
pub fn has_destination(i: &Instr) -> bool {
    match i.op {
        Op::St
        | Op::Sust
        | Op::Sured
        | Op::Red
        | Op::Bra
        | Op::BrxIdx
        | Op::Ret
        | Op::Exit
        | Op::Trap
        | Op::Brkpt
        | Op::BarWarp
        | Op::Fence
        | Op::Membar
        | Op::Nanosleep
        | Op::Prefetch
        | Op::Prefetchu
        | Op::CpAsync
        | Op::Stackrestore
        | Op::Pmevent
        | Op::Discard
        | Op::Applypriority
        | Op::Griddepcontrol
        | Op::Setmaxnreg
        | Op::Call => false,
        Op::Bar | Op::Barrier => is_reduction(i),
        Op::Mbarrier => !i.mods.has("init") && !i.mods.has("inval"),
        _ => true,
    }
}

/// Whether a block barrier is one of the `red` forms.
pub fn is_reduction(i: &Instr) -> bool {
    i.mods.has("red") || i.mods.atom.is_some() || i.mods.bool_op.is_some()
}

/// Registers written by an instruction.
pub fn writes(i: &Instr, out: &mut Vec<RegId>) {
    if i.op == Op::Call {
        // Results come first: `call (r), f, (a)`.
        if let Some(o @ Operand::Args(_)) = i.operands.first() {
            written(o, out);
        }
        return;
    }
    if has_destination(i)
        && let Some(o) = i.operands.first()
    {
        written(o, out);
    }
}

/// Whether the address is that of a constant, known before the launch.
pub fn early_address(i: &Instr, is_entry: bool) -> bool {
    if i.op != Op::Ld || i.mods.volatile {
        return false;
    }
    match (i.mods.space, i.operands.get(1)) {
        (Some(Space::Param), Some(Operand::Addr(Base::Var(VarId::Param(_)), _))) => is_entry,
        (Some(Space::Const), Some(Operand::Addr(Base::Var(VarId::Module(_)), _))) => true,
        _ => false,
    }
}

/// Finds the classes. `selected` has the lane functions of the instructions that have one.
pub fn classify(
    body: &Body,
    instrs: &[Instr],
    selected: &[Option<Selected>],
    is_entry: bool,
    register_parameters: usize,
) -> Classes {
    let mut definitions = vec![0u32; body.regs.len()];
    let mut list = Vec::new();
    for i in instrs {
        list.clear();
        writes(i, &mut list);
        for r in &list {
            definitions[r.0 as usize] += 1;
        }
    }
    // Parameters in registers are defined by the call.
    definitions
        .iter_mut()
        .take(register_parameters)
        .for_each(|d| *d += 1);
    let mut regs = vec![Class::Varying; body.regs.len()];
    let mut gone = vec![false; instrs.len()];
    let mut early = Vec::new();
    let single = |o: Option<&Operand>, definitions: &[u32]| {
        let mut w = Vec::new();
        if let Some(o) = o {
            written(o, &mut w);
        }
        (!w.is_empty()
            && w.iter()
                .all(|r| definitions[r.0 as usize] == 1 && body.regs[r.0 as usize].vector <= 1))
        .then_some(w)
    };
    loop {
        let mut changed = false;
        for (n, i) in instrs.iter().enumerate() {
            if gone[n] || i.guard.is_some() {
                continue;
            }
            let Some(targets) = single(i.operands.first(), &definitions) else {
                continue;
            };
            if !has_destination(i) {
                continue;
            }
            let class = if early_address(i, is_entry) {
                Some(Class::Launch)
            } else if let (Op::Mov, [_, Operand::Special(Special::Tid(axis))]) =
                (i.op, i.operands.as_slice())
            {
                let same = targets.len() == 1
                    && ops::Slot::of(body.regs[targets[0].0 as usize].ty) == ops::Slot::R32;
                same.then_some(Class::Tid(*axis))
            } else if let Some(s) = &selected[n] {
                let carries = s
                    .dsts
                    .iter()
                    .chain(&s.srcs)
                    .flatten()
                    .any(|p| p.from == ops::From::Carry);
                if carries {
                    None
                } else {
                    source_class(i, &regs, is_entry)
                }
            } else {
                None
            };
            let Some(class) = class else { continue };
            for r in targets {
                regs[r.0 as usize] = class;
            }
            gone[n] = true;
            if matches!(class, Class::Launch | Class::Block) {
                early.push(n as u32);
            }
            changed = true;
        }
        if !changed {
            break;
        }
    }
    Classes { regs, early, gone }
}

fn source_class(i: &Instr, regs: &[Class], is_entry: bool) -> Option<Class> {
    let mut class = Class::Launch;
    for o in &i.operands[1..] {
        class = class.max(operand_class(o, regs, is_entry)?);
    }
    Some(class)
}

fn operand_class(o: &Operand, regs: &[Class], is_entry: bool) -> Option<Class> {
    match o {
        Operand::Reg(r) | Operand::NotReg(r) => match regs[r.0 as usize] {
            c @ (Class::Launch | Class::Block) => Some(c),
            _ => None,
        },
        Operand::Int(_) | Operand::F32(_) | Operand::F64(_) | Operand::Func(_) => {
            Some(Class::Launch)
        }
        Operand::Special(s) => special_class(*s),
        Operand::Var(VarId::Param(_), _) if is_entry => Some(Class::Launch),
        Operand::Vector(v) => v.iter().try_fold(Class::Launch, |c, o| {
            Some(c.max(operand_class(o, regs, is_entry)?))
        }),
        _ => None,
    }
}

/// For each load, store or atomic whose address is the sum of a register and of one that stays the same for the block:
/// the two, so that the sum need not be computed lane by lane. Sums that nobody else needs are dropped.
pub fn fuse_addresses(
    body: &Body,
    instrs: &[Instr],
    classes: &mut Classes,
) -> Vec<Option<(RegId, RegId)>> {
    let mut fused = vec![None; instrs.len()];
    let mut definitions = vec![0u32; body.regs.len()];
    let mut uses = vec![0u32; body.regs.len()];
    let mut list = Vec::new();
    for i in instrs {
        list.clear();
        writes(i, &mut list);
        list.iter().for_each(|r| definitions[r.0 as usize] += 1);
        list.clear();
        let skip = usize::from(has_destination(i));
        for (n, o) in i.operands.iter().enumerate() {
            // A destination is no use, an address always is.
            if n >= skip || i.op == Op::Call {
                read(o, &mut list);
            }
        }
        list.extend(i.guard.map(|g| g.0));
        list.iter().for_each(|r| uses[r.0 as usize] += 1);
    }
    let mut labelled = vec![false; instrs.len() + 1];
    for l in &body.labels {
        if let Some(at) = labelled.get_mut(l.at as usize) {
            *at = true;
        }
    }
    // Sums that can be taken apart, since the last label: result, varying part, uniform part.
    let mut sums: Vec<(RegId, RegId, RegId)> = Vec::new();
    let mut saved = vec![0u32; body.regs.len()];
    for (n, i) in instrs.iter().enumerate() {
        if labelled[n] {
            sums.clear();
        }
        if matches!(i.op, Op::Ld | Op::Ldu | Op::St | Op::Atom | Op::Red)
            && matches!(i.mods.space, None | Some(Space::Global))
        {
            let address = i.operands.iter().find_map(|o| {
                if let Operand::Addr(Base::Reg(r), _) = o {
                    Some(*r)
                } else {
                    None
                }
            });
            if let Some(s) = address.and_then(|r| sums.iter().find(|s| s.0 == r)) {
                fused[n] = Some((s.1, s.2));
                saved[s.0.0 as usize] += 1;
            }
        }
        list.clear();
        writes(i, &mut list);
        sums.retain(|s| !list.contains(&s.1) && !list.contains(&s.0));
        if i.op == Op::Add
            && i.guard.is_none()
            && !i.mods.cc
            && i.types
                .first()
                .is_some_and(|t| t.bits() == 64 && !t.is_float())
            && let [Operand::Reg(r), Operand::Reg(a), Operand::Reg(b)] = i.operands.as_slice()
            && definitions[r.0 as usize] == 1
            && !classes.gone[n]
            && r != a
            && r != b
        {
            let class = |r: &RegId| classes.regs[r.0 as usize];
            let same = |r: &RegId| matches!(class(r), Class::Launch | Class::Block);
            let wide = |r: &RegId| body.regs[r.0 as usize].ty.bits() == 64;
            if wide(a) && wide(b) && same(a) && class(b) == Class::Varying {
                sums.push((*r, *b, *a));
            } else if wide(a) && wide(b) && same(b) && class(a) == Class::Varying {
                sums.push((*r, *a, *b));
            }
        }
    }
    for (n, i) in instrs.iter().enumerate() {
        if i.op == Op::Add
            && let Some(Operand::Reg(r)) = i.operands.first()
            && saved[r.0 as usize] > 0
            && saved[r.0 as usize] == uses[r.0 as usize]
        {
            classes.gone[n] = true;
        }
    }
    fused
}
