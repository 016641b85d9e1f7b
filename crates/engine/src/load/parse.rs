//! From PTX text to one linked module.

use std::collections::{BTreeSet, HashSet};

use cupyrite_ptx::ir::{Directives, InitElem, Linkage, Module, Op, Operand};
use cupyrite_ptx::link;

use super::device_runtime;
use super::error::{LoadError, LoadErrorKind, unresolved};
use super::unit::Unit;
use crate::kir::BuiltinKind;

/// Parses a module. Error messages contain `name` unless it is empty.
pub fn parse(ptx: &str, name: &str) -> Result<Module, LoadError> {
    cupyrite_ptx::parse(ptx).map_err(|e| LoadError {
        kind: match e.kind {
            cupyrite_ptx::ErrorKind::UnsupportedVersion => LoadErrorKind::UnsupportedPtxVersion,
            _ => LoadErrorKind::InvalidPtx,
        },
        line: e.pos.line,
        column: e.pos.column,
        message: if name.is_empty() {
            e.to_string()
        } else {
            format!("'{name}', {e}")
        },
    })
}

/// Parses a module and gives its kernels the limit of registers. Kernels with launch bounds or a limit of their own keep those
/// (CUDA Programming Guide, "Maximum Number of Registers per Thread").
fn limited(unit: &Unit, name: &str) -> Result<Module, LoadError> {
    let mut module = parse(&unit.text, name)?;
    let bounded = |d: &Directives| d.max_ntid.is_some() || d.req_ntid.is_some();
    for f in module.functions.iter_mut().filter(|f| f.is_entry) {
        if f.directives.max_nreg.is_none() && !bounded(&f.directives) {
            f.directives.max_nreg = unit.max_registers;
        }
    }
    Ok(module)
}

/// Checks whether a module is valid by itself.
///
/// # Errors
/// As for [`Image::load`](super::Image::load), but undefined symbols are not errors.
pub fn check_unit(unit: &Unit) -> Result<(), LoadError> {
    parse(&unit.text, &unit.name).map(|_| ())
}

/// Parses modules and links them.
///
/// # Errors
/// As for [`Image::load_units`](super::Image::load_units).
pub fn link_units(units: &[Unit]) -> Result<Module, LoadError> {
    let is_own = |unit: &&Unit| !device_runtime::is_of_gpu(&unit.text);
    let inputs = units.iter().filter(is_own).enumerate().map(|(n, unit)| {
        let name = match unit.name.as_str() {
            "" => format!("input {}", n + 1),
            name => name.to_owned(),
        };
        let module = limited(unit, &name)?;
        Ok(link::Input { name, module })
    });
    link_inputs(inputs.collect::<Result<Vec<_>, LoadError>>()?)
}

/// The functions that modules declare, and that neither they nor the device defines. Modules with errors count as empty.
pub fn undefined_functions(units: &[Unit]) -> Vec<String> {
    let modules: Vec<Module> = units
        .iter()
        .filter(|unit| !device_runtime::is_of_gpu(&unit.text))
        .filter_map(|u| parse(&u.text, &u.name).ok())
        .collect();
    let functions = || modules.iter().flat_map(|m| &m.functions);
    let defined: HashSet<&str> = functions()
        .filter(|f| f.body.is_some())
        .map(|f| f.name.as_str())
        .collect();
    let missing: BTreeSet<&str> = functions()
        .filter(|f| f.linkage == Linkage::Extern)
        .map(|f| f.name.as_str())
        .filter(|name| {
            !defined.contains(name)
                && BuiltinKind::from_name(name).is_none()
                && !device_runtime::provides(name)
        })
        .collect();
    missing.into_iter().map(str::to_owned).collect()
}

/// Links modules, and the device runtime if they need it.
fn link_inputs(mut inputs: Vec<link::Input>) -> Result<Module, LoadError> {
    if device_runtime::needed(inputs.iter().map(|i| &i.module)) {
        inputs.push(device_runtime::input()?);
    }
    link::link(&inputs, &|name| BuiltinKind::from_name(name).is_some()).map_err(|errors| {
        LoadError {
            kind: LoadErrorKind::UnresolvedSymbol,
            line: 0,
            column: 0,
            message: errors
                .iter()
                .map(|e| match device_runtime::reason(&e.symbol) {
                    Some(why) => format!("{e}: {why}"),
                    None => e.to_string(),
                })
                .collect::<Vec<_>>()
                .join("\n"),
        }
    })
}

/// Parses a module that is linked with no other one.
pub fn single(unit: &Unit) -> Result<Module, LoadError> {
    let mut module = limited(unit, "")?;
    resolve_aliases(&mut module);
    if !device_runtime::needed([&module]) {
        return Ok(module);
    }
    link_inputs(vec![link::Input {
        name: "module".into(),
        module,
    }])
}

/// Replaces every alias by the aliased function.
pub fn resolve_aliases(m: &mut Module) {
    if m.aliases.is_empty() {
        return;
    }
    let aliases = std::mem::take(&mut m.aliases);
    for body in m.functions.iter_mut().filter_map(|f| f.body.as_mut()) {
        for o in body.instrs.iter_mut().flat_map(|i| &mut i.operands) {
            o.walk_mut(&mut |o| {
                if let Operand::Func(f) = o
                    && let Some((_, to)) = aliases.iter().find(|(a, _)| a == f)
                {
                    *f = *to;
                }
            });
        }
    }
    for e in m.globals.iter_mut().flat_map(|g| &mut g.init) {
        if let InitElem::Func { func, .. } = e
            && let Some((_, to)) = aliases.iter().find(|(a, _)| a == func)
        {
            *func = *to;
        }
    }
}

/// Checks that every function that is called but not defined is one that the device provides.
pub fn check_functions(m: &Module) -> Result<(), LoadError> {
    for f in &m.functions {
        let Some(body) = &f.body else { continue };
        for i in &body.instrs {
            for o in &i.operands {
                let Operand::Func(id) = o else { continue };
                let Some(callee) = m.functions.get(id.0 as usize) else {
                    return Err(unresolved("?", i.pos.line));
                };
                if callee.body.is_none()
                    && (i.op != Op::Call || BuiltinKind::from_name(&callee.name).is_none())
                {
                    return Err(unresolved(&callee.name, i.pos.line));
                }
            }
        }
    }
    Ok(())
}
