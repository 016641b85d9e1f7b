//! Tables of the Python enums, struct and handle classes: `crates/python/src/generated/{ids,<library>_types}.rs`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use super::HEADER;
use crate::ir::{self, AttrKind, Builtin, ClassKind, Element};
use crate::naming::module_variant;

const FOLDER: &str = "crates/python/src/generated";

/// Generated files: paths from the repository root and contents.
pub fn generate(api: &ir::Api) -> Vec<(PathBuf, String)> {
    let ids = Ids::new(api);
    let mut files = vec![(PathBuf::from(FOLDER).join("ids.rs"), ids.source(api))];
    for lib in api.in_python() {
        files.push((
            PathBuf::from(FOLDER).join(format!("{}_types.rs", lib.name)),
            library(lib, &ids),
        ));
    }
    files
}

/// Indices of classes and enums of all libraries.
struct Ids {
    /// By library and name: the raising modules share names.
    classes: BTreeMap<(String, String), usize>,
    enums: BTreeMap<(String, String), usize>,
    first: BTreeMap<String, (usize, usize)>,
    counts: (usize, usize),
}

impl Ids {
    fn new(api: &ir::Api) -> Ids {
        let mut ids = Ids {
            classes: BTreeMap::new(),
            enums: BTreeMap::new(),
            first: BTreeMap::new(),
            counts: (0, 0),
        };
        for lib in api.in_python() {
            ids.first.insert(lib.name.clone(), ids.counts);
            for class in &lib.python.classes {
                let key = (lib.name.clone(), class.name.clone());
                ids.classes.insert(key, ids.counts.0);
                ids.counts.0 += 1;
            }
            for e in sorted_enums(lib) {
                let key = (lib.name.clone(), e.name.clone());
                ids.enums.insert(key, ids.counts.1);
                ids.counts.1 += 1;
            }
        }
        ids
    }

    fn class(&self, lib: &ir::LibraryApi, name: &str) -> String {
        match self.classes.get(&(lib.name.clone(), name.to_owned())) {
            Some(id) => format!("ClassId({id})"),
            None => panic!("no Python class {}.{name}", lib.name),
        }
    }

    /// A base class, possibly of another library.
    fn base(&self, lib: &ir::LibraryApi, name: &str) -> String {
        let (library, class) = name.split_once('.').unwrap_or((&lib.name, name));
        match self.classes.get(&(library.to_owned(), class.to_owned())) {
            Some(id) => format!("ClassId({id})"),
            None => panic!("no Python class {library}.{class}"),
        }
    }

    fn enumeration(&self, lib: &ir::LibraryApi, name: &str) -> String {
        match self.enums.get(&(lib.name.clone(), name.to_owned())) {
            Some(id) => format!("EnumId({id})"),
            None => panic!("no Python enum {}.{name}", lib.name),
        }
    }

    /// `class::driver::CUcontext`, `class::nvml::PciInfo`: one namespace per library.
    fn source(&self, api: &ir::Api) -> String {
        let mut out = format!("//! Indices of the Python classes and enums.\n//!\n{HEADER}\n\n");
        out.push_str("#![allow(dead_code, missing_docs, non_upper_case_globals)]\n\n");
        let _ = writeln!(out, "/// Number of Python classes of all libraries.");
        let _ = writeln!(out, "pub const CLASS_COUNT: usize = {};", self.counts.0);
        let _ = writeln!(out, "/// Number of Python enums of all libraries.");
        let _ = writeln!(out, "pub const ENUM_COUNT: usize = {};", self.counts.1);
        let (mut classes, mut enums) = (String::new(), String::new());
        for lib in api.in_python() {
            let mut own = String::new();
            for class in &lib.python.classes {
                let id = self.class(lib, &class.name);
                let _ = writeln!(own, "pub const {}: ClassId = {id};", class.name);
            }
            namespace(&mut classes, lib, "ClassId", &own);
            let mut own = String::new();
            for e in sorted_enums(lib) {
                let id = self.enumeration(lib, &e.name);
                let _ = writeln!(own, "pub const {}: EnumId = {id};", e.name);
            }
            namespace(&mut enums, lib, "EnumId", &own);
        }
        let _ = writeln!(out, "\n/// Class indices.\npub mod class {{\n{classes}}}");
        let _ = writeln!(out, "\n/// Enum indices.\npub mod enums {{\n{enums}}}");
        out
    }
}

