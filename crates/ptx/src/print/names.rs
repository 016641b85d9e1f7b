//! Names that are unique in a body.

use std::collections::HashSet;

use crate::ir::{Body, FuncId, Function, LabelId, Module, ProtoId, RegId, VarId};

/// The name of everything that the instructions of a body refer to.
pub struct BodyNames<'m> {
    module: &'m Module,
    function: &'m Function,
    registers: Vec<String>,
    variables: Vec<String>,
    labels: Vec<String>,
    branch_targets: Vec<String>,
    call_targets: Vec<String>,
}

impl<'m> BodyNames<'m> {
    pub fn new(module: &'m Module, function: &'m Function, body: &'m Body) -> Self {
        let globals = module.globals.iter().map(|v| v.name.clone());
        let functions = module.functions.iter().map(|f| f.name.clone());
        let mut taken: HashSet<String> = globals.chain(functions).collect();
        taken.extend(
            module
                .prototypes
                .iter()
                .enumerate()
                .map(|(n, p)| prototype(n, &p.name)),
        );
        let parameters = || function.returns.iter().chain(&function.params);
        // Parameters in registers are the first registers.
        let in_registers = parameters()
            .filter(|v| v.space == crate::ir::Space::Reg)
            .count();
        taken.extend(
            parameters()
                .filter(|v| v.space != crate::ir::Space::Reg)
                .map(|v| v.name.clone()),
        );
        let mut unique = |name: &str| {
            let mut candidate = name.to_string();
            let mut n = 1;
            while !taken.insert(candidate.clone()) {
                candidate = format!("{name}_{n}");
                n += 1;
            }
            candidate
        };
        let registers = body
            .regs
            .iter()
            .enumerate()
            .map(|(n, r)| match n < in_registers {
                true => r.name.clone(),
                false => unique(&r.name),
            });
        BodyNames {
            module,
            function,
            registers: registers.collect(),
            variables: body.vars.iter().map(|v| unique(&v.name)).collect(),
            labels: body.labels.iter().map(|l| unique(&l.name)).collect(),
            branch_targets: body.branch_targets.iter().map(|t| unique(&t.0)).collect(),
            call_targets: body.call_targets.iter().map(|t| unique(&t.0)).collect(),
        }
    }

    pub fn register(&self, r: RegId) -> &str {
        &self.registers[r.0 as usize]
    }

    pub fn variable(&self, v: VarId) -> &str {
        match v {
            VarId::Module(n) => &self.module.globals[n as usize].name,
            VarId::Local(n) => &self.variables[n as usize],
            VarId::Param(n) => &self.function.params[n as usize].name,
            VarId::Return(n) => &self.function.returns[n as usize].name,
        }
    }

    pub fn function(&self, f: FuncId) -> &str {
        &self.module.functions[f.0 as usize].name
    }

    pub fn label(&self, l: LabelId) -> &str {
        &self.labels[l.0 as usize]
    }

    pub fn prototype(&self, p: ProtoId) -> String {
        prototype(p.0 as usize, &self.module.prototypes[p.0 as usize].name)
    }

    /// The label of a list of branch targets.
    pub fn branch_targets(&self, n: usize) -> &str {
        &self.branch_targets[n]
    }

    /// The label of a list of call targets.
    pub fn call_targets(&self, n: usize) -> &str {
        &self.call_targets[n]
    }
}

/// Prototypes of all bodies are in one list, and their labels may be the same.
fn prototype(n: usize, name: &str) -> String {
    let base = name.trim_end_matches(|c: char| c.is_ascii_digit());
    match base.strip_suffix("__p") {
        Some(base) => format!("{base}__p{n}"),
        None => format!("{name}__p{n}"),
    }
}
