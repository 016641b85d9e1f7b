//! Derives functions of the Python half from the C half and the overlay.
//!
//! Rules for parameters without an exception: values are inputs; `const` pointers are inputs (characters as a string,
//! records as one struct or None, others as a list); other pointers are outputs, except `void *`, an input.

use std::collections::{BTreeMap, HashMap};

use crate::interface::overlay::{FunctionOverlay, Overlay, ParamOverlay, listed};
use crate::interface::tuple::nature::{Nature, nature};
use crate::ir::{
    ArgKind, Builtin, Element, Function, Gil, Len, LibraryApi, Param, PyArg, PyFunction, PyResult,
    ResultKind, Ret, Role, StructRule, Type,
};

/// Fills in `Function::python` and the parameters' roles.
///
/// # Errors
///
/// A parameter is covered by neither a rule nor the overlay, or an overlay entry has no counterpart.
pub fn functions(lib: &mut LibraryApi, overlay: &Overlay) -> Result<(), String> {
    let mut used: Vec<&str> = Vec::new();
    let mut errors = Vec::new();
    let mut done: BTreeMap<String, (PyFunction, Vec<Role>)> = BTreeMap::new();
    for f in &lib.functions {
        if !f.majors.contains(&overlay.library.major)
            || listed(&overlay.library.hide_functions, &f.name)
        {
            continue;
        }
        let empty = FunctionOverlay::default();
        let entry = match overlay.functions.get_key_value(&f.name) {
            Some((name, entry)) => {
                used.push(name);
                entry
            }
            None => &empty,
        };
        match function(lib, overlay, entry, f) {
            Ok(made) => {
                done.insert(f.name.clone(), made);
            }
            Err(e) => errors.push(format!("{} {}: {e}", lib.name, f.name)),
        }
    }
    if !errors.is_empty() {
        return Err(errors.join("\n"));
    }
    if let Some(stray) = overlay
        .functions
        .keys()
        .find(|k| !used.contains(&k.as_str()))
    {
        return Err(format!(
            "overlay of {}: no function {stray} to describe",
            lib.name
        ));
    }
    for f in &mut lib.functions {
        if let Some((python, roles)) = done.remove(&f.name) {
            f.python = Some(python);
            for (p, role) in f.params.iter_mut().zip(roles) {
                p.role = role;
            }
        }
    }
    Ok(())
}

/// The functions without a C function.
///
/// # Errors
///
/// A type is not declared.
pub fn custom(lib: &LibraryApi, overlay: &Overlay) -> Result<Vec<PyFunction>, String> {
    let none = ParamOverlay::default();
    let mut out = Vec::new();
    for (name, entry) in &overlay.custom {
        let with = |e: String| format!("overlay of {}: {name}: {e}", lib.name);
        let f = nobody(name);
        let c = Context {
            lib,
            overlay,
            f: &f,
            args: HashMap::new(),
            results: HashMap::new(),
        };
        let mut args = Vec::new();
        for text in &entry.args {
            let (arg, ty) = (text.split_once(": "))
                .ok_or_else(|| with("an argument is \"name: C type\"".to_owned()))?;
            let ty = spelt(ty);
            args.push(argument(&c, arg, &ty, Dir::In, &none).map_err(with)?);
        }
        let mut results = Vec::new();
        if let Some(ty) = &entry.returns {
            let ty = Type::Pointer {
                to: Box::new(spelt(ty)),
                is_const: false,
            };
            let name = entry.result.clone().unwrap_or_default();
            results.push(result(&c, &name, &ty, &none).map_err(with)?);
        }
        out.push(PyFunction {
            name: name.clone(),
            args,
            results,
            gil: Gil::Keep,
            hook: Some(entry.hook.clone()),
            ret: match entry.result {
                Some(_) => Ret::Status,
                None => Ret::Void,
            },
            sizing: None,
            requests: Vec::new(),
            interruptible: false,
        });
    }
    Ok(out)
}