fn namespace(out: &mut String, lib: &ir::LibraryApi, what: &str, own: &str) {
    // Not every library has both kinds.
    let _ = writeln!(
        out,
        "/// Of `{}`.\npub mod {} {{\n#[allow(unused_imports)]\nuse crate::types::{what};\n\n{own}}}\n",
        lib.python.name, lib.name
    );
}

fn sorted_enums(lib: &ir::LibraryApi) -> Vec<&ir::PyEnum> {
    let mut enums: Vec<_> = lib.python.enums.iter().collect();
    enums.sort_by(|a, b| a.name.cmp(&b.name));
    enums
}

fn library(lib: &ir::LibraryApi, ids: &Ids) -> String {
    let python = &lib.python;
    let mut out = format!(
        "//! Types of `{}` for Python.\n//!\n{HEADER}\n\n",
        python.name
    );
    out.push_str("use crate::types::table::*;\n\n");
    let (first_class, first_enum) = ids.first[&lib.name];
    // A module's enums have one base.
    let base = match python.enums.first().map(|e| e.base.as_str()) {
        Some("IntEnum") => "Int",
        _ => "Fast",
    };
    let errors = if python.errors.is_some() {
        "Some(&ERRORS)"
    } else {
        "None"
    };
    let mut dtypes: Vec<(&str, usize)> = Vec::new();
    let place = |class: &str| python.classes.iter().position(|c| c.name == class);
    for (name, class) in &python.dtypes {
        dtypes.extend(place(class).map(|i| (name.as_str(), first_class + i)));
    }
    let _ = writeln!(
        out,
        "/// Types of `{0}`.\npub static MODULE: ModuleTypes = ModuleTypes {{\nmodule: Module::{1},\nurl: {2:?},\nenum_base: EnumBase::{base},\nerrors: {errors},\nfirst_class: {first_class},\nfirst_enum: {first_enum},\nclasses: &CLASSES,\nclass_index: &CLASS_INDEX,\nenums: &ENUMS,\nconstants: &CONSTANTS,\naliases: &{3:?},\ndtypes: &{dtypes:?},\n}};\n",
        python.name,
        module_variant(lib),
        lib.doc_url,
        python.aliases
    );
    if let Some(errors) = &python.errors {
        out.push_str(&errors_source(lib, errors, ids));
    }
    let classes = &python.classes;
    let _ = writeln!(out, "static CLASSES: [Class; {}] = [", classes.len());
    for class in classes {
        let _ = writeln!(out, "{},", class_source(lib, class, ids));
    }
    out.push_str("];\n\n");
    let mut index: Vec<(&str, usize)> = classes
        .iter()
        .enumerate()
        .map(|(i, c)| (c.name.as_str(), first_class + i))
        .collect();
    index.sort_unstable();
    let _ = writeln!(
        out,
        "static CLASS_INDEX: [(&str, u16); {}] = {index:?};\n",
        index.len()
    );
    let enums = sorted_enums(lib);
    let _ = writeln!(out, "static ENUMS: [Enum; {}] = [", enums.len());
    for e in enums {
        // An alias is a member with the value of the first.
        let mut members: Vec<(&str, i64)> =
            e.members.iter().map(|(n, v)| (n.as_str(), *v)).collect();
        for (alias, target) in &e.aliases {
            let value = e.members.iter().find(|(n, _)| n == target).map(|(_, v)| *v);
            members.extend(value.map(|v| (alias.as_str(), v)));
        }
        let _ = writeln!(
            out,
            "Enum {{ name: {:?}, unsigned: {}, members: &{members:?} }},",
            e.name, e.unsigned
        );
    }
    out.push_str("];\n\n");
    let mut constants: Vec<(&str, i64)> = python
        .constants
        .iter()
        .map(|c| (c.name.as_str(), c.value))
        .collect();
    constants.sort_unstable();
    let _ = writeln!(
        out,
        "static CONSTANTS: [(&str, i64); {}] = {constants:?};",
        constants.len()
    );
    out
}

