//! CUDA C++ through NVRTC: <https://docs.nvidia.com/cuda/nvrtc/>.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::destroyed::OwnedKind;
use cupyrite_sys::nvrtc::{nvrtcProgram, nvrtcResult};

use super::backends::PchStatus;
use super::cuda_headers::{self, MissingFile};
use super::source::Program;
use super::strings::{c_string, text, wrong_target};
use crate::error::{Error, Result, nvrtc};
use crate::fork::ForkGeneration;
use crate::module::object_code::{CodeKind, ObjectCode};

/// Whether a compilation shall end: see [`Compiler::compile_unless`](super::Compiler::compile_unless).
pub(super) type Cancelled = fn() -> bool;

/// NVRTC's callback during a compilation: 1 cancels it. The payload is a [`Cancelled`].
unsafe extern "C" fn flow(payload: *mut c_void, _reserved: *mut c_void) -> c_int {
    // SAFETY: `RawProgram::compile` passes such a function.
    let cancelled = unsafe { std::mem::transmute::<*mut c_void, Cancelled>(payload) };
    c_int::from(cancelled())
}

/// The NVRTC side of a [`Compiler`](super::Compiler).
#[derive(Debug)]
pub(super) struct Nvrtc {
    /// The program of `handle`, used by the first compilation.
    first: RawProgram,
    /// Whether a thread is compiling it, or it must not be compiled again. See [`Nvrtc::compile`].
    taken: AtomicBool,
}

impl Nvrtc {
    pub(super) fn new(program: &Program) -> Result<Nvrtc> {
        Ok(Nvrtc {
            first: RawProgram::create(program)?,
            taken: AtomicBool::new(false),
        })
    }

    pub(super) fn handle(&self) -> usize {
        self.first.handle.addr()
    }

    /// NVRTC accepts no name expressions after it has compiled a program, and a program is for one thread at a time.
    /// So a program that was compiled with name expressions, or is being compiled, is left alone, and a new one is
    /// created.
    pub(super) fn compile(
        &self,
        program: &Program,
        target: CodeKind,
        expressions: &[String],
        cancelled: Option<Cancelled>,
    ) -> Result<(ObjectCode, Option<PchStatus>)> {
        self.first.check_live()?;
        if self.taken.swap(true, Ordering::Acquire) {
            let raw = RawProgram::create(program)?;
            return compile(&raw, program, target, expressions, cancelled);
        }
        let made = compile(&self.first, program, target, expressions, cancelled);
        if expressions.is_empty() && made.is_ok() && program.expressions.is_empty() {
            self.taken.store(false, Ordering::Release);
        }
        made
    }
}

fn compile(
    raw: &RawProgram,
    program: &Program,
    target: CodeKind,
    expressions: &[String],
    cancelled: Option<Cancelled>,
) -> Result<(ObjectCode, Option<PchStatus>)> {
    let mut options = options(program, target)?;
    for expression in expressions {
        let text = c_string("name_expressions", expression.as_str())?;
        // SAFETY: the program is live, the text is NUL-terminated.
        unsafe { nvrtc!(nvrtcAddNameExpression(raw.handle, text.as_ptr()))? };
    }
    if let Err(error) = raw.compile(&options, cancelled) {
        compile_with_cuda_headers(raw, program, &mut options, cancelled, error)?;
    }
    let wants_pch = program.options.pch == Some(true) || program.options.create_pch.is_some();
    let pch = if wants_pch { raw.pch_status() } else { None };
    if let Some(Err(room)) = pch {
        // The header exceeded NVRTC's heap for precompiled headers. NVRTC has reported the size that it needs.
        // SAFETY: takes any size.
        unsafe { nvrtc!(nvrtcSetPCHHeapSize(room))? };
        let again = RawProgram::create(program)?;
        for expression in expressions {
            let text = c_string("name_expressions", expression.as_str())?;
            // SAFETY: the program is live, the expression is NUL-terminated.
            unsafe { nvrtc!(nvrtcAddNameExpression(again.handle, text.as_ptr()))? };
        }
        again.compile(&options, cancelled)?;
        let pch = again.pch_status();
        let made = take(&again, program, target, expressions)?;
        return Ok((made, pch.map(|pch| pch.unwrap_or(PchStatus::Failed))));
    }
    let made = take(raw, program, target, expressions)?;
    Ok((made, pch.and_then(std::result::Result::ok)))
}

