//! The Cython C API: `crates/python/src/generated/cython.rs`, the capsules of `cuda.bindings.cydriver` and its siblings.
//!
//! A Cython extension finds a function by its name and by the text of its C type, which Cython derives from the
//! declarations in a `.pxd` file. [`text`] derives the same text.

use std::fmt::Write;
use std::path::PathBuf;

use super::HEADER;
use crate::ir::{Api, CythonFunction, LibraryApi, Spelled};
use crate::naming::loader_variant;

/// Generated files: paths from the repository root and contents.
///
/// # Errors
///
/// The overlay names what the headers do not declare.
pub fn generate(api: &Api) -> Result<Vec<(PathBuf, String)>, String> {
    Ok(vec![(
        PathBuf::from("crates/python/src/generated/cython.rs"),
        capsules(api)?,
    )])
}

/// The name of the Cython module.
fn module(lib: &LibraryApi) -> String {
    format!("cy{}", lib.name)
}

/// Cython's name of a type that its module defines.
fn mangled(lib: &LibraryApi, name: &str) -> String {
    let module = module(lib);
    format!("__pyx_t_4cuda_8bindings_{}{module}_{name}", module.len())
}

/// A type in the text of a signature, as Cython writes it.
pub fn text(lib: &LibraryApi, ty: &Spelled) -> String {
    let declared = lib.type_names.get(&ty.name);
    let c_name = declared.map_or(ty.name.as_str(), |d| d.c_name.as_str());
    let name = match ty.name.as_str() {
        "unsigned long long" => "unsigned PY_LONG_LONG".to_owned(),
        "long long" => "PY_LONG_LONG".to_owned(),
        "_Bool" => "bool".to_owned(),
        "ssize_t" => "Py_ssize_t".to_owned(),
        // The C library's struct without a typedef.
        "timespec" => "struct timespec".to_owned(),
        name if lib.cython_defines(name) => c_name.replace(name, &mangled(lib, name)),
        _ => c_name.to_owned(),
    };
    match ty.suffix.as_str() {
        "" => name,
        suffix => format!("{name} {suffix}"),
    }
}

/// The name of a capsule: the text of the function's C type.
pub fn signature(lib: &LibraryApi, f: &CythonFunction) -> String {
    let (ret, params) = f.prototype.split_first().expect("a prototype has a result");
    let params: Vec<String> = params.iter().map(|p| text(lib, p)).collect();
    let params = match params.as_slice() {
        [] => "void".to_owned(),
        params => params.join(", "),
    };
    let space = if ret.suffix.is_empty() { " " } else { "" };
    format!("{}{space}({params})", text(lib, ret))
}

/// The value of the status for a missing library or symbol.
fn missing(lib: &LibraryApi) -> Result<i64, String> {
    let name = &lib.cython.missing;
    let members = lib.enums.iter().flat_map(|e| &e.members);
    let declared = members.filter(|m| m.name == *name).map(|m| m.value).next();
    declared
        .or(lib.cython.missing_value)
        .ok_or_else(|| format!("[cython] missing: {} has no {name}", lib.name))
}

fn capsules(api: &Api) -> Result<String, String> {
    let mut modules = String::new();
    let mut tables = String::new();
    // Where the functions of a module begin follows from the lengths, so that a new function changes its own lines only.
    let mut firsts = String::new();
    let mut next = "0".to_owned();
    for lib in &api.libraries {
        let functions = lib.cython_functions()?;
        if functions.is_empty() {
            continue;
        }
        let name = lib.name.as_str();
        let upper = name.to_uppercase();
        let _ = writeln!(
            modules,
            "CapsuleModule {{ name: \"{}\", library: CudaLibrary::{}, missing: missing_status::<{}>, first: {upper}_FIRST, sources: {upper}, \
             texts: {upper}_TEXTS }},",
            module(lib),
            loader_variant(lib),
            missing(lib)?
        );
        let mut texts = String::new();
        let _ = writeln!(firsts, "const {upper}_FIRST: usize = {next};");
        next = format!("{upper}_FIRST + {upper}.len()");
        let _ = writeln!(tables, "#[rustfmt::skip]\nconst {upper}: &[u16] = &[");
        for f in &functions {
            let source = match &f.function {
                Some(function) => format!("{name}::Symbol::{function} as u16"),
                None => format!("BUILTIN + Builtin::{} as u16", f.name),
            };
            let _ = writeln!(tables, "    {source},");
            let _ = writeln!(texts, "    \"{}\\0{}\\0\",", f.name, signature(lib, f));
        }
        let _ = write!(
            tables,
            "];\n\n#[rustfmt::skip]\nstatic {upper}_TEXTS: &str = concat!(\n{texts});\n\n"
        );
    }
    Ok(format!(
        "//! The functions of the Cython modules, with the texts of their C types.\n//!\n{HEADER}\n\n\
         use cupyrite_sys::loader::CudaLibrary;\n\
         use cupyrite_sys::*;\n\n\
         use crate::bindings::cython::{{BUILTIN, Builtin, CapsuleModule, missing_status}};\n\n\
         /// Number of functions of all modules.\n\
         pub const COUNT: usize = {next};\n\n\
         {firsts}\n\
         /// The modules.\n\
         #[rustfmt::skip]\n\
         pub static MODULES: [CapsuleModule; {n}] = [\n{modules}];\n\n\
         {tables}",
        n = modules.lines().count(),
    ))
}
