//! Derives functions of the Python half from the C half and the overlay, for libraries whose functions raise.
//!
//! Rules for parameters without an exception: values are inputs; text is a `str` input; `const void *` or `const char
//! *` before a `size_t size` is a buffer; other `const` pointers and `void *` are addresses, records their class; any
//! other pointer is an output. Python does not see a parameter that another one names as `count` or `len`.

use std::collections::HashMap;

use crate::interface::overlay::{FunctionOverlay, HandWritten, Overlay, ParamOverlay, listed};
use crate::interface::raising::requests;
use crate::interface::raising::structs::class_of;
use crate::ir::{
    ArgKind, Builtin, Function, Gil, Len, LibraryApi, PyArg, PyFunction, PyResult, Request,
    ResultKind, Ret, Role, Sizing, Type,
};
use crate::naming::snake_case;

/// Fills in `Function::python`, the parameters' roles and `PyModule::functions`.
///
/// # Errors
///
/// A parameter is covered by neither a rule nor the overlay, or an overlay entry has no counterpart.
pub fn functions(lib: &mut LibraryApi, overlay: &Overlay) -> Result<(), String> {
    let rules = &overlay.library;
    let empty = FunctionOverlay::default();
    let mut errors = Vec::new();
    let mut done: HashMap<String, (PyFunction, Vec<Role>)> = HashMap::new();
    for f in &lib.functions {
        let entry = overlay.functions.get(&f.name);
        // A versioned module also shows the older versions that the overlay describes.
        let is_bound = f.majors.contains(&rules.major) || rules.versioned && entry.is_some();
        if !is_bound || listed(&rules.hide_functions, &f.name) {
            continue;
        }
        let entry = entry.unwrap_or(&empty);
        match function(lib, overlay, entry, f) {
            Ok(made) => {
                done.insert(f.name.clone(), made);
            }
            Err(e) => errors.push(format!("{} {}: {e}", lib.name, f.name)),
        }
    }
    let strays = (overlay.functions.keys()).filter(|name| !done.contains_key(*name));
    errors.extend(strays.map(|name| format!("{}: no function {name} to describe", lib.name)));
    let mut custom = Vec::new();
    for (name, entry) in &overlay.custom {
        match hand_written(name, entry) {
            Ok(made) => custom.push(made),
            Err(e) => errors.push(format!("{} {name}: {e}", lib.name)),
        }
    }
    if !errors.is_empty() {
        return Err(errors.join("\n"));
    }
    for f in &mut lib.functions {
        if let Some((python, roles)) = done.remove(&f.name) {
            f.python = Some(python);
            for (p, role) in f.params.iter_mut().zip(roles) {
                p.role = role;
            }
        }
    }
    lib.python.functions = custom;
    Ok(())
}

/// A function without a C function.
fn hand_written(name: &str, entry: &HandWritten) -> Result<PyFunction, String> {
    let mut args = Vec::new();
    for text in &entry.args {
        let (name, kind) = text
            .split_once(": ")
            .ok_or("an argument is \"name: kind\"")?;
        args.push(arg(name, simple_kind(kind)?));
    }
    let results = entry.returns.iter().map(|ty| custom_result(ty)).collect();
    Ok(PyFunction {
        name: name.to_owned(),
        args,
        results,
        gil: Gil::Keep,
        hook: Some(entry.hook.clone()),
        ret: Ret::Void,
        sizing: None,
        requests: Vec::new(),
        interruptible: false,
    })
}

/// Parses the kind of an argument of a hand-written function.
pub(crate) fn simple_kind(kind: &str) -> Result<ArgKind, String> {
    Ok(match kind {
        "int" => ArgKind::Int {
            builtin: Builtin::Int,
        },
        "unsigned int" => ArgKind::Int {
            builtin: Builtin::UInt,
        },
        "address" => ArgKind::Address,
        "str" => ArgKind::Str,
        // The implementation interprets the value.
        "object" => ArgKind::VoidPtr,
        other => return Err(format!("no kind of argument: {other}")),
    })
}

