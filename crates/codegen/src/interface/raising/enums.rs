//! Enum classes and exceptions of the modules whose functions raise.
//!
//! Members have C's names without the overlay's prefix. An overlay entry per Python enum names the C enum or a macro
//! prefix; enumerators and macros of newer headers become members automatically. A C enum that neither an entry nor
//! `hide_types` names is an error.

use std::collections::BTreeMap;

use crate::interface::overlay::{EnumOverlay, Overlay, listed};
use crate::ir::{Constant, LibraryApi, PyConstant, PyEnum, PyErrors, PyException};

/// The enum classes, by name.
///
/// # Errors
///
/// An overlay entry has no counterpart, or a C enum has no entry.
pub fn enums(lib: &LibraryApi, overlay: &Overlay) -> Result<Vec<PyEnum>, String> {
    let major = overlay.library.major;
    let mut out = Vec::new();
    let mut named = Vec::new();
    for (name, entry) in &overlay.enums {
        let with = |e: String| format!("{} enum {name}: {e}", lib.name);
        let members = match (&entry.c, &entry.macros) {
            (Some(c), None) => {
                let e = resolve(lib, c).ok_or_else(|| with(format!("no C enum {c}")))?;
                named.push(e.name.as_str());
                e.members
                    .iter()
                    .filter(|m| m.majors.contains(&major))
                    .map(|m| (m.name.as_str(), m.value))
                    .collect()
            }
            (None, Some(prefix)) => macros(lib, overlay, prefix),
            _ => return Err(with("needs either c or macros".to_owned())),
        };
        let mut made = one(lib, entry, members).map_err(with)?;
        made.name = name.clone();
        made.unsigned = entry.macros.as_deref().is_some_and(|prefix| {
            let of = |c: &&Constant| c.unsigned && c.name.starts_with(prefix);
            lib.constants.iter().any(|c| of(&c))
        });
        if let Some(base) = &overlay.types.enum_base {
            made.base = base.clone();
        }
        out.push(made);
    }
    let stray: Vec<&str> = lib
        .enums
        .iter()
        .filter(|e| e.majors.contains(&major) && !named.contains(&e.name.as_str()))
        .map(|e| e.name.as_str())
        .filter(|n| !listed(&overlay.library.hide_types, n))
        .collect();
    if !stray.is_empty() {
        return Err(format!(
            "overlay of {}: C enums neither shown nor hidden: {}",
            lib.name,
            stray.join(", ")
        ));
    }
    Ok(out)
}

/// The C enum called `name`, or denoted by a typedef of this name.
fn resolve<'a>(lib: &'a LibraryApi, name: &str) -> Option<&'a crate::ir::Enum> {
    let mut name = name;
    loop {
        if let Some(e) = lib.enumeration(name) {
            return Some(e);
        }
        match lib.typedef(name).map(|t| &t.ty) {
            Some(crate::ir::Type::Named { name: next }) => name = next,
            _ => return None,
        }
    }
}

/// The macros that begin with `prefix` and with no longer prefix of another enum, by value.
fn macros<'a>(lib: &'a LibraryApi, overlay: &Overlay, prefix: &str) -> Vec<(&'a str, i64)> {
    let longer: Vec<&str> = overlay
        .enums
        .values()
        .filter_map(|e| e.macros.as_deref())
        .filter(|p| p.len() > prefix.len() && p.starts_with(prefix))
        .collect();
    let mut out: Vec<(&str, i64)> = lib
        .constants
        .iter()
        .filter(|c| c.majors.contains(&overlay.library.major) && c.name.starts_with(prefix))
        .filter(|c| !longer.iter().any(|p| c.name.starts_with(p)))
        .map(|c| (c.name.as_str(), c.value))
        .collect();
    // Macros have no declaration order; the order by value is the closest substitute.
    out.sort_by_key(|(_, value)| *value);
    out
}

