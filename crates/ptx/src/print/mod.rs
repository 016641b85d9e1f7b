//! Typed IR to PTX text.
//!
//! The text parses to the same module, and printing that gives the same text again. Scopes are flattened: where two of them
//! declare the same name, the later one gets a number. Functions are declared before the first definition, so that their order
//! does not matter.

mod body;
mod names;
mod operands;

pub use operands::special_name;

use std::fmt::Write;

use crate::ir::{
    Directives, FuncId, Function, InitElem, Linkage, Module, Space, Type, VarId, Variable,
};
use names::BodyNames;

/// The text of a module.
pub fn print(module: &Module) -> String {
    let mut out = String::new();
    let (major, minor) = module.version;
    let _ = writeln!(
        out,
        ".version {major}.{minor}\n.target {}",
        module.target.join(", ")
    );
    let _ = writeln!(out, ".address_size {}", module.address_size);
    for (number, path) in &module.files {
        let _ = writeln!(out, ".file {number} \"{path}\"");
    }
    for function in &module.functions {
        let _ = writeln!(out, "{};", signature(function));
    }
    for variable in &module.globals {
        let _ = writeln!(
            out,
            "{}{};",
            linkage(variable.linkage),
            declaration(module, variable, &variable.name)
        );
    }
    for (alias, function) in &module.aliases {
        let name = |f: &FuncId| module.functions[f.0 as usize].name.as_str();
        let _ = writeln!(out, ".alias {}, {};", name(alias), name(function));
    }
    for function in &module.functions {
        if let Some(body) = &function.body {
            let names = BodyNames::new(module, function, body);
            let _ = writeln!(out, "{}\n{{", header(function));
            body::print(module, function, body, &names, &mut out);
            out.push_str("}\n");
        }
    }
    out
}

fn linkage(linkage: Linkage) -> &'static str {
    match linkage {
        Linkage::None => "",
        Linkage::Extern => ".extern ",
        Linkage::Visible => ".visible ",
        Linkage::Weak => ".weak ",
        Linkage::Common => ".common ",
    }
}

/// A function up to its body.
fn header(function: &Function) -> String {
    let mut text = signature(function);
    directives(&function.directives, &mut text);
    text
}

/// A function's declaration, which has no tuning directives.
fn signature(function: &Function) -> String {
    let kind = if function.is_entry { ".entry" } else { ".func" };
    let mut text = format!("{}{kind} ", linkage(function.linkage));
    if !function.returns.is_empty() {
        let _ = write!(text, "{} ", parameters(&function.returns));
    }
    text.push_str(&function.name);
    if !function.params.is_empty() || !function.is_entry {
        let _ = write!(text, "{}", parameters(&function.params));
    }
    if function.noreturn {
        text.push_str(" .noreturn");
    }
    text
}

fn directives(d: &Directives, text: &mut String) {
    let mut triple = |name: &str, value: Option<[u32; 3]>| {
        if let Some([x, y, z]) = value {
            let _ = write!(text, " .{name} {x}, {y}, {z}");
        }
    };
    triple("maxntid", d.max_ntid);
    triple("reqntid", d.req_ntid);
    triple("reqnctapercluster", d.req_ncta_per_cluster);
    let mut number = |name: &str, value: Option<u32>| {
        if let Some(value) = value {
            let _ = write!(text, " .{name} {value}");
        }
    };
    number("minnctapersm", d.min_ncta_per_sm);
    number("maxnreg", d.max_nreg);
    number("maxclusterrank", d.max_cluster_rank);
    if d.explicit_cluster {
        text.push_str(" .explicitcluster");
    }
    for pragma in d.pragmas.iter().filter(|p| is_directive(p)) {
        let _ = write!(text, " .{pragma}");
    }
}

