//! nvJitLink's cubins, with the PTX of what was linked.
//!
//! Each link is followed from `nvJitLinkCreate` on: its options and its inputs. The PTX of a linked cubin is the PTX of its
//! inputs; where inputs are LTO IR, a second link with the same options asks nvJitLink for their PTX.

use std::collections::HashMap;
use std::ffi::{CStr, CString, OsStr, c_char, c_uint, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

use cupyrite_sys::nvjitlink::{self, nvJitLinkHandle, nvJitLinkInputType, nvJitLinkResult};
use parking_lot::Mutex;

use super::{wanted, wrappers};
use crate::code::{self, Content, Data, Unit};

const SUCCESS: nvJitLinkResult = nvJitLinkResult::NVJITLINK_SUCCESS;

/// LTO IR, or a fat binary that holds some.
#[derive(Clone, Debug)]
pub(crate) struct Lto {
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
}

/// What was added to a link.
enum Input {
    Ptx(Vec<Unit>),
    Lto(Lto),
    /// Something this device cannot run, and why.
    Foreign(String),
}

struct Link {
    options: Vec<CString>,
    inputs: Vec<Input>,
    /// The cubin with its PTX, once somebody asked.
    cubin: Option<Arc<[u8]>>,
}

/// The links that are open, by handle.
static LINKS: Mutex<Option<HashMap<usize, Link>>> = Mutex::new(None);

fn with<T>(handle: nvJitLinkHandle, f: impl FnOnce(&mut Link) -> T) -> Option<T> {
    LINKS.lock().as_mut()?.get_mut(&handle.addr()).map(f)
}

/// What an input is to this device.
fn input(data: &[u8], name: &str) -> Input {
    match code::content(Data::Slice(data), name) {
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

/// A nvJitLink handle of ours, destroyed with this.
struct Shadow(nvJitLinkHandle);

impl Drop for Shadow {
    fn drop(&mut self) {
        // SAFETY: created by nvJitLink, destroyed once, here.
        let _ = unsafe { nvjitlink::nvJitLinkDestroy(&raw mut self.0) };
    }
}

impl Shadow {
    fn error_log(&self) -> String {
        let mut size = 0usize;
        // SAFETY: the handle is live, the results have the room that nvJitLink asks for.
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

/// The PTX that nvJitLink makes of LTO IR, with the options of a link.
///
/// # Errors
/// What failed, in a sentence, with nvJitLink's log.
pub(crate) fn lto_to_ptx(options: &[CString], inputs: &[&Lto]) -> Result<Unit, String> {
    let mut options: Vec<&CStr> = options
        .iter()
        .map(|o| o.as_c_str())
        .filter(|o| !matches!(o.to_bytes(), b"-lto" | b"-ptx"))
        .collect();
    options.extend([c"-lto", c"-ptx"]);
    let mut pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
    let mut handle: nvJitLinkHandle = std::ptr::null_mut();
    // SAFETY: as many options as said, each ending in NUL; the handle has room.
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
            "nvJitLink makes no PTX of the LTO IR: {call} answered {status:?}{log}"
        ))
    };
    match made {
        Ok(SUCCESS) => {}
        Ok(status) => return failed("nvJitLinkCreate", status, String::new()),
        Err(e) => return Err(format!("LTO IR needs nvJitLink: {e}")),
    }
    // This link is not one to be followed.
    LINKS.lock().get_or_insert_default().remove(&handle.addr());
    let shadow = Shadow(handle);
    for Lto { name, data } in inputs {
        let kind = match data.first_chunk() {
            Some(b"\xED\x43\x4E\x7F") => nvJitLinkInputType::NVJITLINK_INPUT_LTOIR,
            _ => nvJitLinkInputType::NVJITLINK_INPUT_FATBIN,
        };
        let name = CString::new(name.replace('\0', " ")).unwrap_or_default();
        // SAFETY: the handle is live; nvJitLink copies the data, which has the length said, and the name.
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
        None => Err("nvJitLink gave no PTX of the LTO IR".into()),
    }
}

/// The PTX of a whole link.
fn units(options: &[CString], inputs: &[Input]) -> Result<Vec<Unit>, String> {
    let mut units = Vec::new();
    let mut lto = Vec::new();
    for input in inputs {
        match input {
            Input::Ptx(more) => units.extend(more.iter().cloned()),
            Input::Lto(l) => lto.push(l),
            Input::Foreign(why) => {
                return Err(format!("something that was linked has no PTX: {why}"));
            }
        }
    }
    if !lto.is_empty() {
        units.push(lto_to_ptx(options, &lto)?);
    }
    Ok(units)
}

/// The linked cubin with its PTX; `None` for a link that is not followed or has no cubin.
///
/// # Safety
/// The handle is live.
unsafe fn carrying(handle: nvJitLinkHandle) -> Option<Arc<[u8]>> {
    let (known, options, inputs) = with(handle, |link| {
        // Put back below; meanwhile no lock is held while nvJitLink works.
        (
            link.cubin.clone(),
            link.options.clone(),
            std::mem::take(&mut link.inputs),
        )
    })?;
    let made = known.or_else(|| {
        let mut size = 0usize;
        // SAFETY: the handle is live (the caller's promise), the results have the room that nvJitLink asks for.
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

/// A C string as text; empty for null.
///
/// # Safety
/// Null or a NUL-terminated string.
unsafe fn text(name: *const c_char) -> String {
    if name.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(name) }
        .to_string_lossy()
        .into_owned()
}

wrappers! { nvjitlink, nvJitLinkResult, NVJITLINK_ERROR_INTERNAL;
    fn nvJitLinkCreate(handle: *mut nvJitLinkHandle, count: c_uint, options: *mut *const c_char) {
        // SAFETY: the caller's promise: as many options as said, each ending in NUL.
        unsafe {
            let status = real::nvJitLinkCreate(handle, count, options);
            if status == SUCCESS && !handle.is_null() && wanted() {
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
        // SAFETY: the caller's promise.
        unsafe {
            // Before nvJitLink may give the same address out again.
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
        // SAFETY: the caller's promise: `size` bytes at `data`, a name that ends in NUL.
        unsafe {
            let status = real::nvJitLinkAddData(handle, kind, data, size, name);
            if status == SUCCESS && !data.is_null() {
                add(handle, std::slice::from_raw_parts(data.cast(), size), &text(name));
            }
            status
        }
    }
    fn nvJitLinkAddFile(handle: nvJitLinkHandle, kind: nvJitLinkInputType, name: *const c_char) {
        // SAFETY: the caller's promise: a name that ends in NUL.
        unsafe {
            let status = real::nvJitLinkAddFile(handle, kind, name);
            if status == SUCCESS && !name.is_null() && with(handle, |_| ()).is_some() {
                let path = OsStr::from_bytes(CStr::from_ptr(name).to_bytes());
                match std::fs::read(path) {
                    Ok(data) => add(handle, &data, &text(name)),
                    Err(e) => {
                        let why = format!("'{}' cannot be read again: {e}", text(name));
                        with(handle, |link| link.inputs.push(Input::Foreign(why)));
                    }
                }
            }
            status
        }
    }
    fn nvJitLinkGetLinkedCubinSize(handle: nvJitLinkHandle, size: *mut usize) {
        // SAFETY: the caller's promise.
        unsafe {
            if !size.is_null() && let Some(cubin) = carrying(handle) {
                size.write(cubin.len());
                return SUCCESS;
            }
            real::nvJitLinkGetLinkedCubinSize(handle, size)
        }
    }
    fn nvJitLinkGetLinkedCubin(handle: nvJitLinkHandle, out: *mut c_void) {
        // SAFETY: the caller's promise: as much room as `nvJitLinkGetLinkedCubinSize` said.
        unsafe {
            if !out.is_null() && let Some(cubin) = carrying(handle) {
                std::ptr::copy_nonoverlapping(cubin.as_ptr().cast(), out, cubin.len());
                return SUCCESS;
            }
            real::nvJitLinkGetLinkedCubin(handle, out)
        }
    }
}
