//! `api/overlay/*.toml`: what a header cannot say.
//!
//! Whole-library rules first (`[library]`, `[names]`, `[members]`, `[enums]`), then exceptions, a table a function or a
//! class. `docs/codegen.md` explains every key.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::ir::{ErrorText, Style};

/// One overlay file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// Whole-library facts.
    pub library: LibraryRules,
    /// Python's names for parameter names that are keywords or built-ins of Python.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Units of numbers: the end of a C name (`MHz`), or `function.parameter`, `struct.member`; "" for none.
    #[serde(default)]
    pub units: BTreeMap<String, String>,
    /// Struct members.
    #[serde(default)]
    pub members: MemberRules,
    /// Enum classes that are copies of another enum's members: `CUstreamAttrID = "CUlaunchAttributeID"`.
    #[serde(default)]
    pub enum_copies: BTreeMap<String, String>,
    /// Functions that no C function stands behind, by their Python names.
    #[serde(default)]
    pub custom: BTreeMap<String, HandWritten>,
    /// Exceptions, a table a function, keyed by C parameter.
    #[serde(default)]
    pub functions: BTreeMap<String, FunctionOverlay>,
    /// Exceptions, a table a class, keyed by member.
    #[serde(default)]
    pub classes: BTreeMap<String, BTreeMap<String, MemberOverlay>>,
    /// Classes that no C type stands behind: name to what they are.
    #[serde(default)]
    pub other_classes: BTreeMap<String, String>,
    /// Handle classes that derive from another library's of the same C type: `cudaStream_t = "driver.CUstream"`.
    #[serde(default)]
    pub bases: BTreeMap<String, String>,
    /// Struct classes whose members of type `dim3` (or whose own members) start as 1, as C++ has them.
    #[serde(default)]
    pub ones: Vec<String>,
    /// Dunders of classes where the rule for their kind does not hold.
    #[serde(default)]
    pub dunders: BTreeMap<String, Vec<String>>,
    /// Methods of classes beyond `getPtr`.
    #[serde(default)]
    pub methods: BTreeMap<String, Vec<String>>,
    /// Structs that Python shows, where the style is `raises`.
    #[serde(default)]
    pub types: TypeRules,
    /// Enum classes by Python name, where the style is `raises`.
    #[serde(default)]
    pub enums: BTreeMap<String, EnumOverlay>,
    /// Constants by Python name, where the style is `raises`: the macro, or the value.
    #[serde(default)]
    pub constants: BTreeMap<String, toml::Value>,
    /// Exceptions, where the style is `raises`.
    #[serde(default)]
    pub exceptions: ExceptionRules,
    /// Further names: what they stand for, in this module or (with dots) in another.
    #[serde(default)]
    pub aliases: BTreeMap<String, String>,
}

/// `[library]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LibraryRules {
    /// Python module.
    pub python: String,
    /// Status enum.
    pub status: String,
    /// Its success member.
    pub success: String,
    /// CUDA major whose interface Python shows.
    pub major: u32,
    /// `tuple` (the default) or `raises`.
    #[serde(default)]
    pub style: Style,
    /// Taken off names of functions and classes, where the style is `raises`.
    #[serde(default)]
    pub prefix: String,
    /// Spellings that are one word each in snake_case: `NvLink` becomes `nvlink`.
    #[serde(default)]
    pub words: Vec<String>,
    /// The class of exceptions, where the style is `raises`.
    #[serde(default)]
    pub exception: String,
    /// Functions that may wait for long, and that Ctrl-C must end.
    #[serde(default)]
    pub interruptible: Vec<String>,
    /// Typedefs of handles that the module keeps account of, because the library crashes on dead ones.
    #[serde(default)]
    pub handles: Vec<String>,
    /// Functions (names or prefixes ending in `*`) that Python does not expose.
    #[serde(default)]
    pub hide_functions: Vec<String>,
    /// Enums, typedefs, records and constants that Python does not expose.
    #[serde(default)]
    pub hide_types: Vec<String>,
    /// Functions that keep the GIL.
    #[serde(default)]
    pub keep_gil: Vec<String>,
    /// Handle classes whose runtime-API counterparts are documented as accepted: `CUstream = "cudaStream_t"`.
    #[serde(default)]
    pub runtime_names: BTreeMap<String, String>,
}

