//! Descriptor tables of the Python functions: `crates/python/src/generated/*_functions.rs`.
//!
//! Nothing is decided here that the IR tells; what it does not tell are the hand-written functions ([`special`]) and
//! the bounds that keep C from reading past what Python gave ([`list_count`], [`buffer_size`], [`single_of_many`]).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::PathBuf;

use super::signatures::{Signature, signature};
use crate::ir::{
    Api, ArgKind, Builtin, Element, Function, Gil, Len, LibraryApi, OutSize, PodRule, PyArg,
    PyFunction, PyResult, Request, ResultKind, Ret, Role, Store, Style, Type,
};
use crate::naming::loader_variant;

/// Generated files: paths from the repository root and contents.
pub fn generate(api: &Api) -> Vec<(PathBuf, String)> {
    api.libraries
        .iter()
        .filter(|lib| lib.functions.iter().any(|f| f.python.is_some()))
        .map(|lib| {
            let path = format!("crates/python/src/generated/{}_functions.rs", lib.name);
            (PathBuf::from(path), library(lib))
        })
        .collect()
}

fn library(lib: &LibraryApi) -> String {
    let mut signatures: BTreeSet<String> = BTreeSet::new();
    let mut thunks = String::new();
    // Rows by Python name: the table is sorted by it.
    let mut rows: BTreeMap<&str, String> = BTreeMap::new();
    for f in &lib.functions {
        let Some(python) = &f.python else {
            continue;
        };
        let signature = signature(lib, f);
        if signatures.insert(signature.name()) {
            thunks.push_str(&signature.thunk());
        }
        rows.insert(&python.name, function(lib, f, python, &signature));
    }
    for python in &lib.python.functions {
        rows.insert(&python.name, hand_written(lib, python));
    }
    if lib.python.style == Style::Tuple {
        let text = SIZEOF.replace("$Library", loader_variant(lib));
        rows.insert("sizeof", text);
    }
    let table: String = rows.into_values().collect();
    let nothing = if table.contains("thunk: nothing") {
        "unsafe fn nothing(_f: *const c_void, _w: *const u64) -> i64 {\n0\n}\n\n"
    } else {
        ""
    };
    let mut ids = String::new();
    for (namespace, used) in [("class", "class::"), ("enums", "enums::")] {
        if table.contains(used) {
            let name = &lib.name;
            let _ = writeln!(
                ids,
                "use crate::generated::ids::{namespace}::{name} as {namespace};"
            );
        }
    }
    let c = if thunks.contains("c::") {
        format!("use cupyrite_sys::{} as c;\n", lib.name)
    } else {
        String::new()
    };
    format!(
        "// Made by `cargo xtask codegen` from NVIDIA's headers and api/overlay/{name}.toml. Do not edit.\n\
         //! The functions of `{module}`.\n\n\
         use std::ffi::c_void;\n\n\
         {c}use cupyrite_sys::{name}::Symbol;\n\
         use cupyrite_sys::loader::CudaLibrary;\n\n\
         #[allow(unused_imports)]\n\
         use crate::bindings::descriptor::*;\n\
         {ids}\n\
         {thunks}{nothing}\
         /// All functions, sorted by name.\n\
         pub static FUNCTIONS: &[Function] = &[\n{table}];\n",
        name = lib.name,
        module = lib.python.name,
    )
}

/// A function that no C function stands behind.
fn hand_written(lib: &LibraryApi, python: &PyFunction) -> String {
    let mut text = format!(
        "Function {{ name: {:?}, library: CudaLibrary::{}, symbol: 0, thunk: nothing, keep_gil: true, params: &[",
        python.name,
        loader_variant(lib),
    );
    for (index, arg) in python.args.iter().enumerate() {
        let conv = match &python.args[index].kind {
            ArgKind::Enum { name } => format!("Conv::Enum(enums::{name})"),
            kind => raising_conv(lib, kind),
        };
        let _ = write!(
            text,
            "Param {{ name: {:?}, doc: {:?}, conv: {conv}, default: None }}, ",
            arg.name,
            arg_doc(arg),
        );
    }
    text.push_str("], words: &[], results: &[");
    for result in &python.results {
        let _ = write!(
            text,
            "Output {{ name: {:?}, doc: {:?}, kind: Out::VoidPtr }}, ",
            result.name, result.type_name,
        );
    }
    let _ = writeln!(
        text,
        "], special: Special::{}, plain: false, raising: {} }},",
        special_raising(python),
        match lib.python.style {
            Style::Raises => raising("", python, false),
            Style::Tuple => "None".to_owned(),
        },
    );
    text
}

