//! Tables of the Python enums, struct and handle classes, one row each: `crates/python/src/generated/<library>_types.rs`. The
//! macros in which they are written are in `crates/python/src/types/declare.rs`.

use std::fmt::Write;
use std::path::PathBuf;

use super::HEADER;
use crate::ir::{self, AttrKind, Builtin, ClassKind, Element};
use crate::naming::module_variant;

const FOLDER: &str = "crates/python/src/generated";

/// Generated files: paths from the repository root and contents.
pub fn generate(api: &ir::Api) -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    let mut before = "none".to_owned();
    for lib in api.in_python() {
        let name = format!("{}_types", lib.name);
        let path = PathBuf::from(FOLDER).join(format!("{name}.rs"));
        files.push((path, library(lib, &before)));
        before = name;
    }
    files
}

/// The id of a class: of this library, or `library.class` of another one.
fn class_id(lib: &ir::LibraryApi, name: &str) -> String {
    match name.split_once('.') {
        Some((library, class)) if library != lib.name => {
            format!("crate::generated::{library}_types::class::{class}")
        }
        Some((_, class)) => format!("class::{class}"),
        None => format!("class::{name}"),
    }
}

fn sorted_enums(lib: &ir::LibraryApi) -> Vec<&ir::PyEnum> {
    let mut enums: Vec<_> = lib.python.enums.iter().collect();
    enums.sort_by(|a, b| a.name.cmp(&b.name));
    enums
}

fn library(lib: &ir::LibraryApi, before: &str) -> String {
    let python = &lib.python;
    let enums = sorted_enums(lib);
    // A module's enums have one base.
    let base = match python.enums.first().map(|e| e.base.as_str()) {
        Some("IntEnum") => "Int",
        _ => "Fast",
    };
    let errors = match python.errors {
        Some(_) => "Some(&ERRORS)",
        None => "None",
    };
    let is_class = |name: &str| python.classes.iter().any(|c| c.name == name);
    let dtypes: Vec<_> = (python.dtypes.iter())
        .filter(|(_, class)| is_class(class))
        .collect();
    let dtypes_of = if dtypes.is_empty() { "&[]" } else { "DTYPES" };
    let mut out = format!(
        "//! Types of `{0}` for Python.\n//!\n{HEADER}\n\n\
         use crate::types::declare::*;\nuse crate::types::table::*;\n\n\
         /// Types of `{0}`.\npub static MODULE: ModuleTypes = ModuleTypes {{\nmodule: Module::{1},\nurl: {2:?},\nenum_base: EnumBase::{base},\nerrors: {errors},\nfirst_class: class::FIRST,\nfirst_enum: enums::FIRST,\nclasses: CLASSES,\nclass_index: CLASS_INDEX,\nenums: ENUMS,\nconstants: CONSTANTS,\naliases: &{3:?},\ndtypes: {dtypes_of},\n}};\n\n",
        python.name,
        module_variant(lib),
        lib.doc_url,
        python.aliases
    );
    if let Some(errors) = &python.errors {
        out.push_str(&errors_source(lib, errors));
    }
    let _ = writeln!(out, "classes! {{ after {before};");
    for class in &python.classes {
        let _ = writeln!(out, "{}", class_source(lib, class));
    }
    let _ = writeln!(out, "}}\n\nenums! {{ after {before};");
    for e in enums {
        let unsigned = if e.unsigned { "unsigned " } else { "" };
        let _ = writeln!(out, "{} {unsigned}{{", e.name);
        for (name, value) in &e.members {
            let _ = writeln!(out, "    {name} = {value};");
        }
        // An alias is a member with the value of the first.
        for (alias, target) in &e.aliases {
            if let Some((_, value)) = e.members.iter().find(|(n, _)| n == target) {
                let _ = writeln!(out, "    {alias} = {value};");
            }
        }
        out.push_str("}\n");
    }
    let mut constants: Vec<_> = python.constants.iter().collect();
    constants.sort_unstable_by(|a, b| a.name.cmp(&b.name));
    out.push_str("}\n\nconstants! {\n");
    for constant in constants {
        let _ = writeln!(out, "{} = {};", constant.name, constant.value);
    }
    out.push_str("}\n");
    if !dtypes.is_empty() {
        out.push_str("\ndtypes! {\n");
        for (name, class) in dtypes {
            let _ = writeln!(out, "{name} = {class};");
        }
        out.push_str("}\n");
    }
    out
}

