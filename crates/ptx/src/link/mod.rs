//! The linker: several modules to one.
//!
//! A name with a linking directive (PTX ISA, "Linking Directives") denotes the same item in every module; a name without one
//! is local to its module. The linker works on the typed form: it renumbers indices and keeps names, and positions still
//! refer to the text of the input.

mod renumber;
mod resolve;

use std::fmt;

use crate::ir::{Function, Linkage, Module, Space, Variable};
use renumber::{NewNumbers, Shift};

/// A module to be linked.
#[derive(Clone, Debug)]
pub struct Input {
    /// Name for messages: a file name, or the name passed to `cuLinkAddData`.
    pub name: String,
    /// The module.
    pub module: Module,
}

/// Kind of link error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkErrorKind {
    /// A symbol is used but not defined.
    Undefined,
    /// Two modules define a symbol, neither of them as `.weak` or `.common`.
    Duplicate,
    /// Two modules declare a symbol differently: as a function and a variable, or with other parameters, size or space.
    Mismatch,
    /// The modules differ in address size or texturing mode.
    Incompatible,
}

/// A link error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkError {
    /// Kind.
    pub kind: LinkErrorKind,
    /// Symbol; empty if the error does not concern one.
    pub symbol: String,
    /// Message of one line that names the symbol and the modules.
    pub message: String,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for LinkError {}

/// A function or a variable of one of the inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum LinkItem {
    Func(usize),
    Var(usize),
}

/// One of the inputs, and an item in it.
type ItemRef = (usize, LinkItem);