/// `[members]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberRules {
    /// Members (names or prefixes ending in `*`) that classes do not show.
    #[serde(default)]
    pub hide: Vec<String>,
}

/// `[types]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeRules {
    /// What C puts before the Python name of a struct (and `_t` after some).
    #[serde(default)]
    pub prefix: String,
    /// Base of the enums: `FastEnum`, the default, or `IntEnum`.
    #[serde(default)]
    pub enum_base: Option<String>,
    /// Python names of the structs whose class holds one.
    #[serde(default)]
    pub single: Vec<String>,
    /// Python names of the structs whose class holds any number.
    #[serde(default)]
    pub array: Vec<String>,
    /// C names by Python name, where the rule gives another.
    #[serde(default)]
    pub c_names: BTreeMap<String, String>,
    /// Nameless structs that are members with a name, by IR name: the number in the class's name.
    #[serde(default)]
    pub anonymous: BTreeMap<String, usize>,
    /// Names of NumPy types by class, where the rule gives another.
    #[serde(default)]
    pub dtypes: BTreeMap<String, String>,
    /// Members whose Python name gets an underscore at the end.
    #[serde(default)]
    pub underscored: Vec<String>,
}

/// An enum class: the members of a C enum, or macros with a prefix.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnumOverlay {
    /// C enum.
    pub c: Option<String>,
    /// Its name is not C's name of the same thing: nothing tells of the C enum.
    #[serde(default)]
    pub unrelated: bool,
    /// Taken off the names of the enumerators; those without it keep theirs.
    #[serde(default)]
    pub strip: String,
    /// What the names of the macros begin with.
    pub macros: Option<String>,
    /// C writes `CamelCase`, Python `UPPER_CASE`.
    #[serde(default)]
    pub upper: bool,
    /// Every member has a second name: C's without this.
    pub aliases: Option<String>,
    /// Names, after taking off what is taken off, that are no members.
    #[serde(default)]
    pub leave_out: Vec<String>,
    /// Members that have another name than the rule gives, by the rule's.
    #[serde(default)]
    pub rename: BTreeMap<String, String>,
    /// Further members: a macro, or a value.
    #[serde(default)]
    pub extra: BTreeMap<String, toml::Value>,
    /// Further names of members.
    #[serde(default)]
    pub also: BTreeMap<String, String>,
}

/// `[exceptions]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExceptionRules {
    /// Python name of the status enum.
    #[serde(default)]
    pub status: String,
    /// Where the text comes from.
    #[serde(default)]
    pub text: ErrorText,
    /// Whether every failure has a class of its own.
    #[serde(default)]
    pub by_status: bool,
    /// Classes whose name would hide a built-in one, and theirs; the name of the rule becomes an alias.
    #[serde(default)]
    pub rename: BTreeMap<String, String>,
}

/// A function that no C function stands behind.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandWritten {
    /// Its implementation.
    pub special: String,
    /// Arguments, `name: kind` each.
    #[serde(default)]
    pub args: Vec<String>,
    /// Type of the result; none: `None`.
    pub returns: Option<String>,
    /// Where the style is `tuple`: the documented name of the result, which then comes after a status. Without it the
    /// result comes alone.
    pub result: Option<String>,
}

/// A function's exceptions.
#[derive(Debug, Default, Deserialize)]
pub struct FunctionOverlay {
    /// Hand-written implementation.
    pub special: Option<String>,
    /// Types of what a hand-written implementation returns, beyond what the parameters tell.
    #[serde(default)]
    pub gives: Vec<String>,
    /// Python name, where it is not the rule's.
    pub python: Option<String>,
    /// What C returns where the style is `raises` and the type does not tell: `value`, `void`.
    pub returns: Option<String>,
    /// Parameters by C name.
    #[serde(flatten)]
    pub params: BTreeMap<String, ParamOverlay>,
}