/// Placeholder for the missing C function.
fn nobody(name: &str) -> Function {
    Function {
        name: name.to_owned(),
        base: String::new(),
        symbol: String::new(),
        abi_version: 0,
        per_thread_symbol: None,
        per_thread_abi_version: 0,
        header: String::new(),
        majors: Vec::new(),
        ret: Type::Void,
        params: Vec::new(),
        python: None,
    }
}

/// A C type as the overlay writes it.
fn spelt(text: &str) -> Type {
    let builtin = |builtin| Type::Builtin { builtin };
    match text {
        "int" => builtin(Builtin::Int),
        "size_t" => builtin(Builtin::SizeT),
        "void *" => Type::Pointer {
            to: Box::new(Type::Void),
            is_const: false,
        },
        name => Type::Named {
            name: name.to_owned(),
        },
    }
}

/// A direction with its details.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dir {
    In,
    Out,
    InOut,
    Null,
}

fn direction(lib: &LibraryApi, ty: &Type, o: &ParamOverlay) -> Result<Dir, String> {
    if let Some(dir) = &o.dir {
        return match dir.as_str() {
            "in" => Ok(Dir::In),
            "out" => Ok(Dir::Out),
            "inout" => Ok(Dir::InOut),
            "null" => Ok(Dir::Null),
            other => Err(format!("dir = {other:?}")),
        };
    }
    Ok(match ty {
        Type::Pointer { is_const: true, .. } => Dir::In,
        Type::Pointer { to, .. } => match &**to {
            Type::Void | Type::Function { .. } => Dir::In,
            to if matches!(lib.resolve(to), Type::Function { .. }) => Dir::In,
            _ => Dir::Out,
        },
        _ => Dir::In,
    })
}

struct Context<'a> {
    lib: &'a LibraryApi,
    overlay: &'a Overlay,
    f: &'a Function,
    /// C parameter name to argument index and to result index.
    args: HashMap<&'a str, usize>,
    results: HashMap<&'a str, usize>,
}

fn function(
    lib: &LibraryApi,
    overlay: &Overlay,
    entry: &FunctionOverlay,
    f: &Function,
) -> Result<(PyFunction, Vec<Role>), String> {
    if let Some(stray) = (entry.params.keys()).find(|k| f.params.iter().all(|p| p.name != **k)) {
        return Err(format!(
            "the overlay describes {stray}, which is not a parameter"
        ));
    }
    let none = ParamOverlay::default();
    let mut dirs = Vec::new();
    let mut c = Context {
        lib,
        overlay,
        f,
        args: HashMap::new(),
        results: HashMap::new(),
    };
    for p in &f.params {
        let o = entry.params.get(&p.name).unwrap_or(&none);
        let dir = direction(lib, &p.ty, o).map_err(|e| format!("{}: {e}", p.name))?;
        if matches!(dir, Dir::In | Dir::InOut) {
            c.args.insert(&p.name, c.args.len());
        }
        if matches!(dir, Dir::Out | Dir::InOut) {
            c.results.insert(&p.name, c.results.len());
        }
        dirs.push(dir);
    }
    let (mut args, mut results, mut roles) = (Vec::new(), Vec::new(), Vec::new());
    for (p, dir) in f.params.iter().zip(&dirs) {
        let o = entry.params.get(&p.name).unwrap_or(&none);
        let p = &Param {
            ty: shown_as(&p.ty, o),
            ..p.clone()
        };
        let with = |e: String| format!("{}: {e}", p.name);
        let arg = args.len();
        let result = results.len();
        if matches!(dir, Dir::In | Dir::InOut) {
            args.push(argument(&c, &p.name, &p.ty, *dir, o).map_err(with)?);
        }
        if matches!(dir, Dir::Out | Dir::InOut) {
            results.push(self::result(&c, &p.name, &p.ty, o).map_err(with)?);
        }
        roles.push(match dir {
            Dir::In => Role::In { arg },
            Dir::Out => Role::Out { result },
            Dir::InOut => Role::InOut { arg, result },
            Dir::Null => Role::Null,
        });
    }
    if matches!(&f.ret, Type::Pointer { to, .. } if is_char(to)) {
        // The function returns the text and has no status.
        results.push(PyResult {
            name: String::new(),
            kind: ResultKind::CString,
            type_name: "bytes".to_owned(),
            doc_type: None,
        });
    }
    let gil = if listed(&overlay.library.keep_gil, &f.name) {
        Gil::Keep
    } else {
        Gil::Release
    };
    let python = PyFunction {
        name: f.name.clone(),
        args,
        results,
        gil,
        hook: entry.hook.clone(),
        ret: Ret::Status,
        sizing: None,
        requests: Vec::new(),
        interruptible: false,
    };
    Ok((python, roles))
}

