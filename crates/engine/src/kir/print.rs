//! The text form of KIR.
//!
//! ```text
//! function vector_add: frame 0
//!   once per launch:
//!     %rd1 = load.param.8 [0x10]
//!   block 0 -> 2, 1, meet at 2
//!     %r4 = mad.lo.s32 %ctaid.x, %ntid.x, %tid.x               ; line 20
//!     %p1 = setp.ge.s32 %r4, %r2, imm 0x6                      ; line 21
//!     if %p1 branch block 2                                    ; line 22
//! ```
//!
//! A register has the name of the PTX, with `.0` to `.3` for a component of a vector. `%t7` is a temporary, a number is a
//! constant, `%tid.x` and the like are special registers, and `&param[8]` is an address in the parameter bank. The suffix
//! `:64` and the like says the width of a register's slot where an instruction does not show it.

use std::fmt::{self, Display, Formatter, Write as _};

use cupyrite_ptx::ir::Special;

use super::action::{Action, LaneOp};
use super::function::{BlockId, Function, Instruction, Kernel};
use super::operation::{
    Address, ArgCopy, AtomicOp, BarrierOp, BuiltinArg, BulkSide, Callee, MemOp, MemSpace,
    MultimemKind, TensorMapOp, TexOp,
};
use super::register::{Fixed, Reg, Source, Uniformity};
use crate::semantics::lane::Slot;

impl Display for Kernel {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (n, function) in self.functions.iter().enumerate() {
            if n > 0 {
                writeln!(f)?;
            }
            write!(f, "{function}")?;
        }
        Ok(())
    }
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "function {}: frame {}", self.name, self.frame)?;
        if !self.hoisted_loads.is_empty() || !self.launch_prologue.is_empty() {
            writeln!(f, "  once per launch:")?;
        }
        for l in &self.hoisted_loads {
            let bank = if l.absolute { "const" } else { "param" };
            let to = self.operand(l.to);
            writeln!(f, "    {to} = load.{bank}.{} [{:#x}]", l.size, l.from)?;
        }
        self.list(f, &self.launch_prologue)?;
        if !self.block_prologue.is_empty() {
            writeln!(f, "  once per block:")?;
            self.list(f, &self.block_prologue)?;
        }
        for (n, b) in self.blocks.iter().enumerate() {
            write!(f, "  block {n}")?;
            let successors = self.successors(BlockId(n as u32));
            for (k, s) in successors.iter().enumerate() {
                write!(f, "{}{}", if k == 0 { " -> " } else { ", " }, s.0)?;
            }
            if let Some(Some(meet)) = self.reconvergence.get(n) {
                write!(f, ", meet at {}", meet.0)?;
            }
            writeln!(f)?;
            self.list(f, &b.instructions)?;
        }
        Ok(())
    }
}

impl Function {
    fn list(&self, f: &mut Formatter<'_>, list: &[Instruction]) -> fmt::Result {
        let mut line = 0;
        for i in list {
            let mut text = String::from("    ");
            if let Some(g) = i.guard {
                let not = if g.negated { "!" } else { "" };
                write!(text, "if {not}{} ", self.operand(g.predicate))?;
            }
            self.action(&mut text, i)?;
            let origin = &self.origins[i.origin as usize];
            if origin.line == line {
                writeln!(f, "{text}")?;
            } else {
                line = origin.line;
                writeln!(f, "{text:<60} ; line {line}")?;
            }
        }
        Ok(())
    }

    /// The name of a register.
    pub fn operand(&self, r: Reg) -> String {
        let Some(register) = self.registers.get(r.at as usize) else {
            return format!("%?{}", r.at);
        };
        if let Uniformity::Tid(axis) = register.uniformity {
            return special_name(Special::Tid(axis));
        }
        match register.source {
            Source::Declared(n, component) => {
                let name = self.names.get(n as usize).map_or("%?", String::as_str);
                let next = self.registers.get(r.at as usize + 1).map(|r| r.source);
                let vector = component > 0 || next == Some(Source::Declared(n, 1));
                match vector {
                    true => format!("{name}.{component}"),
                    false => name.to_string(),
                }
            }
            Source::Temporary => format!("%t{}{}", r.at, width(r.slot)),
            Source::Constant(element) => match r.slot {
                Slot::Pred if element == 0 => "false".into(),
                Slot::Pred => "true".into(),
                _ if element < 1024 => format!("{element}"),
                _ => format!("{element:#x}"),
            },
            Source::Special(special) => special_name(special),
            Source::ParameterAddress(offset) => format!("&param[{offset:#x}]"),
            Source::SharedAddress(offset) => format!("&shared[{offset:#x}]"),
            Source::Fixed(fixed) => match fixed {
                Fixed::True => "true".into(),
                Fixed::Carry => "carry".into(),
                Fixed::Frame => "frame".into(),
                _ => "_".into(),
            },
        }
    }