/// `sizeof` is no C function: it is answered from the tables of classes.
const SIZEOF: &str = "Function { name: \"sizeof\", library: CudaLibrary::$Library, symbol: 0, thunk: nothing, \
    keep_gil: true, params: &[Param { name: \"objType\", doc: \"Any\", conv: Conv::VoidPtrPtr, default: None }], \
    words: &[], results: &[Output { name: \"\", doc: \"int\", kind: Out::VoidPtr }], special: Special::Sizeof, plain: false, raising: None },\n";

// ---------------------------------------------------------------------------------------------------------
// Descriptors

fn function(lib: &LibraryApi, f: &Function, python: &PyFunction, signature: &Signature) -> String {
    let special = match lib.python.style {
        Style::Tuple => special(f).to_owned(),
        Style::Raises => special_raising(python),
    };
    let mut text = format!(
        "Function {{ name: {name:?}, library: CudaLibrary::{variant}, symbol: Symbol::{symbol} as u16, thunk: {thunk}, \
         keep_gil: {keep}, params: &[",
        name = python.name,
        symbol = f.name,
        variant = loader_variant(lib),
        thunk = signature.name(),
        keep = python.gil == Gil::Keep,
    );
    for (index, arg) in python.args.iter().enumerate() {
        let default = match arg.default.as_deref().map(str::parse::<i64>) {
            Some(Ok(number)) => format!("Some({number})"),
            _ => "None".to_owned(),
        };
        let _ = write!(
            text,
            "Param {{ name: {:?}, doc: {:?}, conv: {}, default: {default} }}, ",
            arg.name,
            arg_doc(arg),
            conv(lib, f, python, index),
        );
    }
    text.push_str("], words: &[");
    for param in &f.params {
        let word = match param.role {
            Role::In { arg } => {
                if by_address(&param.ty, &python.args[arg].kind) {
                    format!("Word::ArgAddress({arg})")
                } else {
                    format!("Word::Arg({arg})")
                }
            }
            Role::Out { result } => format!("Word::Result({result})"),
            Role::InOut { arg, result } => format!("Word::InOut({arg}, {result})"),
            Role::Null | Role::Unknown => "Word::Null".to_owned(),
            Role::Const { value } => format!("Word::Const({value})"),
            Role::Count => "Word::Count".to_owned(),
            Role::Elements { arg } => format!("Word::Elements({arg})"),
            Role::Request { request } => format!("Word::Request({request})"),
        };
        let _ = write!(text, "{word}, ");
    }
    text.push_str("], results: &[");
    for (index, result) in python.results.iter().enumerate() {
        let _ = write!(
            text,
            "Output {{ name: {:?}, doc: {:?}, kind: {} }}, ",
            result.name,
            result.type_name,
            out(lib, f, result, index),
        );
    }
    let plain = special == "None" && plain(f, python);
    let raising = match lib.python.style {
        Style::Tuple => "None".to_owned(),
        Style::Raises => raising(&f.symbol, python, short(f, python)),
    };
    let _ = writeln!(
        text,
        "], special: Special::{special}, plain: {plain}, raising: {raising} }},"
    );
    text
}

/// Whether every argument and result is one word. A float that goes out may be several (`cuTexRefGetBorderColor`).
fn plain(f: &Function, python: &PyFunction) -> bool {
    let args = python.args.iter().all(|arg| {
        matches!(
            arg.kind,
            ArgKind::Int { .. }
                | ArgKind::Enum { .. }
                | ArgKind::Callback { .. }
                | ArgKind::VoidPtr
                | ArgKind::Handle {
                    by_pointer: false,
                    ..
                }
        )
    });
    let results = python.results.iter().all(|result| {
        matches!(
            result.kind,
            ResultKind::Int { .. }
                | ResultKind::Enum { .. }
                | ResultKind::Handle { .. }
                | ResultKind::CString
                | ResultKind::VoidPtr
        )
    });
    let words = f.params.iter().all(|p| match p.role {
        Role::In { arg } => !by_address(&p.ty, &python.args[arg].kind),
        Role::Out { .. } => true,
        _ => false,
    });
    args && results && words && python.results.len() <= 4
}