/// Replaces the prototype's type by the type of the same layout that Python uses.
fn shown_as(ty: &Type, o: &ParamOverlay) -> Type {
    match (ty, &o.class) {
        (_, None) => ty.clone(),
        (Type::Pointer { to, is_const }, Some(_)) => Type::Pointer {
            to: Box::new(shown_as(to, o)),
            is_const: *is_const,
        },
        (_, Some(class)) => Type::Named {
            name: class.clone(),
        },
    }
}

/// `T *` is `T`.
fn pointee(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Pointer { to, .. } => Some(to),
        _ => None,
    }
}

fn is_char(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Builtin {
            builtin: Builtin::Char
        }
    )
}

/// A type as the element of a list.
pub fn element(lib: &LibraryApi, ty: &Type) -> Result<Element, String> {
    match ty {
        Type::Builtin { builtin } if builtin.is_float() => Ok(Element::Float { builtin: *builtin }),
        Type::Builtin { builtin } => Ok(Element::Int { builtin: *builtin }),
        Type::Named { name } => Ok(match nature(lib, name) {
            Some(Nature::Enum) => Element::Enum { name: name.clone() },
            Some(Nature::Handle | Nature::Callback) => Element::Handle {
                class: name.clone(),
                size: 8,
            },
            Some(Nature::Integer(b)) => Element::Handle {
                class: name.clone(),
                size: b.size(),
            },
            Some(Nature::Struct(size)) => Element::Struct {
                class: name.clone(),
                size,
            },
            None => return Err(format!("no class {name}")),
        }),
        Type::Pointer { to, .. } if is_char(to) => Ok(Element::CString),
        Type::Pointer { .. } => Ok(Element::VoidPtr),
        other => Err(format!("no list of {other:?}")),
    }
}

impl Context<'_> {
    fn arg(&self, name: &str) -> Result<usize, String> {
        self.args
            .get(name)
            .copied()
            .ok_or_else(|| format!("{name} is not an argument"))
    }

    fn param_type(&self, name: &str) -> Option<&Type> {
        self.f.params.iter().find(|p| p.name == name).map(|p| &p.ty)
    }

    /// The argument with the number of elements of a list parameter: named by the overlay, else the nearest later
    /// integer called `num...` or `count`, else the nearest earlier one.
    fn count_of(&self, param: &str, o: &ParamOverlay) -> Result<Option<usize>, String> {
        match o.count.as_deref() {
            Some("") => return Ok(None),
            Some(name) => return self.arg(name).map(Some),
            None => {}
        }
        let at = self.f.params.iter().position(|p| p.name == param);
        let at = at.unwrap_or(0);
        let counts = |name: &str| name.starts_with("num") || name == "count";
        let (before, after) = self.f.params.split_at(at);
        let hit = after
            .iter()
            .chain(before.iter().rev())
            .find(|p| counts(&p.name) && matches!(p.ty, Type::Builtin { .. }));
        hit.map(|p| self.arg(&p.name)).transpose()
    }

    fn len_of(&self, o: &ParamOverlay) -> Result<Len, String> {
        match &o.len {
            Some(toml::Value::Integer(n)) => Ok(Len::Const { value: *n as usize }),
            Some(toml::Value::String(s)) => match self.arg(s) {
                Ok(arg) => Ok(Len::Arg { arg }),
                Err(_) => match self.results.get(s.as_str()) {
                    Some(&result) => Ok(Len::Result { result }),
                    None => (self.lib.functions.iter())
                        .position(|f| f.name == *s)
                        .map(|index| Len::Call { index })
                        .ok_or_else(|| format!("len = {s:?} is unknown")),
                },
            },
            _ => Err("needs len".to_owned()),
        }
    }

    fn selector(&self, by: &str) -> Result<(String, usize), String> {
        let arg = self.arg(by)?;
        let ty = self.param_type(by).ok_or("no selector")?;
        let ty = pointee(ty).unwrap_or(ty);
        match ty {
            Type::Named { name } => Ok((name.clone(), arg)),
            _ => Err(format!("{by} is not an enum")),
        }
    }
}

