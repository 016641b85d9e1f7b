//! The environment variables that the engine reads, except those of [dumps](crate::dump). An empty variable counts as unset.

use std::env;
use std::fmt;

use crate::cpu_features;

/// The message about a variable with an invalid value, or about an unknown one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidSetting(String);

impl InvalidSetting {
    /// An error with this message.
    pub fn new(message: String) -> InvalidSetting {
        InvalidSetting(message)
    }
}

impl fmt::Display for InvalidSetting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Reads a variable with `parse`; `None` if it is unset or empty.
///
/// # Errors
/// `parse` returns `None`: the message says what was `expected`.
pub fn read<T>(
    variable: &'static str,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, InvalidSetting> {
    let value = env::var_os(variable).unwrap_or_default();
    let value = value.to_string_lossy();
    if value.is_empty() {
        return Ok(None);
    }
    let invalid = || InvalidSetting(format!("{variable}='{value}': expected {expected}"));
    parse(value.trim()).map(Some).ok_or_else(invalid)
}

/// `CUPYRITE_CPU_THREADS`: number of threads that run blocks.
///
/// # Errors
/// The value is not an integer from 1.
pub fn threads() -> Result<Option<usize>, InvalidSetting> {
    read("CUPYRITE_CPU_THREADS", "an integer from 1", |text| {
        text.parse().ok().filter(|&n| n > 0)
    })
}

/// `CUPYRITE_CPU_MEMORY`: memory of a device in bytes.
///
/// # Errors
/// The value is not a number of bytes.
pub fn memory() -> Result<Option<u64>, InvalidSetting> {
    read("CUPYRITE_CPU_MEMORY", "a number of bytes", |text| {
        text.parse().ok().filter(|&n| n > 0)
    })
}

/// An instruction set for machine code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Instructions {
    /// AVX2, FMA, and the other features of x86-64-v3.
    Avx2,
    /// AVX-512 with its extensions for bytes, doublewords and shorter vectors.
    Avx512,
}

/// How kernels are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TierSetting {
    /// By the interpreter.
    Interpreter,
    /// By machine code from the first launch on.
    Compiler,
    /// By the interpreter first, and by machine code if they run long.
    Automatic,
}

impl Instructions {
    /// Whether this machine has them.
    pub fn are_available(self) -> bool {
        match self {
            Self::Avx2 => cpu_features::has_x86_64_v3(),
            Self::Avx512 => cpu_features::has_avx512(),
        }
    }
}

/// `CUPYRITE_CPU_INSTRUCTIONS`: the instruction set of machine code.
///
/// # Errors
/// The value is not `avx2` or `avx512`, or this machine has not got it.
pub fn instructions() -> Result<Option<Instructions>, InvalidSetting> {
    read(
        "CUPYRITE_CPU_INSTRUCTIONS",
        "`avx2` or `avx512`, and a processor that has it",
        |text| {
            let wanted = match text {
                "avx2" => Instructions::Avx2,
                "avx512" => Instructions::Avx512,
                _ => return None,
            };
            wanted.are_available().then_some(wanted)
        },
    )
}

/// `CUPYRITE_CPU_TIER`: how kernels are executed.
///
/// # Errors
/// The value is not `1`, `2` or `auto`.
pub fn tier() -> Result<Option<TierSetting>, InvalidSetting> {
    read(
        "CUPYRITE_CPU_TIER",
        "`1`, `2` or `auto`",
        |text| match text {
            "1" => Some(TierSetting::Interpreter),
            "2" => Some(TierSetting::Compiler),
            "auto" => Some(TierSetting::Automatic),
            _ => None,
        },
    )
}