fn errors_source(lib: &ir::LibraryApi, errors: &ir::PyErrors) -> String {
    let text = match errors.text {
        ir::ErrorText::Name => "Name",
        ir::ErrorText::Library => "Library",
        ir::ErrorText::Explained => "Explained",
        ir::ErrorText::CuFile => "CuFile",
    };
    let mut out = format!(
        "errors! {{ status(enums::{}) text({text}) unknown_is_value_error({});\n",
        errors.status_enum, errors.unknown_is_value_error
    );
    for e in &lib.python.exceptions {
        out.push_str(&e.name);
        if let Some(base) = &e.base
            && lib.python.exceptions.iter().any(|e| e.name == *base)
        {
            let _ = write!(out, ": {base}");
        }
        for (status, _) in errors.by_status.iter().filter(|(_, name)| *name == e.name) {
            let _ = write!(out, " for {status}");
        }
        out.push_str(";\n");
    }
    out + "}\n\n"
}

fn class_source(lib: &ir::LibraryApi, class: &ir::PyClass) -> String {
    let mut flags = Vec::new();
    let has = |d: &str| class.dunders.iter().any(|x| x == d);
    if has("__eq__") {
        flags.push("EQ_HASH");
    }
    if has("__index__") {
        flags.push("INDEX");
    }
    if has("__cuda_stream__") {
        flags.push("CUDA_STREAM");
    }
    if !class.no_args {
        flags.push("NEEDS_POINTER");
    }
    if class.methods.iter().any(|m| m == "set_dsts_srcs") {
        flags.push("SET_DSTS_SRCS");
    }
    let mut align = 8;
    let mut c_name = class.name.clone();
    let kind = match &class.kind {
        ClassKind::Record { record } => {
            if let Some(r) = lib.record(record) {
                align = r.align;
                c_name = r.c_name.clone().unwrap_or_else(|| describe_part(lib, r));
            }
            "Record".to_owned()
        }
        ClassKind::BufferStruct { record, array } => {
            if *array {
                flags.push("ARRAY");
            }
            if class.name.starts_with('_') {
                flags.push("PRIVATE");
            }
            if let Some(r) = lib.record(record) {
                align = r.align;
                c_name = spelling(lib, r);
            }
            "BufferStruct".to_owned()
        }
        // A few pointer typedefs are integers in Python.
        ClassKind::Handle | ClassKind::Callback if !has("__index__") && class.base.is_none() => {
            "Integer(Prim::U64)".to_owned()
        }
        ClassKind::Handle => "Pointer".to_owned(),
        ClassKind::Callback => "Callback".to_owned(),
        ClassKind::Integer { builtin } => {
            align = builtin.size();
            format!("Integer({})", prim(*builtin))
        }
        ClassKind::Other { .. } => "Marker".to_owned(),
    };
    if class.no_args && !matches!(kind.as_str(), "Marker" | "BufferStruct") && has_size(class) {
        flags.push("SIZEOF");
    }
    let mut out = format!("{}: {kind} size({}) align({align})", class.name, class.size);
    if let Some(base) = &class.base {
        let _ = write!(out, " derives({})", class_id(lib, base));
    }
    if !flags.is_empty() {
        let _ = write!(out, " flags({})", flags.join(" | "));
    }
    if !class.ones.is_empty() {
        let ones: Vec<String> = class.ones.iter().map(ToString::to_string).collect();
        let _ = write!(out, " ones({})", ones.join(", "));
    }
    let _ = write!(out, " {c_name:?} {{");
    let attrs = match class.base {
        None => in_c_order(lib, class),
        Some(_) => Vec::new(),
    };
    for attr in &attrs {
        let _ = write!(
            out,
            "\n    {}: {} at {} {:?} {};",
            attr.name,
            field_kind(lib, class, attr),
            attr.offset,
            attr.doc_type,
            if attr.settable { "set" } else { "get" }
        );
    }
    out.push_str(if attrs.is_empty() { "}" } else { "\n}" });
    out
}