/// Functions written by hand in `crates/python/src/bindings/custom/mod.rs`.
fn special(f: &Function) -> &'static str {
    match f.name.as_str() {
        "cuCtxCreate" => "CtxCreate",
        "cuCoredumpGetAttribute" | "cuCoredumpGetAttributeGlobal" => "CoredumpGet",
        "cuCoredumpSetAttribute" | "cuCoredumpSetAttributeGlobal" => "CoredumpSet",
        "cuPointerGetAttributes" => "PointerGetAttributes",
        "cuMemRangeGetAttribute" => "RangeGetAttribute",
        "cuMemRangeGetAttributes" => "RangeGetAttributes",
        "cuStreamGetCaptureInfo" => "CaptureInfo",
        "cuLinkCreate" => "LinkCreate",
        "cuLinkDestroy" => "LinkDestroy",
        "nvrtcGetPTX" | "nvrtcGetCUBIN" | "nvrtcGetLTOIR" | "nvrtcGetOptiXIR"
        | "nvrtcGetTileIR" | "nvrtcGetProgramLog" => "NvrtcGet",
        "nvrtcGetSupportedArchs" => "NvrtcArchs",
        "nvrtcGetErrorString" | "cudaGetErrorName" | "cudaGetErrorString" => "ErrorText",
        "cudaGetDeviceProperties" => "DeviceProperties",
        "cudaMemRangeGetAttribute" => "RangeGetAttribute",
        "cudaMemRangeGetAttributes" => "RangeGetAttributes",
        "cudaStreamGetCaptureInfo" => "CaptureInfo",
        _ => "None",
    }
}

/// The variant of `desc::Special` in a library whose functions raise.
fn special_raising(python: &PyFunction) -> String {
    match &python.special {
        None => "Raising".to_owned(),
        Some(special) => special.clone(),
    }
}

/// Whether C takes the address of the converted value: a pointer to a number or to one handle.
fn by_address(ty: &Type, kind: &ArgKind) -> bool {
    match kind {
        ArgKind::Handle { by_pointer, .. } => *by_pointer,
        ArgKind::Int { .. }
        | ArgKind::Float { .. }
        | ArgKind::Enum { .. }
        | ArgKind::Bool
        | ArgKind::Live { .. } => {
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
        (1, true) => "Int::I8",
        (1, false) => "Int::U8",
        (2, true) => "Int::I16",
        (2, false) => "Int::U16",
        (4, true) => "Int::I32",
        (4, false) => "Int::U32",
        (_, true) => "Int::I64",
        (_, false) => "Int::U64",
    }
}

/// The range of a handle or integer class.
fn handle_range(lib: &LibraryApi, class: &str) -> &'static str {
    let ty = Type::Named {
        name: class.to_owned(),
    };
    match lib.resolve(&ty) {
        Type::Builtin { builtin } => int(*builtin),
        _ => "Int::U64",
    }
}

/// Enums are classes under the name the prototype uses.
fn conv(lib: &LibraryApi, f: &Function, python: &PyFunction, index: usize) -> String {
    let arg = &python.args[index];
    match &arg.kind {
        ArgKind::Int { builtin } if arg.doc_type.as_deref() == Some("Any") => {
            format!("Conv::IntOrNone({})", int(*builtin))
        }
        ArgKind::Int { builtin } => format!("Conv::Int({})", int(*builtin)),
        ArgKind::Float {
            builtin: Builtin::Float,
        } => "Conv::F32".to_owned(),
        ArgKind::Float { .. } => "Conv::F64".to_owned(),
        ArgKind::Enum { name } => format!("Conv::Enum(enums::{name})"),
        ArgKind::Handle {
            class, by_pointer, ..
        } => {
            let range = handle_range(lib, class);
            match (by_pointer, single_of_many(f, python)) {
                (false, _) => format!("Conv::Handle(class::{class}, {range})"),
                (true, Some(count)) => {
                    format!("Conv::HandleArray(class::{class}, {range}, {count})")
                }
                (true, None) => format!("Conv::HandlePtr(class::{class}, {range})"),
            }
        }
        ArgKind::Callback { class } => format!("Conv::Handle(class::{class}, Int::U64)"),
        ArgKind::Struct {
            class,
            by_pointer: true,
            ..
        } => match single_of_many(f, python) {
            Some(count) => format!("Conv::StructArray(class::{class}, {count})"),
            None => format!("Conv::Struct(class::{class})"),
        },
        ArgKind::Struct { class, .. } => format!("Conv::StructValue(class::{class})"),
        ArgKind::List { of, count, .. } => {
            let count = match list_count(python, index, *count) {
                Some((param, less, optional)) => {
                    format!("Some(Count {{ param: {param}, less: {less}, optional: {optional} }})")
                }
                None => "None".to_owned(),
            };
            format!("Conv::List({}, {count})", element(lib, of))
        }
        ArgKind::CString => "Conv::Bytes".to_owned(),
        ArgKind::BytesOut => format!(
            "Conv::BytesOut({})",
            optional(buffer_size(f, python, index))
        ),
        ArgKind::VoidPtr => match rows(f, python, index) {
            Some((pitch, width, height)) => format!("Conv::Rows({pitch}, {width}, {height})"),
            None => format!("Conv::VoidPtr({})", optional(buffer_size(f, python, index))),
        },
        ArgKind::Attribute { selector, by } => format!("Conv::Attribute(enums::{selector}, {by})"),
        ArgKind::OptionValues {
            selector,
            by,
            count,
        } => format!("Conv::Options(enums::{selector}, {by}, {count})"),
        ArgKind::KernelParams => "Conv::KernelParams".to_owned(),
        ArgKind::VoidPtrPtr => "Conv::VoidPtrPtr".to_owned(),
        kind => raising_conv(lib, kind),
    }
}

