//! Tables of the Python enums, struct and handle classes: `crates/python/src/generated/{ids,<library>_types}.rs`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::PathBuf;

use super::HEADER;
use crate::ir::{self, AttrKind, Builtin, ClassKind, Element};

const FOLDER: &str = "crates/python/src/generated";

/// Generated files: paths from the repository root and contents.
pub fn generate(api: &ir::Api) -> Vec<(PathBuf, String)> {
    let ids = Ids::new(api);
    let mut files = vec![(PathBuf::from(FOLDER).join("ids.rs"), ids.source(api))];
    for lib in api.libraries.iter().filter(|l| l.in_python()) {
        files.push((
            PathBuf::from(FOLDER).join(format!("{}_types.rs", lib.name)),
            library(lib, &ids),
        ));
    }
    files
}

/// Numbers of classes and enums over all libraries.
struct Ids {
    classes: BTreeMap<String, usize>,
    enums: BTreeMap<String, usize>,
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
        for lib in api.libraries.iter().filter(|l| l.in_python()) {
            ids.first.insert(lib.name.clone(), ids.counts);
            for class in &lib.python.classes {
                ids.classes
                    .entry(class.name.clone())
                    .or_insert(ids.counts.0);
                ids.counts.0 += 1;
            }
            for e in sorted_enums(lib) {
                ids.enums.entry(e.name.clone()).or_insert(ids.counts.1);
                ids.counts.1 += 1;
            }
        }
        ids
    }

    fn class(&self, name: &str) -> String {
        match self.classes.get(name) {
            Some(id) => format!("ClassId({id})"),
            None => panic!("no Python class {name}"),
        }
    }

    fn enumeration(&self, name: &str) -> String {
        match self.enums.get(name) {
            Some(id) => format!("EnumId({id})"),
            None => panic!("no Python enum {name}"),
        }
    }

    fn source(&self, api: &ir::Api) -> String {
        let mut out = format!("//! Numbers of the Python classes and enums.\n//!\n{HEADER}\n\n");
        out.push_str("#![allow(dead_code, missing_docs, non_upper_case_globals)]\n\n");
        let _ = writeln!(out, "/// Python classes over all libraries.");
        let _ = writeln!(out, "pub const CLASS_COUNT: usize = {};", self.counts.0);
        let _ = writeln!(out, "/// Python enums over all libraries.");
        let _ = writeln!(out, "pub const ENUM_COUNT: usize = {};", self.counts.1);
        let _ = writeln!(
            out,
            "\n/// Numbers of the classes.\npub mod class {{\nuse crate::types::ClassId;\n"
        );
        for lib in api.libraries.iter().filter(|l| l.in_python()) {
            for class in &lib.python.classes {
                let _ = writeln!(
                    out,
                    "pub const {}: ClassId = {};",
                    class.name,
                    self.class(&class.name)
                );
            }
        }
        let _ = writeln!(
            out,
            "}}\n\n/// Numbers of the enums.\npub mod enums {{\nuse crate::types::EnumId;\n"
        );
        for lib in api.libraries.iter().filter(|l| l.in_python()) {
            for e in sorted_enums(lib) {
                let _ = writeln!(
                    out,
                    "pub const {}: EnumId = {};",
                    e.name,
                    self.enumeration(&e.name)
                );
            }
        }
        out.push_str("}\n");
        out
    }
}

fn sorted_enums(lib: &ir::Library) -> Vec<&ir::PyEnum> {
    let mut enums: Vec<_> = lib.python.enums.iter().collect();
    enums.sort_by(|a, b| a.name.cmp(&b.name));
    enums
}

fn library(lib: &ir::Library, ids: &Ids) -> String {
    let mut out = format!(
        "//! Types of `{}` for Python.\n//!\n{HEADER}\n\n",
        lib.python.name
    );
    out.push_str("use cupyrite_sys::loader;\n\nuse crate::types::table::*;\n\n");
    let variant = if lib.name == "nvrtc" {
        "Nvrtc"
    } else {
        "Driver"
    };
    let (first_class, first_enum) = ids.first[&lib.name];
    let _ = writeln!(
        out,
        "/// The types of `{}`.\npub static LIBRARY: Library = Library {{\nmodule: {:?},\nloader: loader::Library::{variant},\nurl: {:?},\nstyle: Style::Tuple,\nenum_base: EnumBase::Fast,\nerrors: None,\nfirst_class: {first_class},\nfirst_enum: {first_enum},\nclasses: &CLASSES,\nclass_index: &CLASS_INDEX,\nenums: &ENUMS,\nconstants: &CONSTANTS,\naliases: &[],\ndtypes: &[],\n}};\n",
        lib.python.name, lib.python.name, lib.doc_url
    );
    let classes = &lib.python.classes;
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
        let _ = writeln!(
            out,
            "Enum {{ name: {:?}, members: &{:?} }},",
            e.name, e.members
        );
    }
    out.push_str("];\n\n");
    let mut constants: Vec<(&str, i64)> = lib
        .python
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

