//! Embeds PTX in nvJitLink's cubins.
//!
//! Each link is tracked from `nvJitLinkCreate` on: its options and its inputs. The PTX of a linked cubin is the PTX of
//! its inputs; for LTO IR inputs, a second link with the same options asks nvJitLink for their PTX ([`super::lto`]).

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_char, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use cupyrite_engine::Unit;
use cupyrite_sys::nvjitlink::{nvJitLinkHandle, nvJitLinkInputType, nvJitLinkResult};
use parking_lot::Mutex;

use super::lto::{Lto, lto_to_ptx};
use super::wrappers;
use crate::code::{self, CodeSource, Content};

const SUCCESS: nvJitLinkResult = nvJitLinkResult::NVJITLINK_SUCCESS;

/// An input of a link.
enum Input {
    Ptx(Vec<Unit>),
    Lto(Lto),
    /// An input that this device cannot run, and the reason.
    Foreign(String),
}

struct Link {
    options: Vec<CString>,
    inputs: Vec<Input>,
    /// The cubin with embedded PTX, once requested.
    cubin: Option<Arc<[u8]>>,
}

/// The open links, by handle.
static LINKS: Mutex<Option<HashMap<usize, Link>>> = Mutex::new(None);

fn with<T>(handle: nvJitLinkHandle, f: impl FnOnce(&mut Link) -> T) -> Option<T> {
    LINKS.lock().as_mut()?.get_mut(&handle.addr()).map(f)
}

/// Stops tracking a link that this device has created.
pub(super) fn untrack(handle: nvJitLinkHandle) {
    LINKS.lock().get_or_insert_default().remove(&handle.addr());
}

/// Classifies an input.
fn input(data: &[u8], name: &str) -> Input {
    match code::content(CodeSource::Slice(data), name) {
        Ok(Content::Ptx(units)) => Input::Ptx(units),
        Ok(Content::Lto(data)) => Input::Lto(Lto {
            name: name.to_owned(),
            data,
        }),
        Err(problem) => Input::Foreign(format!("'{name}': {}", problem.text())),
    }
}

fn add(handle: nvJitLinkHandle, data: &[u8], name: &str) {
    let made = with(handle, |link| link.inputs.len()).map(|n| match name {
        "" => input(data, &format!("input {}", n + 1)),
        name => input(data, name),
    });
    if let Some(made) = made {
        with(handle, |link| {
            link.inputs.push(made);
            link.cubin = None;
        });
    }
}

/// The PTX of a link's inputs.
fn units(options: &[CString], inputs: &[Input]) -> Result<Vec<Unit>, String> {
    let mut units = Vec::new();
    let mut lto = Vec::new();
    for input in inputs {
        match input {
            Input::Ptx(more) => units.extend(more.iter().cloned()),
            Input::Lto(l) => lto.push(l),
            Input::Foreign(why) => {
                return Err(format!("a linked input has no PTX: {why}"));
            }
        }
    }
    if !lto.is_empty() {
        units.push(lto_to_ptx(options, &lto, &units)?);
    }
    code::limit_registers(
        &mut units,
        code::register_limit(options.iter().map(|o| o.to_bytes())),
    );
    Ok(units)
}

/// The linked cubin with embedded PTX; `None` for a link that is not tracked or has no cubin.
///
/// # Safety
/// The handle is live.
unsafe fn cubin_with_ptx(handle: nvJitLinkHandle) -> Option<Arc<[u8]>> {
    let (known, options, inputs) = with(handle, |link| {
        // Put back below: no lock is held while nvJitLink runs.
        (
            link.cubin.clone(),
            link.options.clone(),
            std::mem::take(&mut link.inputs),
        )
    })?;
    let made = known.or_else(|| {
        let mut size = 0usize;
        // SAFETY: the handle is live (guaranteed by the caller), and the buffers have the size that nvJitLink requires.
        let cubin = unsafe {
            if real::nvJitLinkGetLinkedCubinSize(handle, &raw mut size) != SUCCESS || size == 0 {
                return None;
            }
            let mut cubin = vec![0u8; size];
            if real::nvJitLinkGetLinkedCubin(handle, cubin.as_mut_ptr().cast()) != SUCCESS {
                return None;
            }
            cubin
        };
        let carrying = match units(&options, &inputs) {
            Ok(units) => code::attach(&cubin, &units),
            Err(why) => code::attach_reason(&cubin, &why),
        };
        carrying.map(Arc::from)
    });
    with(handle, |link| {
        link.inputs = inputs;
        link.cubin.clone_from(&made);
    });
    made
}

