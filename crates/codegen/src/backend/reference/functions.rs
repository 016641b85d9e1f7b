//! Reference sections of functions.

use std::fmt::Write;

use super::about;
use super::html::{Names, code, escape, table};
use crate::backend::differences::c_type;
use crate::backend::{stubs, stubs_raising};
use crate::ir::{
    ArgKind, Element, Function, Gil, Len, LibraryApi, OutSize, PyArg, PyFunction, PyResult,
    ResultKind, Ret, Role, Style,
};

/// The functions of a module by their Python names, with the C function where there is one.
pub fn of(lib: &LibraryApi) -> Vec<(Option<&Function>, &PyFunction)> {
    let mut out: Vec<(Option<&Function>, &PyFunction)> = lib
        .functions
        .iter()
        .filter_map(|f| Some((Some(f), f.python.as_ref()?)))
        .chain(lib.python.functions.iter().map(|p| (None, p)))
        .collect();
    out.sort_by(|a, b| a.1.name.cmp(&b.1.name));
    out
}

/// Heading, signature, description, arguments, results, statuses, notes. `meanings` are those of the statuses, by value.
pub fn section(
    lib: &LibraryApi,
    c: Option<&Function>,
    python: &PyFunction,
    names: &Names,
    meanings: &[(i64, &str)],
) -> String {
    let here = |text: &str| names.code(&lib.name, text);
    let mut out = format!("<h3 id=\"{0}\">{0}</h3>\n", escape(&python.name));
    let _ = writeln!(out, "<pre>{}</pre>", here(&signature(lib, python)));
    out.push_str(&about::does(lib, c, python));
    let rows: Vec<Vec<String>> = (python.args.iter().enumerate())
        .map(|(i, a)| argument(lib, c, python, i, a, names))
        .collect();
    let head = [
        "argument",
        "type",
        "C type",
        "in or out",
        "shape",
        "unit",
        "default",
        "meaning",
    ];
    out.push_str(&table(&head, &rows));
    let rows: Vec<Vec<String>> = (python.results.iter().enumerate())
        .map(|(i, r)| result(lib, c, python, i, r, names))
        .collect();
    let head = ["result", "type", "C type", "shape", "unit", "meaning"];
    out.push_str(&table(&head, &rows));
    out.push_str(&about::statuses(lib, c, python, meanings));
    let notes = notes(lib, c, python, names);
    if !notes.is_empty() {
        let _ = writeln!(out, "<p class=\"note\">{}</p>", notes.join(" "));
    }
    out
}

/// The stub's signature on one line.
fn signature(lib: &LibraryApi, python: &PyFunction) -> String {
    let args: Vec<String> = (python.args.iter())
        .map(|a| {
            let default = a.default.as_ref().map(|d| format!(" = {d}"));
            let ty = argument_type(lib, python, a);
            format!("{}: {ty}{}", a.name, default.unwrap_or_default())
        })
        .collect();
    let mut results: Vec<String> = (python.results.iter())
        .map(|r| result_type(lib, r))
        .collect();
    let whole = match lib.python.style {
        Style::Raises => stubs_raising::custom(&python.name, "->"),
        Style::Tuple => None,
    };
    let answer = match lib.python.style {
        Style::Raises if whole.is_some() => whole.unwrap_or_default().to_owned(),
        Style::Tuple if python.ret != Ret::Status => results.join(", "),
        Style::Tuple => {
            results.insert(0, lib.status_enum.clone());
            format!("tuple[{}]", results.join(", "))
        }
        Style::Raises => match results.as_slice() {
            [] => "None".to_owned(),
            [one] => one.clone(),
            several => format!("tuple[{}]", several.join(", ")),
        },
    };
    format!("{}({}) -> {answer}", python.name, args.join(", "))
}

/// The stub's type of an argument.
fn argument_type(lib: &LibraryApi, python: &PyFunction, arg: &PyArg) -> String {
    let custom = match lib.python.style {
        Style::Raises => stubs_raising::custom(&python.name, &arg.name),
        Style::Tuple => None,
    };
    custom.map_or_else(|| stubs::argument(lib, &arg.kind), str::to_owned)
}

/// The stub's type of a result.
fn result_type(lib: &LibraryApi, r: &PyResult) -> String {
    match r.kind {
        ResultKind::ByHand => r.type_name.clone(),
        ResultKind::Slice { .. } if lib.python.style == Style::Raises => {
            "_memoryviewslice".to_owned()
        }
        _ => stubs::result(&r.kind),
    }
}

/// The C declaration of an argument or result: its type, and the names that determine its unit.
struct Declared {
    ty: String,
    unit: Option<String>,
    in_out: bool,
}

