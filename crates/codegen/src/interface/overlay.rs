//! `api/overlay/*.toml`: facts that headers do not express.
//!
//! Library-wide rules (`[library]`, `[names]`, `[members]`, `[enums]`), then exceptions, one table per function or
//! class. `docs/codegen.md` explains every key.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::ir::{Cython, ErrorText, Style};

/// One overlay file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overlay {
    /// Whole-library facts.
    pub library: LibraryRules,
    /// The Cython module.
    #[serde(default)]
    pub cython: Cython,
    /// Python's names for parameter names that are keywords or built-ins of Python.
    #[serde(default)]
    pub names: BTreeMap<String, String>,
    /// Units of numbers, by suffix of a C name (`MHz`), `function.parameter` or `struct.member`; "" for none.
    #[serde(default)]
    pub units: BTreeMap<String, String>,
    /// Struct members.
    #[serde(default)]
    pub members: MemberRules,
    /// Enum classes that are copies of another enum's members: `CUstreamAttrID = "CUlaunchAttributeID"`.
    #[serde(default)]
    pub enum_copies: BTreeMap<String, String>,
    /// Functions without a C function, by Python name.
    #[serde(default)]
    pub custom: BTreeMap<String, HandWritten>,
    /// Exceptions per function, by C parameter.
    #[serde(default)]
    pub functions: BTreeMap<String, FunctionOverlay>,
    /// Exceptions per class, by member.
    #[serde(default)]
    pub classes: BTreeMap<String, BTreeMap<String, MemberOverlay>>,
    /// Classes without a C type: name and description.
    #[serde(default)]
    pub other_classes: BTreeMap<String, String>,
    /// Handle classes that derive from another library's of the same C type: `cudaStream_t = "driver.CUstream"`.
    #[serde(default)]
    pub bases: BTreeMap<String, String>,
    /// Struct classes whose `dim3` members (or own members) default to 1, as in C++.
    #[serde(default)]
    pub ones: Vec<String>,
    /// Dunders of classes that deviate from the rule for their kind.
    #[serde(default)]
    pub dunders: BTreeMap<String, Vec<String>>,
    /// Methods of classes beyond `getPtr`.
    #[serde(default)]
    pub methods: BTreeMap<String, Vec<String>>,
    /// Structs that Python exposes, for style `raises`.
    #[serde(default)]
    pub types: TypeRules,
    /// Enum classes by Python name, for style `raises`.
    #[serde(default)]
    pub enums: BTreeMap<String, EnumOverlay>,
    /// Constants by Python name, for style `raises`: the macro, or the value.
    #[serde(default)]
    pub constants: BTreeMap<String, toml::Value>,
    /// Exceptions, for style `raises`.
    #[serde(default)]
    pub exceptions: ExceptionRules,
    /// Aliases: the target in this module or (with dots) in another.
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
    #[serde(default)]
    pub status: String,
    /// Its success member.
    #[serde(default)]
    pub success: String,
    /// CUDA major of the Python interface.
    #[serde(default)]
    pub major: u32,
    /// Whether Python's names of functions have the version of the exported symbol: `mem_alloc_v2`.
    #[serde(default)]
    pub versioned: bool,
    /// Whether text and images go in as `bytes`, and text comes out as `bytes`.
    #[serde(default)]
    pub bytes: bool,
    /// `tuple` (the default) or `raises`.
    #[serde(default)]
    pub style: Style,
    /// Prefix removed from names of functions and classes, for style `raises`.
    #[serde(default)]
    pub prefix: String,
    /// Spellings that form one word in snake_case: `NvLink` becomes `nvlink`.
    #[serde(default)]
    pub words: Vec<String>,
    /// The exception class, for style `raises`.
    #[serde(default)]
    pub exception: String,
    /// Functions that may block for long and are interruptible with Ctrl-C.
    #[serde(default)]
    pub interruptible: Vec<String>,
    /// Typedefs of handles that the module tracks, because the library crashes on destroyed ones.
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
    /// Members (names or prefixes ending in `*`) that classes do not expose.
    #[serde(default)]
    pub hide: Vec<String>,
}

