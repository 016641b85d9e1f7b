//! Tables of the Python functions, one row each: `crates/python/src/generated/*_functions.rs`. The macros in which they are
//! written are in `crates/python/src/bindings/descriptor/declare.rs`.
//!
//! Besides the IR, this module knows the bounds that keep C from reading past a Python argument ([`list_count`],
//! [`buffer_size`], [`single_of_many`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use super::HEADER;
use super::signatures::{Signature, signature};
use crate::ir::{
    Api, ArgKind, Builtin, Element, Function, Gil, Len, LibraryApi, OutSize, PyArg, PyFunction,
    PyResult, Request, ResultKind, Ret, Role, Store, StructRule, Style, Type,
};
use crate::naming::module_variant;

/// Generated files: paths from the repository root and contents.
pub fn generate(api: &Api) -> Vec<(PathBuf, String)> {
    api.in_python()
        .filter(|lib| lib.functions.iter().any(|f| f.python.is_some()))
        .map(|lib| {
            let path = format!("crates/python/src/generated/{}_functions.rs", lib.name);
            (PathBuf::from(path), library(api, lib))
        })
        .collect()
}

fn library(api: &Api, lib: &LibraryApi) -> String {
    // A second module over a library calls through the thunks of the first one.
    let first = lib.shares.as_ref().and_then(|name| api.library(name));
    let mut known: BTreeSet<String> = first.map_or_else(BTreeSet::new, |first| {
        let bound = first.functions.iter().filter(|f| f.python.is_some());
        bound.map(|f| signature(first, f).name()).collect()
    });
    let mut thunks = String::new();
    let mut structs = BTreeSet::new();
    // The table is sorted by Python name.
    let mut rows: BTreeMap<&str, String> = BTreeMap::new();
    for f in &lib.functions {
        let Some(python) = &f.python else {
            continue;
        };
        let signature = signature(lib, f);
        if known.insert(signature.name()) {
            let _ = writeln!(thunks, "{}", signature.thunk());
            structs.extend(signature.structs());
        }
        rows.insert(&python.name, function(lib, f, python, &signature));
    }
    for python in &lib.python.functions {
        rows.insert(&python.name, hand_written(lib, python));
    }
    if lib.python.style == Style::Tuple {
        rows.insert("sizeof", SIZEOF.to_owned());
    }
    let rows: Vec<String> = rows.into_values().collect();
    let rows = rows.join("\n");
    let mut out = format!(
        "//! Function descriptors of `{module}`.\n//!\n{HEADER}\n\n",
        module = lib.python.name
    );
    if !structs.is_empty() {
        let _ = writeln!(out, "use cupyrite_sys::{} as c;", lib.c_library());
    }
    let _ = writeln!(out, "use cupyrite_sys::{}::Symbol;\n", lib.c_library());
    if rows.contains("hook(") {
        out.push_str("use crate::bindings::custom::*;\n");
    }
    out.push_str("use crate::bindings::descriptor::declare::*;\n");
    if let Some(first) = &lib.shares {
        let _ = writeln!(out, "use crate::generated::{first}_functions::*;");
    }
    let ids: Vec<&str> = ["class", "enums"]
        .into_iter()
        .filter(|ids| rows.contains(&format!("({ids}::")))
        .collect();
    if !ids.is_empty() {
        let _ = writeln!(
            out,
            "use crate::generated::{}_types::{{{}}};",
            lib.name,
            ids.join(", ")
        );
    }
    if !structs.is_empty() {
        let structs: Vec<String> = structs.iter().map(|name| format!("c::{name}")).collect();
        let _ = writeln!(out, "\nstructs_by_value!({});", structs.join(", "));
    }
    if !thunks.is_empty() {
        let _ = writeln!(out, "\nthunks! {{\n{thunks}}}");
    }
    let style = match lib.python.style {
        Style::Tuple => "returns_status",
        Style::Raises => "raises",
    };
    let _ = writeln!(
        out,
        "\nfunctions! {{\n{} {style};\n{rows}\n}}",
        module_variant(lib)
    );
    out
}