/// Whether an element of [`Directives::pragmas`] is a directive of its own, not the string of a `.pragma`.
fn is_directive(pragma: &str) -> bool {
    let word = pragma.split(' ').next();
    matches!(
        word,
        Some("blocksareclusters" | "abi_preserve" | "abi_preserve_control" | "maxnctapersm")
    )
}

/// `(.param .u64 p, .param .b32 q)`.
fn parameters(list: &[Variable]) -> String {
    let list: Vec<String> = (list.iter())
        .map(|v| {
            declaration(
                &Module::default(),
                v,
                if v.name.is_empty() { "_" } else { &v.name },
            )
        })
        .collect();
    format!("({})", list.join(", "))
}

/// The spelling of a type.
fn type_word(ty: Type) -> String {
    match ty {
        // Variables of these formats are declared by their width.
        Type::Packed(bits) => format!("b{bits}"),
        _ => format!("{ty:?}").to_lowercase(),
    }
}

/// A declaration under a name, without the linking directive and the semicolon.
fn declaration(module: &Module, v: &Variable, name: &str) -> String {
    let mut text = format!(".{}", v.space.word());
    if v.managed {
        text.push_str(" .attribute(.managed)");
    }
    if v.space != Space::Reg && !matches!(v.ty, Type::TexRef | Type::SamplerRef | Type::SurfRef) {
        let _ = write!(text, " .align {}", v.align);
    }
    if v.vector > 1 {
        let _ = write!(text, " .v{}", v.vector);
    }
    let _ = write!(text, " .{}", type_word(v.ty));
    if let Some((space, align)) = v.ptr {
        text.push_str(" .ptr");
        if let Some(space) = space {
            let _ = write!(text, " .{}", space.word());
        }
        let _ = write!(text, " .align {align}");
    }
    let _ = write!(text, " {name}");
    for dimension in &v.dims {
        match dimension {
            Some(n) => {
                let _ = write!(text, "[{n}]");
            }
            None => text.push_str("[]"),
        }
    }
    if !v.properties.is_empty() {
        let all: Vec<String> = v
            .properties
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        let _ = write!(text, " = {{ {} }}", all.join(", "));
    }
    let values: Vec<String> = v.init.iter().flat_map(|e| element(module, v, e)).collect();
    match values.as_slice() {
        [] => {}
        [one] if v.dims.is_empty() && v.vector == 1 => {
            let _ = write!(text, " = {one}");
        }
        all => {
            let _ = write!(text, " = {{{}}}", all.join(", "));
        }
    }
    text
}

/// The values of an element of an initializer.
fn element(module: &Module, v: &Variable, element: &InitElem) -> Vec<String> {
    let masked = |byte: Option<u8>, text: String| match byte {
        Some(byte) => format!("{:#x}({text})", 0xffu64 << (8 * u32::from(byte))),
        None => text,
    };
    match *element {
        InitElem::Bits(bits) => vec![match v.ty {
            Type::F32 => format!("0f{bits:08X}"),
            Type::F64 => format!("0d{bits:016X}"),
            _ => format!("{bits:#x}"),
        }],
        InitElem::Zeros(count) => {
            let zero = if v.ty == Type::F64 {
                "0d0000000000000000"
            } else if v.ty == Type::F32 {
                "0f00000000"
            } else {
                "0x0"
            };
            vec![zero.to_string(); usize::try_from(count).unwrap_or(usize::MAX)]
        }
        InitElem::Var {
            var,
            offset,
            generic,
            byte,
        } => {
            let name = match var {
                VarId::Module(n) => module
                    .globals
                    .get(n as usize)
                    .map_or("_", |g| g.name.as_str()),
                _ => "_",
            };
            let name = if generic {
                format!("generic({name})")
            } else {
                name.to_string()
            };
            vec![masked(
                byte,
                if offset == 0 {
                    name
                } else {
                    format!("{name}+{offset}")
                },
            )]
        }
        InitElem::Func { func, byte } => {
            vec![masked(byte, module.functions[func.0 as usize].name.clone())]
        }
    }
}
