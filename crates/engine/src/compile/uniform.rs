//! Which registers hold one value for the whole launch, or for a whole block.
//!
//! A register with a single, unguarded definition by a pure instruction never changes if the sources of that instruction
//! never change, whatever the control flow. Such a definition is hoisted: it runs once per launch or block, before the
//! threads. This covers kernel parameters, immediates, grid and block coordinates and everything computed from them.
//! Copies of `%tid` are not copied at all, but read in place.

use std::collections::VecDeque;

use cupyrite_ptx::ir::{Base, Body, Instr, Op, OpClass, Operand, RegId, Space, Special, VarId};

use crate::semantics::lane::{OperandRef, Selected, Slot};

/// How often a value changes. A later variant changes more often.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Uniformity {
    /// Never during a launch.
    Launch,
    /// Once per block.
    Block,
    /// Per thread, as a copy of `%tid` of this axis.
    Tid(u8),
    /// At any instruction.
    Varying,
}

/// Result of the analysis of one function.
#[derive(Debug)]
pub struct UniformityAnalysis {
    /// Uniformity of each register.
    pub registers: Vec<Uniformity>,
    /// Instructions to run before the threads, sources before their users.
    pub hoisted: Vec<u32>,
    /// For each instruction, whether it is left out of the code: because it is hoisted, or because nothing needs it.
    pub omitted: Vec<bool>,
}

/// Uniformity of a special register that is constant for a block; `None` for the others.
pub fn special_uniformity(s: Special) -> Option<Uniformity> {
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
        | ClusterCtaRank => Uniformity::Launch,
        Ctaid(_) | ClusterId(_) | SmId => Uniformity::Block,
        Tid(_) | WarpId | Clock | ClockHi | Clock64 | GlobalTimer | GlobalTimerLo
        | GlobalTimerHi => return None,
    })
}

/// Whether an instruction is a load from an address that is known before the launch: of a kernel parameter, or of
/// constant memory.
pub fn is_hoistable_load(i: &Instr, is_entry: bool) -> bool {
    if i.op != Op::Ld || i.mods.volatile {
        return false;
    }
    match (i.mods.space, i.operands.get(1)) {
        (Some(Space::Param), Some(Operand::Addr(Base::Var(VarId::Param(_)), _))) => is_entry,
        (Some(Space::Const), Some(Operand::Addr(Base::Var(VarId::Module(_)), _))) => true,
        _ => false,
    }
}

/// Number of instructions that write each register.
fn count_definitions(body: &Body, instrs: &[Instr]) -> Vec<u32> {
    let mut definitions = vec![0u32; body.regs.len()];
    for i in instrs {
        i.for_each_written(|r| definitions[r.0 as usize] += 1);
    }
    definitions
}

/// The instructions that read each register.
struct Readers {
    /// Start of each register's list; one more element than registers.
    starts: Vec<u32>,
    list: Vec<u32>,
}

impl Readers {
    fn of(&self, register: usize) -> &[u32] {
        &self.list[self.starts[register] as usize..self.starts[register + 1] as usize]
    }
}

fn readers(body: &Body, instrs: &[Instr]) -> Readers {
    let mut starts = vec![0u32; body.regs.len() + 1];
    for i in instrs {
        i.for_each_read(|r| starts[r.0 as usize + 1] += 1);
    }
    for n in 1..starts.len() {
        starts[n] += starts[n - 1];
    }
    let mut next = starts.clone();
    let mut list = vec![0; starts.last().copied().unwrap_or(0) as usize];
    for (n, i) in instrs.iter().enumerate() {
        i.for_each_read(|r| {
            let at = &mut next[r.0 as usize];
            list[*at as usize] = n as u32;
            *at += 1;
        });
    }
    Readers { starts, list }
}

