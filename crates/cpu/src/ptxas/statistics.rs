//! The lines of `--verbose`, in the format of NVIDIA's program. Registers and the stack are those of
//! `CU_FUNC_ATTRIBUTE_NUM_REGS` and `CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES`: the engine's estimates. Nothing is spilled.

use cupyrite_engine::Kernel;
use cupyrite_ptx::ir::{Function, Module, Op, Operand, Space, Word};

use super::options::Architecture;

/// Barriers of a block.
const BARRIERS: i64 = 16;

/// The line of the variables.
pub(super) fn variables<'m>(modules: impl Iterator<Item = &'m Module>) -> String {
    let (mut global, mut constant) = (0, 0);
    for v in modules.flat_map(|m| &m.globals) {
        match v.space {
            Space::Global => global += v.size(),
            Space::Const => constant += v.size(),
            _ => {}
        }
    }
    let constant = match constant {
        0 => String::new(),
        n => format!(", {n} bytes cmem[3]"),
    };
    format!("{global} bytes gmem{constant}")
}

/// The lines of a kernel. A line that starts with a tab continues the line before it.
pub(super) fn kernel(kernel: &Kernel, modules: &[&Module], arch: &Architecture) -> Vec<String> {
    let name = &kernel.name;
    let stack = kernel.local_bytes();
    let mut used = format!(
        "Used {} registers, used {} barriers",
        kernel.num_regs(),
        barriers(name, modules)
    );
    if stack > 0 {
        used += &format!(", {stack} bytes cumulative stack size");
    }
    if kernel.static_shared() > 0 {
        used += &format!(", {} bytes smem", kernel.static_shared());
    }
    // Parameters follow launch data in constant bank 0; from 9.0 on `ptxas` does not print the bank.
    let launch_data = match arch.number {
        ..70 => Some(320),
        70..90 => Some(352),
        _ => None,
    };
    if let Some(offset) = launch_data {
        used += &format!(", {} bytes cmem[0]", offset + kernel.param_bytes);
    }
    vec![
        format!("Compiling entry function '{name}' for '{}'", arch.name),
        format!("Function properties for {name}"),
        format!("\t{stack} bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"),
        used,
    ]
}

/// The number of barriers that a kernel and the functions that it calls may use.
fn barriers(kernel: &str, modules: &[&Module]) -> i64 {
    let functions = || {
        modules
            .iter()
            .flat_map(|m| m.functions.iter().map(move |f| (*m, f)))
    };
    let mut seen: Vec<&str> = vec![kernel];
    let mut most = 0;
    let mut next = 0;
    while let Some(&name) = seen.get(next) {
        next += 1;
        for (module, f) in functions().filter(|(_, f)| f.name == name && f.body.is_some()) {
            most = most.max(own_barriers(f));
            for callee in callees(module, f) {
                if !seen.contains(&callee) {
                    seen.push(callee);
                }
            }
        }
    }
    most
}

/// Names of the functions that a body names.
fn callees<'m>(module: &'m Module, f: &'m Function) -> Vec<&'m str> {
    let instructions = f.body.iter().flat_map(|b| &b.instrs);
    instructions
        .flat_map(|i| &i.operands)
        .filter_map(|o| match o {
            Operand::Func(id) => module.functions.get(id.0 as usize),
            _ => None,
        })
        .map(|f| f.name.as_str())
        .collect()
}

/// Whether a function of the module names the function `name`.
pub(super) fn names(module: &Module, name: &str) -> bool {
    let mut functions = module.functions.iter();
    functions.any(|f| callees(module, f).contains(&name))
}

fn own_barriers(f: &Function) -> i64 {
    let instructions = f.body.iter().flat_map(|b| &b.instrs);
    instructions
        .filter(|i| matches!(i.op, Op::Bar | Op::Barrier))
        // A reduction's result comes first.
        .map(
            |i| match i.operands.get(usize::from(i.mods.has(Word::Red))) {
                Some(Operand::Int(number)) => number + 1,
                _ => BARRIERS,
            },
        )
        .max()
        .unwrap_or(0)
}
