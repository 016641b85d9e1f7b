//! Request structs: fields that are arguments, fields that are results, and the version word at the start.

use crate::interface::overlay::ParamOverlay;
use crate::interface::raising::functions::{Work, arg, integer, result, simple_kind};
use crate::ir::{Builtin, Len, Record, Request, RequestField, ResultKind, Role, Store, Type};
use crate::naming::snake_case;

/// A result struct whose version word C reads.
pub(crate) fn completed_result(
    work: &mut Work<'_>,
    param: usize,
    result: usize,
    version: u32,
) -> Result<Role, String> {
    let store = Store::Result { result };
    let request = whole(work, param, store, version)?;
    Ok(work.request(request))
}

/// An argument struct whose version word the call writes.
pub(crate) fn completed_arg(
    work: &mut Work<'_>,
    param: usize,
    arg: usize,
    version: u32,
) -> Result<Role, String> {
    let store = Store::Arg { arg };
    let request = whole(work, param, store, version)?;
    Ok(work.request(request))
}

fn whole(work: &Work<'_>, param: usize, store: Store, version: u32) -> Result<Request, String> {
    let record = work.record_of(&work.f.params[param].ty);
    let record = record.ok_or("no struct")?;
    Ok(Request {
        param,
        record: record.name.clone(),
        size: record.size,
        store,
        version,
        inputs: Vec::new(),
        outputs: Vec::new(),
    })
}

/// A struct whose fields are arguments and results: `in` and `out` of the overlay. Without `out`, the struct is the
/// result.
pub(crate) fn decomposed_struct(
    work: &mut Work<'_>,
    param: usize,
    o: &ParamOverlay,
) -> Result<Role, String> {
    let ty = &work.f.params[param].ty;
    let record = work.record_of(ty).ok_or("no struct to take apart")?;
    let record = record.clone();
    let version = match o.version {
        Some(false) => 0,
        _ => work.version_word(param, o).unwrap_or(0),
    };
    let mut inputs = Vec::new();
    for text in &o.inputs {
        if let Some((name, kind)) = text.split_once(": ") {
            if work.python.hook.is_none() {
                return Err(format!("no implementation writes the field {name}"));
            }
            let made = arg(name, simple_kind(kind)?);
            work.python.args.push(made);
            continue;
        }
        let (name, python) = match text.split_once(" as ") {
            Some((name, python)) => (name, python.to_owned()),
            None => (text.as_str(), snake_case(text, &[])),
        };
        let field = field(&record, name)?;
        let kind = work.value_kind(&field.ty, o)?;
        inputs.push(RequestField {
            field: name.to_owned(),
            offset: field.offset,
            builtin: integer(work.lib, &field.ty).unwrap_or(Builtin::ULongLong),
            index: work.python.args.len(),
        });
        work.python.args.push(arg(&python, kind));
    }
    let mut outputs = Vec::new();
    let mut store = Store::Scratch;
    match &o.outputs {
        Some(names) => {
            for name in names {
                let field = field(&record, name)?;
                let kind = work.field_result(&field.ty)?;
                outputs.push(RequestField {
                    field: name.clone(),
                    offset: field.offset,
                    builtin: integer(work.lib, &field.ty).unwrap_or(Builtin::Char),
                    index: work.python.results.len(),
                });
                let made = result(&snake_case(name, &[]), kind);
                work.python.results.push(made);
            }
        }
        None => {
            let class = work.class_behind(param, o);
            let kind = match class {
                Some(class) => ResultKind::BufferStruct { class },
                None => return Err("a struct that is no class: say out".to_owned()),
            };
            let at = work.python.results.len();
            store = Store::Result { result: at };
            let made = result(&snake_case(&work.f.params[param].name, &[]), kind);
            work.python.results.push(made);
        }
    }
    Ok(work.request(Request {
        param,
        record: record.name,
        size: record.size,
        store,
        version,
        inputs,
        outputs,
    }))
}

fn field<'a>(record: &'a Record, name: &str) -> Result<&'a crate::ir::Field, String> {
    let found = record.fields.iter().find(|f| f.name == name);
    found.ok_or_else(|| format!("{} has no field {name}", record.name))
}

impl Work<'_> {
    /// The result kind of a request's field.
    fn field_result(&self, ty: &Type) -> Result<ResultKind, String> {
        let builtin = Builtin::Char;
        Ok(match ty {
            Type::Array { of, len } if **of == (Type::Builtin { builtin }) => ResultKind::Str {
                len: Len::Const { value: *len },
            },
            ty => match (self.made(ty), integer(self.lib, ty)) {
                (Some(made), _) => made,
                (None, Some(Builtin::Bool)) => ResultKind::Bool,
                (None, Some(builtin)) => ResultKind::Int { builtin },
                (None, None) => return Err(format!("no result of type {ty:?}")),
            },
        })
    }
}