/// A function without a C function.
fn hand_written(lib: &LibraryApi, python: &PyFunction) -> String {
    let params: Vec<String> = (python.args.iter())
        .map(|arg| {
            let conv = match &arg.kind {
                ArgKind::Enum { name } => format!("Enum(enums::{name})"),
                kind => raising_conv(lib, kind),
            };
            format!("{}: {conv} {:?}", arg.name, arg_doc(arg))
        })
        .collect();
    let results: Vec<String> = (python.results.iter())
        .map(|result| format!("{}: VoidPtr {:?}", result_name(result), result.type_name))
        .collect();
    let mut out = prototype(&python.name, &params, &results, "");
    if python.gil == Gil::Keep {
        out.push_str(" gil(keep)");
    }
    if let Some(hook) = hook(python) {
        let _ = write!(out, " hook({hook})");
    }
    match lib.python.style {
        Style::Raises => out.push_str(&raising(python)),
        Style::Tuple if python.ret != Ret::Status => out.push_str(" alone(true)"),
        Style::Tuple => {}
    }
    out + ";"
}

/// `sizeof` is not a C function: the class tables provide its result.
const SIZEOF: &str = "sizeof(objType: VoidPtrPtr \"Any\") -> (_: VoidPtr \"int\") {} gil(keep) hook(sizeof) alone(true);";

// ---------------------------------------------------------------------------------------------------------
// Rows

/// The part of a row that all functions have.
fn prototype(name: &str, params: &[String], results: &[String], body: &str) -> String {
    format!(
        "{name}({}) -> ({}) {{{body}}}",
        params.join(", "),
        results.join(", ")
    )
}

fn result_name(result: &PyResult) -> &str {
    match result.name.as_str() {
        "" => "_",
        name => name,
    }
}

fn function(lib: &LibraryApi, f: &Function, python: &PyFunction, signature: &Signature) -> String {
    let params: Vec<String> = (python.args.iter().enumerate())
        .map(|(index, arg)| {
            let default = match arg.default.as_deref().map(str::parse::<i64>) {
                Some(Ok(number)) => format!(" = {number}"),
                _ if arg.default.as_deref() == Some("None") => " = NONE".to_owned(),
                _ => String::new(),
            };
            let conv = conv(lib, f, python, index);
            format!("{}: {conv} {:?}{default}", arg.name, arg_doc(arg))
        })
        .collect();
    let results: Vec<String> = (python.results.iter().enumerate())
        .map(|(index, result)| {
            let kind = out(lib, f, python, index);
            format!("{}: {kind} {:?}", result_name(result), result.type_name)
        })
        .collect();
    let words: Vec<String> = (f.params.iter())
        .map(|param| match param.role {
            Role::In { arg } if by_address(&param.ty, &python.args[arg].kind) => {
                format!("ArgAddress({arg})")
            }
            Role::In { arg } => format!("Arg({arg})"),
            Role::Out { result } => format!("Result({result})"),
            Role::InOut { arg, result } => format!("InOut({arg}, {result})"),
            Role::Null | Role::Unknown => "Null".to_owned(),
            Role::Const { value } => format!("Const({value})"),
            Role::Count => "Count".to_owned(),
            Role::Elements { arg } => format!("Elements({arg})"),
            Role::Request { request } => format!("Request({request})"),
        })
        .collect();
    let body = format!(" {} {}({}) ", signature.name(), f.name, words.join(", "));
    let mut out = prototype(&python.name, &params, &results, &body);
    if python.gil == Gil::Keep {
        out.push_str(" gil(keep)");
    }
    if let Some(hook) = hook(python) {
        let _ = write!(out, " hook({hook})");
    }
    if lib.python.style == Style::Raises {
        out.push_str(&raising(python));
    }
    out + ";"
}

/// The hook, as a path in `crates/python/src/bindings/custom`.
fn hook(python: &PyFunction) -> Option<&str> {
    let interruptible = python.interruptible.then_some("interruptible::call");
    python.hook.as_deref().or(interruptible)
}

/// Whether C receives the address of the converted value: a pointer to a number or to one handle.
fn by_address(ty: &Type, kind: &ArgKind) -> bool {
    match kind {
        ArgKind::Handle { by_pointer, .. } => *by_pointer,
        ArgKind::Int { .. }
        | ArgKind::Float { .. }
        | ArgKind::Enum { .. }
        | ArgKind::Bool
        | ArgKind::HandleByPointer
        | ArgKind::LiveHandle { .. } => {
            matches!(ty, Type::Pointer { .. })
        }
        _ => false,
    }
}