fn errors_source(lib: &ir::LibraryApi, errors: &ir::PyErrors, ids: &Ids) -> String {
    let exceptions = &lib.python.exceptions;
    let place = |name: &str| exceptions.iter().position(|e| e.name == name);
    let mut out = String::from("static ERRORS: Errors = Errors {\nexceptions: &[\n");
    for e in exceptions {
        let base = e.base.as_deref().and_then(place);
        let _ = writeln!(out, "Exception {{ name: {:?}, base: {base:?} }},", e.name);
    }
    let mut index: Vec<(&str, usize)> = exceptions
        .iter()
        .enumerate()
        .map(|(i, e)| (e.name.as_str(), i))
        .collect();
    index.sort_unstable();
    let by_status: Vec<(i64, usize)> = errors
        .by_status
        .iter()
        .filter_map(|(status, name)| Some((*status, place(name)?)))
        .collect();
    let text = match errors.text {
        ir::ErrorText::Name => "Name",
        ir::ErrorText::Library => "Library",
        ir::ErrorText::Explained => "Explained",
        ir::ErrorText::CuFile => "CuFile",
    };
    let _ = writeln!(
        out,
        "],\nindex: &{index:?},\nstatus: {},\ntext: ErrorText::{text},\nunknown_is_value_error: {},\nby_status: &{by_status:?},\n}};\n",
        ids.enumeration(lib, &errors.status_enum),
        errors.unknown_is_value_error
    );
    out
}

fn class_source(lib: &ir::LibraryApi, class: &ir::PyClass, ids: &Ids) -> String {
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
            "Kind::Record".to_owned()
        }
        ClassKind::Pod { record, array } => {
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
            "Kind::Pod".to_owned()
        }
        // A few pointer typedefs are integers in Python.
        ClassKind::Handle | ClassKind::Callback if !has("__index__") && class.base.is_none() => {
            "Kind::Integer(Prim::U64)".to_owned()
        }
        ClassKind::Handle => "Kind::Pointer".to_owned(),
        ClassKind::Callback => "Kind::Callback".to_owned(),
        ClassKind::Integer { builtin } => {
            align = builtin.size();
            format!("Kind::Integer({})", prim(*builtin))
        }
        ClassKind::Other { .. } => "Kind::Marker".to_owned(),
    };
    if class.no_args && !matches!(kind.as_str(), "Kind::Marker" | "Kind::Pod") && has_size(class) {
        flags.push("SIZEOF");
    }
    let base = match &class.base {
        Some(base) => format!("Some({})", ids.base(lib, base)),
        None => "None".to_owned(),
    };
    let mut fields = String::new();
    if class.base.is_none() {
        for attr in in_c_order(lib, class) {
            let _ = write!(
                fields,
                "Field {{ name: c{:?}, offset: {}, kind: {}, settable: {}, doc: {:?} }},",
                attr.name,
                attr.offset,
                field_kind(lib, class, attr, ids),
                attr.settable,
                attr.doc_type
            );
        }
    }
    let flags = if flags.is_empty() {
        "0".to_owned()
    } else {
        flags.join(" | ")
    };
    format!(
        "Class {{ name: c{:?}, base: {base}, kind: {kind}, size: {}, align: {align}, flags: {flags}, c_name: {c_name:?}, ones: &{:?}, fields: &[{fields}] }}",
        class.name, class.size, class.ones
    )
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
        (true, 4, _) => "Prim::F32",
        (true, _, _) => "Prim::F64",
        (_, 1, true) => "Prim::I8",
        (_, 1, false) => "Prim::U8",
        (_, 2, true) => "Prim::I16",
        (_, 2, false) => "Prim::U16",
        (_, 4, true) => "Prim::I32",
        (_, 4, false) => "Prim::U32",
        (_, _, true) => "Prim::I64",
        (_, _, false) => "Prim::U64",
    }
}

