//! LTO IR to PTX.
//!
//! nvJitLink compiles only LTO IR to PTX, and drops the functions that no kernel in it needs. If PTX or machine code
//! calls such functions, this module adds an input that refers to them: a variable with their addresses, compiled by
//! NVRTC. The functions are local in the resulting PTX and are made visible again.

use std::ffi::{CStr, CString, c_char, c_int, c_uint};
use std::fmt::Write as _;

use cupyrite_engine::Unit;
use cupyrite_sys::nvjitlink::{self, nvJitLinkHandle, nvJitLinkInputType, nvJitLinkResult};
use cupyrite_sys::nvrtc::{self, nvrtcProgram, nvrtcResult};

const SUCCESS: nvJitLinkResult = nvJitLinkResult::NVJITLINK_SUCCESS;
/// The variable with the addresses of functions.
const KEEP: &str = "__cupyrite_keep";

/// LTO IR, or a fat binary that contains some.
#[derive(Clone, Debug)]
pub(crate) struct Lto {
    pub(crate) name: String,
    pub(crate) data: Vec<u8>,
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
        // SAFETY: the handle is live, and the buffer has the size that nvJitLink requires.
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

/// The PTX that nvJitLink compiles from LTO IR with a link's options, including the functions that `others` need.
///
/// # Errors
/// A message with nvJitLink's log.
pub(crate) fn lto_to_ptx(
    options: &[CString],
    inputs: &[&Lto],
    others: &[Unit],
) -> Result<Unit, String> {
    let needed = cupyrite_engine::undefined_functions(others);
    if needed.is_empty() {
        return link(options, inputs).map(|text| Unit::new("LTO", text));
    }
    let text = match compile(&references(&needed), options) {
        Ok(data) => {
            let name = KEEP.into();
            let keep = Lto { name, data };
            let inputs: Vec<&Lto> = inputs.iter().copied().chain([&keep]).collect();
            published(&link(options, &inputs)?, &needed)
        }
        // Without NVRTC, or for names that are not valid in CUDA C++, the linker reports the undefined functions that
        // are used.
        Err(why) => {
            log::debug!("{why}");
            link(options, inputs)?
        }
    };
    Ok(Unit::new("LTO", text))
}

/// CUDA C++ of a variable with the functions' addresses. Their types do not matter.
fn references(functions: &[String]) -> String {
    let mut text = String::from("extern \"C\" {\n");
    for name in functions {
        let _ = writeln!(text, "__device__ void {name}();");
    }
    let _ = writeln!(
        text,
        "__device__ void (*{KEEP}[])() = {{{}}};\n}}",
        functions.join(", ")
    );
    text
}

/// The PTX without the variable, with the functions visible to other modules.
fn published(ptx: &str, functions: &[String]) -> String {
    let mut out = String::with_capacity(ptx.len() + 64);
    for line in ptx.split_inclusive('\n') {
        if line.contains(KEEP) && line.starts_with(".visible .global") {
            // Line numbers stay.
            out.push('\n');
            continue;
        }
        // `.func  (.param .b32 func_retval0) name(`, of a declaration or a definition.
        let name = line.trim_end().trim_end_matches('(').trim_end();
        let name = name.rsplit([' ', '\t', ')']).next().unwrap_or_default();
        if line.starts_with(".func") && functions.iter().any(|f| f == name) {
            out.push_str(".visible ");
        }
        out.push_str(line);
    }
    out
}

/// An NVRTC program created here, destroyed on drop.
struct Program(nvrtcProgram);

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: created by NVRTC and destroyed only here.
        let _ = unsafe { nvrtc::nvrtcDestroyProgram(&raw mut self.0) };
    }
}

/// LTO IR of a source, for the architecture of a link.
fn compile(source: &str, link_options: &[CString]) -> Result<Vec<u8>, String> {
    let why = "functions in LTO IR that other inputs call require NVRTC";
    let check = |call: &str, status: Result<nvrtcResult, _>| match status {
        Ok(nvrtcResult::NVRTC_SUCCESS) => Ok(()),
        Ok(status) => Err(format!("{why}: {call} returned {status:?}")),
        Err(e) => Err(format!("{why}: {e}")),
    };
    let source = CString::new(source).map_err(|e| e.to_string())?;
    let arch = link_options
        .iter()
        .find_map(|o| o.to_str().ok()?.strip_prefix("-arch="))
        .unwrap_or("sm_89");
    let arch = CString::new(format!("--gpu-architecture={arch}")).map_err(|e| e.to_string())?;
    let options = [arch.as_ptr(), c"-rdc=true".as_ptr(), c"-dlto".as_ptr()];
    let mut handle: nvrtcProgram = std::ptr::null_mut();
    // SAFETY: NUL-terminated strings, no headers, and a valid output.
    check("nvrtcCreateProgram", unsafe {
        nvrtc::nvrtcCreateProgram(
            &raw mut handle,
            source.as_ptr(),
            c"keep.cu".as_ptr(),
            0,
            std::ptr::null(),
            std::ptr::null(),
        )
    })?;
    let program = Program(handle);
    // SAFETY: the program is live; there are as many options as said.
    check("nvrtcCompileProgram", unsafe {
        nvrtc::nvrtcCompileProgram(program.0, options.len() as c_int, options.as_ptr())
    })?;
    let mut size = 0usize;
    // SAFETY: the program is live, and the buffer has the size that NVRTC requires.
    unsafe {
        check(
            "nvrtcGetLTOIRSize",
            nvrtc::nvrtcGetLTOIRSize(program.0, &raw mut size),
        )?;
        let mut data = vec![0u8; size];
        check(
            "nvrtcGetLTOIR",
            nvrtc::nvrtcGetLTOIR(program.0, data.as_mut_ptr().cast()),
        )?;
        Ok(data)
    }
}

/// The PTX of LTO IR.
fn link(options: &[CString], inputs: &[&Lto]) -> Result<String, String> {
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
    super::nvjitlink::untrack(handle);
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
        Some(text) => Ok(text),
        None => Err("nvJitLink returned no PTX for the LTO IR".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_become_visible_and_the_variable_goes() {
        let ptx = ".func  (.param .b32 func_retval0) low\n(\n)\n;\n.visible .global .align 8 .u64 \
                   __cupyrite_keep[1] = {low};\n.func low(\n.func other(\n.func lower(\n";
        let want = ".visible .func  (.param .b32 func_retval0) low\n(\n)\n;\n\n.visible .func low(\n\
                    .func other(\n.func lower(\n";
        assert_eq!(published(ptx, &["low".into()]), want);
    }
}