fn arg_doc(arg: &PyArg) -> String {
    arg.doc_type
        .clone()
        .or_else(|| arg.annotation.clone())
        .unwrap_or_else(|| "Any".to_owned())
}

fn int(builtin: Builtin) -> &'static str {
    match (builtin.size(), builtin.is_signed()) {
        (1, true) => "I8",
        (1, false) => "U8",
        (2, true) => "I16",
        (2, false) => "U16",
        (4, true) => "I32",
        (4, false) => "U32",
        (_, true) => "I64",
        (_, false) => "U64",
    }
}

/// The range of a handle or integer class.
fn handle_range(lib: &LibraryApi, class: &str) -> &'static str {
    let ty = Type::Named {
        name: class.to_owned(),
    };
    match lib.resolve(&ty) {
        Type::Builtin { builtin } => int(*builtin),
        _ => "U64",
    }
}

/// Enums are classes under the name the prototype uses.
fn conv(lib: &LibraryApi, f: &Function, python: &PyFunction, index: usize) -> String {
    let arg = &python.args[index];
    match &arg.kind {
        ArgKind::Int { builtin } if arg.doc_type.as_deref() == Some("Any") => {
            format!("IntOrNone({})", int(*builtin))
        }
        ArgKind::Int { builtin } => format!("Int({})", int(*builtin)),
        ArgKind::Float {
            builtin: Builtin::Float,
        } => "F32".to_owned(),
        ArgKind::Float { .. } => "F64".to_owned(),
        ArgKind::Enum { name } => format!("Enum(enums::{name})"),
        ArgKind::Handle {
            class, by_pointer, ..
        } => {
            let range = handle_range(lib, class);
            match (by_pointer, single_of_many(f, python)) {
                (false, _) => format!("Handle(class::{class}, {range})"),
                (true, Some(count)) => {
                    format!("HandleArray({range}, {count})")
                }
                (true, None) => format!("HandlePtr({range})"),
            }
        }
        ArgKind::Callback { class } => format!("Handle(class::{class}, U64)"),
        ArgKind::Struct {
            class,
            by_pointer: true,
            ..
        } => match single_of_many(f, python) {
            Some(count) => format!("StructArray(class::{class}, {count})"),
            None => format!("Struct(class::{class})"),
        },
        ArgKind::Struct { class, .. } => format!("StructValue(class::{class})"),
        ArgKind::List { of, count, .. } => {
            let count = match list_count(python, index, *count) {
                Some((param, less, optional)) => {
                    format!("Some(Count {{ param: {param}, less: {less}, optional: {optional} }})")
                }
                None => "None".to_owned(),
            };
            format!("List({}, {count})", element(lib, of))
        }
        ArgKind::CString => "Bytes".to_owned(),
        ArgKind::BytesOut => format!("BytesOut({})", optional(buffer_size(f, python, index))),
        ArgKind::VoidPtr => match rows(f, python, index) {
            Some((pitch, width, height)) => format!("Rows({pitch}, {width}, {height})"),
            None => format!("VoidPtr({})", optional(buffer_size(f, python, index))),
        },
        ArgKind::Attribute { selector, by } => format!("Attribute(enums::{selector}, {by})"),
        ArgKind::OptionValues {
            selector,
            by,
            count,
        } => format!("Options(enums::{selector}, {by}, {count})"),
        ArgKind::KernelParams => "KernelParams".to_owned(),
        ArgKind::VoidPtrPtr => "VoidPtrPtr".to_owned(),
        kind => raising_conv(lib, kind),
    }
}