/// A C string; empty for null.
///
/// # Safety
/// `name` is null or a NUL-terminated string.
unsafe fn text(name: *const c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: guaranteed by the caller.
    unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned()
}

wrappers! { nvjitlink, nvJitLinkResult, NVJITLINK_ERROR_INTERNAL;
    fn nvJitLinkCreate(handle: *mut nvJitLinkHandle, count: c_uint, options: *mut *const c_char) {
        // SAFETY: guaranteed by the caller: that many options, each ending in NUL.
        unsafe {
            let status = real::nvJitLinkCreate(handle, count, options);
            if status == SUCCESS && !handle.is_null() {
                let options = (0..count as usize)
                    .map(|i| *options.add(i))
                    .filter(|o| !o.is_null())
                    .map(|o| CStr::from_ptr(o).to_owned())
                    .collect();
                let link = Link { options, inputs: Vec::new(), cubin: None };
                LINKS.lock().get_or_insert_default().insert((*handle).addr(), link);
            }
            status
        }
    }
    fn nvJitLinkDestroy(handle: *mut nvJitLinkHandle) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            // Before nvJitLink may reuse the address.
            if !handle.is_null() && let Some(links) = LINKS.lock().as_mut() {
                links.remove(&(*handle).addr());
            }
            real::nvJitLinkDestroy(handle)
        }
    }
    fn nvJitLinkAddData(
        handle: nvJitLinkHandle,
        kind: nvJitLinkInputType,
        data: *const c_void,
        size: usize,
        name: *const c_char,
    ) {
        // SAFETY: guaranteed by the caller: `size` bytes at `data`, and a NUL-terminated name.
        unsafe {
            let status = real::nvJitLinkAddData(handle, kind, data, size, name);
            if status == SUCCESS && !data.is_null() {
                add(handle, std::slice::from_raw_parts(data.cast(), size), &text(name));
            }
            status
        }
    }
    fn nvJitLinkAddFile(handle: nvJitLinkHandle, kind: nvJitLinkInputType, name: *const c_char) {
        // SAFETY: guaranteed by the caller: a NUL-terminated name.
        unsafe {
            let status = real::nvJitLinkAddFile(handle, kind, name);
            if status == SUCCESS && !name.is_null() && with(handle, |_| ()).is_some() {
                let path = OsStr::from_bytes(CStr::from_ptr(name).to_bytes());
                match std::fs::read(path) {
                    Ok(data) => add(handle, &data, &text(name)),
                    Err(e) => {
                        let why = format!("'{}' cannot be read: {e}", text(name));
                        with(handle, |link| link.inputs.push(Input::Foreign(why)));
                    }
                }
            }
            status
        }
    }
    fn nvJitLinkGetLinkedCubinSize(handle: nvJitLinkHandle, size: *mut usize) {
        // SAFETY: guaranteed by the caller.
        unsafe {
            if !size.is_null() && let Some(cubin) = cubin_with_ptx(handle) {
                size.write(cubin.len());
                return SUCCESS;
            }
            real::nvJitLinkGetLinkedCubinSize(handle, size)
        }
    }
    fn nvJitLinkGetLinkedCubin(handle: nvJitLinkHandle, out: *mut c_void) {
        // SAFETY: guaranteed by the caller: a buffer of the size that `nvJitLinkGetLinkedCubinSize` returned.
        unsafe {
            if !out.is_null() && let Some(cubin) = cubin_with_ptx(handle) {
                std::ptr::copy_nonoverlapping(cubin.as_ptr().cast(), out, cubin.len());
                return SUCCESS;
            }
            real::nvJitLinkGetLinkedCubin(handle, out)
        }
    }
}