fn custom_result(type_name: &str) -> PyResult {
    PyResult {
        name: String::new(),
        kind: ResultKind::ByHand,
        type_name: type_name.to_owned(),
        doc_type: None,
    }
}

/// An argument whose kind determines its documented type.
pub(crate) fn arg(name: &str, kind: ArgKind) -> PyArg {
    PyArg {
        name: name.to_owned(),
        annotation: None,
        doc_type: Some(arg_doc(&kind)),
        default: None,
        kind,
    }
}

fn arg_doc(kind: &ArgKind) -> String {
    match kind {
        ArgKind::Int { builtin } => builtin.c_name().to_owned(),
        ArgKind::Bool => "bool".to_owned(),
        ArgKind::Str => "str".to_owned(),
        ArgKind::StrList { .. } | ArgKind::VoidPtr => "object".to_owned(),
        ArgKind::Buffer { .. }
        | ArgKind::BufferOut { .. }
        | ArgKind::Text
        | ArgKind::Memory { .. }
        | ArgKind::Writable { .. } => "bytes".to_owned(),
        ArgKind::Float { builtin } => builtin.c_name().to_owned(),
        ArgKind::Addresses { .. } | ArgKind::KernelParams | ArgKind::Attribute { .. } => {
            "object".to_owned()
        }
        ArgKind::BufferStruct { class, .. } | ArgKind::BufferStructs { class, .. } => class.clone(),
        _ => "intptr_t".to_owned(),
    }
}

/// A result whose kind determines its type.
pub(crate) fn result(name: &str, kind: ResultKind) -> PyResult {
    let (type_name, doc_type) = match &kind {
        ResultKind::Int { builtin } => ("int", Some(builtin.c_name())),
        ResultKind::Address | ResultKind::NewHandle { .. } => ("int", Some("intptr_t")),
        ResultKind::Bool => ("bool", None),
        ResultKind::Float { .. } => ("float", None),
        ResultKind::Str { .. } | ResultKind::CText => ("str", None),
        ResultKind::Bytes { .. } | ResultKind::CString => ("bytes", None),
        ResultKind::Slice { .. } => ("_memoryviewslice", None),
        ResultKind::BufferStruct { class } | ResultKind::BufferStructs { class, .. } => {
            (class.as_str(), None)
        }
        _ => ("Any", None),
    };
    PyResult {
        name: name.to_owned(),
        type_name: type_name.to_owned(),
        doc_type: doc_type.map(str::to_owned),
        kind,
    }
}

/// The function under construction.
pub(crate) struct Work<'a> {
    pub(crate) lib: &'a LibraryApi,
    pub(super) overlay: &'a Overlay,
    entry: &'a FunctionOverlay,
    pub(crate) f: &'a Function,
    /// Argument index by C parameter; complete before the arguments are built.
    arg_at: HashMap<&'a str, usize>,
    pub(crate) python: PyFunction,
    roles: Vec<Role>,
}

/// The source of a C parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Plan {
    In,
    Out,
    InOut,
    Null,
    /// The count that a two-step call queries.
    Count,
    /// The capacity of the preceding text buffer.
    Room,
    Request,
    /// A constant of the overlay.
    Value,
    /// The number of structs in the preceding argument.
    Elements,
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
    for (name, o) in &entry.params {
        let invalid = |e: &str| Err(format!("{name}: {e}"));
        if let Some(count) = &o.count
            && f.params.iter().all(|p| p.name != *count)
        {
            return invalid(&format!("count = {count:?} is not a parameter"));
        }
        let apart = !o.inputs.is_empty() || o.outputs.is_some();
        if apart && o.kind.as_deref() != Some("request") {
            return invalid("in and out belong to kind = \"request\"");
        }
    }
    let rules = &overlay.library;
    let name = match &entry.python {
        Some(name) => name.clone(),
        None => python_name(overlay, f),
    };
    let mut work = Work {
        lib,
        overlay,
        entry,
        f,
        arg_at: HashMap::new(),
        python: PyFunction {
            name,
            args: Vec::new(),
            results: Vec::new(),
            gil: if listed(&rules.keep_gil, &f.name) {
                Gil::Keep
            } else {
                Gil::Release
            },
            hook: entry.hook.clone(),
            ret: Ret::Status,
            sizing: None,
            requests: Vec::new(),
            interruptible: listed(&rules.interruptible, &f.name),
        },
        roles: Vec::new(),
    };
    work.returned()?;
    let plans = work.plans()?;
    for (index, plan) in plans.iter().enumerate() {
        let p = &f.params[index];
        work.param(index, *plan)
            .map_err(|e| format!("{}: {e}", p.name))?;
    }
    let gives = entry.gives.iter().map(|ty| custom_result(ty));
    work.python.results.extend(gives);
    let Work { python, roles, .. } = work;
    Ok((python, roles))
}

