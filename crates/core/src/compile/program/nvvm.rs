//! NVVM IR through libNVVM: <https://docs.nvidia.com/cuda/libnvvm-api/>.

use std::ffi::{CString, c_char, c_int};

use crate::destroyed::OwnedKind;
use cupyrite_sys::nvvm::{nvvmProgram, nvvmResult};

use super::source::Program;
use super::strings::{c_string, text, wrong_target};
use crate::error::{Error, Result, nvvm};
use crate::fork::ForkGeneration;
use crate::module::object_code::{CodeKind, ObjectCode};

/// The libNVVM side of a [`Compiler`](super::Compiler).
#[derive(Debug)]
pub(super) struct Nvvm {
    /// The program of `handle`, with the source. Each compilation creates a program of its own, since a libNVVM
    /// program is for one thread at a time.
    shown: RawProgram,
}

impl Nvvm {
    pub(super) fn new(program: &Program) -> Result<Nvvm> {
        Ok(Nvvm {
            shown: RawProgram::create(program)?,
        })
    }

    pub(super) fn handle(&self) -> usize {
        self.shown.handle.addr()
    }

    pub(super) fn compile(&self, program: &Program, target: CodeKind) -> Result<ObjectCode> {
        if !matches!(target, CodeKind::Ptx | CodeKind::LtoIr) {
            return Err(wrong_target(target, "PTX or LTO IR"));
        }
        self.shown.check_live()?;
        let options = program
            .options
            .for_nvvm(target)?
            .into_iter()
            .chain(program.spelled.iter().cloned())
            .map(|option| c_string("options", option))
            .collect::<Result<Vec<CString>>>()?;
        let raw = RawProgram::create(program)?;
        let mut pointers: Vec<*const c_char> = options.iter().map(|o| o.as_ptr()).collect();
        let count = pointers.len() as c_int;
        let options = pointers.as_mut_ptr();
        // Verified first: an error in the IR is then reported as such, and not as a failure of the compiler.
        for compiles in [false, true] {
            // SAFETY: the program is live; there are as many options as said, each NUL-terminated.
            let done = unsafe {
                if compiles {
                    nvvm!(nvvmCompileProgram(raw.handle, count, options))
                } else {
                    nvvm!(nvvmVerifyProgram(raw.handle, count, options))
                }
            };
            done.map_err(|e: Error| e.with_log(&raw.log()))?;
        }
        let mut bytes = 0usize;
        // SAFETY: the program is live and compiled, the size is valid for writes.
        unsafe { nvvm!(nvvmGetCompiledResultSize(raw.handle, &mut bytes))? };
        let mut code = vec![0u8; bytes];
        // SAFETY: the program is live and compiled; the buffer is as long as libNVVM said.
        unsafe { nvvm!(nvvmGetCompiledResult(raw.handle, code.as_mut_ptr().cast()))? };
        Ok(ObjectCode::new(target, code).with_log(raw.log()))
    }
}

/// A libNVVM program, destroyed on drop.
#[derive(Debug)]
struct RawProgram {
    handle: nvvmProgram,
    generation: ForkGeneration,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
}

// SAFETY: a program belongs to no thread, and a shared one is never modified.
unsafe impl Send for RawProgram {}
// SAFETY: a shared program is never modified.
unsafe impl Sync for RawProgram {}

impl Drop for RawProgram {
    fn drop(&mut self) {
        if !self.generation.is_current() || self.is_destroyed() {
            // A thread that the forked child does not have may hold the library's locks.
            return;
        }
        // SAFETY: created by `create`, destroyed once, here.
        crate::error::report(unsafe { nvvm!(nvvmDestroyProgram(&mut self.handle)) });
    }
}

impl RawProgram {
    /// A program with all its modules: the source, the extra sources, then libdevice.
    fn create(program: &Program) -> Result<RawProgram> {
        let mut handle: nvvmProgram = std::ptr::null_mut();
        // SAFETY: the result is valid for writes.
        unsafe { nvvm!(nvvmCreateProgram(&mut handle))? };
        let raw = RawProgram {
            handle,
            generation: ForkGeneration::current(),
            created: OwnedKind::NvvmProgram.epoch(),
        };
        raw.add("name", program.options.name(), &program.source)?;
        for (name, source) in &program.options.extra_sources {
            raw.add("extra_sources", name, source)?;
        }
        if program.options.use_libdevice == Some(true) {
            let path = libdevice()?;
            let bitcode = std::fs::read(&path).map_err(|e| {
                let problem = format!("reading {}: {e}", path.display());
                Error::argument("Program", "use_libdevice", problem)
            })?;
            let name = c_string("use_libdevice", "libdevice")?;
            // SAFETY: the program is live, the buffer is as long as said and the name is NUL-terminated; libNVVM
            // copies both. Added lazily: only the functions that are called are linked in.
            unsafe {
                nvvm!(nvvmLazyAddModuleToProgram(
                    raw.handle,
                    bitcode.as_ptr().cast(),
                    bitcode.len(),
                    name.as_ptr()
                ))
            }
            .map_err(|e: Error| e.with_log(&raw.log()))?;
        }
        Ok(raw)
    }

    /// Whether the user's code has destroyed it, by its handle.
    fn is_destroyed(&self) -> bool {
        OwnedKind::NvvmProgram.is_destroyed(self.handle, std::ptr::null_mut(), self.created)
    }

    /// Refuses a destroyed program.
    fn check_live(&self) -> Result<()> {
        if !self.is_destroyed() {
            return Ok(());
        }
        Err(Error::Nvvm {
            call: "Program::compile",
            status: nvvmResult::NVVM_ERROR_INVALID_PROGRAM,
            log: "the libNVVM program was destroyed by the program, with nvvmDestroyProgram; create another Program".into(),
        })
    }

    fn add(&self, parameter: &str, name: &str, source: &[u8]) -> Result<()> {
        let name = c_string(parameter, name)?;
        // SAFETY: the program is live, the buffer is as long as said and the name is NUL-terminated; libNVVM copies
        // both.
        unsafe {
            nvvm!(nvvmAddModuleToProgram(
                self.handle,
                source.as_ptr().cast(),
                source.len(),
                name.as_ptr()
            ))
        }
        .map_err(|e: Error| e.with_log(&self.log()))
    }

    /// The log; empty if it cannot be read, since it only accompanies another result.
    fn log(&self) -> String {
        let mut bytes = 0usize;
        // SAFETY: the program is live, the size is valid for writes.
        if unsafe { nvvm!(nvvmGetProgramLogSize(self.handle, &mut bytes)) }.is_err() {
            return String::new();
        }
        let mut log = vec![0u8; bytes.max(1)];
        // SAFETY: the program is live; the buffer is as long as libNVVM said.
        match unsafe { nvvm!(nvvmGetProgramLog(self.handle, log.as_mut_ptr().cast())) } {
            Ok(()) => text(&log),
            Err(_) => String::new(),
        }
    }
}

/// CUDA's library of mathematical functions, in NVVM IR: <https://docs.nvidia.com/cuda/libdevice-users-guide/>.
pub(crate) fn libdevice() -> Result<std::path::PathBuf> {
    match cupyrite_pathfinder::locate_bitcode_library("device") {
        Ok(found) => Ok(found.path),
        Err(e) => Err(Error::Find(Box::new(e))),
    }
}
