//! Module-level variables in memory.

use std::sync::Arc;

use cupyrite_ptx::ir::{InitElem, Module, Space, VarId, Variable};

use super::error::{LoadError, LoadErrorKind, unresolved};
use super::kernel_addresses::KernelAddresses;
use crate::address_windows::function_address;
use crate::build::{PaddedVariable, PlacedVariable};
use crate::memory::{AddressSpace, MemoryError, RegionKind};

/// Memory of a module's variables. The image and its kernels share it; the last one frees it.
pub struct VariableMemory {
    /// The address space.
    pub space: Arc<AddressSpace>,
    /// Allocations.
    pub bases: Vec<u64>,
    /// The memory of the image whose managed variables these include.
    #[expect(dead_code, reason = "keeps that memory alive")]
    pub shared: Option<Arc<VariableMemory>>,
    /// Addresses of the kernels that code or variables name.
    pub kernels: Arc<KernelAddresses>,
}

impl Drop for VariableMemory {
    fn drop(&mut self) {
        for &b in &self.bases {
            // The base was allocated from `space` and is freed only here.
            let _ = self.space.free(b);
        }
    }
}

/// Allocates and initializes the variables of a module.
pub struct Placer<'a> {
    /// The module.
    pub module: &'a Module,
    /// The address space.
    pub space: &'a AddressSpace,
    /// Allocated memory.
    pub memory: VariableMemory,
    /// Base and size of the variables in constant memory.
    pub const_ranges: Vec<(u64, u64)>,
    /// The variables with padding.
    pub padded: Vec<PaddedVariable>,
    /// The variables, in order of allocation.
    pub variables: Vec<PlacedVariable>,
}

/// Bytes of a variable, and of the padding after it.
fn extent(v: &Variable) -> (u64, u64) {
    let size = v.size().max(1);
    (size, PaddedVariable::padding(size, v.align))
}

impl Placer<'_> {
    /// Allocates a variable and zeroes it.
    pub fn allocate(&mut self, v: &Variable) -> Result<u64, LoadError> {
        let kind = match v.space {
            Space::Const => RegionKind::Const,
            _ if v.managed => RegionKind::Managed,
            _ => RegionKind::Global,
        };
        let (size, padding) = extent(v);
        let base = self
            .space
            .alloc(size, u64::from(v.align.max(1)).next_power_of_two(), kind)
            .map_err(|e| {
                let kind = match e {
                    MemoryError::OutOfMemory => LoadErrorKind::OutOfMemory,
                    _ => LoadErrorKind::InvalidPtx,
                };
                LoadError {
                    kind,
                    line: v.pos.line,
                    column: v.pos.column,
                    message: format!(
                        "ptx line {}: cannot allocate {size} bytes for `{}`: {e}",
                        v.pos.line, v.name
                    ),
                }
            })?;
        self.memory.bases.push(base);
        self.record(v, base);
        if kind == RegionKind::Const {
            self.const_ranges.push((base, size));
        }
        // Large allocations consist of new pages, which are zero; writing them would only commit memory.
        if size <= 1 << 20 {
            // SAFETY: the allocation has this size, and no other thread knows its address. Its memory ends at a multiple of
            // `PaddedVariable::LARGEST`, so that it contains the padding.
            unsafe { std::ptr::write_bytes(base as *mut u8, 0, (size + padding) as usize) };
        }
        Ok(base)
    }

    /// Records a variable whose memory is allocated.
    pub fn record(&mut self, v: &Variable, base: u64) {
        self.variables.push(PlacedVariable {
            name: v.name.clone(),
            base,
        });
        let (size, padding) = extent(v);
        if padding > 0 {
            self.padded.push(PaddedVariable {
                base,
                size,
                padding,
            });
        }
    }

    /// Writes the initial contents of a variable. `at` resolves the variables that they refer to.
    pub fn initialize(
        &self,
        v: &Variable,
        base: u64,
        at: impl Fn(VarId) -> Option<u64>,
    ) -> Result<(), LoadError> {
        let step = u64::from(v.ty.bytes().max(1));
        let size = v.size();
        let mut offset = 0u64;
        for e in &v.init {
            let (value, width) = match e {
                InitElem::Bits(b) => (*b, step),
                // `allocate` has zeroed the variable.
                InitElem::Zeros(n) => {
                    offset = offset.saturating_add(step.saturating_mul(*n));
                    continue;
                }
                InitElem::Var {
                    var, offset, byte, ..
                } => {
                    let Some(a) = at(*var) else {
                        return Err(self.unknown(*var, v.pos.line));
                    };
                    let a = a.wrapping_add(*offset as u64);
                    match byte {
                        Some(n) => (a >> (8 * u32::from(*n & 7)) & 0xff, step),
                        None => (a, step.min(8)),
                    }
                }
                InitElem::Func { func, byte } => {
                    let defined = self
                        .module
                        .functions
                        .get(func.0 as usize)
                        .is_some_and(|f| f.body.is_some());
                    if !defined {
                        let name = self
                            .module
                            .functions
                            .get(func.0 as usize)
                            .map_or("?", |f| f.name.as_str());
                        return Err(unresolved(name, v.pos.line));
                    }
                    let a = self.memory.kernels.of(func.0);
                    let a = a.unwrap_or_else(|| function_address(func.0));
                    match byte {
                        Some(n) => (a >> (8 * u32::from(*n & 7)) & 0xff, step),
                        None => (a, step.min(8)),
                    }
                }
            };
            if offset.saturating_add(width) > size {
                break;
            }
            let bytes = value.to_le_bytes();
            // SAFETY: `offset + width` lies in the variable, whose allocation has its size.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    bytes.as_ptr(),
                    (base + offset) as *mut u8,
                    width.min(8) as usize,
                );
            }
            offset += step;
        }
        Ok(())
    }

    fn unknown(&self, v: VarId, line: u32) -> LoadError {
        let name = match v {
            VarId::Module(n) => self
                .module
                .globals
                .get(n as usize)
                .map_or("?", |g| g.name.as_str()),
            _ => "?",
        };
        unresolved(name, line)
    }
}