/// The Python name by the rule.
pub(super) fn python_name(overlay: &Overlay, f: &Function) -> String {
    let rules = &overlay.library;
    let c = if rules.versioned { &f.symbol } else { &f.name };
    snake_case(c.strip_prefix(&rules.prefix).unwrap_or(c), &rules.words)
}

pub(crate) fn pointee(ty: &Type) -> Option<&Type> {
    match ty {
        Type::Pointer { to, .. } => Some(to),
        _ => None,
    }
}

pub(super) fn is_const(ty: &Type) -> bool {
    matches!(ty, Type::Pointer { is_const: true, .. })
}

pub(super) fn is_char(ty: &Type) -> bool {
    let builtin = Builtin::Char;
    *ty == Type::Builtin { builtin }
}

pub(super) fn is_integer(lib: &LibraryApi, ty: &Type) -> bool {
    matches!(lib.resolve(ty), Type::Builtin { builtin } if !builtin.is_float())
}

/// The integer type of a value; `int` for enums, as in the interface.
pub(crate) fn integer(lib: &LibraryApi, ty: &Type) -> Option<Builtin> {
    match lib.resolve(ty) {
        Type::Builtin { builtin } if !builtin.is_float() => Some(*builtin),
        Type::Named { name } if lib.enumeration(name).is_some() => Some(Builtin::Int),
        _ => None,
    }
}