/// `sizeof` does not support tagged parts of other structs that Python cannot construct.
fn has_size(class: &ir::PyClass) -> bool {
    class.size > 0
}

fn describe_part(lib: &ir::LibraryApi, record: &ir::Record) -> String {
    match &record.parent {
        Some((parent, member)) if !member.is_empty() => {
            let parent = lib
                .record(parent)
                .and_then(|p| p.c_name.clone())
                .unwrap_or_else(|| parent.clone());
            format!("{parent}.{member}")
        }
        _ => record.name.clone(),
    }
}

/// The usual C spelling of a struct type with a typedef.
fn spelling(lib: &ir::LibraryApi, record: &ir::Record) -> String {
    let named =
        |t: &&ir::Typedef| matches!(&t.ty, ir::Type::Named { name } if *name == record.name);
    match lib.typedefs.iter().find(named) {
        Some(t) => t.name.clone(),
        None => (record.c_name.clone()).unwrap_or_else(|| describe_part(lib, record)),
    }
}

/// Attributes in C declaration order (the IR sorts those of [`ClassKind::Record`] by name).
pub(super) fn in_c_order<'a>(lib: &ir::LibraryApi, class: &'a ir::PyClass) -> Vec<&'a ir::PyAttr> {
    let mut order = Vec::new();
    match &class.kind {
        ClassKind::Record { record } => declared(lib, record, &mut order),
        _ => return class.attrs.iter().collect(),
    }
    let mut attrs: Vec<_> = class.attrs.iter().collect();
    // Python names may differ from C's by a trailing underscore (`default_`).
    let place = |a: &ir::PyAttr| {
        order
            .iter()
            .position(|n| *n == a.name || *n == a.name.trim_end_matches('_'))
            .unwrap_or(usize::MAX)
    };
    attrs.sort_by_key(|a| (place(a), a.offset));
    attrs
}

fn declared(lib: &ir::LibraryApi, record: &str, order: &mut Vec<String>) {
    let Some(record) = lib.record(record) else {
        return;
    };
    for field in &record.fields {
        order.push(field.name.clone());
        if field.anonymous
            && let ir::Type::Named { name } = &field.ty
        {
            declared(lib, name, order);
        }
    }
}

fn prim(builtin: Builtin) -> &'static str {
    match (builtin.is_float(), builtin.size(), builtin.is_signed()) {
        (true, 4, _) => "F32",
        (true, _, _) => "F64",
        (_, 1, true) => "I8",
        (_, 1, false) => "U8",
        (_, 2, true) => "I16",
        (_, 2, false) => "U16",
        (_, 4, true) => "I32",
        (_, 4, false) => "U32",
        (_, _, true) => "I64",
        (_, _, false) => "U64",
    }
}

fn elem(lib: &ir::LibraryApi, of: &Element) -> String {
    match of {
        Element::Int { builtin } => format!("Elem::Int({})", prim(*builtin)),
        Element::Float { builtin } => format!("Elem::Float({})", prim(*builtin)),
        Element::Enum { name } => format!("Elem::Enum(enums::{name})"),
        Element::Handle { class, .. } => format!("Elem::Handle({})", class_id(lib, class)),
        Element::Struct { class, .. } => format!("Elem::Struct({})", class_id(lib, class)),
        Element::CString | Element::VoidPtr => "Elem::Address".to_owned(),
    }
}

/// List attributes that accept a bytes-like value as the raw memory of their elements.
pub(super) fn takes_raw_memory(attr: &ir::PyAttr) -> bool {
    matches!(
        attr.name.as_str(),
        "paramArray" | "paramsArray" | "accessDescs" | "cigParams" | "streamCigParams"
    )
}

/// Classes whose list attributes set their count on assignment.
fn sets_count(class: &ir::PyClass) -> bool {
    class.name.starts_with("CUDA_MEMCPY_BATCH_NODE_PARAMS")
        || class.name.starts_with("CUDA_FABRIC_CPY_BATCH_NODE_PARAMS")
}

fn count((offset, size): (usize, usize)) -> String {
    format!("Count {{ offset: {offset}, size: {size} }}")
}