fn argument(
    c: &Context<'_>,
    name: &str,
    ty: &Type,
    dir: Dir,
    o: &ParamOverlay,
) -> Result<PyArg, String> {
    let kind = arg_kind(c, name, ty, dir, o)?;
    let python = o
        .name
        .clone()
        .or_else(|| c.overlay.names.get(name).cloned())
        .unwrap_or_else(|| name.to_owned());
    Ok(PyArg {
        name: python,
        annotation: annotation(&kind),
        doc_type: Some(doc_type(c, &kind)),
        default: o.default.clone(),
        kind,
    })
}

fn arg_kind(
    c: &Context<'_>,
    name: &str,
    ty: &Type,
    dir: Dir,
    o: &ParamOverlay,
) -> Result<ArgKind, String> {
    let lib = c.lib;
    match o.kind.as_deref() {
        Some("attribute") => {
            let (selector, by) = c.selector(o.by.as_deref().ok_or("needs by")?)?;
            return Ok(ArgKind::Attribute { selector, by });
        }
        Some("options") => {
            let (selector, by) = c.selector(o.by.as_deref().ok_or("needs by")?)?;
            let count = c.count_of(name, o)?.ok_or("needs count")?;
            return Ok(ArgKind::OptionValues {
                selector,
                by,
                count,
            });
        }
        Some("kernel_params") => return Ok(ArgKind::KernelParams),
        Some("void") => return Ok(ArgKind::VoidPtr),
        Some("bytes") => return Ok(ArgKind::BytesOut),
        _ => {}
    }
    let Some(to) = pointee(ty) else {
        return match ty {
            Type::Builtin { builtin } if builtin.is_float() => {
                Ok(ArgKind::Float { builtin: *builtin })
            }
            Type::Builtin { builtin } => Ok(ArgKind::Int { builtin: *builtin }),
            Type::Named { name } => match nature(lib, name) {
                Some(Nature::Enum) => Ok(ArgKind::Enum { name: name.clone() }),
                Some(Nature::Handle) => Ok(ArgKind::Handle {
                    class: name.clone(),
                    size: 8,
                    by_pointer: false,
                }),
                Some(Nature::Integer(b)) => Ok(ArgKind::Handle {
                    class: name.clone(),
                    size: b.size(),
                    by_pointer: false,
                }),
                Some(Nature::Callback) => Ok(ArgKind::Callback {
                    class: name.clone(),
                }),
                Some(Nature::Struct(size)) => Ok(ArgKind::Struct {
                    class: name.clone(),
                    size,
                    by_pointer: false,
                }),
                None => Err(format!("no class {name}")),
            },
            other => Err(format!("unexpected type {other:?}")),
        };
    };
    if o.kind.as_deref() == Some("list") {
        let of = element(lib, to)?;
        let nullable = o.nullable.unwrap_or(!matches!(
            of,
            Element::Int {
                builtin: Builtin::SizeT
            }
        ));
        return Ok(ArgKind::List {
            of,
            count: c.count_of(name, o)?,
            nullable,
        });
    }
    let is_const = matches!(ty, Type::Pointer { is_const: true, .. });
    match to {
        Type::Void => Ok(ArgKind::VoidPtr),
        Type::Function { .. } => Ok(ArgKind::VoidPtr),
        Type::Pointer { to: inner, .. }
            if is_char(inner) && o.kind.as_deref() != Some("void_list") =>
        {
            Ok(ArgKind::List {
                of: Element::CString,
                count: c.count_of(name, o)?,
                nullable: true,
            })
        }
        Type::Pointer { .. } => Ok(ArgKind::VoidPtrPtr),
        to if is_char(to) && is_const => Ok(ArgKind::CString),
        to if is_char(to) => Ok(ArgKind::BytesOut),
        Type::Named { name: class } => match nature(lib, class) {
            Some(Nature::Struct(size)) => Ok(ArgKind::Struct {
                class: class.clone(),
                size,
                by_pointer: true,
            }),
            Some(Nature::Enum) if dir == Dir::InOut => Ok(ArgKind::Enum {
                name: class.clone(),
            }),
            Some(Nature::Callback) if matches!(lib.resolve(to), Type::Function { .. }) => {
                // `VdpGetProcAddress *`: the class stands for the pointer.
                Ok(ArgKind::Callback {
                    class: class.clone(),
                })
            }
            Some(Nature::Handle | Nature::Callback) if o.kind.as_deref() == Some("handle") => {
                Ok(ArgKind::Handle {
                    class: class.clone(),
                    size: 8,
                    by_pointer: true,
                })
            }
            Some(Nature::Integer(b)) if o.kind.as_deref() == Some("handle") => {
                Ok(ArgKind::Handle {
                    class: class.clone(),
                    size: b.size(),
                    by_pointer: true,
                })
            }
            _ if is_const => Ok(ArgKind::List {
                of: element(lib, to)?,
                count: c.count_of(name, o)?,
                nullable: o.nullable.unwrap_or(true),
            }),
            _ => Err("an argument the rules do not explain".to_owned()),
        },
        Type::Builtin { builtin } if dir == Dir::InOut || o.kind.as_deref() == Some("int") => {
            Ok(ArgKind::Int { builtin: *builtin })
        }
        Type::Builtin { builtin } if o.kind.as_deref() == Some("float") => {
            Ok(ArgKind::Float { builtin: *builtin })
        }
        to if is_const => Ok(ArgKind::List {
            of: element(lib, to)?,
            count: c.count_of(name, o)?,
            nullable: o.nullable.unwrap_or(true),
        }),
        _ => Err("an argument the rules do not explain".to_owned()),
    }
}