/// Kinds that only functions that raise have, and the plain ones that functions written by hand take.
fn raising_conv(lib: &LibraryApi, kind: &ArgKind) -> String {
    match kind {
        ArgKind::Int { builtin } => format!("Conv::Int({})", int(*builtin)),
        ArgKind::VoidPtr => "Conv::VoidPtr(None)".to_owned(),
        ArgKind::Address => "Conv::Address".to_owned(),
        ArgKind::Bool => "Conv::Bool".to_owned(),
        ArgKind::Str => "Conv::Str".to_owned(),
        ArgKind::StrList { count } => format!("Conv::StrList({})", optional(*count)),
        ArgKind::Buffer { size } => format!("Conv::Buffer({})", optional(*size)),
        ArgKind::BufferOut { size } => format!(
            "Conv::BufferOut({})",
            match size {
                OutSize::Arg { arg } => format!("OutSize::Arg({arg})"),
                OutSize::Call { function } => format!("OutSize::Call({function:?})"),
                OutSize::Const { value } => format!("OutSize::Const({value})"),
                OutSize::Unknown => "OutSize::Unknown".to_owned(),
            }
        ),
        ArgKind::Pod { class, rule } => {
            let rule = match rule {
                PodRule::Address => "Address",
                PodRule::Exact => "Exact",
                PodRule::Plain => "Plain",
            };
            format!("Conv::Pod(class::{class}, PodRule::{rule})")
        }
        ArgKind::Live { handle, ends } => {
            let conv = if *ends { "Ended" } else { "Live" };
            format!("Conv::{conv}(HandleKind::{})", handle_kind(handle))
        }
        other => panic!("{}: no conversion of {other:?}", lib.name),
    }
}

/// The variant of `desc::HandleKind`.
fn handle_kind(typedef: &str) -> &'static str {
    match typedef {
        "nvJitLinkHandle" => "NvJitLink",
        "nvvmProgram" => "Nvvm",
        "nvFatbinHandle" => "NvFatbin",
        "nvmlEventSet_t" => "NvmlEventSet",
        "nvmlSystemEventSet_t" => "NvmlSystemEventSet",
        other => panic!("no account is kept of {other}: name it here and in descriptor.rs"),
    }
}