fn one(lib: &LibraryApi, entry: &EnumOverlay, given: Vec<(&str, i64)>) -> Result<PyEnum, String> {
    let strip = entry.macros.as_deref().unwrap_or(&entry.strip);
    let mut left_out: Vec<&str> = Vec::new();
    let mut members: Vec<(String, i64)> = Vec::new();
    let mut aliases: Vec<(String, String)> = Vec::new();
    for (c, value) in given {
        let short = c.strip_prefix(strip).unwrap_or(c);
        let mut name = if entry.upper {
            upper(short)
        } else {
            short.to_owned()
        };
        if let Some(known) = entry.leave_out.iter().find(|l| **l == name) {
            left_out.push(known);
            continue;
        }
        if let Some(target) = entry.also.get(&name) {
            // C declares both names.
            if let Some(prefix) = &entry.aliases {
                let second = c.strip_prefix(prefix.as_str()).unwrap_or(c);
                aliases.push((second.to_owned(), target.clone()));
            }
            continue;
        }
        if let Some(other) = entry.rename.get(&name) {
            name = other.clone();
        }
        if let Some(prefix) = &entry.aliases {
            let second = c.strip_prefix(prefix.as_str()).unwrap_or(c);
            if second != name {
                aliases.push((second.to_owned(), name.clone()));
            }
        }
        members.push((name, value));
    }
    for (name, value) in &entry.extra {
        let value = number(lib, value).map_err(|e| format!("extra: {name}: {e}"))?;
        members.push((name.clone(), value));
    }
    if let Some(stray) = (entry.leave_out.iter()).find(|l| !left_out.contains(&l.as_str())) {
        return Err(format!("leave_out: unknown name {stray}"));
    }
    if members.is_empty() {
        return Err("has no members".to_owned());
    }
    for (alias, target) in &entry.also {
        aliases.push((alias.clone(), target.clone()));
    }
    if let Some((alias, target)) =
        (aliases.iter()).find(|(_, t)| members.iter().all(|(name, _)| name != t))
    {
        return Err(format!(
            "{alias} is an alias of {target}, which is not a member"
        ));
    }
    // A repeated value is an alias of the first member.
    let mut seen: BTreeMap<i64, String> = BTreeMap::new();
    let mut again: Vec<(String, String)> = Vec::new();
    members.retain(|(name, value)| match seen.get(value) {
        Some(first) => {
            again.push((name.clone(), first.clone()));
            false
        }
        None => {
            seen.insert(*value, name.clone());
            true
        }
    });
    for (alias, target) in aliases {
        let first = again.iter().find(|(name, _)| *name == target);
        let target = first.map_or(target.clone(), |(_, first)| first.clone());
        again.push((alias, target));
    }
    Ok(PyEnum {
        name: String::new(),
        base: "FastEnum".to_owned(),
        members,
        aliases: again,
        unsigned: false,
        c_type: if entry.unrelated {
            None
        } else {
            entry.c.clone()
        },
    })
}

/// A value, or a macro's.
fn number(lib: &LibraryApi, given: &toml::Value) -> Result<i64, String> {
    match given {
        toml::Value::Integer(n) => Ok(*n),
        toml::Value::String(s) => {
            let found = lib.constants.iter().find(|c| c.name == *s);
            Ok(found.ok_or_else(|| format!("no macro {s}"))?.value)
        }
        other => Err(format!("{other} is neither a macro nor a number")),
    }
}

/// `ErrorInvalidParam` is `ERROR_INVALID_PARAM`, `DlaSWVersion` is `DLA_SW_VERSION`.
pub fn upper(camel: &str) -> String {
    crate::naming::snake_case(camel, &[]).to_uppercase()
}

/// The constants the overlay names.
///
/// # Errors
///
/// A macro is missing.
pub fn constants(lib: &LibraryApi, overlay: &Overlay) -> Result<Vec<PyConstant>, String> {
    overlay
        .constants
        .iter()
        .map(|(name, given)| {
            let value = number(lib, given).map_err(|e| format!("constant {name}: {e}"))?;
            let name = name.clone();
            Ok(PyConstant { name, value })
        })
        .collect()
}

/// The exception classes, bases first, the statuses that raise them, and aliases.
///
/// # Errors
///
/// The status enum is missing.
#[allow(clippy::type_complexity)]
pub fn exceptions(
    lib: &LibraryApi,
    overlay: &Overlay,
    enums: &[PyEnum],
) -> Result<(PyErrors, Vec<PyException>, Vec<(String, String)>), String> {
    let rules = &overlay.exceptions;
    let base = overlay.library.exception.clone();
    let status = enums
        .iter()
        .find(|e| e.name == rules.status)
        .ok_or_else(|| {
            format!(
                "overlay of {}: exceptions: no enum {:?}",
                lib.name, rules.status
            )
        })?;
    let mut classes = vec![PyException {
        name: base.clone(),
        base: None,
    }];
    let mut by_status = Vec::new();
    let mut aliases = Vec::new();
    for (member, value) in &status.members {
        let Some(short) = member.strip_prefix("ERROR_").filter(|_| rules.by_status) else {
            continue;
        };
        let short = camel(short);
        let rule = match short.ends_with("Error") {
            true => short,
            false => format!("{short}Error"),
        };
        let name = match rules.rename.get(&rule) {
            Some(name) => {
                aliases.push((rule, name.clone()));
                name.clone()
            }
            None => rule,
        };
        by_status.push((*value, name.clone()));
        classes.push(PyException {
            name,
            base: Some(base.clone()),
        });
    }
    by_status.sort();
    if let Some(stray) = (rules.rename.keys()).find(|k| aliases.iter().all(|(a, _)| a != *k)) {
        return Err(format!("exceptions of {}: unknown name {stray}", lib.name));
    }
    if rules.no_alias {
        aliases.clear();
    }
    let errors = PyErrors {
        exception: base,
        status_enum: rules.status.clone(),
        text: rules.text,
        unknown_is_value_error: !rules.by_status,
        by_status,
    };
    Ok((errors, classes, aliases))
}

