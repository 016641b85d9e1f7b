//! Embeds PTX in nvJitLink's cubins.
//!
//! Each link is tracked from `nvJitLinkCreate` on: its options and its inputs. The PTX of a linked cubin is the PTX of
//! its inputs; for LTO IR inputs, a second link with the same options asks nvJitLink for their PTX.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_char, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use cupyrite_sys::nvjitlink::{self, nvJitLinkHandle, nvJitLinkInputType, nvJitLinkResult};
use parking_lot::Mutex;

use super::wrappers;
use crate::code::{self, CodeSource, Content, Unit};

const SUCCESS: nvJitLinkResult = nvJitLinkResult::NVJITLINK_SUCCESS;

/// LTO IR, or a fat binary that contains some.
#[derive(Clone, Debug)]
pub(crate) struct Lto {
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
}

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

/// An nvJitLink handle created here, destroyed on drop.
struct Shadow(nvJitLinkHandle);

impl Drop for Shadow {
    fn drop(&mut self) {
        // SAFETY: created by nvJitLink and destroyed only here.
        let _ = unsafe { nvjitlink::nvJitLinkDestroy(&raw mut self.0) };
    }
}

impl Shadow {
    fn error_log(&self) -> String {
        let mut size = 0usize;
        // SAFETY: the handle is live, and the buffers have the size that nvJitLink requires.
        let text = unsafe {
            if nvjitlink::nvJitLinkGetErrorLogSize(self.0, &raw mut size) != Ok(SUCCESS) {
                return String::new();
            }
            let mut text = vec![0u8; size + 1];
            if nvjitlink::nvJitLinkGetErrorLog(self.0, text.as_mut_ptr().cast()) != Ok(SUCCESS) {
                return String::new();
            }
            text
        };
        let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
        String::from_utf8_lossy(&text[..end]).trim().to_owned()
    }

    fn ptx(&self) -> Option<String> {
        let mut size = 0usize;
        // SAFETY: as above.
        unsafe {
            if nvjitlink::nvJitLinkGetLinkedPtxSize(self.0, &raw mut size) != Ok(SUCCESS) {
                return None;
            }
            let mut text = vec![0u8; size + 1];
            if nvjitlink::nvJitLinkGetLinkedPtx(self.0, text.as_mut_ptr().cast()) != Ok(SUCCESS) {
                return None;
            }
            let end = text.iter().position(|&b| b == 0).unwrap_or(text.len());
            Some(String::from_utf8_lossy(&text[..end]).into_owned())
        }
    }
}

/// The PTX that nvJitLink compiles from LTO IR with a link's options.
///
/// # Errors
/// A message with nvJitLink's log.
pub(crate) fn lto_to_ptx(options: &[CString], inputs: &[&Lto]) -> Result<Unit, String> {
    let mut options: Vec<&CStr> = options
        .iter()
        .map(|o| o.as_c_str())
        .filter(|o| !matches!(o.to_bytes(), b"-lto" | b"-ptx"))
        .collect();
    options.extend([c"-lto", c"-ptx"]);
    let mut pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    let mut handle: nvJitLinkHandle = std::ptr::null_mut();
    // SAFETY: `options` has that many C strings; the handle is a valid output.
    let made = unsafe {
        nvjitlink::nvJitLinkCreate(
            &raw mut handle,
            pointers.len() as c_uint,
            pointers.as_mut_ptr(),
        )
    };
    let failed = |call: &str, status, log: String| {
        let log = if log.is_empty() {
            log
        } else {
            format!(": {log}")
        };
        Err(format!(
            "nvJitLink did not compile the LTO IR to PTX: {call} returned {status:?}{log}"
        ))
    };
    match made {
        Ok(SUCCESS) => {}
        Ok(status) => return failed("nvJitLinkCreate", status, String::new()),
        Err(e) => return Err(format!("LTO IR requires nvJitLink: {e}")),
    }
    // This link is not tracked.
    LINKS.lock().get_or_insert_default().remove(&handle.addr());
    let shadow = Shadow(handle);
    for Lto { name, data } in inputs {
        let kind = match data.first_chunk() {
            Some(b"\xED\x43\x4E\x7F") => nvJitLinkInputType::NVJITLINK_INPUT_LTOIR,
            _ => nvJitLinkInputType::NVJITLINK_INPUT_FATBIN,
        };
        let name = CString::new(name.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the handle is live; nvJitLink copies the data, which has that length, and the name.
        let added = unsafe {
            nvjitlink::nvJitLinkAddData(
                shadow.0,
                kind,
                data.as_ptr().cast(),
                data.len(),
                name.as_ptr(),
            )
        };
        match added {
            Ok(SUCCESS) => {}
            Ok(status) => return failed("nvJitLinkAddData", status, shadow.error_log()),
            Err(e) => return Err(e.to_string()),
        }
    }
    // SAFETY: the handle is live.
    match unsafe { nvjitlink::nvJitLinkComplete(shadow.0) } {
        Ok(SUCCESS) => {}
        Ok(status) => return failed("nvJitLinkComplete", status, shadow.error_log()),
        Err(e) => return Err(e.to_string()),
    }
    match shadow.ptx() {
        Some(text) => Ok(Unit {
            name: "LTO".into(),
            text,
        }),
        None => Err("nvJitLink returned no PTX for the LTO IR".into()),
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
        units.push(lto_to_ptx(options, &lto)?);
    }
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
