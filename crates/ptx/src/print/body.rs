//! The body of a function.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::names::BodyNames;
use super::{declaration, is_directive, operands, parameters, type_word};
use crate::ir::{Body, Function, Linkage, Module, Op, Operand, ProtoId, Space};

pub fn print(
    module: &Module,
    function: &Function,
    body: &Body,
    names: &BodyNames<'_>,
    out: &mut String,
) {
    let in_registers =
        |list: &[crate::ir::Variable]| list.iter().filter(|v| v.space == Space::Reg).count();
    let declared = in_registers(&function.returns) + in_registers(&function.params);
    for pragma in function
        .directives
        .pragmas
        .iter()
        .filter(|p| !is_directive(p))
    {
        let _ = writeln!(out, ".pragma \"{pragma}\";");
    }
    for (n, register) in body.regs.iter().enumerate().skip(declared) {
        let vector = if register.vector > 1 {
            format!(".v{} ", register.vector)
        } else {
            String::new()
        };
        let name = names.register(crate::ir::RegId(n as u32));
        let _ = writeln!(out, ".reg {vector}.{} {name};", type_word(register.ty));
    }
    for (n, variable) in body.vars.iter().enumerate() {
        let name = names.variable(crate::ir::VarId::Local(n as u32));
        let external = if variable.linkage == Linkage::Extern {
            ".extern "
        } else {
            ""
        };
        let _ = writeln!(out, "{external}{};", declaration(module, variable, name));
    }
    lists(module, body, names, out);
    let mut labels: Vec<usize> = (0..body.labels.len()).collect();
    labels.sort_by_key(|n| body.labels[*n].at);
    let mut labels = labels.into_iter().peekable();
    let mut location = None;
    for (n, i) in body.instrs.iter().enumerate() {
        while let Some(label) = labels.next_if(|l| body.labels[*l].at as usize == n) {
            let _ = writeln!(out, "{}:", names.label(crate::ir::LabelId(label as u32)));
        }
        if i.loc != location {
            location = i.loc;
            if let Some(l) = location {
                let _ = writeln!(out, ".loc {} {} {}", l.file, l.line, l.column);
            }
        }
        if let Some((register, negated)) = i.guard {
            let _ = write!(
                out,
                "@{}{} ",
                if negated { "!" } else { "" },
                names.register(register)
            );
        }
        let _ = write!(out, "{}", i.mnemonic());
        operands::print(i, names, out);
        out.push_str(";\n");
    }
    for label in labels {
        let _ = writeln!(out, "{}:", names.label(crate::ir::LabelId(label as u32)));
    }
}

/// The lists and prototypes that the instructions name by label.
fn lists(module: &Module, body: &Body, names: &BodyNames<'_>, out: &mut String) {
    for (n, (_, labels)) in body.branch_targets.iter().enumerate() {
        let labels: Vec<&str> = labels.iter().map(|l| names.label(*l)).collect();
        let _ = writeln!(
            out,
            "{}: .branchtargets {};",
            names.branch_targets(n),
            labels.join(", ")
        );
    }
    for (n, (_, functions)) in body.call_targets.iter().enumerate() {
        let functions: Vec<&str> = functions.iter().map(|f| names.function(*f)).collect();
        let _ = writeln!(
            out,
            "{}: .calltargets {};",
            names.call_targets(n),
            functions.join(", ")
        );
    }
    let calls = body
        .instrs
        .iter()
        .filter(|i| i.op == Op::Call)
        .flat_map(|i| &i.operands);
    let used: BTreeSet<u32> = calls
        .filter_map(|o| match o {
            Operand::Proto(ProtoId(p)) => Some(*p),
            _ => None,
        })
        .collect();
    for p in used {
        let prototype = &module.prototypes[p as usize];
        let returns = match prototype.returns.as_slice() {
            [] => String::new(),
            list => format!("{} ", parameters(list)),
        };
        let noreturn = if prototype.noreturn { " .noreturn" } else { "" };
        let name = names.prototype(ProtoId(p));
        let _ = writeln!(
            out,
            "{name}: .callprototype {returns}_ {}{noreturn};",
            parameters(&prototype.params)
        );
    }
}