fn field_kind(lib: &ir::LibraryApi, class: &ir::PyClass, attr: &ir::PyAttr) -> String {
    match &attr.kind {
        AttrKind::Int { builtin } => format!("Int({})", prim(*builtin)),
        // The NumPy type is the 32-bit one of Windows.
        AttrKind::Long { builtin } => format!("Long({})", prim(*builtin)),
        AttrKind::Float { builtin } => format!("Float({})", prim(*builtin)),
        AttrKind::Enum { name } => format!("Enum(enums::{name})"),
        AttrKind::Handle { class, .. } | AttrKind::Callback { class } => {
            format!("Handle({})", class_id(lib, class))
        }
        AttrKind::View { class, .. } => format!("View({})", class_id(lib, class)),
        AttrKind::Bytes { len } if class.name.starts_with("CUuuid") => {
            format!("HexBytes({len})")
        }
        AttrKind::Bytes { len } => format!("Bytes({len})"),
        AttrKind::Chars { len } => format!("Chars({len})"),
        AttrKind::Array { of, len } => format!("Array({}, {len})", elem(lib, of)),
        AttrKind::List { of, count_at, .. } => {
            let (offset, size) = count_at.unwrap_or((0, 0));
            let kind = if class.methods.iter().any(|m| m == "set_dsts_srcs")
                && matches!(attr.name.as_str(), "dsts" | "srcs")
            {
                "PairedList"
            } else if takes_raw_memory(attr) {
                "RawList"
            } else if sets_count(class) {
                "CountedList"
            } else {
                "List"
            };
            format!(
                "{kind}({}, Count {{ offset: {offset}, size: {size} }})",
                elem(lib, of)
            )
        }
        AttrKind::PointerTo { class, .. } => {
            let kind = if takes_raw_memory(attr) {
                "RawList"
            } else {
                "List"
            };
            match lib.python.class(class).map(|c| &c.kind) {
                Some(ClassKind::Record { .. }) => format!(
                    "{kind}(Elem::Struct({}), Count {{ offset: 0, size: 0 }})",
                    class_id(lib, class)
                ),
                _ => format!("Pointee({})", class_id(lib, class)),
            }
        }
        // Formats pointers to numbers in decimal, as NVIDIA's package does.
        AttrKind::VoidPtr if attr.doc_type == "size_t" => "PlainAddress".to_owned(),
        AttrKind::VoidPtr => "Address".to_owned(),
        AttrKind::KernelParams => "KernelParams".to_owned(),
        AttrKind::CString => "CString".to_owned(),
        AttrKind::Address => "Intptr".to_owned(),
        AttrKind::Text => "Text".to_owned(),
        AttrKind::Str { len } => format!("Str({len})"),
        AttrKind::Fixed { builtin, len } => format!("Fixed({}, {len})", prim(*builtin)),
        AttrKind::Counted {
            builtin,
            max,
            count_at,
        } => format!("Counted({}, {max}, {})", prim(*builtin), count(*count_at)),
        AttrKind::BufferStruct { class } => format!("BufferStruct({})", class_id(lib, class)),
        AttrKind::BufferStructs {
            class,
            max,
            count_at,
        } => {
            let count = count_at.map_or("None".to_owned(), |at| format!("Some({})", count(at)));
            format!("BufferStructs({}, {max}, {count})", class_id(lib, class))
        }
        AttrKind::Nested { class, len } => {
            format!("Records({}, {len})", class_id(lib, class))
        }
        AttrKind::PointerInts { builtin, count_at } => {
            format!("PointerInts({}, {})", prim(*builtin), count(*count_at))
        }
        AttrKind::PointerStructs { class, count_at } => format!(
            "PointerStructs({}, {})",
            class_id(lib, class),
            count(*count_at)
        ),
        AttrKind::PointerSlice { count_at } => {
            format!("PointerWords({})", count(*count_at))
        }
        AttrKind::HiddenStruct { class } => {
            format!("HiddenStruct({})", class_id(lib, class))
        }
        AttrKind::Hidden { builtin, len } => {
            format!("Hidden({}, {len})", prim(*builtin))
        }
    }
}
