//! Reference sections of classes, enums, exceptions and constants.

use std::fmt::Write;

use super::html::{Names, code, escape, table};
use crate::backend::differences::c_type;
use crate::backend::python_types::in_c_order;
use crate::backend::{stubs, stubs_raising};
use crate::ir::{AttrKind, ClassKind, LibraryApi, PyAttr, PyClass, PyEnum};
use crate::meanings::Meanings;

/// All sections with their headings.
pub fn sections(lib: &LibraryApi, names: &Names, meanings: &Meanings) -> String {
    let python = &lib.python;
    let mut out = String::new();
    if !python.classes.is_empty() {
        out.push_str("<h2>Classes</h2>\n");
        let mut classes: Vec<&PyClass> = python.classes.iter().collect();
        classes.sort_by(|a, b| a.name.cmp(&b.name));
        for class in classes {
            out.push_str(&one_class(lib, class, names));
        }
    }
    if !python.enums.is_empty() {
        out.push_str("<h2>Enums</h2>\n");
        for e in &python.enums {
            out.push_str(&one_enum(lib, e, meanings));
        }
    }
    if !python.exceptions.is_empty() {
        out.push_str("<h2>Exceptions</h2>\n");
        for e in &python.exceptions {
            let base = e.base.as_deref().unwrap_or("Exception");
            let _ = writeln!(out, "<h3 id=\"{0}\">{0}</h3>", escape(&e.name));
            let text = format!("class {}({base})", e.name);
            let _ = writeln!(out, "<pre>{}</pre>", names.code(&lib.name, &text));
            let statuses = status_of(lib, &e.name);
            if !statuses.is_empty() {
                let _ = writeln!(out, "<p>Raised for {}.</p>", statuses.join(", "));
            }
        }
    }
    if !python.constants.is_empty() {
        let rows: Vec<Vec<String>> = (python.constants.iter())
            .map(|c| vec![code(&c.name), c.value.to_string()])
            .collect();
        let _ = write!(
            out,
            "<h2>Constants</h2>\n{}",
            table(&["name", "value"], &rows)
        );
    }
    let rows: Vec<Vec<String>> = (python.aliases.iter().chain(&python.dtypes))
        .map(|(name, target)| vec![code(name), names.code(&lib.name, target)])
        .collect();
    if !rows.is_empty() {
        out.push_str(
            "<h2>Aliases and NumPy types</h2>\n<p>Aliases, and the NumPy types of classes.</p>\n",
        );
        out.push_str(&table(&["name", "of"], &rows));
    }
    out
}

/// The members of the status enum that raise an exception class.
fn status_of(lib: &LibraryApi, exception: &str) -> Vec<String> {
    let Some(errors) = &lib.python.errors else {
        return Vec::new();
    };
    let members = (lib.python.enums.iter())
        .find(|e| e.name == errors.status_enum)
        .map_or(&[][..], |e| e.members.as_slice());
    (errors.by_status.iter())
        .filter(|(_, name)| name == exception)
        .filter_map(|(status, _)| members.iter().find(|(_, value)| value == status))
        .map(|(name, value)| format!("<code>{}</code> ({value})", escape(name)))
        .collect()
}

