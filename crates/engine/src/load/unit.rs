//! The input of the loader.

/// A PTX module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unit {
    /// The name used in messages; empty for a single module.
    pub name: String,
    /// Its text.
    pub text: String,
    /// The limit of registers per thread with which it was compiled or linked.
    pub max_registers: Option<u32>,
}

impl Unit {
    /// A module without a limit of registers.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> Unit {
        Unit {
            name: name.into(),
            text: text.into(),
            max_registers: None,
        }
    }
}
