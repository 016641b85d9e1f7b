//! Compiling CUDA C++ with NVRTC.

use std::ffi::{CString, c_char, c_int};

use cupyrite_sys::nvrtc::{nvrtcProgram, nvrtcResult};

use crate::device::Device;
use crate::error::{Error, Result, nvrtc};
use crate::object_code::{CodeKind, ObjectCode};

/// CUDA C++ source to be compiled at run time.
#[derive(Clone, Debug)]
pub struct Program {
    source: String,
    name: String,
    options: Vec<String>,
    headers: Vec<(String, String)>,
    expressions: Vec<String>,
}

impl Program {
    /// A program from CUDA C++ source text.
    pub fn new(source: impl Into<String>) -> Program {
        Program {
            source: source.into(),
            name: "program.cu".into(),
            options: Vec::new(),
            headers: Vec::new(),
            expressions: Vec::new(),
        }
    }

    /// The file name that messages and line information show.
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Program {
        self.name = name.into();
        self
    }

    /// One more compiler option, such as `--use_fast_math`.
    #[must_use]
    pub fn option(mut self, option: impl Into<String>) -> Program {
        self.options.push(option.into());
        self
    }

    /// A header given as text, for `#include "name"`.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, text: impl Into<String>) -> Program {
        self.headers.push((name.into(), text.into()));
        self
    }

    /// A name expression such as `&scale<float>`, whose mangled name [`ObjectCode::lowered_name`] then knows.
    #[must_use]
    pub fn name_expression(mut self, expression: impl Into<String>) -> Program {
        self.expressions.push(expression.into());
        self
    }

    /// Compiles to machine code for a device: the form that loads with any driver of the same CUDA major version.
    ///
    /// On the CPU device the machine code carries the PTX it was made from, which is what runs.
    ///
    /// # Errors
    ///
    /// [`Error::Nvrtc`] with the compiler's log; [`Error::Load`] if there is no NVRTC.
    pub fn compile_for(&self, device: &Device) -> Result<ObjectCode> {
        let cc = device.compute_capability()?;
        self.compile(&format!("sm_{}{}", cc.major, cc.minor))
    }

    /// Compiles for an architecture: `compute_XY` gives PTX, `sm_XY` machine code.
    ///
    /// # Errors
    ///
    /// As [`Program::compile_for`].
    pub fn compile(&self, arch: &str) -> Result<ObjectCode> {
        let raw = RawProgram::create(self)?;
        let mut options = vec![c_string("options", &format!("--gpu-architecture={arch}"))?];
        for option in &self.options {
            options.push(c_string("options", option)?);
        }
        for expression in &self.expressions {
            let text = c_string("name_expression", expression)?;
            // SAFETY: the program is live, the text ends in NUL.
            unsafe { nvrtc!(nvrtcAddNameExpression(raw.0, text.as_ptr()))? };
        }
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: the program is live; there are as many options as said, each ending in NUL.
        let compiled = unsafe {
            nvrtc!(nvrtcCompileProgram(
                raw.0,
                pointers.len() as c_int,
                pointers.as_ptr()
            ))
        };
        let log = raw.log();
        if let Err(e) = compiled {
            return Err(match e {
                Error::Nvrtc { call, status, .. } => Error::Nvrtc { call, status, log },
                other => other,
            });
        }
        let lowered = self
            .expressions
            .iter()
            .map(|e| Ok((e.clone(), raw.lowered_name(e)?)))
            .collect::<Result<_>>()?;
        let (kind, code) = if arch.starts_with("sm_") {
            (CodeKind::Cubin, raw.cubin()?)
        } else {
            (CodeKind::Ptx, raw.ptx()?)
        };
        Ok(ObjectCode::new(kind, code)
            .named(self.name.as_str())
            .with_symbols(lowered)
            .with_log(log))
    }
}

fn c_string(parameter: &str, text: &str) -> Result<CString> {
    CString::new(text).map_err(|e| {
        let problem = format!("contains a NUL at byte {}", e.nul_position());
        Error::argument("Program::compile", parameter, problem)
    })
}

/// An NVRTC program, destroyed with this.
struct RawProgram(nvrtcProgram);