fn elem(lib: &ir::LibraryApi, of: &Element, ids: &Ids) -> String {
    match of {
        Element::Int { builtin } => format!("Elem::Int({})", prim(*builtin)),
        Element::Float { builtin } => format!("Elem::Float({})", prim(*builtin)),
        Element::Enum { name } => format!("Elem::Enum({})", ids.enumeration(lib, name)),
        Element::Handle { class, .. } => format!("Elem::Handle({})", ids.class(lib, class)),
        Element::Struct { class, .. } => format!("Elem::Struct({})", ids.class(lib, class)),
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

fn field_kind(lib: &ir::LibraryApi, class: &ir::PyClass, attr: &ir::PyAttr, ids: &Ids) -> String {
    match &attr.kind {
        AttrKind::Int { builtin } => format!("FieldKind::Int({})", prim(*builtin)),
        // The NumPy type is the 32-bit one of Windows.
        AttrKind::Long { builtin } => format!("FieldKind::Long({})", prim(*builtin)),
        AttrKind::Float { builtin } => format!("FieldKind::Float({})", prim(*builtin)),
        AttrKind::Enum { name } => format!("FieldKind::Enum({})", ids.enumeration(lib, name)),
        AttrKind::Handle { class, .. } | AttrKind::Callback { class } => {
            format!("FieldKind::Handle({})", ids.class(lib, class))
        }
        AttrKind::View { class, .. } => format!("FieldKind::View({})", ids.class(lib, class)),
        AttrKind::Bytes { len } if class.name.starts_with("CUuuid") => {
            format!("FieldKind::HexBytes({len})")
        }
        AttrKind::Bytes { len } => format!("FieldKind::Bytes({len})"),
        AttrKind::Chars { len } => format!("FieldKind::Chars({len})"),
        AttrKind::Array { of, len } => format!("FieldKind::Array({}, {len})", elem(lib, of, ids)),
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
                "FieldKind::{kind}({}, Count {{ offset: {offset}, size: {size} }})",
                elem(lib, of, ids)
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
                    "FieldKind::{kind}(Elem::Struct({}), Count {{ offset: 0, size: 0 }})",
                    ids.class(lib, class)
                ),
                _ => format!("FieldKind::Pointee({})", ids.class(lib, class)),
            }
        }
        // Formats pointers to numbers in decimal, as NVIDIA's package does.
        AttrKind::VoidPtr if attr.doc_type == "size_t" => "FieldKind::PlainAddress".to_owned(),
        AttrKind::VoidPtr => "FieldKind::Address".to_owned(),
        AttrKind::KernelParams => "FieldKind::KernelParams".to_owned(),
        AttrKind::CString => "FieldKind::CString".to_owned(),
        AttrKind::Address => "FieldKind::Intptr".to_owned(),
        AttrKind::Text => "FieldKind::Text".to_owned(),
        AttrKind::Str { len } => format!("FieldKind::Str({len})"),
        AttrKind::Fixed { builtin, len } => format!("FieldKind::Fixed({}, {len})", prim(*builtin)),
        AttrKind::Counted {
            builtin,
            max,
            count_at,
        } => format!(
            "FieldKind::Counted({}, {max}, {})",
            prim(*builtin),
            count(*count_at)
        ),
        AttrKind::Pod { class } => format!("FieldKind::Pod({})", ids.class(lib, class)),
        AttrKind::Pods {
            class,
            max,
            count_at,
        } => {
            let count = count_at.map_or("None".to_owned(), |at| format!("Some({})", count(at)));
            format!("FieldKind::Pods({}, {max}, {count})", ids.class(lib, class))
        }
        AttrKind::Nested { class, len } => {
            format!("FieldKind::Records({}, {len})", ids.class(lib, class))
        }
        AttrKind::PointerInts { builtin, count_at } => format!(
            "FieldKind::PointerInts({}, {})",
            prim(*builtin),
            count(*count_at)
        ),
        AttrKind::PointerPods { class, count_at } => format!(
            "FieldKind::PointerPods({}, {})",
            ids.class(lib, class),
            count(*count_at)
        ),
        AttrKind::PointerSlice { count_at } => {
            format!("FieldKind::PointerWords({})", count(*count_at))
        }
        AttrKind::HiddenPod { class } => {
            format!("FieldKind::HiddenPod({})", ids.class(lib, class))
        }
        AttrKind::Hidden { builtin, len } => {
            format!("FieldKind::Hidden({}, {len})", prim(*builtin))
        }
    }
}