/// Repeats a compilation that lacked a header with the folders of the installed CUDA headers, if these have it. An error
/// about a missing header is returned with advice.
#[cold]
fn compile_with_cuda_headers(
    raw: &RawProgram,
    program: &Program,
    options: &mut Vec<std::ffi::CString>,
    cancelled: Option<Cancelled>,
    error: Error,
) -> Result<()> {
    let lacks = |error: &Error| match error {
        Error::Nvrtc {
            status: nvrtcResult::NVRTC_ERROR_COMPILATION,
            log,
            ..
        } => MissingFile::in_log(log).map(|file| file.name.to_owned()),
        _ => None,
    };
    let Some(name) = lacks(&error) else {
        return Err(error);
    };
    let bundled = program.options.use_bundled_headers == Some(true);
    // Two copies of CUDA's headers must not be mixed.
    let folders = match bundled {
        true => Vec::new(),
        false => cuda_headers::directories(),
    };
    let error = if folders.iter().any(|folder| folder.join(&name).is_file()) {
        for folder in &folders {
            let mut option = b"--include-path=".to_vec();
            option.extend_from_slice(folder.as_os_str().as_encoded_bytes());
            options.push(c_string("include_path", option)?);
        }
        log::debug!(
            "compiling `{}` with the installed CUDA headers",
            program.options.name()
        );
        match raw.compile(options, cancelled) {
            Ok(()) => return Ok(()),
            Err(error) => error,
        }
    } else {
        error
    };
    let advice = match &error {
        Error::Nvrtc { log, .. } => MissingFile::in_log(log)
            .map(|file| file.advice(program.options.name(), &folders, bundled)),
        _ => None,
    };
    Err(error.with_log(&advice.unwrap_or_default()))
}

/// The options in NVRTC's spelling for this target.
fn options(program: &Program, target: CodeKind) -> Result<Vec<std::ffi::CString>> {
    let mut options = program.options.for_nvrtc()?;
    let makes_lto = program.options.link_time_optimization == Some(true);
    match target {
        // Without this option NVRTC silently produces no LTO IR.
        CodeKind::LtoIr if !makes_lto => options.push("--dlink-time-opt".into()),
        CodeKind::LtoIr => {}
        CodeKind::Ptx | CodeKind::Cubin if makes_lto => {
            let problem = "is set: NVRTC then makes LTO IR and nothing else; compile to that, or leave it out";
            return Err(Error::argument(
                "Program::compile",
                "link_time_optimization",
                problem,
            ));
        }
        CodeKind::Ptx | CodeKind::Cubin => {}
        _ => return Err(wrong_target(target, "PTX, cubin or LTO IR")),
    }
    options.extend(program.spelled.iter().cloned());
    options
        .into_iter()
        .map(|option| c_string("options", option))
        .collect()
}

/// The output of a successful compilation.
fn take(
    raw: &RawProgram,
    program: &Program,
    target: CodeKind,
    expressions: &[String],
) -> Result<ObjectCode> {
    let code = match target {
        CodeKind::Ptx => raw.ptx()?,
        CodeKind::Cubin => raw.cubin()?,
        _ => raw.lto_ir()?,
    };
    if text(&code[..code.len().min(1)]).is_empty()
        && program.options.fdevice_syntax_only != Some(true)
    {
        let problem = format!(
            "is {}: NVRTC makes no {target} for that",
            program.options.arch.as_deref().unwrap_or_default()
        );
        return Err(Error::argument("Program::compile", "arch", problem));
    }
    let symbols = expressions
        .iter()
        .map(|e| Ok((e.clone(), raw.lowered_name(e)?)))
        .collect::<Result<_>>()?;
    Ok(ObjectCode::new(target, code)
        .with_symbols(symbols)
        .with_log(raw.log()))
}

/// An NVRTC program, destroyed on drop.
#[derive(Debug)]
struct RawProgram {
    handle: nvrtcProgram,
    generation: ForkGeneration,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
}

// SAFETY: a program belongs to no thread; `Nvrtc` and the functions here use it from one thread at a time.
unsafe impl Send for RawProgram {}
// SAFETY: `Nvrtc` and the functions here use a program from one thread at a time.
unsafe impl Sync for RawProgram {}

impl Drop for RawProgram {
    fn drop(&mut self) {
        if !self.generation.is_current() || self.is_destroyed() {
            // A thread that the forked child does not have may hold the library's locks.
            return;
        }
        // SAFETY: created by `create`, destroyed once, here.
        crate::error::report(unsafe { nvrtc!(nvrtcDestroyProgram(&mut self.handle)) });
    }
}

impl RawProgram {
    fn create(program: &Program) -> Result<RawProgram> {
        let source = c_string("code", program.source.as_slice())?;
        let name = c_string("name", program.options.name())?;
        let (mut texts, mut names) = (Vec::new(), Vec::new());
        for (name, text) in &program.headers {
            texts.push(c_string("header", text.as_str())?);
            names.push(c_string("header", name.as_str())?);
        }
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
        Ok(RawProgram {
            handle: raw,
            generation: ForkGeneration::current(),
            created: OwnedKind::NvrtcProgram.epoch(),
        })
    }

    /// Whether the user's code has destroyed it, by its handle.
    fn is_destroyed(&self) -> bool {
        OwnedKind::NvrtcProgram.is_destroyed(self.handle, std::ptr::null_mut(), self.created)
    }

    /// Refuses a destroyed program.
    fn check_live(&self) -> Result<()> {
        if !self.is_destroyed() {
            return Ok(());
        }
        Err(Error::Nvrtc {
            call: "Program::compile",
            status: nvrtcResult::NVRTC_ERROR_INVALID_PROGRAM,
            log: "the NVRTC program was destroyed by the program, with nvrtcDestroyProgram; create another Program".into(),
        })
    }