fn declared(
    lib: &LibraryApi,
    c: Option<&Function>,
    python: &PyFunction,
    index: usize,
    is_result: bool,
) -> Declared {
    let mut out = Declared {
        ty: String::new(),
        unit: None,
        in_out: false,
    };
    let Some(c) = c else { return out };
    for p in &c.params {
        let hit = match p.role {
            Role::In { arg } => !is_result && arg == index,
            Role::Out { result } => is_result && result == index,
            Role::InOut { arg, result } => {
                out.in_out |= arg == index;
                if is_result {
                    result == index
                } else {
                    arg == index
                }
            }
            _ => false,
        };
        if hit {
            out.ty = c_type(&p.ty).trim_end().to_owned();
            out.unit = lib.unit(&c.name, &p.name);
        }
    }
    // A member of a hidden struct.
    for request in &python.requests {
        let fields = if is_result {
            &request.outputs
        } else {
            &request.inputs
        };
        for field in fields.iter().filter(|f| f.index == index) {
            let record = lib.record(&request.record);
            let member = record.and_then(|r| r.fields.iter().find(|x| x.name == field.field));
            if let Some(member) = member {
                out.ty = format!(
                    "{} {}.{}",
                    c_type(&member.ty).trim_end(),
                    request.record,
                    field.field
                );
                out.unit = lib.unit(&request.record, &field.field);
            }
        }
    }
    if out.ty.is_empty() && is_result && index == 0 {
        out.ty = c_type(&c.ret).trim_end().to_owned();
    }
    out
}

fn argument(
    lib: &LibraryApi,
    c: Option<&Function>,
    python: &PyFunction,
    index: usize,
    arg: &PyArg,
    names: &Names,
) -> Vec<String> {
    let declared = declared(lib, c, python, index, false);
    let direction = match arg.kind {
        ArgKind::BytesOut | ArgKind::BufferOut { .. } => "out",
        _ if declared.in_out => "in and out",
        _ => "in",
    };
    vec![
        code(&arg.name),
        names.code(&lib.name, &argument_type(lib, python, arg)),
        code_or_nothing(&declared.ty),
        direction.to_owned(),
        shape(lib, python, &arg.kind),
        declared.unit.map(|u| escape(&u)).unwrap_or_default(),
        arg.default.as_deref().map(code).unwrap_or_default(),
        about::note(lib, c, python, index, false),
    ]
}

fn code_or_nothing(text: &str) -> String {
    if text.is_empty() {
        String::new()
    } else {
        code(text)
    }
}

/// Lengths and other constraints of a value that the type does not express.
fn shape(lib: &LibraryApi, python: &PyFunction, kind: &ArgKind) -> String {
    let named = |i: usize| code(python.args.get(i).map_or("", |a| a.name.as_str()));
    match kind {
        ArgKind::List { of, count, .. } => {
            let what = match of {
                Element::Struct { .. } => "sequence of structs, passed as a contiguous array",
                _ => "sequence",
            };
            match count {
                Some(i) => format!("{what} of at least {} elements", named(*i)),
                None => what.to_owned(),
            }
        }
        ArgKind::StrList { count: Some(i) } => {
            format!(
                "at least {} strings, or the address of a <code>char *</code> array of that length",
                named(*i)
            )
        }
        ArgKind::Buffer { size: Some(i) } => format!("exactly {} bytes", named(*i)),
        ArgKind::Memory { size: Some(i) } => format!("at least {} bytes", named(*i)),
        ArgKind::Writable { size: Some(i) } => {
            format!("writable, at least {} bytes", named(*i))
        }
        ArgKind::BufferStructs { count, .. } => format!("at least {} structs", named(*count)),
        ArgKind::Addresses { count: Some(i) } => {
            format!("at least {} handles, or the address of an array of them", named(*i))
        }
        ArgKind::Buffer { size: None } => "a buffer, or an address".to_owned(),
        ArgKind::BufferOut { size } => match size {
            OutSize::Arg { arg } => format!("writable, at least {} bytes", named(*arg)),
            OutSize::Call { function } => format!(
                "writable, at least the number of bytes that <a href=\"#{0}\"><code>{0}()</code></a> returns",
                escape(function)
            ),
            OutSize::Const { value } => format!("writable, at least {value} bytes"),
            OutSize::Unknown => "writable".to_owned(),
        },
        ArgKind::BytesOut => {
            "writable, at least the number of bytes that the matching size function returns".to_owned()
        }
        ArgKind::Handle {
            by_pointer: true, ..
        } => "passed by address".to_owned(),
        ArgKind::Attribute { by, .. } => format!("the type depends on {}", named(*by)),
        ArgKind::OptionValues { by, count, .. } => {
            format!(
                "{} values, each of the type that {} selects",
                named(*count),
                named(*by)
            )
        }
        ArgKind::KernelParams => {
            "a pair (values, types), the address of a <code>void *[]</code>, or an object that holds one"
                .to_owned()
        }
        ArgKind::VoidPtr if lib.python.style == Style::Tuple => {
            "an address, a buffer, or an object with <code>getPtr()</code>".to_owned()
        }
        ArgKind::VoidPtrPtr => "the address of a <code>void *[]</code>, or 0".to_owned(),
        ArgKind::LiveHandle { destroys: false, .. } => "a handle created by this module".to_owned(),
        ArgKind::LiveHandle { destroys: true, .. } => {
            "a handle created by this module; the call destroys it".to_owned()
        }
        _ => String::new(),
    }
}

