//! Prototypes as the headers spell them, for the Cython declarations: [`Type`](super::Type) has neither the qualifiers of
//! parameters nor the typedefs of `stdint.h`.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::LibraryApi;

/// A type in a prototype, in two parts: `char` and `const **` for `const char **`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spelled {
    /// A built-in type, typedef or tag, without `struct`, `union` or `enum`.
    pub name: String,
    /// Qualifiers and pointers after the name, outermost last: `*`, `const *`, `*const `.
    pub suffix: String,
}

/// The declaration of a type's name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TypeName {
    /// The name as C programs write it: `CUresult`, or `enum cudaMemcpyKind` if only the tag has this name.
    pub c_name: String,
    /// The header.
    pub header: String,
}

/// The Cython module of a library: `[cython]` of the overlay. Types are in C, qualifiers after the name: `char const *`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Cython {
    /// Headers that the declarations refer to. The declarations define the types of any other header themselves; without
    /// headers, all types.
    pub headers: Vec<String>,
    /// The status of a function whose library or symbol is missing: a member of the status enum.
    pub missing: String,
    /// The value of `missing`, if the header does not declare the member.
    pub missing_value: Option<i64>,
    /// Functions of the module that the Python module lacks.
    pub also: Vec<String>,
    /// Functions of the module that the library does not have: the result, then the parameters.
    pub own: BTreeMap<String, Vec<String>>,
    /// Parameters with another type than the header's, by function and index.
    pub types: BTreeMap<String, BTreeMap<String, String>>,
}

impl Spelled {
    /// The type of a text of the overlay.
    pub fn parse(text: &str) -> Spelled {
        let at = [" *", " const"].iter().filter_map(|s| text.find(s)).min();
        let (name, suffix) = text.split_at(at.unwrap_or(text.len()));
        Spelled {
            name: name.to_owned(),
            suffix: suffix.trim_start().to_owned(),
        }
    }
}

/// A function of a Cython module.
#[derive(Clone, Debug)]
pub struct CythonFunction {
    /// Its name.
    pub name: String,
    /// The function of the IR that it calls; `None` for a hand-written one.
    pub function: Option<String>,
    /// The result, then the parameters.
    pub prototype: Vec<Spelled>,
}

impl LibraryApi {
    /// The functions of the Cython module, sorted by name; none without one.
    ///
    /// # Errors
    ///
    /// The overlay names a function or parameter that does not exist.
    pub fn cython_functions(&self) -> Result<Vec<CythonFunction>, String> {
        let rules = &self.cython;
        if rules.missing.is_empty() {
            return Ok(Vec::new());
        }
        let bound = self.functions.iter().filter(|f| f.python.is_some());
        let names: BTreeSet<&str> = bound
            .map(|f| f.name.as_str())
            .chain(rules.also.iter().map(String::as_str))
            .collect();
        let mut out = Vec::new();
        for name in names {
            // An older version has another name in the IR: `cuCtxCreate_v2` is the symbol of `cuCtxCreate_cuda12`.
            let older = || self.functions.iter().find(|f| f.symbol == name);
            let function = self.function(name);
            let symbol = function.map_or(name, |f| &f.symbol);
            let function = function
                .or_else(older)
                .ok_or_else(|| format!("[cython]: {} has no function {name}", self.name))?;
            let prototype = self.prototypes.get(symbol).ok_or_else(|| {
                format!("[cython]: the headers of {} declare no {name}", self.name)
            })?;
            out.push(CythonFunction {
                name: name.to_owned(),
                function: Some(function.name.clone()),
                prototype: prototype.clone(),
            });
        }
        for (name, types) in &rules.own {
            out.push(CythonFunction {
                name: name.clone(),
                function: None,
                prototype: types.iter().map(|t| Spelled::parse(t)).collect(),
            });
        }
        for (name, types) in &rules.types {
            let function = out.iter_mut().find(|f| f.name == *name);
            let function = function.ok_or_else(|| format!("[cython.types]: no function {name}"))?;
            for (index, ty) in types {
                // The result precedes the parameters.
                let at = index.parse::<usize>().map_or(usize::MAX, |i| i + 1);
                let place = function.prototype.get_mut(at);
                let place = place
                    .ok_or_else(|| format!("[cython.types]: {name} has no parameter {index}"))?;
                *place = Spelled::parse(ty);
            }
        }
        out.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(out)
    }

    /// Whether the Cython module defines this type itself, under a name of its own, because none of the headers that it
    /// refers to declares it: a type of another header, or a macro that stands for a type.
    pub fn cython_defines(&self, name: &str) -> bool {
        match self.type_names.get(name) {
            _ if self.cython.headers.is_empty() => false,
            Some(declared) => !self.cython.headers.contains(&declared.header),
            None => self.typedef(name).is_some(),
        }
    }
}