    fn operands<'r>(&self, list: impl IntoIterator<Item = &'r Reg>) -> String {
        let names: Vec<String> = list.into_iter().map(|r| self.operand(*r)).collect();
        names.join(", ")
    }

    fn address(&self, a: &Address) -> String {
        let mut text = self.operand(a.base);
        if let Some(uniform) = a.uniform {
            text += &format!(" + {}", self.operand(uniform));
        }
        match a.offset {
            0 => {}
            offset => text += &format!(" {} {:#x}", sign(offset), offset.unsigned_abs()),
        }
        format!("{}[{text}]", space_name(a.space))
    }

    fn action(&self, out: &mut String, i: &Instruction) -> fmt::Result {
        let opcode = &self.origins[i.origin as usize].opcode;
        let reg = |r: &Reg| self.operand(*r);
        match &i.action {
            Action::Lanes(op) => self.lanes(out, op, opcode),
            Action::Warp(op) => {
                let results = self.operands(&op.dst);
                if !results.is_empty() {
                    write!(out, "{results} = ")?;
                }
                let address = op.address.iter().map(|a| self.address(a));
                let sources = op.src.iter().map(|r| self.operand(*r));
                let all: Vec<String> = address.chain(sources).collect();
                write!(out, "{opcode} {}", all.join(", "))
            }
            Action::Load(op) => {
                let to = self.operands(&op.regs);
                write!(
                    out,
                    "{to} = load.{} {}",
                    access(op),
                    self.address(&op.address)
                )
            }
            Action::Store(op) => {
                let from = self.operands(&op.regs);
                write!(
                    out,
                    "store.{} {}, {from}",
                    access(op),
                    self.address(&op.address)
                )
            }
            Action::Atomic(op) => self.atomic(out, op),
            Action::Multimem(op) => {
                let (values, address) = (self.operands(&op.regs), self.address(&op.address));
                match op.kind {
                    MultimemKind::LoadReduce { .. } => write!(out, "{values} = {opcode} {address}"),
                    _ => write!(out, "{opcode} {address}, {values}"),
                }
            }
            Action::Texture(op) => self.texture(out, op, opcode),
            Action::Mbarrier(op) => {
                if let Some(dst) = op.dst {
                    write!(out, "{} = ", reg(&dst))?;
                }
                let (address, operand) = (self.address(&op.address), reg(&op.operand));
                write!(out, "{opcode} {address}, {operand}")
            }
            Action::PendingCount { dst, state } => {
                write!(out, "{} = {opcode} {}", reg(dst), reg(state))
            }
            Action::Copy(op) => {
                let (to, from) = (self.address(&op.to), self.address(&op.from));
                write!(out, "copy.{} {to}, {from}", op.size)?;
                if let Some(read) = &op.read {
                    write!(out, ", read {}", reg(read))?;
                }
                if let Some((ignore, negated)) = &op.ignore {
                    write!(out, ", ignore {}{}", not(*negated), reg(ignore))?;
                }
                Ok(())
            }
            Action::Bulk(op) => {
                let shared = self.address(&op.shared);
                write!(out, "{opcode} {:?} {shared}, ", op.direction)?;
                match &op.other {
                    BulkSide::Memory(a, size) => write!(out, "{}, {}", self.address(a), reg(size))?,
                    BulkSide::Tensor(map, at, offsets) => {
                        write!(out, "{} at {{{}}}", self.address(map), self.operands(at))?;
                        if let Some(offsets) = offsets {
                            write!(out, ", im2col {{{}}}", self.operands(offsets))?;
                        }
                    }
                }
                if let Some(object) = &op.mbarrier {
                    write!(out, ", complete {}", self.address(object))?;
                }
                match &op.multicast {
                    Some(ranks) => write!(out, ", multicast {}", reg(ranks)),
                    None => Ok(()),
                }
            }
            Action::TensorMap(TensorMapOp::Replace { map, field, value }) => {
                let map = self.address(map);
                write!(out, "{opcode} {map}, {field:?}, {}", reg(value))
            }
            Action::TensorMap(TensorMapOp::Copy { to, from }) => {
                let (to, from) = (self.address(to), self.address(from));
                write!(out, "{opcode} {to}, {from}")
            }
            Action::Branch { target, spins } => {
                let spins = if *spins { ", spins" } else { "" };
                write!(out, "branch block {}{spins}", target.0)
            }
            Action::BranchIndexed { index, targets } => {
                let targets: Vec<String> = targets.iter().map(|t| t.0.to_string()).collect();
                write!(
                    out,
                    "branch {} of blocks {}",
                    reg(index),
                    targets.join(", ")
                )
            }
            Action::Call(op) => {
                match op.callee {
                    Callee::Direct(n) => write!(out, "call function {n}")?,
                    Callee::Indirect(address, frame) => {
                        write!(out, "call {}, frame {frame}", reg(&address))?;
                    }
                }
                let list = |list: &[ArgCopy], arrow: &str| {
                    let copies = list.iter().map(|c| self.copy(c, arrow));
                    copies.collect::<Vec<_>>().join(", ")
                };
                let (args, returns) = (list(&op.args, "->"), list(&op.returns, "<-"));
                write!(out, " ({args}) returns ({returns})")
            }
            Action::Builtin(op) => {
                if let Some(result) = &op.result {
                    write!(out, "{} = ", self.argument(result))?;
                }
                let args: Vec<String> = op.args.iter().map(|a| self.argument(a)).collect();
                write!(out, "call {:?} ({})", op.kind, args.join(", "))
            }
            Action::Return => write!(out, "return"),
            Action::Exit => write!(out, "exit"),
            Action::Trap { breakpoint: false } => write!(out, "trap"),
            Action::Trap { breakpoint: true } => write!(out, "brkpt"),
            Action::Barrier(op) => self.barrier(out, op),
            Action::ClusterArrive => write!(out, "barrier.cluster.arrive"),
            Action::ClusterWait => write!(out, "barrier.cluster.wait"),
            Action::WarpBarrier { members } => write!(out, "warp_barrier {}", reg(members)),
            Action::Shuffle {
                mode,
                dst,
                in_range,
                value,
                lane,
                clamp,
                members,
            } => {
                write!(out, "{}, {} = shuffle {mode:?}", reg(dst), reg(in_range))?;
                let operands = self.operands([value, lane, clamp]);
                write!(out, " {operands}{}", self.members(*members))
            }
            Action::Vote {
                mode,
                dst,
                predicate,
                negated,
                members,
            } => {
                let p = format!("{}{}", not(*negated), reg(predicate));
                write!(
                    out,
                    "{} = vote {mode:?} {p}{}",
                    reg(dst),
                    self.members(*members)
                )
            }
            Action::Match {
                all,
                dst,
                found,
                value,
                members,
            } => {
                let mode = if *all { "all" } else { "any" };
                write!(out, "{}, {} = match {mode} ", reg(dst), reg(found))?;
                write!(out, "{}{}", reg(value), self.members(Some(*members)))
            }
            Action::Redux {
                dst,
                value,
                members,
                ..
            } => {
                let members = self.members(Some(*members));
                write!(out, "{} = {opcode} {}{members}", reg(dst), reg(value))
            }
            Action::Elect {
                dst,
                elected,
                members,
            } => {
                let members = self.members(Some(*members));
                write!(out, "{}, {} = elect{members}", reg(dst), reg(elected))
            }
            Action::ActiveMask { dst } => write!(out, "{} = active_mask", reg(dst)),
            Action::Fence => write!(out, "{opcode}"),
            Action::Special { dst, special } => {
                write!(out, "{} = read {}", reg(dst), special_name(*special))
            }
            Action::FrameAddress { dst, offset } => {
                write!(
                    out,
                    "{} = frame {} {:#x}",
                    reg(dst),
                    sign(*offset),
                    offset.unsigned_abs()
                )
            }
            Action::IsSpace {
                dst,
                address,
                space,
            } => write!(out, "{} = is_space {space:?} {}", reg(dst), reg(address)),
            Action::Nanosleep { duration } => write!(out, "nanosleep {}", reg(duration)),
            Action::Alloca { dst, size, align } => {
                write!(out, "{} = alloca {}, align {align}", reg(dst), reg(size))
            }
            Action::StackSave { dst } => write!(out, "{} = stack_save", reg(dst)),
            Action::StackRestore { saved } => write!(out, "stack_restore {}", reg(saved)),
        }
    }

    fn lanes(&self, out: &mut String, op: &LaneOp, opcode: &str) -> fmt::Result {
        let results = self.operands(op.dst.iter().flatten());
        let sources = self.operands(op.src.iter().flatten());
        let (dst, src) = (op.dst[0], op.src[0]);
        match (op.op.is_none(), dst, src) {
            (true, Some(to), Some(from)) => {
                write!(
                    out,
                    "{results} = resize{}{} {sources}",
                    width(to.slot),
                    width(from.slot)
                )
            }
            _ => {
                write!(out, "{results} = {opcode} {sources}")?;
                match op.imm {
                    0 => Ok(()),
                    imm => write!(out, ", imm {imm:#x}"),
                }
            }
        }
    }

    fn atomic(&self, out: &mut String, op: &AtomicOp) -> fmt::Result {
        if !op.dst.is_empty() {
            write!(out, "{} = ", self.operands(&op.dst))?;
        }
        let sources = self.operands(op.src.iter().chain(&op.src2));
        let order = ordering(op.order, op.scope);
        let address = self.address(&op.address);
        write!(
            out,
            "atomic.{:?}.{:?}{order} {address}, {sources}",
            op.op, op.ty
        )
    }

    fn texture(&self, out: &mut String, op: &TexOp, opcode: &str) -> fmt::Result {
        let values = self.operands(&op.values);
        let object = match op.sampler {
            Some(sampler) => format!("{}, {}", self.operand(op.object), self.operand(sampler)),
            None => self.operand(op.object),
        };
        let dimensions = usize::from(op.view.dimensions).min(3);
        let mut at = self.operands(&op.coordinates[..dimensions]);
        if op.view.layered {
            at = format!("{}, {at}", self.operand(op.layer));
        }
        if op.kind.reads_values() {
            write!(out, "{opcode} [{object}, {{{at}}}], {values}")
        } else {
            write!(out, "{values} = {opcode} [{object}, {{{at}}}]")
        }
    }

    fn barrier(&self, out: &mut String, op: &BarrierOp) -> fmt::Result {
        if let Some(dst) = op.dst {
            write!(out, "{} = ", self.operand(dst))?;
        }
        write!(out, "barrier {:?} {}", op.mode, self.operand(op.id))?;
        if let Some(count) = op.count {
            write!(out, ", threads {}", self.operand(count))?;
        }
        if op.dst.is_some() {
            write!(out, ", {}{}", not(op.negated), self.operand(op.predicate))?;
        }
        Ok(())
    }

    fn members(&self, members: Option<Reg>) -> String {
        members.map_or_else(String::new, |m| format!(", members {}", self.operand(m)))
    }

    fn copy(&self, c: &ArgCopy, arrow: &str) -> String {
        match c {
            ArgCopy::Memory {
                caller,
                callee,
                size,
            } => format!("frame[{caller:#x}] {arrow} [{callee:#x}]:{size}"),
            ArgCopy::Register {
                caller,
                callee,
                size,
            } => format!("{} {arrow} [{callee:#x}]:{size}", self.operand(*caller)),
        }
    }

    fn argument(&self, a: &BuiltinArg) -> String {
        match a {
            BuiltinArg::Memory(at, size) => format!("frame[{at:#x}]:{size}"),
            BuiltinArg::Register(r) => self.operand(*r),
        }
    }
}

