//! Compares libclang's layouts with the system's C compiler, for every header set.
//!
//! Together with the assertions in `crates/sys/src/generated/layout.rs`, which rustc checks against the same numbers,
//! this proves that the Rust types have the layout of C programs.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::ir::{Record, Type};

/// The headers of one library in one CUDA major.
pub struct HeaderSet {
    /// `driver-13`
    pub name: String,
    /// Headers to include.
    pub includes: &'static [&'static str],
    /// Macros to define.
    pub defines: &'static [&'static str],
    /// Include directories, stubs first.
    pub dirs: Vec<PathBuf>,
    /// The records, members before containers.
    pub records: Vec<Record>,
}

/// A C file that compiles if and only if every size, alignment and offset matches.
fn source(set: &HeaderSet) -> String {
    let mut out = String::new();
    for i in set.includes {
        let _ = writeln!(out, "#include <{i}>");
    }
    for r in &set.records {
        let Some(c) = &r.c_name else { continue };
        assert_c(&mut out, &format!("sizeof({c})"), r.size);
        assert_c(&mut out, &format!("_Alignof({c})"), r.align);
        members(&mut out, set, c, r, "", 0);
    }
    out
}

fn assert_c(out: &mut String, what: &str, value: usize) {
    let _ = writeln!(
        out,
        "_Static_assert({what} == {value}, \"{what} is not {value}\");"
    );
}

/// Asserts offsets and sizes of the members of `r`, which is at `path` (empty, or ending in a dot) within the C type
/// `c`.
fn members(out: &mut String, set: &HeaderSet, c: &str, r: &Record, path: &str, base: usize) {
    for f in &r.fields {
        let at = base + f.offset;
        let full = format!("{path}{}", f.name);
        if !f.anonymous {
            if f.bits.is_some() {
                continue; // no offset in C
            }
            assert_c(out, &format!("__builtin_offsetof({c}, {full})"), at);
            assert_c(out, &format!("sizeof((({c} *)0)->{full})"), f.size);
        }
        // Anonymous types have no C name; their members are asserted through this one.
        if let Type::Named { name } = &f.ty
            && let Some(inner) = set.records.iter().find(|x| x.name == *name)
            && inner.c_name.is_none()
        {
            let prefix = if f.anonymous {
                path.to_owned()
            } else {
                format!("{full}.")
            };
            members(out, set, c, inner, &prefix, at);
        }
    }
}

/// Compiles the assertions of every header set; `scratch` holds the C files.
///
/// # Errors
///
/// The C compiler is missing, or rejects a layout (with its message).
pub fn check(sets: &[HeaderSet], scratch: &Path) -> Result<(), String> {
    let cc = std::env::var("CC").unwrap_or_else(|_| "cc".to_owned());
    std::fs::create_dir_all(scratch).map_err(|e| format!("{}: {e}", scratch.display()))?;
    for set in sets.iter().filter(|s| !s.records.is_empty()) {
        let file = scratch.join(format!("{}-{}.c", set.name, std::process::id()));
        let text = source(set);
        std::fs::write(&file, &text).map_err(|e| format!("{}: {e}", file.display()))?;
        let mut command = Command::new(&cc);
        command
            .args(["-std=c11", "-fsyntax-only", "-nostdinc", "-w"])
            .args(set.defines.iter().map(|d| format!("-D{d}")));
        for dir in &set.dirs {
            command.arg("-isystem").arg(dir);
        }
        let output = command
            .arg(&file)
            .output()
            .map_err(|e| format!("cannot run the C compiler {cc} ({e}); install one or set CC"))?;
        let _ = std::fs::remove_file(&file);
        if !output.status.success() {
            return Err(format!(
                "{cc} sees a layout of {} differently:\n{}",
                set.name,
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        eprintln!(
            "codegen: {cc} agrees with {} sizes, alignments and offsets of {}",
            text.matches("_Static_assert").count(),
            set.name
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Builtin, Field};

    fn field(name: &str, anonymous: bool, ty: Type, offset: usize, size: usize) -> Field {
        Field {
            name: name.into(),
            anonymous,
            ty,
            offset,
            size,
            bits: None,
        }
    }

    fn record(name: &str, c_name: Option<&str>, size: usize, fields: Vec<Field>) -> Record {
        Record {
            name: name.into(),
            c_name: c_name.map(Into::into),
            union: false,
            size,
            align: 4,
            fields,
            parent: None,
            nested: false,
            header: String::new(),
            majors: vec![13],
        }
    }

    #[test]
    fn nameless_members_are_asserted_through_the_container() {
        let int = || Type::Builtin {
            builtin: Builtin::Int,
        };
        let named = |n: &str| Type::Named { name: n.into() };
        let set = HeaderSet {
            name: "x".into(),
            includes: &[],
            defines: &[],
            dirs: Vec::new(),
            records: vec![
                record("A_anon0", None, 4, vec![field("x", false, int(), 0, 4)]),
                record("A_dim", None, 4, vec![field("y", false, int(), 0, 4)]),
                record(
                    "A",
                    Some("struct A"),
                    12,
                    vec![
                        field("n", false, int(), 0, 4),
                        field("anon0", true, named("A_anon0"), 4, 4),
                        field("dim", false, named("A_dim"), 8, 4),
                    ],
                ),
            ],
        };
        let text = source(&set);
        assert!(text.contains("sizeof(struct A) == 12"));
        assert!(text.contains("__builtin_offsetof(struct A, x) == 4"));
        assert!(text.contains("__builtin_offsetof(struct A, dim.y) == 8"));
        assert!(!text.contains("anon0"));
    }
}