/// What a function that raises has besides: a `desc::Raising`.
fn raising(symbol: &str, python: &PyFunction, short: bool) -> String {
    let ret = match python.ret {
        Ret::Status => "Status".to_owned(),
        Ret::CuFile => "CuFile".to_owned(),
        Ret::Size => "Size".to_owned(),
        Ret::Value { builtin } => format!("Value({})", int(builtin)),
        Ret::Text => "Text".to_owned(),
        Ret::Void => "Void".to_owned(),
    };
    let sizing = match &python.sizing {
        Some(sizing) => format!(
            "Some(Sizing {{ count: {}, arrays: &{:?} }})",
            int(sizing.count),
            sizing.arrays
        ),
        None => "None".to_owned(),
    };
    let requests: Vec<String> = python.requests.iter().map(|r| request(python, r)).collect();
    format!(
        "Some(&Raising {{ symbol: {symbol:?}, ret: Ret::{ret}, sizing: {sizing}, requests: &[{}], \
         interruptible: {}, short: {short} }})",
        requests.join(", "),
        python.interruptible,
    )
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

/// Whether the short way does, as `desc::Raising::short` defines it.
fn short(f: &Function, python: &PyFunction) -> bool {
    let args = python.args.iter().all(|arg| {
        matches!(
            arg.kind,
            ArgKind::Int { .. }
                | ArgKind::Address
                | ArgKind::Bool
                | ArgKind::Live { ends: false, .. }
        )
    });
    let results = python.results.iter().all(|result| {
        matches!(
            result.kind,
            ResultKind::Int { .. } | ResultKind::Address | ResultKind::Bool
        )
    });
    let words = f.params.iter().all(|p| match p.role {
        Role::In { arg } => !by_address(&p.ty, &python.args[arg].kind),
        Role::Out { .. } => true,
        _ => false,
    });
    args && results
        && words
        && python.results.len() <= 4
        && python.ret == Ret::Status
        && python.sizing.is_none()
        && python.requests.is_empty()
        && !python.interruptible
        && python.special.is_none()
}

fn optional(index: Option<usize>) -> String {
    index.map_or_else(|| "None".to_owned(), |index| format!("Some({index})"))
}

fn arg_named(python: &PyFunction, name: &str) -> Option<usize> {
    python.args.iter().position(|arg| arg.name == name)
}

/// The least length of a list: index of the argument that tells, what is taken off it, and whether an empty list is
/// fine whatever it says.
fn list_count(
    python: &PyFunction,
    index: usize,
    count: Option<usize>,
) -> Option<(usize, usize, bool)> {
    let name = python.args[index].name.as_str();
    // Edge data is optional: without it all edges are plain.
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

/// The argument with the number of bytes that C reads or writes at a `void *` or `char *` argument, so that a buffer
/// given there can be checked.
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

/// For memory that C touches row by row: the arguments with the distance of the rows, their width and their number.
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

/// Copies of the runtime that move `count` bytes in a row.
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

/// The count of an array of which Python can only give the first element.
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

fn out(lib: &LibraryApi, f: &Function, result: &PyResult, index: usize) -> String {
    match &result.kind {
        ResultKind::Int { builtin } => format!("Out::Int({})", int(*builtin)),
        ResultKind::Float {
            builtin: Builtin::Float,
        } => "Out::F32".to_owned(),
        ResultKind::Float { .. } => "Out::F64".to_owned(),
        ResultKind::Enum { name } => format!("Out::Enum(enums::{name})"),
        ResultKind::Handle { class, .. } => {
            format!("Out::Handle(class::{class}, {})", handle_range(lib, class))
        }
        ResultKind::Struct { class, .. } => format!("Out::Struct(class::{class})"),
        ResultKind::Bytes { len, until_nul } => match self::len(f, *len) {
            Some(len) => format!("Out::Bytes({len}, {until_nul})"),
            None => "Out::VoidPtr".to_owned(),
        },
        ResultKind::CString => "Out::CString".to_owned(),
        ResultKind::List { of, len } => match self::len(f, *len) {
            Some(len) => format!("Out::List({}, {len})", element(lib, of)),
            None => {
                // Such a result needs a function of its own.
                assert!(
                    special(f) != "None",
                    "{}: the length of result {index} is not known before the call",
                    f.name
                );
                "Out::VoidPtr".to_owned()
            }
        },
        ResultKind::VoidPtr | ResultKind::ByHand => "Out::VoidPtr".to_owned(),
        ResultKind::Address => "Out::Address".to_owned(),
        ResultKind::Made { handle } => format!("Out::Made(HandleKind::{})", handle_kind(handle)),
        ResultKind::Bool => "Out::Bool".to_owned(),
        ResultKind::Str { len } => format!("Out::Str({})", known(f, *len)),
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
            format!("Out::Slice(Slice::{slice}, {})", known(f, *len))
        }
        ResultKind::Pod { class } => format!("Out::Pod(class::{class})"),
        ResultKind::Pods { class, len } => {
            format!("Out::Pods(class::{class}, {})", known(f, *len))
        }
        ResultKind::Attribute { .. } | ResultKind::Attributes { .. } if special(f) != "None" => {
            "Out::VoidPtr".to_owned()
        }
        ResultKind::Attribute { selector, by } => {
            format!("Out::Attribute(enums::{selector}, {by})")
        }
        ResultKind::Attributes { .. } => {
            panic!(
                "{}: several attributes need a function of their own",
                f.name
            )
        }
    }
}

/// The number of elements to make room for. A count that is read back after the call went in as an argument.
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

/// A number of elements that must be known before the call.
fn known(f: &Function, len: Len) -> String {
    match self::len(f, len) {
        Some(len) => len,
        None => panic!("{}: a length that is not known before the call", f.name),
    }
}