/// Kinds of raising functions, and the plain kinds of hand-written functions.
fn raising_conv(lib: &LibraryApi, kind: &ArgKind) -> String {
    match kind {
        ArgKind::Int { builtin } => format!("Int({})", int(*builtin)),
        ArgKind::VoidPtr => "VoidPtr(None)".to_owned(),
        ArgKind::Address | ArgKind::HandleByPointer => "Address".to_owned(),
        ArgKind::Bool => "Bool".to_owned(),
        ArgKind::Str => "Str".to_owned(),
        ArgKind::StrList { count } => format!("StrList({})", optional(*count)),
        ArgKind::Buffer { size } => format!("Buffer({})", optional(*size)),
        ArgKind::BufferOut { size } => format!(
            "BufferOut({})",
            match size {
                OutSize::Arg { arg } => format!("OutSize::Arg({arg})"),
                OutSize::Call { function } => format!("OutSize::Call({function:?})"),
                OutSize::Const { value } => format!("OutSize::Const({value})"),
                OutSize::Unknown => "OutSize::Unknown".to_owned(),
            }
        ),
        ArgKind::Text => "Text".to_owned(),
        ArgKind::Addresses { count } => format!("Addresses({})", optional(*count)),
        ArgKind::Memory { size } => format!("VoidPtr({})", optional(*size)),
        ArgKind::Writable { size } => format!("Writable({})", optional(*size)),
        ArgKind::Attribute { selector, by } => format!("Attribute(enums::{selector}, {by})"),
        ArgKind::KernelParams => "KernelParams".to_owned(),
        ArgKind::Float {
            builtin: Builtin::Float,
        } => "F32".to_owned(),
        ArgKind::Float { .. } => "F64".to_owned(),
        ArgKind::BufferStruct { class, rule } => {
            let rule = match rule {
                StructRule::Address => "Address",
                StructRule::Exact => "Exact",
                StructRule::Plain => "Plain",
            };
            format!("BufferStruct(class::{class}, StructRule::{rule})")
        }
        ArgKind::AddressOf { size } => format!("AddressOf({size})"),
        ArgKind::BufferStructs { class, count } => {
            format!("BufferStructs(class::{class}, {count})")
        }
        ArgKind::LiveHandle { handle, destroys } => {
            let conv = if *destroys {
                "DestroyedHandle"
            } else {
                "LiveHandle"
            };
            format!("{conv}(HandleKind::{})", handle_kind(handle))
        }
        other => panic!("{}: no conversion of {other:?}", lib.name),
    }
}

/// The variant of `HandleKind`.
fn handle_kind(typedef: &str) -> &'static str {
    match typedef {
        "nvJitLinkHandle" => "NvJitLink",
        "nvvmProgram" => "Nvvm",
        "nvFatbinHandle" => "NvFatbin",
        "nvmlEventSet_t" => "NvmlEventSet",
        "nvmlSystemEventSet_t" => "NvmlSystemEventSet",
        other => panic!("no handle registry for {other}: add it here and to HandleKind"),
    }
}

/// What a raising function has beyond the usual (`Raising` in `crates/python/src/bindings/descriptor/mod.rs`).
fn raising(python: &PyFunction) -> String {
    let mut out = String::new();
    let ret = match python.ret {
        Ret::Status => None,
        Ret::CuFile => Some("CuFile".to_owned()),
        Ret::Size => Some("Size".to_owned()),
        Ret::Value { builtin } => Some(format!("Value({})", int(builtin))),
        Ret::Text => Some("Text".to_owned()),
        Ret::Void => Some("Void".to_owned()),
    };
    if let Some(ret) = ret {
        let _ = write!(out, " ret(Ret::{ret})");
    }
    if let Some(sizing) = &python.sizing {
        let _ = write!(out, " sizing({}, {:?})", int(sizing.count), sizing.arrays);
    }
    if !python.requests.is_empty() {
        let requests: Vec<String> = python.requests.iter().map(|r| request(python, r)).collect();
        let _ = write!(out, " requests({})", requests.join(", "));
    }
    out
}

fn request(python: &PyFunction, request: &Request) -> String {
    let store = match request.store {
        Store::Scratch => format!("Scratch({})", request.size),
        Store::Result { result } => format!("Result({result})"),
        Store::Arg { arg } => format!("Arg({arg})"),
    };
    let inputs: Vec<String> = (request.inputs.iter())
        .map(|field| {
            assert!(field.index < python.args.len(), "no such argument");
            format!(
                "({}, {}, {})",
                field.offset,
                int(field.builtin),
                field.index
            )
        })
        .collect();
    let outputs: Vec<String> = (request.outputs.iter())
        .map(|field| format!("({}, {})", field.offset, field.index))
        .collect();
    format!(
        "Request {{ store: Store::{store}, version: {:#x}, inputs: &[{}], outputs: &[{}] }}",
        request.version,
        inputs.join(", "),
        outputs.join(", "),
    )
}

