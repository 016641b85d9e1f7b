//! Layout of stack frames, kernel parameters and shared memory.

use std::collections::{HashMap, HashSet};

use cupyrite_ptx::ir::{Body, FuncId, Function, Module, Operand, Space, Special, VarId, Variable};

use super::placed::{CompileError, Frame};
use crate::limits::{MAX_LOCAL, MAX_SHARED, RESERVED_SHARED};

/// Reserves `size` aligned bytes at `end` and returns their offset.
fn reserve(end: &mut u64, size: u64, align: u32) -> u64 {
    let at = end.next_multiple_of(u64::from(align.max(1)));
    *end = at.saturating_add(size);
    at
}

/// The frame of a function and the alignment that it needs.
pub fn frame(f: &Function, body: &Body) -> Result<(Frame, u32), CompileError> {
    let mut end = 0u64;
    let mut align = 16;
    let mut put = |v: &Variable, end: &mut u64| {
        align = align.max(v.align);
        reserve(end, v.size(), v.align) as u32
    };
    let returns = f.returns.iter().map(|v| put(v, &mut end)).collect();
    let params = if f.is_entry {
        Vec::new()
    } else {
        f.params.iter().map(|v| put(v, &mut end)).collect()
    };
    let vars = body
        .vars
        .iter()
        .map(|v| match v.space {
            Space::Local | Space::Param => put(v, &mut end),
            _ => 0,
        })
        .collect();
    check_local(f, end)?;
    let size = end as u32;
    Ok((
        Frame {
            returns,
            params,
            vars,
            size,
        },
        align,
    ))
}

/// Bytes that the frame of a function has on a GPU at least: 24, or its local variables and 8. Measured on an H100 with
/// recursion up to the limit: 24 without local variables, 257 to 272 with 256 bytes of them.
pub fn gpu_frame(body: &Body) -> u32 {
    let mut end = 8u64;
    for v in body.vars.iter().filter(|v| v.space == Space::Local) {
        end = end.saturating_add(v.size());
    }
    u32::try_from(end.max(24)).unwrap_or(u32::MAX)
}

/// Refuses a function that needs more local memory than a thread can have.
pub fn check_local(f: &Function, bytes: u64) -> Result<(), CompileError> {
    if bytes > u64::from(MAX_LOCAL) {
        return Err(CompileError {
            line: f.pos.line,
            message: format!(
                "`{}` needs {bytes} bytes of local memory per thread; the limit is {MAX_LOCAL}",
                f.name
            ),
        });
    }
    Ok(())
}

/// Offsets of a kernel's parameters, and their total size.
pub fn kernel_params(f: &Function) -> (Vec<u32>, u32) {
    let mut end = 0u64;
    let offsets = f
        .params
        .iter()
        .map(|v| reserve(&mut end, v.size(), v.align) as u32)
        .collect();
    (offsets, u32::try_from(end).unwrap_or(u32::MAX))
}

/// Layout of a block's shared memory.
pub struct SharedLayout {
    /// Offset of each variable, by function (`None` for module level) and index.
    pub offsets: HashMap<(Option<u32>, u32), u32>,
    /// Size of static shared memory.
    pub bytes: u32,
    /// Offset of dynamic shared memory.
    pub dynamic_at: u32,
    /// Bytes reserved at the start.
    pub reserved: u32,
}

/// Lays out the shared variables that the functions of a kernel declare or name. They follow the region that is reserved
/// for system software, as on GPUs of compute capability 9.0, if the kernel reads where that is.
pub fn shared(m: &Module, functions: &[FuncId]) -> Result<SharedLayout, CompileError> {
    let mut variables: Vec<((Option<u32>, u32), &Variable)> = Vec::new();
    let mut known = HashSet::new();
    let mut reserved = 0;
    for f in functions {
        let Some(body) = &m.functions[f.0 as usize].body else {
            continue;
        };
        for (n, v) in body.vars.iter().enumerate() {
            if v.space == Space::Shared {
                variables.push(((Some(f.0), n as u32), v));
            }
        }
        for o in body.instrs.iter().flat_map(|i| &i.operands) {
            o.walk(&mut |o| {
                if matches!(o, Operand::Special(Special::ReservedSmemOffset(_))) {
                    reserved = RESERVED_SHARED;
                }
                let Some(VarId::Module(n)) = o.variable() else {
                    return;
                };
                let v = &m.globals[n as usize];
                if v.space == Space::Shared && known.insert(n) {
                    variables.push(((None, n), v));
                }
            });
        }
    }
    let mut offsets = HashMap::new();
    let mut end = u64::from(reserved);
    for (key, v) in variables.iter().filter(|(_, v)| !v.is_unsized()) {
        offsets.insert(*key, reserve(&mut end, v.size(), v.align) as u32);
    }
    let bytes = end - u64::from(reserved);
    if bytes > u64::from(MAX_SHARED) {
        return Err(CompileError {
            line: 0,
            message: format!(
                "the kernel needs {bytes} bytes of static shared memory; the limit is {MAX_SHARED}"
            ),
        });
    }
    // Unsized arrays all name the start of dynamic shared memory.
    let unsized_arrays: Vec<_> = variables.iter().filter(|(_, v)| v.is_unsized()).collect();
    let dynamic_at = match unsized_arrays.iter().map(|(_, v)| v.align).max() {
        Some(align) => end.next_multiple_of(u64::from(align.max(16))) as u32,
        None => end as u32,
    };
    offsets.extend(unsized_arrays.iter().map(|(key, _)| (*key, dynamic_at)));
    Ok(SharedLayout {
        offsets,
        bytes: bytes as u32,
        dynamic_at,
        reserved,
    })
}
