//! The kinds of arguments and results of functions that raise, from C types and the overlay.

use crate::interface::overlay::ParamOverlay;
use crate::interface::raising::functions::{
    Work, integer, is_char, is_const, is_integer, pointee, python_name,
};
use crate::interface::raising::structs::class_of;
use crate::ir::{ArgKind, Builtin, Element, Len, OutSize, ResultKind, StructRule, Type};

impl Work<'_> {
    pub(super) fn arg_kind(&self, index: usize, o: &ParamOverlay) -> Result<ArgKind, String> {
        let p = &self.f.params[index];
        match o.kind.as_deref() {
            Some("address") => return Ok(ArgKind::Address),
            Some("custom") => return Ok(ArgKind::VoidPtr),
            Some("text") => return Ok(ArgKind::Text),
            Some("kernel_params") => return Ok(ArgKind::KernelParams),
            Some("addresses") => {
                let count = self.count_beside(index, o)?;
                return Ok(ArgKind::Addresses { count });
            }
            Some("memory") => {
                let size = o.size.as_deref().map(|name| self.arg_named(name));
                return Ok(ArgKind::Memory {
                    size: size.transpose()?,
                });
            }
            Some("writable") => {
                let size = o.size.as_deref().map(|name| self.arg_named(name));
                return Ok(ArgKind::Writable {
                    size: size.transpose()?,
                });
            }
            Some("buffer") => return self.buffer(o, index),
            Some("buffer_out") => {
                let size = o.size.as_deref();
                return Ok(ArgKind::BufferOut {
                    size: match size {
                        None => OutSize::Unknown,
                        Some(name) => match (self.arg_named(name), self.lib.function(name)) {
                            (Ok(arg), _) => OutSize::Arg { arg },
                            (_, Some(f)) => OutSize::Call {
                                function: python_name(self.overlay, f),
                            },
                            _ => return Err(format!("size = {name:?} is unknown")),
                        },
                    },
                });
            }
            Some("by_address") | None => {}
            Some(other) => return Err(format!("kind = {other:?}")),
        }
        let Some(to) = pointee(&p.ty) else {
            // A struct by value.
            if let Type::Named { name } = self.lib.resolve(&p.ty)
                && let Some(record) = self.lib.record(name)
                && o.kind.as_deref() == Some("by_address")
            {
                return Ok(ArgKind::AddressOf { size: record.size });
            }
            if let (Type::Named { name }, Type::Named { name: record }) =
                (&p.ty, self.lib.resolve(&p.ty))
                && self.lib.record(record).is_some()
            {
                let class = class_of(self.lib, self.overlay, name);
                return Ok(ArgKind::BufferStruct {
                    class: class.ok_or("a struct by value that is no class")?,
                    rule: StructRule::Exact,
                });
            }
            return self.value_kind(&p.ty, o);
        };
        if pointee(to).is_some_and(is_char) {
            return Ok(ArgKind::StrList {
                count: self.count_beside(index, o)?,
            });
        }
        if is_char(to) || *to == Type::Void {
            let next = self.f.params.get(index + 1);
            let sized = next.is_some_and(|n| {
                let builtin = Builtin::SizeT;
                n.name == "size" && n.ty == Type::Builtin { builtin }
            });
            return match (sized && is_const(&p.ty), is_char(to)) {
                (true, _) => self.buffer(o, index),
                (false, true) if is_const(&p.ty) && self.overlay.library.bytes => Ok(ArgKind::Text),
                (false, true) if is_const(&p.ty) => Ok(ArgKind::Str),
                _ => Ok(ArgKind::Address),
            };
        }
        if self.record_of(&p.ty).is_some() {
            let rule = match o.rule.as_deref() {
                None => StructRule::Address,
                Some("exact") => StructRule::Exact,
                Some("plain") => StructRule::Plain,
                Some(other) => return Err(format!("rule = {other:?}")),
            };
            return Ok(match (self.class_behind(index, o), &o.count) {
                (Some(class), Some(count)) if rule == StructRule::Address => {
                    ArgKind::BufferStructs {
                        class,
                        count: self.arg_named(count)?,
                    }
                }
                (Some(class), _) if rule != StructRule::Plain => {
                    ArgKind::BufferStruct { class, rule }
                }
                _ => ArgKind::Address,
            });
        }
        // A number or handle by address.
        match to {
            to if o.dir.as_deref() == Some("in") => match self.value_kind(to, o)? {
                ArgKind::Address => Ok(ArgKind::HandleByPointer),
                kind => Ok(kind),
            },
            _ => Ok(ArgKind::Address),
        }
    }

    /// The Python enum of the parameter that selects an attribute.
    fn enum_of(&self, param: &str) -> Result<String, String> {
        let p = self.f.params.iter().find(|p| p.name == param);
        let c = match p.map(|p| self.lib.resolve(&p.ty)) {
            Some(Type::Named { name }) => name,
            _ => return Err(format!("{param} is not an enum")),
        };
        let named = |entry: &str| {
            let name = entry.to_owned();
            matches!(self.lib.resolve(&Type::Named { name }), Type::Named { name } if name == c)
        };
        (self.overlay.enums.iter())
            .find(|(_, e)| e.c.as_deref().is_some_and(named))
            .map(|(name, _)| name.clone())
            .ok_or_else(|| format!("{c} is no class"))
    }

    fn buffer(&self, o: &ParamOverlay, index: usize) -> Result<ArgKind, String> {
        let size = match (o.size.as_deref(), self.f.params.get(index + 1)) {
            (Some(name), _) => Some(self.arg_named(name)?),
            (None, Some(next)) => Some(self.arg_named(&next.name)?),
            (None, None) => None,
        };
        Ok(ArgKind::Buffer { size })
    }

    /// The length of a list: named by the overlay, else the integer before or after it.
    fn count_beside(&self, index: usize, o: &ParamOverlay) -> Result<Option<usize>, String> {
        if let Some(name) = &o.count {
            return self.arg_named(name).map(Some);
        }
        let counts = |p: &&crate::ir::Param| {
            is_integer(self.lib, &p.ty) && (p.name.starts_with("num") || p.name.ends_with("Count"))
        };
        let params = &self.f.params;
        let before = index.checked_sub(1).and_then(|i| params.get(i));
        let beside = (before.into_iter().chain(params.get(index + 1))).find(counts);
        beside.map(|p| self.arg_named(&p.name)).transpose()
    }

    pub(super) fn result_kind(&self, index: usize, o: &ParamOverlay) -> Result<ResultKind, String> {
        let ty = &self.f.params[index].ty;
        if o.kind.as_deref() == Some("custom") {
            return Ok(ResultKind::ByHand);
        }
        if o.kind.as_deref() == Some("attribute") {
            let by = o.by.as_deref().ok_or("needs by")?;
            let selector = self.enum_of(by)?;
            let by = self.arg_named(by)?;
            return Ok(ResultKind::Attribute { selector, by });
        }
        let to = pointee(ty).ok_or("a result that is not a pointer")?;
        if pointee(to).is_some_and(is_char) {
            return Ok(match o.kind.as_deref() {
                Some("str") => ResultKind::CText,
                _ => ResultKind::CString,
            });
        }
        let len = match (&o.count, &o.len) {
            (Some(_), _) => Some(Len::Counted),
            (None, Some(len)) => Some(self.len_of(len)?),
            (None, None) => None,
        };
        if is_char(to) {
            let len = len.ok_or("a text needs len")?;
            if self.overlay.library.bytes {
                let until_nul = false;
                return Ok(ResultKind::Bytes { len, until_nul });
            }
            return Ok(ResultKind::Str { len });
        }
        if self.record_of(ty).is_some() {
            let class = self.class_behind(index, o);
            let class = class.ok_or("a struct that is no class: add it to single or array of [types] in this overlay, or describe its members with kind = \"request\"")?;
            return Ok(match len {
                Some(len) => ResultKind::BufferStructs { class, len },
                None => ResultKind::BufferStruct { class },
            });
        }
        let address = pointee(self.lib.resolve(to)).is_some();
        if o.kind.as_deref() == Some("list") {
            let of = match self.lib.resolve(to) {
                Type::Builtin { builtin } if builtin.is_float() => {
                    Element::Float { builtin: *builtin }
                }
                Type::Builtin { builtin } => Element::Int { builtin: *builtin },
                other => return Err(format!("no list of {other:?}")),
            };
            let len = len.ok_or("a list needs len")?;
            return Ok(ResultKind::List { of, len });
        }
        if let Some(len) = len {
            let builtin = if address {
                Builtin::ULongLong
            } else {
                integer(self.lib, to).ok_or("no array of this")?
            };
            return Ok(ResultKind::Slice {
                builtin,
                address,
                len,
            });
        }
        if *to == Type::Void {
            // `void *` where C writes an address.
            return Ok(ResultKind::Address);
        }
        if let Some(made) = self.made(to) {
            return Ok(made);
        }
        match self.lib.resolve(to) {
            Type::Builtin { builtin } if builtin.is_float() => {
                Ok(ResultKind::Float { builtin: *builtin })
            }
            _ => match integer(self.lib, to) {
                Some(Builtin::Bool) => Ok(ResultKind::Bool),
                Some(builtin) => Ok(ResultKind::Int { builtin }),
                None => Err(format!("no result of type {to:?}")),
            },
        }
    }
}