/// A parameter's exceptions. Keys left out follow the rules.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ParamOverlay {
    /// `in`, `out`, `inout` or `null`.
    pub dir: Option<String>,
    /// `list`, `struct`, `handle`, `bytes`, `cstring`, `void`, `attribute`, `attributes`, `options`, `kernel_params`,
    /// `void_list`, `int`, `float`.
    pub kind: Option<String>,
    /// For lists, option values and attributes: the C parameter with the number of elements; empty for none.
    pub count: Option<String>,
    /// For `bytes` results and lists: a C parameter's name or a number.
    pub len: Option<toml::Value>,
    /// For attributes and option values: the C parameter that selects.
    pub by: Option<String>,
    /// For `attributes`: the C parameter with the sizes.
    pub sizes: Option<String>,
    /// Python name of the argument or result.
    pub name: Option<String>,
    /// Default value, as Python source.
    pub default: Option<String>,
    /// Whether None is accepted.
    pub nullable: Option<bool>,
    /// Type shown for the result.
    pub result_type: Option<String>,
    /// For buffers: the C parameter with the number of bytes; for `buffer_out` also the C function that tells it.
    pub size: Option<String>,
    /// For `request`: fields that are arguments, `field` or `field as name`; with a hand-written implementation also
    /// `name: kind`, which it makes a field of.
    #[serde(default, rename = "in")]
    pub inputs: Vec<String>,
    /// For `request`: fields that come back; without it the struct does.
    #[serde(rename = "out")]
    pub outputs: Option<Vec<String>>,
    /// Whether the call fills in the struct's version word (structs that come back: yes; arguments: no).
    pub version: Option<bool>,
    /// What C is given, and Python does not see: a number, a macro, `sizeof` a parameter's struct.
    pub value: Option<toml::Value>,
    /// C struct in place of the one the prototype has.
    pub class: Option<String>,
    /// Whether the call ends the handle.
    #[serde(default)]
    pub ends: bool,
    /// For structs: `exact` (an instance, no address) or `plain` (an address only).
    pub rule: Option<String>,
}

/// A member's exceptions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberOverlay {
    /// `list`, `pointer`, `void`, `int`, `kernel_params`, `chars`, `hidden`.
    pub kind: Option<String>,
    /// For lists: the member with the number of elements.
    pub count: Option<String>,
    /// False for read-only members.
    pub settable: Option<bool>,
    /// Python name, where the rule gives another.
    pub name: Option<String>,
}

impl Overlay {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The file is missing, is no TOML, or has a key that nothing knows.
    pub fn load(path: &Path) -> Result<Overlay, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }
}

/// Whether `name` is in a list of names and prefixes ending in `*`.
pub fn listed(list: &[String], name: &str) -> bool {
    list.iter().any(|entry| match entry.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => entry == name,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_prefixes() {
        let list = ["reserved*".to_owned(), "pad".to_owned()];
        assert!(listed(&list, "reserved0"));
        assert!(listed(&list, "pad"));
        assert!(!listed(&list, "padding"));
    }

    #[test]
    fn functions_hold_parameters_beside_their_own_keys() {
        let text = r#"
            [library]
            python = "m"
            status = "S"
            success = "OK"
            major = 13
            [functions.f]
            special = "custom"
            numEdges = { dir = "inout", default = "0" }
        "#;
        let o: Overlay = toml::from_str(text).unwrap();
        let f = &o.functions["f"];
        assert_eq!(f.special.as_deref(), Some("custom"));
        assert_eq!(f.params["numEdges"].default.as_deref(), Some("0"));
        assert!(toml::from_str::<Overlay>(&text.replace("default", "defualt")).is_err());
    }
}