/// The documented type name of an element.
pub fn element_name(of: &Element) -> String {
    match of {
        Element::Int {
            builtin: Builtin::UInt,
        } => "unsigned int".to_owned(),
        Element::Int { .. } => "int".to_owned(),
        Element::Float { .. } => "float".to_owned(),
        Element::Enum { name } => name.clone(),
        Element::Handle { class, .. } | Element::Struct { class, .. } => class.clone(),
        Element::CString => "bytes".to_owned(),
        Element::VoidPtr => "Any".to_owned(),
    }
}

/// The annotation of an argument. Handles and numbers have none, because they accept more than their class.
fn annotation(kind: &ArgKind) -> Option<String> {
    let list = |e: &str| format!("tuple[{e}] | list[{e}]");
    match kind {
        ArgKind::Enum { name } => Some(name.clone()),
        ArgKind::Struct {
            class, by_pointer, ..
        } if *by_pointer => Some(format!("Optional[{class}]")),
        ArgKind::Struct { class, .. } => Some(class.clone()),
        ArgKind::List { of, nullable, .. } => {
            let list = list(&element_name(of));
            Some(if *nullable {
                format!("Optional[{list}]")
            } else {
                list
            })
        }
        ArgKind::OptionValues { .. } => Some(format!("Optional[{}]", list("Any"))),
        ArgKind::Handle {
            class,
            by_pointer: true,
            size: 4,
        } => Some(format!("Optional[{class}]")),
        _ => None,
    }
}