fn result(
    lib: &LibraryApi,
    c: Option<&Function>,
    python: &PyFunction,
    index: usize,
    result: &PyResult,
    names: &Names,
) -> Vec<String> {
    let declared = declared(lib, c, python, index, true);
    let length = |len: &Len| match len {
        Len::Arg { arg } => python
            .args
            .get(*arg)
            .map_or(String::new(), |a| code(&a.name)),
        Len::Result { result } => python
            .results
            .get(*result)
            .map_or(String::new(), |r| code(&r.name)),
        Len::Const { value } => value.to_string(),
        Len::Call { index } => {
            let f = lib.functions.get(*index);
            let name = f
                .and_then(|f| f.python.as_ref())
                .map_or("", |p| p.name.as_str());
            format!("the result of {}", names.code(&lib.name, name))
        }
        Len::Counted => "number of available elements".to_owned(),
    };
    let shape = match &result.kind {
        ResultKind::List { len, .. }
        | ResultKind::Slice { len, .. }
        | ResultKind::BufferStructs { len, .. } => {
            format!("elements: {}", length(len))
        }
        ResultKind::Bytes { len, until_nul } => {
            let cut = if *until_nul {
                ", truncated at the first NUL"
            } else {
                ""
            };
            format!("bytes: {}{cut}", length(len))
        }
        ResultKind::Attribute { by, .. } | ResultKind::Attributes { by, .. } => {
            let by = python.args.get(*by).map_or("", |a| a.name.as_str());
            format!("the type depends on {}", code(by))
        }
        ResultKind::NewHandle { .. } => "a handle for this module's functions".to_owned(),
        _ => String::new(),
    };
    vec![
        code_or_nothing(&result.name),
        names.code(&lib.name, &result_type(lib, result)),
        code_or_nothing(&declared.ty),
        shape,
        declared.unit.map(|u| escape(&u)).unwrap_or_default(),
        about::note(lib, c, python, index, true),
    ]
}