    fn compile(&self, options: &[std::ffi::CString], cancelled: Option<Cancelled>) -> Result<()> {
        if let Some(cancelled) = cancelled {
            let payload = cancelled as *mut c_void;
            // SAFETY: the program is live; the payload is what the callback takes. An NVRTC without the function compiles to
            // the end.
            let _ = unsafe { nvrtc!(nvrtcSetFlowCallback(self.handle, Some(flow), payload)) };
        }
        let pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: the program is live; there are as many options as said, each NUL-terminated.
        let compiled = unsafe {
            nvrtc!(nvrtcCompileProgram(
                self.handle,
                pointers.len() as c_int,
                pointers.as_ptr()
            ))
        };
        compiled.map_err(|e: Error| e.with_log(&self.log()))
    }

    /// The outcome for the precompiled header; an error holds the required heap size; `None` if NVRTC cannot tell.
    fn pch_status(&self) -> Option<std::result::Result<PchStatus, usize>> {
        // SAFETY: the program is live and compiled.
        match unsafe { nvrtc!(nvrtcGetPCHCreateStatus(self.handle)) } {
            Ok(()) => Some(Ok(PchStatus::Created)),
            Err(Error::Nvrtc { status, .. }) => match status {
                nvrtcResult::NVRTC_ERROR_NO_PCH_CREATE_ATTEMPTED => {
                    Some(Ok(PchStatus::NotAttempted))
                }
                nvrtcResult::NVRTC_ERROR_PCH_CREATE_HEAP_EXHAUSTED => {
                    let mut room = 0usize;
                    // SAFETY: the program is live, the result is valid for writes.
                    match unsafe { nvrtc!(nvrtcGetPCHHeapSizeRequired(self.handle, &mut room)) } {
                        Ok(()) => Some(Err(room)),
                        Err(_) => Some(Ok(PchStatus::Failed)),
                    }
                }
                _ => Some(Ok(PchStatus::Failed)),
            },
            Err(_) => None,
        }
    }

    /// Reads an output: its size, then its bytes.
    fn output(
        &self,
        size: impl FnOnce(nvrtcProgram, *mut usize) -> Result<()>,
        get: impl FnOnce(nvrtcProgram, *mut c_char) -> Result<()>,
    ) -> Result<Vec<u8>> {
        let mut bytes = 0usize;
        size(self.handle, &mut bytes)?;
        if bytes == 0 {
            // NVRTC returns an error for an output that does not exist.
            return Ok(Vec::new());
        }
        let mut out = vec![0u8; bytes];
        get(self.handle, out.as_mut_ptr().cast())?;
        Ok(out)
    }

    /// PTX, with its terminating NUL.
    fn ptx(&self) -> Result<Vec<u8>> {
        self.output(
            // SAFETY: the program is live; `output` gives a valid place for the size, then a buffer of that size.
            |p, n| unsafe { nvrtc!(nvrtcGetPTXSize(p, n)) },
            // SAFETY: the program is live; `output` gives a buffer of the size that NVRTC said.
            |p, b| unsafe { nvrtc!(nvrtcGetPTX(p, b)) },
        )
    }

    fn cubin(&self) -> Result<Vec<u8>> {
        self.output(
            // SAFETY: as in `ptx`.
            |p, n| unsafe { nvrtc!(nvrtcGetCUBINSize(p, n)) },
            // SAFETY: as in `ptx`.
            |p, b| unsafe { nvrtc!(nvrtcGetCUBIN(p, b)) },
        )
    }

    fn lto_ir(&self) -> Result<Vec<u8>> {
        self.output(
            // SAFETY: as in `ptx`.
            |p, n| unsafe { nvrtc!(nvrtcGetLTOIRSize(p, n)) },
            // SAFETY: as in `ptx`.
            |p, b| unsafe { nvrtc!(nvrtcGetLTOIR(p, b)) },
        )
    }

    /// The log; empty if it cannot be read, since it only accompanies another result.
    fn log(&self) -> String {
        let log = self.output(
            // SAFETY: as in `ptx`.
            |p, n| unsafe { nvrtc!(nvrtcGetProgramLogSize(p, n)) },
            // SAFETY: as in `ptx`.
            |p, b| unsafe { nvrtc!(nvrtcGetProgramLog(p, b)) },
        );
        text(&log.unwrap_or_default())
    }

    fn lowered_name(&self, expression: &str) -> Result<String> {
        let text = c_string("name_expressions", expression)?;
        let mut name: *const c_char = std::ptr::null();
        // SAFETY: the program is live and compiled, the text is NUL-terminated, `name` is valid for writes.
        unsafe { nvrtc!(nvrtcGetLoweredName(self.handle, text.as_ptr(), &mut name))? };
        if name.is_null() {
            return Err(Error::Nvrtc {
                call: "nvrtcGetLoweredName",
                status: nvrtcResult::NVRTC_ERROR_INTERNAL_ERROR,
                log: String::new(),
            });
        }
        // SAFETY: NVRTC gives a NUL-terminated string that lives as long as the program.
        Ok(unsafe { CStr::from_ptr(name) }
            .to_string_lossy()
            .into_owned())
    }
}