fn doc_type(c: &Context<'_>, kind: &ArgKind) -> String {
    match kind {
        ArgKind::Int { builtin } | ArgKind::Float { builtin } => builtin.c_name().to_owned(),
        ArgKind::Enum { name } => name.clone(),
        ArgKind::Handle { class, .. } => {
            let runtime = c.overlay.library.runtime_names.get(class);
            let driver = c
                .overlay
                .bases
                .get(class)
                .and_then(|b| b.rsplit('.').next());
            match (driver, runtime) {
                (Some(driver), _) => format!("{driver} or {class}"),
                (None, Some(runtime)) => format!("{class} or {runtime}"),
                (None, None) => class.clone(),
            }
        }
        ArgKind::Callback { class } | ArgKind::Struct { class, .. } => class.clone(),
        ArgKind::List { of, .. } => format!("list[{}]", element_name(of)),
        ArgKind::OptionValues { .. } | ArgKind::VoidPtrPtr => "list[Any]".to_owned(),
        ArgKind::CString | ArgKind::BytesOut => "bytes".to_owned(),
        ArgKind::VoidPtr | ArgKind::Attribute { .. } | ArgKind::KernelParams => "Any".to_owned(),
        ArgKind::Address | ArgKind::LiveHandle { .. } => "intptr_t".to_owned(),
        ArgKind::Bool => "bint".to_owned(),
        ArgKind::Str => "str".to_owned(),
        ArgKind::StrList { .. } => "object".to_owned(),
        ArgKind::Buffer { .. }
        | ArgKind::BufferOut { .. }
        | ArgKind::Text
        | ArgKind::Memory { .. }
        | ArgKind::Writable { .. } => "bytes".to_owned(),
        ArgKind::Addresses { .. } => "object".to_owned(),
        ArgKind::BufferStructs { .. } | ArgKind::HandleByPointer | ArgKind::AddressOf { .. } => {
            "intptr_t".to_owned()
        }
        ArgKind::BufferStruct { class, rule } => match rule {
            StructRule::Exact => class.clone(),
            StructRule::Address | StructRule::Plain => "intptr_t".to_owned(),
        },
    }
}

fn result(c: &Context<'_>, name: &str, ty: &Type, o: &ParamOverlay) -> Result<PyResult, String> {
    let kind = result_kind(c, name, ty, o)?;
    let (type_name, doc_type) = result_type(&kind);
    let python = (c.overlay.names.get(name).cloned()).unwrap_or_else(|| name.to_owned());
    Ok(PyResult {
        name: o.name.clone().unwrap_or(python),
        type_name: o.result_type.clone().unwrap_or(type_name),
        doc_type,
        kind,
    })
}