fn class_source(lib: &ir::Library, class: &ir::PyClass, ids: &Ids) -> String {
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
            if let Some(r) = lib.record(record) {
                align = r.align;
                c_name = r.c_name.clone().unwrap_or_else(|| describe_part(lib, r));
            }
            "Kind::Pod".to_owned()
        }
        // A few pointer typedefs behave as numbers in Python.
        ClassKind::Handle | ClassKind::Callback if !has("__index__") => {
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
    if class.no_args && kind != "Kind::Marker" && has_size(class) {
        flags.push("SIZEOF");
    }
    let base = match &class.base {
        Some(base) => format!("Some({})", ids.class(base)),
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
        "Class {{ name: c{:?}, base: {base}, kind: {kind}, size: {}, align: {align}, flags: {flags}, c_name: {c_name:?}, fields: &[{fields}] }}",
        class.name, class.size
    )
}

/// `sizeof` does not know the parts of other structs that C gives a tag but that cannot be made alone.
fn has_size(class: &ir::PyClass) -> bool {
    class.size > 0
}

fn describe_part(lib: &ir::Library, record: &ir::Record) -> String {
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

/// Attributes as the C declaration orders them (the IR sorts them by name).
pub(super) fn in_c_order<'a>(lib: &ir::Library, class: &'a ir::PyClass) -> Vec<&'a ir::PyAttr> {
    let mut order = Vec::new();
    if let ClassKind::Record { record } = &class.kind {
        declared(lib, record, &mut order);
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

fn declared(lib: &ir::Library, record: &str, order: &mut Vec<String>) {
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

fn elem(of: &Element, ids: &Ids) -> String {
    match of {
        Element::Int { builtin } => format!("Elem::Int({})", prim(*builtin)),
        Element::Float { builtin } => format!("Elem::Float({})", prim(*builtin)),
        Element::Enum { name } => format!("Elem::Enum({})", ids.enumeration(name)),
        Element::Handle { class, .. } => format!("Elem::Handle({})", ids.class(class)),
        Element::Struct { class, .. } => format!("Elem::Struct({})", ids.class(class)),
        Element::CString | Element::VoidPtr => "Elem::Address".to_owned(),
    }
}

/// List attributes that take a bytes-like value for the raw memory of their elements.
pub(super) fn takes_raw_memory(attr: &ir::PyAttr) -> bool {
    matches!(
        attr.name.as_str(),
        "paramArray" | "paramsArray" | "accessDescs" | "cigParams" | "streamCigParams"
    )
}

/// Classes whose list attributes set their count when they are assigned.
fn sets_count(class: &ir::PyClass) -> bool {
    class.name.starts_with("CUDA_MEMCPY_BATCH_NODE_PARAMS")
        || class.name.starts_with("CUDA_FABRIC_CPY_BATCH_NODE_PARAMS")
}

fn count((offset, size): (usize, usize)) -> String {
    format!("Count {{ offset: {offset}, size: {size} }}")
}

fn field_kind(lib: &ir::Library, class: &ir::PyClass, attr: &ir::PyAttr, ids: &Ids) -> String {
    match &attr.kind {
        AttrKind::Int { builtin } => format!("FieldKind::Int({})", prim(*builtin)),
        AttrKind::Float { builtin } => format!("FieldKind::Float({})", prim(*builtin)),
        AttrKind::Enum { name } => format!("FieldKind::Enum({})", ids.enumeration(name)),
        AttrKind::Handle { class, .. } | AttrKind::Callback { class } => {
            format!("FieldKind::Handle({})", ids.class(class))
        }
        AttrKind::View { class, .. } => format!("FieldKind::View({})", ids.class(class)),
        AttrKind::Bytes { len } if class.name.starts_with("CUuuid") => {
            format!("FieldKind::HexBytes({len})")
        }
        AttrKind::Bytes { len } => format!("FieldKind::Bytes({len})"),
        AttrKind::Array { of, len } => format!("FieldKind::Array({}, {len})", elem(of, ids)),
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
                elem(of, ids)
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
                    ids.class(class)
                ),
                _ => format!("FieldKind::Pointee({})", ids.class(class)),
            }
        }
        // Pointers to numbers are shown in decimal, as NVIDIA's package does.
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
        AttrKind::Pod { class } => format!("FieldKind::Pod({})", ids.class(class)),
        AttrKind::Pods {
            class,
            max,
            count_at,
        } => {
            let count = count_at.map_or("None".to_owned(), |at| format!("Some({})", count(at)));
            format!("FieldKind::Pods({}, {max}, {count})", ids.class(class))
        }
        AttrKind::Nested { class, len } => {
            format!("FieldKind::Records({}, {len})", ids.class(class))
        }
        AttrKind::PointerInts { builtin, count_at } => format!(
            "FieldKind::PointerInts({}, {})",
            prim(*builtin),
            count(*count_at)
        ),
        AttrKind::PointerPods { class, count_at } => format!(
            "FieldKind::PointerPods({}, {})",
            ids.class(class),
            count(*count_at)
        ),
        AttrKind::PointerSlice { count_at } => {
            format!("FieldKind::PointerWords({})", count(*count_at))
        }
        AttrKind::Hidden { builtin, len } => {
            format!("FieldKind::Hidden({}, {len})", prim(*builtin))
        }
    }
}