/// Analyzes a function. `selected` holds the lane function of each arithmetic instruction; the first
/// `register_parameters` registers are defined by the call.
pub fn analyze(
    body: &Body,
    instrs: &[Instr],
    selected: &[Option<Selected>],
    is_entry: bool,
    register_parameters: usize,
) -> UniformityAnalysis {
    let mut definitions = count_definitions(body, instrs);
    definitions
        .iter_mut()
        .take(register_parameters)
        .for_each(|d| *d += 1);
    let mut registers = vec![Uniformity::Varying; body.regs.len()];
    let mut omitted = vec![false; instrs.len()];
    let mut hoisted = Vec::new();
    let mut written = Vec::new();
    // Instructions to look at, in order; later those that read a register that has been found to be uniform.
    let readers = readers(body, instrs);
    let mut queue: VecDeque<u32> = (0..instrs.len() as u32).collect();
    while let Some(n) = queue.pop_front() {
        let n = n as usize;
        let i = &instrs[n];
        if omitted[n] || i.guard.is_some() || !i.has_destination() {
            continue;
        }
        written.clear();
        i.for_each_written(|r| written.push(r.0 as usize));
        let single = |r: &usize| definitions[*r] == 1 && body.regs[*r].vector <= 1;
        if written.is_empty() || !written.iter().all(single) {
            continue;
        }
        let uniformity = if is_hoistable_load(i, is_entry) {
            Some(Uniformity::Launch)
        } else if let (Op::Mov, [_, Operand::Special(Special::Tid(axis))]) =
            (i.op, i.operands.as_slice())
        {
            let same_shape = written.len() == 1 && Slot::of(body.regs[written[0]].ty) == Slot::R32;
            same_shape.then_some(Uniformity::Tid(*axis))
        } else if let Some(s) = &selected[n] {
            let mut operands = s.dsts.iter().chain(&s.srcs).flatten();
            if operands.any(|p| p.operand == OperandRef::Carry) {
                None
            } else {
                source_uniformity(i, &registers, is_entry)
            }
        } else {
            None
        };
        let Some(uniformity) = uniformity else {
            continue;
        };
        omitted[n] = true;
        if matches!(uniformity, Uniformity::Launch | Uniformity::Block) {
            hoisted.push(n as u32);
        }
        for r in &written {
            registers[*r] = uniformity;
            let readers = readers.of(*r).iter().copied();
            queue.extend(readers.filter(|reader| !omitted[*reader as usize]));
        }
    }
    UniformityAnalysis {
        registers,
        hoisted,
        omitted,
    }
}

/// Uniformity of a value computed from the sources of `i`; `None` if one of them varies.
fn source_uniformity(i: &Instr, registers: &[Uniformity], is_entry: bool) -> Option<Uniformity> {
    let mut sources = i.operands[1..].iter();
    sources.try_fold(Uniformity::Launch, |u, o| {
        Some(u.max(operand_uniformity(o, registers, is_entry)?))
    })
}

fn operand_uniformity(o: &Operand, registers: &[Uniformity], is_entry: bool) -> Option<Uniformity> {
    match o {
        Operand::Reg(r) | Operand::NotReg(r) => match registers[r.0 as usize] {
            u @ (Uniformity::Launch | Uniformity::Block) => Some(u),
            _ => None,
        },
        Operand::Int(_) | Operand::F32(_) | Operand::F64(_) | Operand::Func(_) => {
            Some(Uniformity::Launch)
        }
        Operand::Special(s) => special_uniformity(*s),
        Operand::Var(VarId::Param(_), _) if is_entry => Some(Uniformity::Launch),
        Operand::Vector(v) => v.iter().try_fold(Uniformity::Launch, |u, o| {
            Some(u.max(operand_uniformity(o, registers, is_entry)?))
        }),
        _ => None,
    }
}

/// An addition of a varying and a uniform 64-bit register.
struct Sum {
    result: RegId,
    varying: RegId,
    uniform: RegId,
}