impl Work<'_> {
    fn overlay_of(&self, name: &str) -> ParamOverlay {
        self.entry.params.get(name).cloned().unwrap_or_default()
    }

    /// The C return value.
    fn returned(&mut self) -> Result<(), String> {
        let lib = self.lib;
        self.python.ret = match (self.entry.returns.as_deref(), &self.f.ret) {
            (Some("void"), _) | (None, Type::Void) => Ret::Void,
            (Some("value"), ty) => {
                let builtin = integer(lib, ty).ok_or("returns no integer")?;
                let kind = ResultKind::Int { builtin };
                self.python.results.push(result("", kind));
                Ret::Value { builtin }
            }
            (None, Type::Pointer { to, .. }) if is_char(to) => {
                let len = Len::Const { value: 0 };
                self.python
                    .results
                    .push(result("", ResultKind::Str { len }));
                Ret::Text
            }
            (
                None,
                Type::Builtin {
                    builtin: Builtin::Long,
                },
            ) => {
                let builtin = Builtin::Long;
                self.python
                    .results
                    .push(result("", ResultKind::Int { builtin }));
                Ret::Size
            }
            (None, ty) => match lib.resolve(ty) {
                Type::Named { name } if *name == lib.status_enum => Ret::Status,
                Type::Named { name } if lib.record(name).is_some_and(|r| r.size == 8) => {
                    Ret::CuFile
                }
                other => {
                    return Err(format!(
                        "returns {other:?}: the overlay must define its meaning (`returns`)"
                    ));
                }
            },
            (Some(other), _) => return Err(format!("returns = {other:?}")),
        };
        Ok(())
    }

    /// First pass: decides which parameters are arguments, so that lengths can refer to them.
    fn plans(&mut self) -> Result<Vec<Plan>, String> {
        let params = &self.f.params;
        let mut plans = Vec::new();
        for (index, p) in params.iter().enumerate() {
            let o = self.overlay_of(&p.name);
            let counted = |other: &crate::ir::Param| {
                self.overlay_of(&other.name).count.as_deref() == Some(&p.name)
            };
            let before = index.checked_sub(1).map(|i| &params[i]);
            let plan = match (o.dir.as_deref(), o.kind.as_deref()) {
                (Some("null"), _) => Plan::Null,
                (_, Some("request")) => Plan::Request,
                _ if o.value.is_some() => Plan::Value,
                _ if params.iter().any(counted) && pointee(&p.ty).is_some() => Plan::Count,
                _ if before.is_some_and(|b| {
                    self.has_fixed_room(&b.name, &b.ty) && is_integer(self.lib, &p.ty)
                }) =>
                {
                    Plan::Room
                }
                _ if before.is_some_and(|b| {
                    self.overlay_of(&b.name).count.as_deref() == Some(&p.name)
                        && self.overlay_of(&b.name).rule.as_deref() == Some("exact")
                }) =>
                {
                    Plan::Elements
                }
                (Some("in"), _) => Plan::In,
                (Some("out"), _) => Plan::Out,
                (Some("inout"), _) => Plan::InOut,
                (None, _) if self.goes_in(&p.ty, &o) => Plan::In,
                (None, _) => Plan::Out,
                (Some(dir), _) => return Err(format!("{}: dir = {dir:?}", p.name)),
            };
            plans.push(plan);
        }
        let mut at = 0;
        for (p, plan) in params.iter().zip(&plans) {
            match plan {
                Plan::In | Plan::InOut => {
                    self.arg_at.insert(&p.name, at);
                    at += 1;
                }
                Plan::Request => at += self.overlay_of(&p.name).inputs.len(),
                _ => {}
            }
        }
        Ok(plans)
    }

    /// A `char *` whose capacity the overlay gives as a number: the integer after it is that number.
    fn has_fixed_room(&self, name: &str, ty: &Type) -> bool {
        let fixed = match self.overlay_of(name).len {
            Some(toml::Value::Integer(_)) => true,
            Some(toml::Value::String(text)) => self.f.params.iter().all(|p| p.name != text),
            _ => false,
        };
        fixed && pointee(ty).is_some_and(is_char)
    }

    /// Whether the rules make a parameter an argument.
    fn goes_in(&self, ty: &Type, o: &ParamOverlay) -> bool {
        if matches!(
            o.kind.as_deref(),
            Some(
                "address"
                    | "addresses"
                    | "buffer"
                    | "buffer_out"
                    | "custom"
                    | "kernel_params"
                    | "memory"
                    | "text"
                    | "writable"
            )
        ) {
            return true;
        }
        if o.count.is_some() || o.len.is_some() {
            // An output array, unless its elements are texts or const.
            return is_const(ty) || pointee(ty).and_then(pointee).is_some();
        }
        match ty {
            Type::Pointer { is_const: true, .. } => true,
            Type::Pointer { to, .. } => match &**to {
                Type::Void | Type::Function { .. } => true,
                Type::Pointer { to, is_const } => *is_const && is_char(to),
                _ => false,
            },
            _ => true,
        }
    }

    pub(super) fn arg_named(&self, name: &str) -> Result<usize, String> {
        (self.arg_at.get(name).copied()).ok_or_else(|| format!("{name} is not an argument"))
    }

    /// A number in the overlay: a literal, a macro's value, or `sizeof` a parameter's pointee.
    pub(super) fn number(&self, value: &toml::Value) -> Result<u64, String> {
        match value {
            toml::Value::Integer(n) => {
                u64::try_from(*n).map_err(|_| format!("{n} is not a length"))
            }
            toml::Value::String(name) => {
                if let Some(param) = name.strip_prefix("sizeof ") {
                    let p = self.f.params.iter().find(|p| p.name == param);
                    let record = p.and_then(|p| self.record_of(&p.ty));
                    return record
                        .map(|r| r.size as u64)
                        .ok_or_else(|| format!("{param} does not point to a struct"));
                }
                let constant = self.lib.constants.iter().find(|c| c.name == *name);
                constant
                    .and_then(|c| u64::try_from(c.value).ok())
                    .ok_or_else(|| format!("{name} is not a macro with a length"))
            }
            other => Err(format!("{other} is not a length")),
        }
    }

    /// The length of an output: an argument's value, or a constant.
    pub(super) fn len_of(&self, value: &toml::Value) -> Result<Len, String> {
        if let toml::Value::String(name) = value
            && let Ok(arg) = self.arg_named(name)
        {
            return Ok(Len::Arg { arg });
        }
        let value = self.number(value)? as usize;
        Ok(Len::Const { value })
    }

    pub(crate) fn record_of(&self, ty: &Type) -> Option<&crate::ir::Record> {
        match self.lib.resolve(pointee(ty)?) {
            Type::Named { name } => self.lib.record(name),
            _ => None,
        }
    }

    fn param(&mut self, index: usize, plan: Plan) -> Result<(), String> {
        let p = &self.f.params[index];
        let o = self.overlay_of(&p.name);
        let role = match plan {
            Plan::Null => Role::Null,
            Plan::Count => {
                let count = pointee(&p.ty).and_then(|to| integer(self.lib, to));
                let count = count.ok_or("no number of elements")?;
                let arrays = self.python.sizing.take().map_or(Vec::new(), |s| s.arrays);
                self.python.sizing = Some(Sizing { count, arrays });
                Role::Count
            }
            Plan::Room => {
                let before = self.overlay_of(&self.f.params[index - 1].name);
                let len = before.len.ok_or("no length before it")?;
                let value = self.number(&len)?;
                Role::Const { value }
            }
            Plan::Elements => Role::Elements {
                arg: self.arg_named(&self.f.params[index - 1].name)?,
            },
            Plan::Value => {
                let value = self.number(&o.value.ok_or("no value")?)?;
                match pointee(&p.ty) {
                    None => Role::Const { value },
                    Some(to) => {
                        let builtin = integer(self.lib, to).filter(|b| b.size() == 4);
                        builtin.ok_or("only an unsigned int has room for the value")?;
                        self.request(Request {
                            param: index,
                            record: "unsigned int".to_owned(),
                            size: 4,
                            store: crate::ir::Store::Scratch,
                            version: u32::try_from(value).map_err(|e| e.to_string())?,
                            inputs: Vec::new(),
                            outputs: Vec::new(),
                        })
                    }
                }
            }
            Plan::Request => requests::decomposed_struct(self, index, &o)?,
            Plan::InOut => {
                let to = pointee(&p.ty).ok_or("no pointer")?;
                let (arg, result) = (self.python.args.len(), self.python.results.len());
                let kind = self.value_kind(to, &o)?;
                let name = match &o.name {
                    Some(name) => name.clone(),
                    None => snake_case(&p.name, &[]),
                };
                let mut made = self::arg(&name, kind);
                if o.nullable == Some(true) {
                    made.doc_type = Some("Any".to_owned());
                }
                self.python.args.push(made);
                let builtin = integer(self.lib, to).ok_or("no integer")?;
                self.python
                    .results
                    .push(self::result(&name, ResultKind::Int { builtin }));
                Role::InOut { arg, result }
            }
            Plan::In => {
                let kind = self.arg_kind(index, &o)?;
                if o.destroys && !matches!(kind, ArgKind::LiveHandle { .. }) {
                    return Err("destroys belongs to a handle of the library".to_owned());
                }
                let name = match (&o.name, self.overlay.names.get(&p.name)) {
                    (Some(name), _) | (None, Some(name)) => name.clone(),
                    (None, None) => snake_case(&p.name, &[]),
                };
                let at = self.python.args.len();
                let mut made = arg(&name, kind);
                made.default.clone_from(&o.default);
                self.python.args.push(made);
                match self.completed(index, &o)? {
                    Some(version) => requests::completed_arg(self, index, at, version)?,
                    None => Role::In { arg: at },
                }
            }
            Plan::Out => {
                let kind = self.result_kind(index, &o)?;
                let at = self.python.results.len();
                let mut made = result(&snake_case(&p.name, &[]), kind);
                if let Some(ty) = &o.result_type {
                    made.type_name.clone_from(ty);
                }
                let counted = matches!(
                    made.kind,
                    ResultKind::Slice {
                        len: Len::Counted,
                        ..
                    } | ResultKind::BufferStructs {
                        len: Len::Counted,
                        ..
                    } | ResultKind::Str { len: Len::Counted }
                );
                if counted {
                    let sizing = self.python.sizing.get_or_insert(Sizing {
                        count: Builtin::UInt,
                        arrays: Vec::new(),
                    });
                    sizing.arrays.push(at);
                }
                let instance = matches!(made.kind, ResultKind::BufferStruct { .. });
                self.python.results.push(made);
                match self.completed(index, &o)? {
                    Some(version) if instance => {
                        requests::completed_result(self, index, at, version)?
                    }
                    _ => Role::Out { result: at },
                }
            }
        };
        self.roles.push(role);
        Ok(())
    }

    /// The C name of a parameter's struct, or the overlay's replacement.
    fn struct_name(&self, index: usize, o: &ParamOverlay) -> Option<String> {
        match (&o.class, pointee(&self.f.params[index].ty)) {
            (Some(name), _) => Some(name.clone()),
            (None, Some(Type::Named { name })) => Some(name.clone()),
            _ => None,
        }
    }

    pub(crate) fn version_word(&self, index: usize, o: &ParamOverlay) -> Option<u32> {
        self.lib.version_word(&self.struct_name(index, o)?)
    }

    pub(crate) fn class_behind(&self, index: usize, o: &ParamOverlay) -> Option<String> {
        class_of(self.lib, self.overlay, &self.struct_name(index, o)?)
    }

    /// Adds a request and returns its role.
    pub(crate) fn request(&mut self, request: Request) -> Role {
        let at = self.python.requests.len();
        self.python.requests.push(request);
        Role::Request { request: at }
    }

    /// The version word of a struct: by default for outputs, on request for inputs.
    fn completed(&self, index: usize, o: &ParamOverlay) -> Result<Option<u32>, String> {
        let ty = &self.f.params[index].ty;
        let is_arg = is_const(ty) || o.dir.as_deref() == Some("in");
        if !o.version.unwrap_or(!is_arg) {
            return Ok(None);
        }
        match self.version_word(index, o) {
            None if o.version == Some(true) => Err("a struct without a version".to_owned()),
            found => Ok(found),
        }
    }

    /// A handle or address result.
    pub(crate) fn made(&self, ty: &Type) -> Option<ResultKind> {
        match self.accounted(ty) {
            Some(handle) => Some(ResultKind::NewHandle { handle }),
            None => pointee(self.lib.resolve(ty)).map(|_| ResultKind::Address),
        }
    }

    fn accounted(&self, ty: &Type) -> Option<String> {
        match ty {
            Type::Named { name } if self.overlay.library.handles.contains(name) => {
                Some(name.clone())
            }
            _ => None,
        }
    }

    /// A value passed unchanged.
    pub(crate) fn value_kind(&self, ty: &Type, o: &ParamOverlay) -> Result<ArgKind, String> {
        if let Some(handle) = self.accounted(ty) {
            return Ok(ArgKind::LiveHandle {
                handle,
                destroys: o.destroys,
            });
        }
        match integer(self.lib, ty) {
            Some(Builtin::Bool) => Ok(ArgKind::Bool),
            Some(builtin) => Ok(ArgKind::Int { builtin }),
            None if matches!(self.lib.resolve(ty), Type::Builtin { .. }) => {
                match self.lib.resolve(ty) {
                    Type::Builtin { builtin } => Ok(ArgKind::Float { builtin: *builtin }),
                    _ => Err(format!("no rule for {ty:?}")),
                }
            }
            None if pointee(self.lib.resolve(ty)).is_some() => Ok(ArgKind::Address),
            None => Err(format!("no rule for {ty:?}")),
        }
    }
}

#[cfg(test)]
mod tests;
