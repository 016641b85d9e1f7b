//! Programs: source text and how it is compiled.
//!
//! CUDA C++ is compiled by NVRTC ([`nvrtc`]), NVVM IR by libNVVM ([`nvvm`]), PTX by a linker ([`ptx`]); [`options`]
//! holds the compile options. The result is an [`ObjectCode`](crate::ObjectCode).

mod backends;
mod cuda_headers;
mod nvrtc;
mod nvvm;
mod options;
mod ptx;
mod source;
mod strings;

use std::sync::atomic::{AtomicU8, Ordering};

pub use self::backends::{CompilerBackend, PchStatus};
pub(crate) use self::cuda_headers::directories as cuda_header_directories;
pub(crate) use self::nvvm::libdevice;
pub use self::options::{ProgramOptions, bundled_headers_directory, user_cache_directory};
pub(crate) use self::ptx::check_options as check_linker_options;
pub use self::source::{Program, SourceKind};
use crate::context::Device;
use crate::error::{Error, Result};
use crate::module::object_code::{CodeKind, ObjectCode};

impl Program {
    /// Compiles to machine code for a device, which any driver of the same CUDA major version loads.
    ///
    /// On the CPU device the machine code represents its PTX, which is what runs.
    ///
    /// # Errors
    ///
    /// Same as [`Program::build`].
    pub fn compile_for(&self, device: &Device) -> Result<ObjectCode> {
        let cc = device.compute_capability()?;
        self.compile(&format!("sm_{}{}", cc.major, cc.minor))
    }

    /// Compiles for an architecture: to PTX for `compute_XY`, to machine code for `sm_XY`.
    ///
    /// # Errors
    ///
    /// Same as [`Program::build`].
    pub fn compile(&self, arch: &str) -> Result<ObjectCode> {
        let target = if arch.starts_with("sm_") {
            CodeKind::Cubin
        } else {
            CodeKind::Ptx
        };
        self.clone().arch(arch).build(target)
    }

    /// Compiles to a format: CUDA C++ to PTX, cubin or LTO IR, PTX to PTX or cubin, NVVM IR to PTX or LTO IR.
    ///
    /// # Errors
    ///
    /// [`Error::Nvrtc`], [`Error::Nvvm`] or the linker's error, with its log; [`Error::InvalidArgument`] for a format
    /// that the source cannot be compiled to; [`Error::Load`] if there is no compiler.
    pub fn build(&self, target: CodeKind) -> Result<ObjectCode> {
        let code = self
            .clone()
            .compiler()?
            .compile(target, &self.expressions)?;
        match code.bytes()?.as_ref() {
            [text @ .., 0] if target == CodeKind::Ptx => Ok(ObjectCode::new(target, text)
                .named(code.name())
                .with_symbols(code.symbols().to_vec())
                .with_log(code.log())),
            _ => Ok(code.clone()),
        }
    }

    /// A compiler for this program, for repeated compilation or access to its handle.
    ///
    /// Without an architecture it compiles for the current device.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for an invalid source or option; [`Error::Load`] if there is no compiler.
    pub fn compiler(mut self) -> Result<Compiler> {
        if self.options.arch.is_none() {
            self.options.arch = Some(default_arch()?);
        }
        if self.kind != SourceKind::Nvvm && !self.options.extra_sources.is_empty() {
            let problem = "goes with NVVM IR; this program is CUDA C++ or PTX";
            return Err(Error::argument("Program", "extra_sources", problem));
        }
        let live = match self.kind {
            SourceKind::Cxx => Live::Nvrtc(nvrtc::Nvrtc::new(&self)?),
            SourceKind::Nvvm => Live::Nvvm(nvvm::Nvvm::new(&self)?),
            SourceKind::Ptx => Live::Ptx(ptx::Ptx::new(&self)?),
        };
        Ok(Compiler {
            program: self,
            live,
            pch: AtomicU8::new(0),
        })
    }
}

/// The architecture of the current device, as `sm_XY`: that of the current context, else of device 0.
///
/// # Errors
///
/// [`Error::Load`] without a driver, [`Error::Driver`] without a device.
pub fn default_arch() -> Result<String> {
    let cc = Device::current()?.compute_capability()?;
    Ok(format!("sm_{}{}", cc.major, cc.minor))
}

#[derive(Debug)]
enum Live {
    Nvrtc(nvrtc::Nvrtc),
    Nvvm(nvvm::Nvvm),
    Ptx(ptx::Ptx),
}

/// A compiler for a program; see [`Program::compiler`].
///
/// Several threads may compile with it at the same time.
#[derive(Debug)]
pub struct Compiler {
    program: Program,
    live: Live,
    /// 0, or 1 + the index in [`PchStatus::ALL`].
    pch: AtomicU8,
}

impl Compiler {
    /// The program.
    pub fn program(&self) -> &Program {
        &self.program
    }

    /// The library.
    pub fn backend(&self) -> CompilerBackend {
        match &self.live {
            Live::Nvrtc(_) => CompilerBackend::Nvrtc,
            Live::Nvvm(_) => CompilerBackend::Nvvm,
            Live::Ptx(live) => live.backend(),
        }
    }

    /// The address of the library's object (`nvrtcProgram`, `nvvmProgram`, the linker); valid while this value lives.
    pub fn handle(&self) -> usize {
        match &self.live {
            Live::Nvrtc(live) => live.handle(),
            Live::Nvvm(live) => live.handle(),
            Live::Ptx(live) => live.handle(),
        }
    }

    /// The outcome for the precompiled header at the last compilation; `None` if none was requested, nothing was
    /// compiled successfully yet, or NVRTC cannot tell (before CUDA 12.8).
    pub fn pch_status(&self) -> Option<PchStatus> {
        let index = self.pch.load(Ordering::Relaxed).checked_sub(1)?;
        PchStatus::ALL.get(usize::from(index)).copied()
    }

    /// Compiles to a format; with CUDA C++, the result knows the mangled names of `expressions`.
    ///
    /// The code is the library's output, so that PTX ends in a NUL; [`Program::build`] removes it.
    ///
    /// # Errors
    ///
    /// Same as [`Program::build`].
    pub fn compile(&self, target: CodeKind, expressions: &[String]) -> Result<ObjectCode> {
        self.compile_unless(target, expressions, None)
    }

    /// [`Compiler::compile`], which `cancelled` ends by returning true in all further calls: `NVRTC_ERROR_CANCELLED`. NVRTC
    /// calls it between the passes of its optimizer; the other compilers cannot be cancelled.
    ///
    /// # Errors
    ///
    /// As [`Compiler::compile`].
    pub fn compile_unless(
        &self,
        target: CodeKind,
        expressions: &[String],
        cancelled: Option<fn() -> bool>,
    ) -> Result<ObjectCode> {
        self.pch.store(0, Ordering::Relaxed);
        let made = match &self.live {
            Live::Nvrtc(live) => {
                let (made, pch) = live.compile(&self.program, target, expressions, cancelled)?;
                let pch = pch.map_or(0, |pch| pch as u8 + 1);
                self.pch.store(pch, Ordering::Relaxed);
                made
            }
            Live::Nvvm(live) => live.compile(&self.program, target)?,
            Live::Ptx(live) => live.compile(&self.program, target)?,
        };
        Ok(made.named(self.program.options.name()))
    }
}