fn optional(index: Option<usize>) -> String {
    index.map_or_else(|| "None".to_owned(), |index| format!("Some({index})"))
}

fn arg_named(python: &PyFunction, name: &str) -> Option<usize> {
    python.args.iter().position(|arg| arg.name == name)
}

/// The minimum length of a list: index of the argument that determines it, a number to subtract, and whether an empty
/// list is always accepted.
fn list_count(
    python: &PyFunction,
    index: usize,
    count: Option<usize>,
) -> Option<(usize, usize, bool)> {
    let name = python.args[index].name.as_str();
    // Edge data is optional: without it, all edges have default data.
    let optional = matches!(name, "edgeData" | "dependencyData");
    if let Some(rank) = arg_named(python, "tensorRank") {
        let less = match name {
            "globalStrides" => 1,
            "pixelBoxLowerCorner" | "pixelBoxUpperCorner" => 2,
            _ => 0,
        };
        return Some((rank, less, false));
    }
    let count = count
        .or_else(|| arg_named(python, "numDependencies"))
        .or_else(|| arg_named(python, "nbGroups"))
        .or_else(|| arg_named(python, "nbResources"))
        .or_else(|| arg_named(python, "numOps"));
    count.map(|count| (count, 0, optional))
}

/// The argument with the number of bytes that C reads or writes at a `void *` or `char *` argument, for bounds checks
/// of buffers.
fn buffer_size(f: &Function, python: &PyFunction, index: usize) -> Option<usize> {
    let size = match (f.name.as_str(), python.args[index].name.as_str()) {
        (_, "dstHost" | "srcHost") => "ByteCount",
        (name, "dst" | "src") if moves_count(name) => "count",
        ("cudaMemcpyWithAttributesAsync", "dst" | "src") => "size",
        ("cudaHostRegister", "ptr") | ("cudaLogsDumpToMemory", "buffer") => "size",
        ("cudaMemset" | "cudaMemsetAsync", "devPtr") => "count",
        ("cuMemHostRegister", "p") => "bytesize",
        ("cuParamSetv", "ptr") => "numbytes",
        ("cuLinkAddData", "data") | ("cuLogsDumpToMemory", "buffer") => "size",
        _ => return None,
    };
    arg_named(python, size)
}

/// For memory that C accesses in rows: the arguments with pitch, width and height.
fn rows(f: &Function, python: &PyFunction, index: usize) -> Option<(usize, usize, usize)> {
    if !f.name.starts_with("cudaMemcpy2D") && !f.name.starts_with("cudaMemset2D") {
        return None;
    }
    let pitch = match python.args[index].name.as_str() {
        "dst" => "dpitch",
        "src" => "spitch",
        "devPtr" => "pitch",
        _ => return None,
    };
    Some((
        arg_named(python, pitch)?,
        arg_named(python, "width")?,
        arg_named(python, "height")?,
    ))
}

/// Copy functions of the runtime that move `count` contiguous bytes.
fn moves_count(name: &str) -> bool {
    matches!(
        name,
        "cudaMemcpy"
            | "cudaMemcpyAsync"
            | "cudaMemcpyPeer"
            | "cudaMemcpyPeerAsync"
            | "cudaMemcpyToArray"
            | "cudaMemcpyToArrayAsync"
            | "cudaMemcpyFromArray"
            | "cudaMemcpyFromArrayAsync"
            | "cudaGraphAddMemcpyNode1D"
            | "cudaGraphMemcpyNodeSetParams1D"
            | "cudaGraphExecMemcpyNodeSetParams1D"
    )
}

/// The count of an array of which Python passes only the first element.
fn single_of_many(f: &Function, python: &PyFunction) -> Option<usize> {
    match f.name.as_str() {
        "cuGraphicsMapResources" | "cuGraphicsUnmapResources" | "cuMemBatchDecompressAsync" => {
            arg_named(python, "count")
        }
        "cudaGraphicsMapResources" | "cudaGraphicsUnmapResources" => arg_named(python, "count"),
        _ => None,
    }
}