fn notes(
    lib: &LibraryApi,
    c: Option<&Function>,
    python: &PyFunction,
    names: &Names,
) -> Vec<String> {
    let mut out = Vec::new();
    if let (Some(_), Style::Raises, Some(errors)) = (c, lib.python.style, &lib.python.errors) {
        let here = |name: &str| names.code(&lib.name, name);
        out.push(match python.ret {
            Ret::Status | Ret::CuFile => format!(
                "Raises {} if the {} is not success.",
                here(&errors.exception),
                here(&errors.status_enum)
            ),
            Ret::Size => format!(
                "Raises OSError with the system's error number, or {} with a {}.",
                here(&errors.exception),
                here(&errors.status_enum)
            ),
            Ret::Value { .. } | Ret::Text | Ret::Void => {
                "The C function reports no errors.".to_owned()
            }
        });
    }
    if let Some(c) = c {
        out.push(about::section(lib, c));
        match c.majors.as_slice() {
            [12] => out.push("CUDA 12 only.".to_owned()),
            [13] if lib.functions.iter().any(|f| f.majors.contains(&12)) => {
                out.push(format!("Requires {} of CUDA 13.", super::called(lib)));
            }
            _ => {}
        }
    } else {
        out.push("Not a C function.".to_owned());
    }
    if python.sizing.is_some() {
        out.push("Calls C twice: for the number of elements, and for the elements.".to_owned());
    }
    if python.interruptible {
        out.push("Interruptible with Ctrl-C.".to_owned());
    }
    if c.is_some() && python.gil == Gil::Keep {
        out.push("Keeps the GIL: it takes no lock and never waits.".to_owned());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{
        About, Builtin, Enum, EnumMember, ManualEntry, Param, PyEnum, PyErrors, Sizing, Type,
    };

    fn pointer(name: &str) -> Type {
        Type::Pointer {
            to: Box::new(Type::Named { name: name.into() }),
            is_const: false,
        }
    }

    fn param(name: &str, ty: Type, role: Role) -> Param {
        Param {
            name: name.into(),
            ty,
            role,
        }
    }

    fn library() -> LibraryApi {
        let python = PyFunction {
            name: "get_power".into(),
            args: vec![PyArg {
                name: "device".into(),
                kind: ArgKind::Address,
                annotation: None,
                doc_type: None,
                default: None,
            }],
            results: vec![PyResult {
                name: "power".into(),
                kind: ResultKind::BufferStructs {
                    class: "Power".into(),
                    len: Len::Counted,
                },
                type_name: "Power".into(),
                doc_type: None,
            }],
            gil: Gil::Release,
            hook: None,
            ret: Ret::Status,
            sizing: Some(Sizing {
                count: Builtin::UInt,
                arrays: vec![0],
            }),
            requests: Vec::new(),
            interruptible: true,
        };
        let mut lib = LibraryApi {
            name: "nvml".into(),
            doc_url: "https://example.org/nvml/".into(),
            functions: vec![Function {
                name: "nvmlGetPower".into(),
                base: "nvmlGetPower".into(),
                symbol: "nvmlGetPower_v2".into(),
                abi_version: 0,
                per_thread_symbol: None,
                per_thread_abi_version: 0,
                header: "nvml.h".into(),
                majors: vec![13],
                ret: Type::Void,
                params: vec![
                    param("device", pointer("nvmlDevice_st"), Role::In { arg: 0 }),
                    param("count", pointer("unsigned"), Role::Count),
                    param("power", pointer("nvmlPower_t"), Role::Out { result: 0 }),
                ],
                python: Some(python),
            }],
            ..LibraryApi::default()
        };
        lib.units.insert("power".into(), "mW".into());
        let about = About {
            does: "Reads the power.".into(),
            parameters: [("device".to_owned(), "the GPU".to_owned())].into(),
        };
        lib.about.insert("nvmlGetPower".into(), about);
        let manual = ManualEntry {
            group: "POWER_USE".into(),
            statuses: vec!["NVML_OK".into(), "NVML_TOO_HOT".into()],
        };
        lib.manual.insert("nvmlGetPower".into(), manual);
        lib.sections.insert("POWER_USE".into(), "Power".into());
        lib.status_enum = "nvmlReturn_t".into();
        let member = |name: &str, value| EnumMember {
            name: name.into(),
            value,
            majors: vec![13],
            value_cuda12: None,
        };
        lib.enums.push(Enum {
            name: "nvmlReturn_t".into(),
            tag: None,
            underlying: Builtin::UInt,
            members: vec![member("NVML_OK", 0), member("NVML_TOO_HOT", 4)],
            majors: vec![13],
        });
        lib.python.enums.push(PyEnum {
            name: "Return".into(),
            base: "FastEnum".into(),
            members: vec![("OK".into(), 0), ("TOO_HOT".into(), 4)],
            aliases: Vec::new(),
            c_type: None,
            unsigned: false,
        });
        lib.python.style = Style::Raises;
        lib.python.errors = Some(PyErrors {
            exception: "NvmlError".into(),
            status_enum: "Return".into(),
            ..PyErrors::default()
        });
        lib
    }

    #[test]
    fn a_section_lists_types_shapes_units_and_errors() {
        let lib = library();
        let mut names = Names::default();
        names.add("nvml", "Power");
        names.add("nvml", "NvmlError");
        let all = of(&lib);
        let html = section(
            &lib,
            all[0].0,
            all[0].1,
            &names,
            &[(0, "no error"), (4, "too hot")],
        );
        for expected in [
            "<h3 id=\"get_power\">get_power</h3>",
            "get_power(device: int) -&gt; <a href=\"#Power\">Power</a>",
            "<td><code>nvmlDevice_st *</code></td><td>in</td>",
            "<td>elements: number of available elements</td><td>mW</td>",
            "Raises <code><a href=\"#NvmlError\">NvmlError</a></code> if the <code>Return</code> is not success.",
            "<code>nvmlGetPower_v2</code>",
            "Calls C twice",
            "Interruptible with Ctrl-C.",
            "<p>Reads the power.</p>",
            "<td>the GPU</td>",
            "<summary>Statuses: 1</summary>",
            "<dt><code>TOO_HOT</code></dt><dd>too hot</dd>",
            "in <a href=\"https://example.org/nvml/group__POWER__USE.html\">Power</a>",
        ] {
            assert!(html.contains(expected), "{expected} in {html}");
        }
    }

    #[test]
    fn tuples_begin_with_the_status() {
        let mut lib = library();
        lib.python.style = Style::Tuple;
        lib.status_enum = "CUresult".into();
        let (_, python) = of(&lib)[0];
        assert_eq!(
            signature(&lib, python),
            "get_power(device: int) -> tuple[CUresult, Power]"
        );
    }
}