/// Size, count and order of a load or store.
fn access(op: &MemOp) -> String {
    let mut text = match op.regs.len() {
        1 => op.size.to_string(),
        n => format!("{}x{n}", op.size),
    };
    if op.signed {
        text += ".signed";
    }
    if op.atomic {
        text += &ordering(op.order, op.scope);
    }
    text
}

fn ordering(order: impl fmt::Debug, scope: Option<impl fmt::Debug>) -> String {
    match scope {
        Some(scope) => format!(".{order:?}.{scope:?}").to_lowercase(),
        None => format!(".{order:?}").to_lowercase(),
    }
}

fn space_name(space: MemSpace) -> &'static str {
    match space {
        MemSpace::Generic => "",
        MemSpace::Global => "global",
        MemSpace::Shared => "shared",
        MemSpace::Local => "local",
    }
}

fn width(slot: Slot) -> &'static str {
    match slot {
        Slot::Pred => ":1",
        Slot::R32 => ":32",
        Slot::R64 => ":64",
        Slot::R128 => ":128",
    }
}

fn not(negated: bool) -> &'static str {
    if negated { "!" } else { "" }
}

fn sign(offset: i64) -> char {
    if offset < 0 { '-' } else { '+' }
}

/// The name of a special register.
fn special_name(s: Special) -> String {
    format!("%{}", cupyrite_ptx::special_name(s))
}