/// Links modules. Declarations are resolved to their definitions, and `.weak` and `.common` definitions yield to strong ones.
/// Items without a linking directive stay local. A single module is checked in the same way.
///
/// `provided` tells which undefined functions the device provides (`vprintf`); they remain declarations. The result has the
/// newest `.version` and architecture of the inputs, and the target options of all of them.
///
/// # Errors
/// All errors, in input order; see [`LinkErrorKind`].
pub fn link(inputs: &[Input], provided: &dyn Fn(&str) -> bool) -> Result<Module, Vec<LinkError>> {
    let mut errors = Vec::new();
    let mut out = head(inputs, &mut errors);
    let chosen = resolve::definitions(inputs, &mut errors);
    let mut new_numbers = NewNumbers::new(inputs);
    // The input of each function and variable of the result.
    let (mut function_of, mut global_of) = (Vec::new(), Vec::new());
    // Assign new numbers to the kept items, module by module.
    for (n, Input { module, .. }) in inputs.iter().enumerate() {
        for (i, f) in module.functions.iter().enumerate() {
            let mine =
                !is_global(f) || chosen.get(f.name.as_str()) == Some(&(n, LinkItem::Func(i)));
            if f.body.is_some() && mine {
                new_numbers.keep(n, LinkItem::Func(i), out.functions.len());
                out.functions.push(f.clone());
                function_of.push(n);
            }
        }
        for (i, v) in module.globals.iter().enumerate() {
            let own = v.linkage == Linkage::None || is_dynamic_shared(v);
            if own || chosen.get(v.name.as_str()) == Some(&(n, LinkItem::Var(i))) {
                new_numbers.keep(n, LinkItem::Var(i), out.globals.len());
                out.globals.push(v.clone());
                global_of.push(n);
            }
        }
    }
    let used = renumber::used(inputs, &new_numbers);
    // Every other item denotes a kept one, or is undefined.
    for (n, Input { name, module }) in inputs.iter().enumerate() {
        let mut missing = |symbol: &str| {
            errors.push(LinkError {
                kind: LinkErrorKind::Undefined,
                symbol: symbol.to_owned(),
                message: format!(
                    "undefined symbol: '{symbol}' is used in '{name}' but not defined in any of the linked modules"
                ),
            });
        };
        for (i, f) in module.functions.iter().enumerate() {
            let item = LinkItem::Func(i);
            if resolve::lead(inputs, &chosen, &mut new_numbers, (n, item)) {
                continue;
            }
            if used.contains(&(n, item)) && !provided(&f.name) {
                missing(&f.name);
            }
            new_numbers.keep(n, item, out.functions.len());
            out.functions.push(f.clone());
            function_of.push(n);
        }
        for (i, v) in module.globals.iter().enumerate() {
            let item = LinkItem::Var(i);
            if resolve::lead(inputs, &chosen, &mut new_numbers, (n, item)) {
                continue;
            }
            if used.contains(&(n, item)) {
                missing(&v.name);
            }
            new_numbers.keep(n, item, out.globals.len());
            out.globals.push(v.clone());
            global_of.push(n);
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let shifts = shifts(&mut out, inputs);
    for (f, n) in out.functions.iter_mut().zip(function_of) {
        if let Some(body) = &mut f.body {
            renumber::body(body, &new_numbers, n, shifts[n]);
        }
    }
    for (v, n) in out.globals.iter_mut().zip(global_of) {
        renumber::initializer(&mut v.init, &new_numbers, n);
    }
    Ok(out)
}

/// Appends the files and prototypes of all inputs, and returns the offset of each input's numbers.
fn shifts(out: &mut Module, inputs: &[Input]) -> Vec<Shift> {
    let mut shift = Shift::default();
    let mut shifts = Vec::new();
    for Input { module, .. } in inputs {
        shifts.push(shift);
        let files = module.files.iter();
        out.files.extend(
            files
                .clone()
                .map(|(k, path)| (k.wrapping_add(shift.files), path.clone())),
        );
        out.prototypes.extend(module.prototypes.iter().cloned());
        let most = files.map(|f| f.0).max().unwrap_or(0);
        shift.files = shift.files.wrapping_add(most).wrapping_add(1);
        shift.prototypes += module.prototypes.len() as u32;
    }
    shifts
}

/// Whether a function is visible outside its module. Kernels are.
fn is_global(f: &Function) -> bool {
    f.is_entry || f.linkage != Linkage::None
}

/// Whether a variable is `.extern .shared .b8 s[];`, which denotes dynamic shared memory and has no definition.
fn is_dynamic_shared(v: &Variable) -> bool {
    v.linkage == Linkage::Extern && v.space == Space::Shared && v.is_unsized()
}

fn incompatible(message: String) -> LinkError {
    LinkError {
        kind: LinkErrorKind::Incompatible,
        symbol: String::new(),
        message,
    }
}

/// Version, target and address size of the result.
fn head(inputs: &[Input], errors: &mut Vec<LinkError>) -> Module {
    let mut out = Module {
        address_size: inputs.first().map_or(64, |i| i.module.address_size),
        ..Module::default()
    };
    let mode = |m: &Module| m.target.iter().find(|w| w.starts_with("texmode")).cloned();
    let mut modes: Option<(String, String)> = None;
    let mut newest: Option<&Module> = None;
    for Input { name, module } in inputs {
        out.version = out.version.max(module.version);
        if module.address_size != out.address_size {
            errors.push(incompatible(format!(
                "'{name}' has addresses of {} bits, '{}' of {}",
                module.address_size, inputs[0].name, out.address_size
            )));
        }
        // Of two equal numbers, an architecture-specific target (`sm_90a`) is the newer one.
        let rank = |m: &Module| (m.arch(), m.target.first().map_or(0, String::len));
        if newest.is_none_or(|n| rank(module) > rank(n)) {
            newest = Some(module);
        }
        match (mode(module), &modes) {
            (Some(m), Some((first, whose))) if m != *first => errors.push(incompatible(format!(
                "'{name}' is made for {m}, '{whose}' for {first}"
            ))),
            (Some(m), None) => modes = Some((m, name.clone())),
            _ => {}
        }
    }
    out.target
        .extend(newest.and_then(|m| m.target.first().cloned()));
    for word in inputs.iter().flat_map(|i| i.module.target.iter().skip(1)) {
        if !word.starts_with("sm_") && !out.target.contains(word) {
            out.target.push(word.clone());
        }
    }
    out
}

#[cfg(test)]
mod tests;
