//! Operands.

use std::fmt::Write;

use super::names::BodyNames;
use crate::ir::{Base, Instr, Op, Operand, Selector, Special, Word};

/// The operands of an instruction, with a blank before them.
pub fn print(i: &Instr, names: &BodyNames<'_>, out: &mut String) {
    if i.op == Op::Call {
        return call(i, names, out);
    }
    let mut before = " ";
    for operand in &i.operands {
        out.push_str(before);
        before = ", ";
        out.push_str(&text(operand, i.op, names));
        if matches!(operand, Operand::Addr(..)) && i.mods.has(Word::Unified) {
            out.push_str(".unified");
        }
    }
}

/// `call (returns), target, (arguments), prototype`.
fn call(i: &Instr, names: &BodyNames<'_>, out: &mut String) {
    let list = |o: Option<&Operand>| match o {
        Some(Operand::Args(list)) if !list.is_empty() => {
            Some(text(&Operand::Args(list.clone()), i.op, names))
        }
        _ => None,
    };
    let target = i.operands.get(1).map(|o| text(o, i.op, names));
    let prototype = i.operands.get(3).map(|o| text(o, i.op, names));
    let parts = [
        list(i.operands.first()),
        target,
        list(i.operands.get(2)),
        prototype,
    ];
    let _ = write!(
        out,
        " {}",
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    );
}

fn joined(list: &[Operand], op: Op, names: &BodyNames<'_>) -> String {
    list.iter()
        .map(|o| text(o, op, names))
        .collect::<Vec<_>>()
        .join(", ")
}

fn text(operand: &Operand, op: Op, names: &BodyNames<'_>) -> String {
    match operand {
        Operand::Reg(r) => names.register(*r).to_string(),
        Operand::RegComponent(r, n) => format!(
            "{}.{}",
            names.register(*r),
            ["x", "y", "z", "w"][usize::from(*n) % 4]
        ),
        Operand::RegSelect(r, s) => format!("{}.{}", names.register(*r), selector(*s)),
        Operand::Neg(inner) => format!("-{}", text(inner, op, names)),
        Operand::NotReg(r) => format!("!{}", names.register(*r)),
        Operand::Pair(a, b) => format!("{}|{}", text(a, op, names), text(b, op, names)),
        Operand::Special(s) => format!("%{}", special_name(*s)),
        Operand::Int(v) => v.to_string(),
        Operand::F32(bits) => format!("0f{bits:08X}"),
        Operand::F64(bits) => format!("0d{bits:016X}"),
        Operand::Var(v, offset) => with_offset(names.variable(*v), *offset),
        Operand::Func(f) => names.function(*f).to_string(),
        Operand::Addr(base, offset) => match base {
            Base::Reg(r) => format!("[{}]", with_offset(names.register(*r), *offset)),
            Base::Var(v) => format!("[{}]", with_offset(names.variable(*v), *offset)),
            Base::None => format!("[{offset}]"),
        },
        Operand::Vector(list) => format!("{{{}}}", joined(list, op, names)),
        Operand::Label(l) => names.label(*l).to_string(),
        Operand::Args(list) => format!("({})", joined(list, op, names)),
        Operand::Proto(p) => names.prototype(*p),
        Operand::Sink => "_".to_string(),
        Operand::Targets(n) if op == Op::Call => names.call_targets(*n as usize).to_string(),
        Operand::Targets(n) => names.branch_targets(*n as usize).to_string(),
        Operand::TexAddr(list) => format!("[{}]", joined(list, op, names)),
    }
}

fn with_offset(name: &str, offset: i64) -> String {
    match offset {
        0 => name.to_string(),
        _ => format!("{name}+{offset}"),
    }
}

fn selector(selector: Selector) -> String {
    let digits = |parts: &[u8]| -> String {
        let used = parts
            .iter()
            .take_while(|p| **p != u8::MAX)
            .collect::<Vec<_>>();
        used.into_iter().rev().map(u8::to_string).collect()
    };
    match selector {
        Selector::Byte(n) => format!("b{n}"),
        Selector::Half(n) => format!("h{n}"),
        Selector::Bytes(parts) => format!("b{}", digits(&parts)),
        Selector::Halves(parts) => format!("h{}", digits(&parts)),
    }
}

/// The name of a special register, without `%`.
pub fn special_name(special: Special) -> String {
    use Special::*;
    let axis = |name: &str, axis: u8| format!("{name}.{}", ["x", "y", "z"][usize::from(axis) % 3]);
    let name = match special {
        Tid(n) => return axis("tid", n),
        Ntid(n) => return axis("ntid", n),
        Ctaid(n) => return axis("ctaid", n),
        Nctaid(n) => return axis("nctaid", n),
        ClusterId(n) => return axis("clusterid", n),
        NClusterId(n) => return axis("nclusterid", n),
        ClusterCtaId(n) => return axis("cluster_ctaid", n),
        ClusterNCtaId(n) => return axis("cluster_nctaid", n),
        EnvReg(n) => return format!("envreg{n}"),
        Pm(n) => return format!("pm{n}"),
        Pm64(n) => return format!("pm{n}_64"),
        ReservedSmemOffset(n) => {
            let which = ["0", "1", "begin", "end", "cap"][usize::from(n) % 5];
            return format!("reserved_smem_offset_{which}");
        }
        LaneId => "laneid",
        WarpId => "warpid",
        NWarpId => "nwarpid",
        SmId => "smid",
        NSmId => "nsmid",
        GridId => "gridid",
        LaneMaskEq => "lanemask_eq",
        LaneMaskLe => "lanemask_le",
        LaneMaskLt => "lanemask_lt",
        LaneMaskGe => "lanemask_ge",
        LaneMaskGt => "lanemask_gt",
        Clock => "clock",
        ClockHi => "clock_hi",
        Clock64 => "clock64",
        GlobalTimer => "globaltimer",
        GlobalTimerLo => "globaltimer_lo",
        GlobalTimerHi => "globaltimer_hi",
        ClusterCtaRank => "cluster_ctarank",
        ClusterNCtaRank => "cluster_nctarank",
        IsExplicitCluster => "is_explicit_cluster",
        DynamicSmemSize => "dynamic_smem_size",
        TotalSmemSize => "total_smem_size",
        AggrSmemSize => "aggr_smem_size",
        CurrentGraphExec => "current_graph_exec",
    };
    name.to_string()
}
