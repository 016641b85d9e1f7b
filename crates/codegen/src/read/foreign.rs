//! Types of one library in the declarations of another: `CUstream` in cuFile's.

use std::collections::BTreeSet;

use crate::ir::{Api, Foreign, LibraryApi, Type};

/// Fills in [`LibraryApi::uses`]: every undeclared name of `lib`, resolved in the libraries of `from`.
///
/// # Errors
///
/// A name is declared in none of them.
pub fn note(lib: &mut LibraryApi, from: &[&str], known: &Api) -> Result<(), String> {
    let mut names = BTreeSet::new();
    for f in &lib.functions {
        collect(&f.ret, &mut names);
        f.params.iter().for_each(|p| collect(&p.ty, &mut names));
    }
    for r in &lib.records {
        r.fields.iter().for_each(|f| collect(&f.ty, &mut names));
    }
    lib.typedefs.iter().for_each(|t| collect(&t.ty, &mut names));
    let mut uses = Vec::new();
    for name in names {
        if declares(lib, &name) {
            continue;
        }
        let found = from
            .iter()
            .filter_map(|l| known.library(l))
            .find_map(|l| Some((l, meaning(l, &name)?)));
        let Some((owner, (ty, is_enum))) = found else {
            return Err(format!(
                "{}: no header that was read declares the type {name}",
                lib.name
            ));
        };
        uses.push(Foreign {
            name,
            library: owner.name.clone(),
            ty,
            is_enum,
        });
    }
    lib.uses = uses;
    Ok(())
}

fn declares(lib: &LibraryApi, name: &str) -> bool {
    lib.typedef(name).is_some()
        || lib.record(name).is_some()
        || lib.enumeration(name).is_some()
        || lib.opaques.iter().any(|o| o == name)
}

/// The C type that a name of `lib` denotes, and whether it is an enum. Libraries do not share structs.
fn meaning(lib: &LibraryApi, name: &str) -> Option<(Type, bool)> {
    if let Some(e) = lib.enumeration(name) {
        let builtin = e.underlying;
        return Some((Type::Builtin { builtin }, true));
    }
    let typedef = lib.typedef(name)?;
    match lib.resolve(&typedef.ty) {
        ty @ (Type::Pointer { .. } | Type::Builtin { .. }) => Some((ty.clone(), false)),
        _ => None,
    }
}

fn collect(ty: &Type, names: &mut BTreeSet<String>) {
    match ty {
        Type::Named { name } => {
            names.insert(name.clone());
        }
        Type::Pointer { to, .. } => collect(to, names),
        Type::Array { of, .. } => collect(of, names),
        Type::Function { ret, params } => {
            collect(ret, names);
            params.iter().for_each(|p| collect(p, names));
        }
        Type::Void | Type::Builtin { .. } => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Builtin, Enum, Typedef};

    fn named(name: &str) -> Type {
        Type::Named { name: name.into() }
    }

    fn pointer(to: Type) -> Type {
        Type::Pointer {
            to: Box::new(to),
            is_const: false,
        }
    }

    fn typedef(name: &str, ty: Type) -> Typedef {
        Typedef {
            name: name.into(),
            ty,
            majors: vec![13],
        }
    }

    fn driver() -> Api {
        Api {
            libraries: vec![LibraryApi {
                name: "driver".into(),
                opaques: vec!["CUstream_st".into()],
                typedefs: vec![typedef("CUstream", pointer(named("CUstream_st")))],
                enums: vec![Enum {
                    name: "CUresult".into(),
                    tag: None,
                    underlying: Builtin::UInt,
                    members: Vec::new(),
                    majors: vec![13],
                }],
                ..LibraryApi::default()
            }],
            second: Vec::new(),
        }
    }

    #[test]
    fn foreign_names_resolve_with_their_type() {
        let mut lib = LibraryApi {
            name: "cufile".into(),
            typedefs: vec![
                typedef("mine", pointer(named("CUstream"))),
                typedef("status", named("CUresult")),
                typedef("again", named("mine")),
            ],
            ..LibraryApi::default()
        };
        note(&mut lib, &["driver"], &driver()).unwrap();
        let found: Vec<(&str, bool)> = lib
            .uses
            .iter()
            .map(|u| (u.name.as_str(), u.is_enum))
            .collect();
        assert_eq!(found, [("CUresult", true), ("CUstream", false)]);
        let builtin = Builtin::UInt;
        assert_eq!(lib.resolve(&named("status")), &Type::Builtin { builtin });
        assert_eq!(
            lib.resolve(&named("CUstream")),
            &pointer(named("CUstream_st"))
        );
    }

    #[test]
    fn an_undeclared_name_is_an_error() {
        let mut lib = LibraryApi {
            name: "cufile".into(),
            typedefs: vec![typedef("mine", pointer(named("CUevent")))],
            ..LibraryApi::default()
        };
        let error = note(&mut lib, &["driver"], &driver()).unwrap_err();
        assert!(error.contains("CUevent"), "{error}");
        let error = note(&mut lib, &[], &driver()).unwrap_err();
        assert!(error.contains("CUevent"), "{error}");
    }
}