impl Drop for RawProgram {
    fn drop(&mut self) {
        // SAFETY: created by `create`, destroyed once, here.
        crate::error::report(unsafe { nvrtc!(nvrtcDestroyProgram(&mut self.0)) });
    }
}

impl RawProgram {
    fn create(program: &Program) -> Result<RawProgram> {
        let source = c_string("source", &program.source)?;
        let name = c_string("name", &program.name)?;
        let texts = program
            .headers
            .iter()
            .map(|(_, t)| c_string("header", t))
            .collect::<Result<Vec<_>>>()?;
        let names = program
            .headers
            .iter()
            .map(|(n, _)| c_string("header", n))
            .collect::<Result<Vec<_>>>()?;
        let text_ptrs: Vec<*const c_char> = texts.iter().map(|t| t.as_ptr()).collect();
        let name_ptrs: Vec<*const c_char> = names.iter().map(|n| n.as_ptr()).collect();
        let mut raw: nvrtcProgram = std::ptr::null_mut();
        // SAFETY: all strings end in NUL and outlive the call, which copies them; the lists are as long as said.
        unsafe {
            nvrtc!(nvrtcCreateProgram(
                &mut raw,
                source.as_ptr(),
                name.as_ptr(),
                text_ptrs.len() as c_int,
                text_ptrs.as_ptr(),
                name_ptrs.as_ptr(),
            ))?;
        }
        Ok(RawProgram(raw))
    }

    /// A text or binary output: its size, then its bytes.
    fn output(
        &self,
        size: impl FnOnce(nvrtcProgram, *mut usize) -> Result<()>,
        get: impl FnOnce(nvrtcProgram, *mut c_char) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let mut bytes = 0usize;
        size(self.0, &mut bytes)?;
        let mut out = vec![0u8; bytes];
        get(self.0, out.as_mut_ptr().cast())?;
        Ok(out)
    }

    fn ptx(&self) -> Result<Vec<u8>> {
        // SAFETY: the program is live; `output` gives a valid place for the size, then a buffer of that size.
        let mut text = self.output(
            |p, n| unsafe { nvrtc!(nvrtcGetPTXSize(p, n)) },
            // SAFETY: as above.
            |p, b| unsafe { nvrtc!(nvrtcGetPTX(p, b)) },
        )?;
        while text.last() == Some(&0) {
            text.pop();
        }
        Ok(text)
    }

    fn cubin(&self) -> Result<Vec<u8>> {
        // SAFETY: as in `ptx`.
        self.output(
            |p, n| unsafe { nvrtc!(nvrtcGetCUBINSize(p, n)) },
            // SAFETY: as in `ptx`.
            |p, b| unsafe { nvrtc!(nvrtcGetCUBIN(p, b)) },
        )
    }

    /// The log; empty if it cannot be had, since it only ever accompanies something else.
    fn log(&self) -> String {
        // SAFETY: as in `ptx`.
        let log = self.output(
            |p, n| unsafe { nvrtc!(nvrtcGetProgramLogSize(p, n)) },
            // SAFETY: as in `ptx`.
            |p, b| unsafe { nvrtc!(nvrtcGetProgramLog(p, b)) },
        );
        let text = String::from_utf8_lossy(&log.unwrap_or_default()).into_owned();
        text.trim_end_matches('\0').to_owned()
    }

    fn lowered_name(&self, expression: &str) -> Result<String> {
        let text = c_string("name_expression", expression)?;
        let mut name: *const c_char = std::ptr::null();
        // SAFETY: the program is live and compiled, the text ends in NUL, `name` is a valid place for the result.
        unsafe { nvrtc!(nvrtcGetLoweredName(self.0, text.as_ptr(), &mut name))? };
        if name.is_null() {
            return Err(Error::Nvrtc {
                call: "nvrtcGetLoweredName",
                status: nvrtcResult::NVRTC_ERROR_INTERNAL_ERROR,
                log: String::new(),
            });
        }
        // SAFETY: NVRTC gives a NUL-terminated string that lives as long as the program.
        Ok(unsafe { std::ffi::CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned())
    }
}