/// `[types]`
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TypeRules {
    /// The C prefix of struct names (some also end in `_t`).
    #[serde(default)]
    pub prefix: String,
    /// Base of the enums: `FastEnum`, the default, or `IntEnum`.
    #[serde(default)]
    pub enum_base: Option<String>,
    /// Python names of the classes of one struct.
    #[serde(default)]
    pub single: Vec<String>,
    /// Python names of the classes of struct arrays.
    #[serde(default)]
    pub array: Vec<String>,
    /// C names by Python name, if they deviate from the rule.
    #[serde(default)]
    pub c_names: BTreeMap<String, String>,
    /// Numbers in the class names of nameless struct types, by IR name.
    #[serde(default)]
    pub anonymous: BTreeMap<String, usize>,
    /// Names of NumPy types by class, if they deviate from the rule.
    #[serde(default)]
    pub dtypes: BTreeMap<String, String>,
    /// Whether classes of struct arrays show nested structs as their class instead of NumPy records.
    #[serde(default)]
    pub views: bool,
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
    /// The Python name does not correspond to the C name; the C enum is not recorded.
    #[serde(default)]
    pub unrelated: bool,
    /// Prefix removed from enumerator names.
    #[serde(default)]
    pub strip: String,
    /// Prefix of the macros.
    pub macros: Option<String>,
    /// C writes `CamelCase`, Python `UPPER_CASE`.
    #[serde(default)]
    pub upper: bool,
    /// Every member has an alias: the C name without this prefix.
    pub aliases: Option<String>,
    /// Names, after removal of the prefix, that are not members.
    #[serde(default)]
    pub leave_out: Vec<String>,
    /// Renamed members, by their name under the rule.
    #[serde(default)]
    pub rename: BTreeMap<String, String>,
    /// Additional members: a macro, or a value.
    #[serde(default)]
    pub extra: BTreeMap<String, toml::Value>,
    /// Aliases of members.
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
    /// Source of the message text.
    #[serde(default)]
    pub text: ErrorText,
    /// Whether every status has its own class.
    #[serde(default)]
    pub by_status: bool,
    /// Renamed classes, whose rule name would shadow a built-in one; the rule name becomes an alias.
    #[serde(default)]
    pub rename: BTreeMap<String, String>,
    /// Whether renamed classes have no alias.
    #[serde(default)]
    pub no_alias: bool,
}

/// A function without a C function.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HandWritten {
    /// Its hook.
    pub hook: String,
    /// Arguments, `name: kind` each.
    #[serde(default)]
    pub args: Vec<String>,
    /// Type of the result; none: `None`.
    pub returns: Option<String>,
    /// For style `tuple`: the documented name of the result, which then follows a status. Without it, the result is
    /// returned alone.
    pub result: Option<String>,
}

/// A function's exceptions.
#[derive(Debug, Default, Deserialize)]
pub struct FunctionOverlay {
    /// Its hook, as a path in `crates/python/src/bindings/custom`.
    pub hook: Option<String>,
    /// Types of additional results of a hand-written implementation.
    #[serde(default)]
    pub gives: Vec<String>,
    /// Python name, if it deviates from the rule.
    pub python: Option<String>,
    /// Meaning of the C return value for style `raises`, if the type is ambiguous: `value`, `void`.
    pub returns: Option<String>,
    /// Parameters by C name.
    #[serde(flatten)]
    pub params: BTreeMap<String, ParamOverlay>,
}

/// A parameter's exceptions. Omitted keys follow the rules.
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
    /// Documented type of the result.
    pub result_type: Option<String>,
    /// For buffers: the C parameter with the number of bytes; for `buffer_out` also the C function that returns it.
    pub size: Option<String>,
    /// For `request`: fields that are arguments, `field` or `field as name`; with a hand-written implementation also
    /// `name: kind`, which it makes a field of.
    #[serde(default, rename = "in")]
    pub inputs: Vec<String>,
    /// For `request`: fields that are results; by default the struct is the result.
    #[serde(rename = "out")]
    pub outputs: Option<Vec<String>>,
    /// Whether the call fills in the struct's version word (default: for results, not for arguments).
    pub version: Option<bool>,
    /// A value passed to C and hidden from Python: a number, a macro, `sizeof` a parameter's struct.
    pub value: Option<toml::Value>,
    /// C struct that replaces the prototype's.
    pub class: Option<String>,
    /// Whether the call destroys the handle.
    #[serde(default)]
    pub destroys: bool,
    /// For structs: `exact` (an instance, no address) or `plain` (an address only).
    pub rule: Option<String>,
}

/// A member's exceptions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberOverlay {
    /// `list`, `pointer`, `void`, `int`, `kernel_params`, `chars`, `hidden`; `shown` overrides `MemberRules::hide`.
    pub kind: Option<String>,
    /// For lists: the member with the number of elements.
    pub count: Option<String>,
    /// False for read-only members.
    pub settable: Option<bool>,
    /// Python name, if it deviates from the rule.
    pub name: Option<String>,
}

impl Overlay {
    /// Reads a file.
    ///
    /// # Errors
    ///
    /// The file is missing, is not TOML, or has an unknown key.
    pub fn load(path: &Path) -> Result<Overlay, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        toml::from_str(&text).map_err(|e| format!("{}: {e}", path.display()))
    }
}

impl Overlay {
    /// Takes over what holds for every Python module of a library: its status, which calls keep the GIL, units.
    pub fn take_facts(&mut self, first: &Overlay) {
        let (own, first_rules) = (&mut self.library, &first.library);
        own.status.clone_from(&first_rules.status);
        own.success.clone_from(&first_rules.success);
        own.major = first_rules.major;
        own.keep_gil.clone_from(&first_rules.keep_gil);
        self.units.clone_from(&first.units);
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
    fn function_tables_hold_parameters_and_keys() {
        let text = r#"
            [library]
            python = "m"
            status = "S"
            success = "OK"
            major = 13
            [functions.f]
            hook = "custom"
            numEdges = { dir = "inout", default = "0" }
        "#;
        let o: Overlay = toml::from_str(text).unwrap();
        let f = &o.functions["f"];
        assert_eq!(f.hook.as_deref(), Some("custom"));
        assert_eq!(f.params["numEdges"].default.as_deref(), Some("0"));
        assert!(toml::from_str::<Overlay>(&text.replace("default", "defualt")).is_err());
    }
}