fn one_class(lib: &LibraryApi, class: &PyClass, names: &Names) -> String {
    let here = |text: &str| names.code(&lib.name, text);
    let mut out = format!("<h3 id=\"{0}\">{0}</h3>\n", escape(&class.name));
    if let Some(base) = &class.base {
        let _ = writeln!(out, "<p>Alias of {}.</p>", here(base));
        return out;
    }
    let c_name = match &class.kind {
        ClassKind::Record { record } | ClassKind::BufferStruct { record, .. } => lib.record(record),
        _ => None,
    }
    .and_then(|r| r.c_name.clone());
    let c_name = c_name.map(|n| format!(" {}", code(&n))).unwrap_or_default();
    let text = match &class.kind {
        ClassKind::Record { record } => {
            let what = match lib.record(record) {
                Some(r) if r.union => "union",
                _ => "struct",
            };
            format!("A {what}{c_name}, {} bytes.", class.size)
        }
        ClassKind::BufferStruct { array: false, .. } => {
            format!("A struct{c_name}, {} bytes, with a NumPy type.", class.size)
        }
        ClassKind::BufferStruct { array: true, .. } => format!(
            "An array of structs{c_name}, {} bytes each, with a NumPy type. The constructor takes the length. Supports \
             indexing, slicing and iteration; attributes are arrays if the length is above 1.",
            class.size
        ),
        ClassKind::Handle => format!("A handle: an opaque pointer of {} bytes.", class.size),
        ClassKind::Integer { builtin } => {
            format!(
                "An integer of {} bytes (<code>{}</code>).",
                class.size,
                builtin.c_name()
            )
        }
        ClassKind::Callback => "The address of a C function.".to_owned(),
        ClassKind::Other { what } => format!("{}.", escape(what)),
    };
    let _ = writeln!(out, "<p>{text}</p>");
    let rows: Vec<Vec<String>> = in_c_order(lib, class)
        .into_iter()
        .filter(|a| {
            !matches!(
                a.kind,
                AttrKind::Hidden { .. } | AttrKind::HiddenStruct { .. }
            )
        })
        .map(|a| attribute(lib, class, a, names))
        .collect();
    let head = ["attribute", "type", "accepts", "C type", "offset", "unit"];
    out.push_str(&table(&head, &rows));
    if !class.methods.is_empty() {
        let methods: Vec<String> = class.methods.iter().map(|m| code(m)).collect();
        let _ = writeln!(out, "<p>Methods: {}.</p>", methods.join(", "));
    }
    out
}

fn attribute(lib: &LibraryApi, class: &PyClass, attr: &PyAttr, names: &Names) -> Vec<String> {
    let array = matches!(class.kind, ClassKind::BufferStruct { array: true, .. });
    let (read, write) = match class.kind {
        ClassKind::BufferStruct { .. } => stubs_raising::attribute(attr, array).unwrap_or_default(),
        _ => stubs::attribute(attr),
    };
    let record = match &class.kind {
        ClassKind::Record { record } | ClassKind::BufferStruct { record, .. } => lib.record(record),
        _ => None,
    };
    let member = record.and_then(|r| {
        let mut at = r
            .fields
            .iter()
            .filter(|f| f.offset == attr.offset && !f.anonymous);
        let first = at.next()?;
        // Members of a union share an offset: then only the same name is the same member.
        let same = |f: &&crate::ir::Field| {
            f.name
                .replace('_', "")
                .eq_ignore_ascii_case(&attr.name.replace('_', ""))
        };
        std::iter::once(first)
            .chain(at)
            .find(same)
            .or((!r.union).then_some(first))
    });
    let mut c = member
        .map(|f| c_type(&f.ty).trim_end().to_owned())
        .unwrap_or_default();
    if let Some(crate::ir::Type::Array { len, .. }) = member.map(|f| &f.ty) {
        c = format!(
            "{}[{len}]",
            c.trim_end_matches(" *").trim_end_matches('*').trim_end()
        );
    }
    let unit = member.and_then(|f| lib.unit(&record?.name, &f.name));
    vec![
        code(&attr.name),
        names.code(&lib.name, &read),
        if attr.settable {
            names.code(&lib.name, &write)
        } else {
            "read-only".to_owned()
        },
        if c.is_empty() { c } else { code(&c) },
        attr.offset.to_string(),
        unit.map(|u| escape(&u)).unwrap_or_default(),
    ]
}

fn one_enum(lib: &LibraryApi, e: &PyEnum, meanings: &Meanings) -> String {
    let mut out = format!("<h3 id=\"{0}\">{0}</h3>\n", escape(&e.name));
    let c = match &e.c_type {
        Some(c) => format!("C enum {}", code(c)),
        None if lib.enumeration(&e.name).is_some() => "C enum of the same name".to_owned(),
        None => "Macros in C".to_owned(),
    };
    let _ = writeln!(out, "<p>{c}; {}.</p>", escape(&e.base));
    let rows: Vec<Vec<String>> = (e.members.iter())
        .map(|(name, value)| {
            let aliases: Vec<String> = (e.aliases.iter())
                .filter(|(_, target)| target == name)
                .map(|(alias, _)| code(alias))
                .collect();
            let meaning = meanings.of(&lib.name, &e.name, name);
            vec![
                code(name),
                value.to_string(),
                aliases.join(", "),
                escape(meaning),
            ]
        })
        .collect();
    out.push_str(&table(&["member", "value", "also", "meaning"], &rows));
    out
}