fn element(lib: &LibraryApi, of: &Element) -> String {
    match of {
        Element::Int { builtin } => format!("Element::Int({})", int(*builtin)),
        Element::Float {
            builtin: Builtin::Float,
        } => "Element::F32".to_owned(),
        Element::Float { .. } => "Element::F64".to_owned(),
        Element::Enum { name } => format!("Element::Enum(enums::{name})"),
        Element::Handle { class, .. } => {
            format!(
                "Element::Handle(class::{class}, {})",
                handle_range(lib, class)
            )
        }
        Element::Struct { class, size } => format!("Element::Struct(class::{class}, {size})"),
        Element::CString => "Element::Bytes".to_owned(),
        Element::VoidPtr => "Element::VoidPtr".to_owned(),
    }
}

fn out(lib: &LibraryApi, f: &Function, python: &PyFunction, index: usize) -> String {
    let result = &python.results[index];
    match &result.kind {
        ResultKind::Int { builtin } => format!("Int({})", int(*builtin)),
        ResultKind::Float {
            builtin: Builtin::Float,
        } => "F32".to_owned(),
        ResultKind::Float { .. } => "F64".to_owned(),
        ResultKind::Enum { name } => format!("Enum(enums::{name})"),
        ResultKind::Handle { class, .. } => {
            format!("Handle(class::{class}, {})", handle_range(lib, class))
        }
        ResultKind::Struct { class, .. } => format!("Struct(class::{class})"),
        ResultKind::Bytes { len, until_nul } => match self::len(f, *len) {
            Some(len) => format!("Bytes({len}, {until_nul})"),
            None => "VoidPtr".to_owned(),
        },
        ResultKind::CString if lib.python.style == Style::Raises => "CBytes".to_owned(),
        ResultKind::CString => "CString".to_owned(),
        ResultKind::CText => "CText".to_owned(),
        ResultKind::List { of, len } => match self::len(f, *len) {
            Some(len) => format!("List({}, {len})", element(lib, of)),
            None => {
                // Such a result requires a hand-written function.
                assert!(
                    python.hook.is_some(),
                    "{}: the length of result {index} is not known before the call",
                    f.name
                );
                "VoidPtr".to_owned()
            }
        },
        ResultKind::VoidPtr | ResultKind::ByHand => "VoidPtr".to_owned(),
        ResultKind::Address => "Address".to_owned(),
        ResultKind::NewHandle { handle } => {
            format!("NewHandle(HandleKind::{})", handle_kind(handle))
        }
        ResultKind::Bool => "Bool".to_owned(),
        ResultKind::Str { len } => format!("Str({})", known(f, *len)),
        ResultKind::Slice {
            builtin,
            address,
            len,
        } => {
            let slice = match builtin {
                _ if *address => "Address",
                Builtin::UInt | Builtin::Int => "U32",
                Builtin::ULong => "Ulong",
                Builtin::ULongLong => "U64",
                other => panic!("{}: no array of {other:?}", f.name),
            };
            format!("Slice(Slice::{slice}, {})", known(f, *len))
        }
        ResultKind::BufferStruct { class } => format!("BufferStruct(class::{class})"),
        ResultKind::BufferStructs { class, len } => {
            format!("BufferStructs(class::{class}, {})", known(f, *len))
        }
        ResultKind::Attribute { .. } | ResultKind::Attributes { .. }
            if lib.python.style == Style::Tuple && python.hook.is_some() =>
        {
            "VoidPtr".to_owned()
        }
        ResultKind::Attribute { selector, by } => {
            format!("Attribute(enums::{selector}, {by})")
        }
        ResultKind::Attributes { .. } => {
            panic!(
                "{}: several attributes need a function of their own",
                f.name
            )
        }
    }
}

/// The capacity in elements. A count that is read back after the call is also an argument.
fn len(f: &Function, len: Len) -> Option<String> {
    match len {
        Len::Arg { arg } => Some(format!("Len::Arg({arg})")),
        Len::Const { value } => Some(format!("Len::Const({value})")),
        Len::Result { result } => f.params.iter().find_map(|p| match p.role {
            Role::InOut { arg, result: r } if r == result => Some(format!("Len::Arg({arg})")),
            _ => None,
        }),
        Len::Call { .. } => None,
        Len::Counted => Some("Len::Counted".to_owned()),
    }
}

/// A number of elements that is known before the call.
fn known(f: &Function, len: Len) -> String {
    match self::len(f, len) {
        Some(len) => len,
        None => panic!("{}: a length that is not known before the call", f.name),
    }
}