/// Finds memory accesses whose address is the sum of a varying register and of one that is constant for the block, and
/// returns both for each of them. The memory unit adds the uniform part once per warp. Additions that nothing else uses
/// are omitted.
pub fn split_addresses(
    body: &Body,
    instrs: &[Instr],
    analysis: &mut UniformityAnalysis,
) -> Vec<Option<(RegId, RegId)>> {
    let mut split = vec![None; instrs.len()];
    let definitions = count_definitions(body, instrs);
    let mut uses = vec![0u32; body.regs.len()];
    for i in instrs {
        i.for_each_read(|r| uses[r.0 as usize] += 1);
    }
    let mut labelled = vec![false; instrs.len() + 1];
    for l in &body.labels {
        if let Some(at) = labelled.get_mut(l.at as usize) {
            *at = true;
        }
    }
    /// A bound for the cost of each instruction: addresses are used soon after they are computed.
    const MOST_SUMS: usize = 256;
    // Sums since the last label whose parts have not been overwritten.
    let mut sums: Vec<Sum> = Vec::new();
    let mut saved_uses = vec![0u32; body.regs.len()];
    for (n, i) in instrs.iter().enumerate() {
        if labelled[n] {
            sums.clear();
        }
        if i.op.class() == OpClass::Memory && matches!(i.mods.space, None | Some(Space::Global)) {
            let address = i.operands.iter().find_map(|o| match o {
                Operand::Addr(Base::Reg(r), _) => Some(*r),
                _ => None,
            });
            if let Some(s) = address.and_then(|r| sums.iter().find(|s| s.result == r)) {
                split[n] = Some((s.varying, s.uniform));
                saved_uses[s.result.0 as usize] += 1;
            }
        }
        i.for_each_written(|r| sums.retain(|s| s.varying != r && s.result != r));
        if analysis.omitted[n] {
            continue;
        }
        if let Some(sum) = uniform_sum(body, i, &definitions, &analysis.registers) {
            if sums.len() == MOST_SUMS {
                sums.remove(0);
            }
            sums.push(sum);
        }
    }
    for (n, i) in instrs.iter().enumerate() {
        if i.op == Op::Add
            && let Some(Operand::Reg(r)) = i.operands.first()
            && saved_uses[r.0 as usize] > 0
            && saved_uses[r.0 as usize] == uses[r.0 as usize]
        {
            analysis.omitted[n] = true;
        }
    }
    split
}

/// The parts of an unguarded 64-bit addition of a varying and a uniform register whose result has no other definition.
fn uniform_sum(
    body: &Body,
    i: &Instr,
    definitions: &[u32],
    registers: &[Uniformity],
) -> Option<Sum> {
    let wide_integer = |t: &cupyrite_ptx::ir::Type| t.bits() == 64 && !t.is_float();
    if i.op != Op::Add
        || i.guard.is_some()
        || i.mods.cc
        || !i.types.first().is_some_and(wide_integer)
    {
        return None;
    }
    let &[Operand::Reg(result), Operand::Reg(a), Operand::Reg(b)] = i.operands.as_slice() else {
        return None;
    };
    let wide = |r: RegId| body.regs[r.0 as usize].ty.bits() == 64;
    if definitions[result.0 as usize] != 1 || result == a || result == b || !wide(a) || !wide(b) {
        return None;
    }
    let uniformity = |r: RegId| registers[r.0 as usize];
    let is_uniform = |r| matches!(uniformity(r), Uniformity::Launch | Uniformity::Block);
    let (varying, uniform) = match (is_uniform(a), is_uniform(b)) {
        (true, false) => (b, a),
        (false, true) => (a, b),
        _ => return None,
    };
    (uniformity(varying) == Uniformity::Varying).then_some(Sum {
        result,
        varying,
        uniform,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::lane;

    #[test]
    fn uniform_definitions_are_found_in_any_order() {
        const COUNT: usize = 60;
        // Each definition uses the one before it; the order in the text is a permutation.
        let lines: Vec<String> = (0..COUNT)
            .map(|n| n * 37 % COUNT)
            .map(|k| format!("add.s32 %r{}, %r{k}, 1;", k + 1))
            .collect();
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() {{ .reg .b32 %r<99>; mov.u32 %r0, 7; {} ret; }}",
            lines.join("\n")
        );
        let module = cupyrite_ptx::parse(&text).unwrap();
        let body = module.functions[0].body.as_ref().unwrap();
        let selected: Vec<_> = body
            .instrs
            .iter()
            .map(|i| lane::select(i, &body.regs))
            .collect();
        let found = analyze(body, &body.instrs, &selected, true, 0);
        assert_eq!(found.hoisted.len(), COUNT + 1);
        let mut defined = vec![false; body.regs.len()];
        for n in found.hoisted {
            let i = &body.instrs[n as usize];
            i.for_each_read(|r| {
                assert!(defined[r.0 as usize], "{r:?} is used before its definition")
            });
            i.for_each_written(|r| defined[r.0 as usize] = true);
        }
    }
}