/// `CORRUPTED_INFOROM` is `CorruptedInforom`.
fn camel(upper: &str) -> String {
    let mut out = String::new();
    for word in upper.split('_') {
        let mut letters = word.chars();
        out.extend(letters.next());
        out.push_str(&letters.as_str().to_lowercase());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Builtin, Enum, EnumMember};

    fn library() -> LibraryApi {
        let member = |name: &str, value| EnumMember {
            name: name.to_owned(),
            value,
            majors: vec![13],
            value_cuda12: None,
        };
        let constant = |name: &str, value| Constant {
            name: name.to_owned(),
            value,
            cast: None,
            unsigned: false,
            majors: vec![13],
        };
        LibraryApi {
            name: "lib".to_owned(),
            enums: vec![Enum {
                name: "libStatus".to_owned(),
                tag: None,
                underlying: Builtin::UInt,
                members: vec![
                    member("libSuccess", 0),
                    member("libErrorNoMem", 2),
                    member("libErrorAgain", 2),
                ],
                majors: vec![13],
            }],
            constants: vec![
                constant("LIB_CAP_Z", 1),
                constant("LIB_CAP_A", 2),
                constant("LIB_CAP_SUB_X", 7),
            ],
            ..LibraryApi::default()
        }
    }

    fn overlay(text: &str) -> Overlay {
        let head = "[library]\npython = \"m\"\nstatus = \"S\"\nsuccess = \"OK\"\nmajor = 13\nexception = \"LibError\"\n";
        toml::from_str(&format!("{head}{text}")).unwrap()
    }

    #[test]
    fn names_values_and_aliases() {
        let text = "[enums.Status]\nc = \"libStatus\"\nstrip = \"lib\"\nupper = true\naliases = \"lib\"\n\
            [enums.Cap]\nmacros = \"LIB_CAP_\"\nrename = { Z = \"LAST\" }\nextra = { MAX = 9 }\n[enums.Sub]\nmacros = \"LIB_CAP_SUB_\"\n";
        let made = enums(&library(), &overlay(text)).unwrap();
        let by_name = |n: &str| made.iter().find(|e| e.name == n).unwrap();
        let text = |e: &PyEnum| format!("{:?} {:?}", e.members, e.aliases);
        assert_eq!(
            text(by_name("Status")),
            "[(\"SUCCESS\", 0), (\"ERROR_NO_MEM\", 2)] [(\"ERROR_AGAIN\", \"ERROR_NO_MEM\"), \
             (\"Success\", \"SUCCESS\"), (\"ErrorNoMem\", \"ERROR_NO_MEM\"), (\"ErrorAgain\", \"ERROR_NO_MEM\")]"
        );
        // Excludes macros of the enum with the longer prefix.
        assert_eq!(
            text(by_name("Cap")),
            "[(\"LAST\", 1), (\"A\", 2), (\"MAX\", 9)] []"
        );
        assert_eq!(text(by_name("Sub")), "[(\"X\", 7)] []");
    }

    #[test]
    fn invalid_overlay_entries_are_errors() {
        let unnamed = enums(&library(), &overlay("")).unwrap_err();
        assert!(unnamed.contains("libStatus"), "{unnamed}");
        let text = "[enums.Cap]\nmacros = \"LIB_CAP_\"\nleave_out = [\"Q\"]\n";
        let stray = enums(&library(), &overlay(text)).unwrap_err();
        assert!(stray.contains("unknown name Q"), "{stray}");
    }

    #[test]
    fn exceptions_are_named_after_statuses() {
        let text = "[exceptions]\nstatus = \"Status\"\nby_status = true\nrename = { NoMemError = \"LibNoMemError\" }\n\
            [enums.Status]\nc = \"libStatus\"\nstrip = \"lib\"\nupper = true\n";
        let o = overlay(text);
        let made = enums(&library(), &o).unwrap();
        let (errors, classes, aliases) = exceptions(&library(), &o, &made).unwrap();
        assert_eq!(errors.by_status, [(2, "LibNoMemError".to_owned())]);
        assert_eq!(classes.len(), 2);
        assert_eq!(
            aliases,
            [("NoMemError".to_owned(), "LibNoMemError".to_owned())]
        );
    }
}