fn result_kind(
    c: &Context<'_>,
    name: &str,
    ty: &Type,
    o: &ParamOverlay,
) -> Result<ResultKind, String> {
    let lib = c.lib;
    match o.kind.as_deref() {
        Some("attribute") => {
            let (selector, by) = c.selector(o.by.as_deref().ok_or("needs by")?)?;
            return Ok(ResultKind::Attribute { selector, by });
        }
        Some("attributes") => {
            let (selector, by) = c.selector(o.by.as_deref().ok_or("needs by")?)?;
            let sizes = o.sizes.as_deref().map(|s| c.arg(s)).transpose()?;
            let count = c.count_of(name, o)?.ok_or("needs count")?;
            return Ok(ResultKind::Attributes {
                selector,
                by,
                sizes,
                count,
            });
        }
        Some("bytes") => {
            return Ok(ResultKind::Bytes {
                len: c.len_of(o)?,
                until_nul: false,
            });
        }
        Some("int") => {
            return Ok(ResultKind::Int {
                builtin: Builtin::Int,
            });
        }
        Some("address") => return Ok(ResultKind::VoidPtr),
        _ => {}
    }
    let to = pointee(ty).ok_or("a result that is not a pointer")?;
    if o.kind.as_deref() == Some("list") {
        // `const T **`: the library's own array; `T *`: ours.
        let of = match to {
            Type::Pointer { to, .. } => element(lib, to)?,
            to => element(lib, to)?,
        };
        return Ok(ResultKind::List {
            of,
            len: c.len_of(o)?,
        });
    }
    match to {
        Type::Builtin { builtin } if *builtin == Builtin::Char => {
            Err("char * needs kind = \"bytes\" and len".to_owned())
        }
        Type::Builtin { builtin } if builtin.is_float() => {
            Ok(ResultKind::Float { builtin: *builtin })
        }
        Type::Builtin { builtin } => Ok(ResultKind::Int { builtin: *builtin }),
        Type::Pointer { to, .. } if is_char(to) => Ok(ResultKind::CString),
        Type::Pointer { to, .. } if **to == Type::Void => Ok(ResultKind::VoidPtr),
        // `struct cudaGraphicsResource **`, where others have `cudaGraphicsResource_t *`.
        pointer @ Type::Pointer { .. } => match lib.typedefs.iter().find(|t| t.ty == *pointer) {
            Some(t) => Ok(ResultKind::Handle {
                class: t.name.clone(),
                size: 8,
            }),
            None => Err(format!("no result of type {pointer:?}")),
        },
        Type::Named { name: class } => match nature(lib, class) {
            Some(Nature::Enum) => Ok(ResultKind::Enum {
                name: class.clone(),
            }),
            Some(Nature::Handle) => Ok(ResultKind::Handle {
                class: class.clone(),
                size: 8,
            }),
            Some(Nature::Integer(b)) => Ok(ResultKind::Handle {
                class: class.clone(),
                size: b.size(),
            }),
            Some(Nature::Struct(size)) => Ok(ResultKind::Struct {
                class: class.clone(),
                size,
            }),
            _ => Err(format!("no result of type {class}")),
        },
        other => Err(format!("no result of type {other:?}")),
    }
}

/// The type name of a result, and the documented type if it differs.
fn result_type(kind: &ResultKind) -> (String, Option<String>) {
    match kind {
        ResultKind::Int { builtin } => {
            let doc = matches!(builtin, Builtin::UInt | Builtin::ULongLong)
                .then(|| builtin.c_name().to_owned());
            ("int".to_owned(), doc)
        }
        ResultKind::Float { .. } => ("float".to_owned(), None),
        ResultKind::Enum { name } => (name.clone(), None),
        ResultKind::Handle { class, .. } | ResultKind::Struct { class, .. } => {
            (class.clone(), None)
        }
        ResultKind::Bytes { .. } | ResultKind::CString => ("bytes".to_owned(), None),
        ResultKind::CText => ("str".to_owned(), None),
        ResultKind::List { of, .. } => (format!("list[{}]", element_name(of)), None),
        ResultKind::VoidPtr | ResultKind::Attribute { .. } => ("Any".to_owned(), None),
        ResultKind::Attributes { .. } => ("list[Any]".to_owned(), None),
        ResultKind::Address | ResultKind::NewHandle { .. } => {
            ("int".to_owned(), Some("intptr_t".to_owned()))
        }
        ResultKind::Bool => ("bool".to_owned(), None),
        ResultKind::Str { .. } => ("str".to_owned(), None),
        ResultKind::Slice { .. } => ("_memoryviewslice".to_owned(), None),
        ResultKind::BufferStruct { class } | ResultKind::BufferStructs { class, .. } => {
            (class.clone(), None)
        }
        ResultKind::ByHand => ("Any".to_owned(), None),
    }
}
