//! Linking object codes.

use std::ffi::{c_char, c_uint, c_void};
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::thread::ThreadId;

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::CUresult;
use cupyrite_sys::loader::LoadError;
use cupyrite_sys::nvjitlink::{nvJitLinkHandle, nvJitLinkInputType, nvJitLinkResult};

use crate::error::{Error, Result, nvjitlink, report};
use crate::fork::ForkGeneration;
use crate::module::image;
use crate::module::object_code::{CodeKind, CodeSource, ObjectCode};

pub(crate) mod options;

pub use options::LinkerOptions;

mod driver_link;
mod strings;

use driver_link::DriverLink;
use strings::{c_string, display, text_of, with_nul};

/// The library that links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LinkerBackend {
    /// The library nvJitLink.
    NvJitLink,
    /// The CUDA driver (`cuLinkCreate` and its family).
    Driver,
}

/// Links several object codes into one.
///
/// The constructor adds the inputs; [`Linker::link`] can then be called once.
#[derive(Debug)]
pub struct Linker {
    raw: Raw,
    name: String,
    linked: bool,
}

#[derive(Debug)]
enum Raw {
    NvJitLink(Box<RecreatedLink>),
    Driver(Box<DriverLink>),
}

impl LinkerBackend {
    /// The backend of new linkers: nvJitLink if it is found and new enough (CUDA 12.3), else the driver. The
    /// environment variable `CUPYRITE_LINKER` (`nvjitlink`, `driver`; `auto` or empty) overrides the choice.
    ///
    /// # Errors
    ///
    /// [`Error::Load`] for another value of that variable, or if it is `nvjitlink` and nvJitLink is missing.
    pub fn choose() -> Result<LinkerBackend> {
        let wanted = std::env::var("CUPYRITE_LINKER").unwrap_or_default();
        match wanted.trim().to_ascii_lowercase().as_str() {
            "driver" => Ok(LinkerBackend::Driver),
            "nvjitlink" => version().map(|_| LinkerBackend::NvJitLink),
            "" | "auto" => Ok(match version() {
                Ok(_) => LinkerBackend::NvJitLink,
                Err(_) => LinkerBackend::Driver,
            }),
            _ => {
                let expected = "auto, nvjitlink or driver";
                Err(LoadError::selection("CUPYRITE_LINKER", &wanted, expected).into())
            }
        }
    }
}

/// The version of nvJitLink; an error if it is missing or older than CUDA 12.3.
fn version() -> Result<(u32, u32)> {
    let (mut major, mut minor): (c_uint, c_uint) = (0, 0);
    // SAFETY: both results are valid for writes.
    unsafe { nvjitlink!(nvJitLinkVersion(&mut major, &mut minor))? };
    Ok((major, minor))
}

impl Linker {
    /// A linker with these inputs.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] without inputs, or for an option that the backend does not support;
    /// [`Error::NvJitLink`] or [`Error::Driver`], with the linker's log, for an invalid option or input;
    /// [`Error::Driver`] if the driver links and its thread cannot be started.
    pub fn new<'a>(
        codes: impl IntoIterator<Item = &'a ObjectCode>,
        options: &LinkerOptions,
    ) -> Result<Linker> {
        let mut codes = codes.into_iter().peekable();
        if codes.peek().is_none() {
            let problem = "is empty; expected at least one object code";
            return Err(Error::argument("Linker::new", "codes", problem));
        }
        let mut raw = match LinkerBackend::choose()? {
            LinkerBackend::NvJitLink => Raw::NvJitLink(Box::new(RecreatedLink::new(options)?)),
            LinkerBackend::Driver => Raw::Driver(Box::new(DriverLink::new(options)?)),
        };
        for code in codes {
            match &mut raw {
                Raw::NvJitLink(link) => link.add(code)?,
                Raw::Driver(link) => link.add(code)?,
            }
        }
        Ok(Linker {
            raw,
            name: options.name.clone(),
            linked: false,
        })
    }

    /// The library that links.
    pub fn backend(&self) -> LinkerBackend {
        match self.raw {
            Raw::NvJitLink(_) => LinkerBackend::NvJitLink,
            Raw::Driver(_) => LinkerBackend::Driver,
        }
    }

    /// The library's handle: an `nvJitLinkHandle` or a `CUlinkState`; valid while this linker lives. The driver's
    /// belongs to the linker's dedicated thread.
    pub fn handle(&self) -> *mut c_void {
        match &self.raw {
            Raw::NvJitLink(link) => link.link.handle.cast(),
            Raw::Driver(link) => link.handle(),
        }
    }

    /// Links; can be called once.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidArgument`] for a target other than [`CodeKind::Cubin`], or [`CodeKind::Ptx`] with nvJitLink;
    /// [`Error::NvJitLink`] or [`Error::Driver`], with the linker's log, for undefined symbols, LTO IR without
    /// link-time optimisation, PTX output without the option `ptx`, and a second call.
    pub fn link(&mut self, target: CodeKind) -> Result<ObjectCode> {
        if !matches!(target, CodeKind::Cubin | CodeKind::Ptx) {
            let problem = format!("is {target}; linkers make cubin or ptx");
            return Err(Error::argument("Linker::link", "target", problem));
        }
        let again = self.linked;
        self.linked = true;
        const ONCE: &str = "this linker has linked already; make another one";
        let code = match &mut self.raw {
            Raw::NvJitLink(_) if again => Err(Error::NvJitLink {
                call: "nvJitLinkComplete",
                status: nvJitLinkResult::NVJITLINK_ERROR_INTERNAL,
                log: ONCE.to_owned(),
            }),
            Raw::Driver(_) if again => Err(Error::Driver {
                call: "cuLinkComplete",
                status: CUresult::CUDA_ERROR_INVALID_VALUE,
                log: ONCE.to_owned(),
            }),
            Raw::NvJitLink(link) => link.complete(target),
            Raw::Driver(link) => link.complete(target),
        }?;
        Ok(ObjectCode::new(target, code)
            .named(self.name.as_str())
            .with_log(self.info_log()))
    }

    /// The info log so far; may be empty.
    pub fn info_log(&self) -> String {
        match &self.raw {
            Raw::NvJitLink(link) => link.link.info_log(),
            Raw::Driver(link) => link.info_log(),
        }
    }

    /// The error log so far; may be empty.
    pub fn error_log(&self) -> String {
        match &self.raw {
            Raw::NvJitLink(link) => link.link.error_log(),
            Raw::Driver(link) => link.error_log(),
        }
    }
}

// ---------------------------------------------------------------------------------------------------------
// nvJitLink

/// An nvJitLink handle with its inputs. nvJitLink 13.0 to 13.5 keeps part of a handle in thread-local memory of the
/// creating thread: completing it in another thread corrupts the next link of the first. So a linker that is used in
/// another thread is created again there. (One thread for all handles would not do: after some invalid inputs
/// nvJitLink keeps a lock that only its thread can take again.)
#[derive(Debug)]
struct RecreatedLink {
    link: JitLink,
    options: LinkerOptions,
    codes: Vec<ObjectCode>,
}

impl RecreatedLink {
    fn new(options: &LinkerOptions) -> Result<RecreatedLink> {
        Ok(RecreatedLink {
            link: JitLink::new(options)?,
            options: options.clone(),
            codes: Vec::new(),
        })
    }

    fn add(&mut self, code: &ObjectCode) -> Result<()> {
        self.link.add(code)?;
        self.codes.push(code.clone());
        Ok(())
    }

    fn complete(&mut self, target: CodeKind) -> Result<Vec<u8>> {
        if std::thread::current().id() != self.link.maker {
            let mut link = JitLink::new(&self.options)?;
            for code in &self.codes {
                link.add(code)?;
            }
            self.link = link;
        }
        self.link.complete(target)
    }
}

#[derive(Debug)]
struct JitLink {
    handle: nvJitLinkHandle,
    generation: ForkGeneration,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
    maker: ThreadId,
    complete: bool,
    /// The target architecture, such as `sm_90`.
    arch: String,
}

// SAFETY: logs may be read in any thread, by one at a time. Until a handle is complete, only its creating thread
// modifies it (`RecreatedLink`, `Drop`).
unsafe impl Send for JitLink {}
// SAFETY: shared references only read logs.
unsafe impl Sync for JitLink {}

impl Drop for JitLink {
    fn drop(&mut self) {
        let here = self.complete || self.maker == std::thread::current().id();
        // In another thread the handle is leaked: destroying it would corrupt the links of its creating thread.
        if self.generation.is_current() && here && !self.is_destroyed() {
            // SAFETY: made by `new`; destroyed once, here.
            report(unsafe { nvjitlink!(nvJitLinkDestroy(&mut self.handle)) });
        }
    }
}

impl JitLink {
    fn new(options: &LinkerOptions) -> Result<JitLink> {
        let arguments = options.nvjitlink_arguments()?;
        let arch = arguments.iter().find_map(|a| a.strip_prefix("-arch="));
        let texts = arguments
            .iter()
            .map(|text| c_string("options", text.as_bytes()))
            .collect::<Result<Vec<_>>>()?;
        let mut pointers: Vec<*const c_char> = texts.iter().map(|text| text.as_ptr()).collect();
        let mut link = JitLink {
            handle: std::ptr::null_mut(),
            generation: ForkGeneration::current(),
            created: 0,
            maker: std::thread::current().id(),
            complete: false,
            arch: arch.unwrap_or_default().to_owned(),
        };
        // SAFETY: there are as many texts as said, each NUL-terminated; `handle` is valid for writes.
        let made = unsafe {
            nvjitlink!(nvJitLinkCreate(
                &mut link.handle,
                pointers.len() as c_uint,
                pointers.as_mut_ptr()
            ))
        };
        link.created = OwnedKind::JitLink.epoch();
        if let Err(e) = made {
            // nvJitLink returns a handle even on failure, with a log; it must be destroyed.
            if link.handle.is_null() {
                std::mem::forget(link);
                return Err(e);
            }
            return Err(link.explain(e));
        }
        Ok(link)
    }

    /// Whether the program has destroyed it, by its handle.
    fn is_destroyed(&self) -> bool {
        OwnedKind::JitLink.is_destroyed(self.handle, std::ptr::null_mut(), self.created)
    }

    fn add(&mut self, code: &ObjectCode) -> Result<()> {
        let kind = match code.kind() {
            CodeKind::Ptx => nvJitLinkInputType::NVJITLINK_INPUT_PTX,
            CodeKind::Cubin => nvJitLinkInputType::NVJITLINK_INPUT_CUBIN,
            CodeKind::LtoIr => nvJitLinkInputType::NVJITLINK_INPUT_LTOIR,
            CodeKind::Fatbin => nvJitLinkInputType::NVJITLINK_INPUT_FATBIN,
            CodeKind::Object => nvJitLinkInputType::NVJITLINK_INPUT_OBJECT,
            CodeKind::Library => nvJitLinkInputType::NVJITLINK_INPUT_LIBRARY,
        };
        let added = match code.code() {
            CodeSource::Bytes(bytes) => {
                image::check(bytes)
                    .and_then(|()| self.check_architecture(bytes))
                    .map_err(|log| refused("nvJitLinkAddData", code, &log))?;
                let name = c_string("codes.name", code.name().as_bytes())?;
                let owned = with_nul(bytes);
                // SAFETY: the handle is live; the data are as many bytes as said, with a NUL behind them, and hold
                // what their headers speak of; the name is NUL-terminated. Both are copied.
                unsafe {
                    nvjitlink!(nvJitLinkAddData(
                        self.handle,
                        kind,
                        owned.as_ptr().cast(),
                        bytes.len(),
                        name.as_ptr()
                    ))
                }
            }
            CodeSource::File(path) => {
                self.check_architecture(&header(path))
                    .map_err(|log| refused("nvJitLinkAddFile", code, &log))?;
                let name = c_string("codes.code", path.as_os_str().as_bytes())?;
                // SAFETY: the handle is live, the name is NUL-terminated.
                unsafe { nvjitlink!(nvJitLinkAddFile(self.handle, kind, name.as_ptr())) }
            }
        };
        added.map_err(|e| self.explain(e))
    }

    /// What nvJitLink would refuse, and never again let another thread link after it: 13.0 to 13.5 keep a lock when
    /// machine code does not fit the architecture.
    fn check_architecture(&self, code: &[u8]) -> std::result::Result<(), String> {
        match image::architecture(code) {
            Some(arch) if !options::fits(arch, &self.arch) => Err(format!(
                "machine code for sm_{arch} cannot be linked for {}; compile it for that, or link PTX or LTO IR",
                self.arch
            )),
            _ => Ok(()),
        }
    }

    fn complete(&mut self, target: CodeKind) -> Result<Vec<u8>> {
        if self.is_destroyed() {
            return Err(Error::NvJitLink {
                call: "Linker::link",
                status: nvJitLinkResult::NVJITLINK_ERROR_INVALID_INPUT,
                log: "the link was destroyed by the program, with nvJitLinkDestroy; create another Linker".into(),
            });
        }
        // SAFETY: the handle is live.
        unsafe { nvjitlink!(nvJitLinkComplete(self.handle)) }.map_err(|e| self.explain(e))?;
        self.complete = true;
        let made = match target {
            CodeKind::Ptx => self.output(
                // SAFETY: the handle is live and complete, `output` gives a valid place for the size.
                |link, size| unsafe { nvjitlink!(nvJitLinkGetLinkedPtxSize(link, size)) },
                // SAFETY: the handle is live and complete, `output` gives room for as many bytes as the size.
                |link, out| unsafe { nvjitlink!(nvJitLinkGetLinkedPtx(link, out.cast())) },
            ),
            _ => self.output(
                // SAFETY: the handle is live and complete, `output` gives a valid place for the size.
                |link, size| unsafe { nvjitlink!(nvJitLinkGetLinkedCubinSize(link, size)) },
                // SAFETY: the handle is live and complete, `output` gives room for as many bytes as the size.
                |link, out| unsafe { nvjitlink!(nvJitLinkGetLinkedCubin(link, out.cast())) },
            ),
        };
        let mut made = made.map_err(|e| {
            let e = self.explain(e);
            if target == CodeKind::Ptx {
                e.with_log(
                    "PTX is made where the options link_time_optimization and ptx are both set",
                )
            } else {
                e
            }
        })?;
        if target == CodeKind::Ptx {
            while made.last() == Some(&0) {
                made.pop();
            }
        }
        Ok(made)
    }

    /// An output: its size, then its bytes.
    fn output(
        &self,
        size: impl FnOnce(nvJitLinkHandle, *mut usize) -> Result<()>,
        get: impl FnOnce(nvJitLinkHandle, *mut u8) -> Result<()>,
    ) -> Result<Vec<u8>> {
        if self.is_destroyed() {
            return Ok(Vec::new());
        }
        let mut bytes = 0usize;
        size(self.handle, &mut bytes)?;
        // One more than asked for, so that there is a place even for nothing.
        let mut out = vec![0u8; bytes + 1];
        if bytes > 0 {
            get(self.handle, out.as_mut_ptr())?;
        }
        out.truncate(bytes);
        Ok(out)
    }

    /// A log; empty if it cannot be had, since it only ever accompanies something else.
    fn info_log(&self) -> String {
        let log = self.output(
            // SAFETY: the handle is live, `output` gives a valid place for the size.
            |link, size| unsafe { nvjitlink!(nvJitLinkGetInfoLogSize(link, size)) },
            // SAFETY: the handle is live, `output` gives room for as many bytes as the size.
            |link, out| unsafe { nvjitlink!(nvJitLinkGetInfoLog(link, out.cast())) },
        );
        text_of(&log.unwrap_or_default())
    }

    fn error_log(&self) -> String {
        let log = self.output(
            // SAFETY: as in `info_log`.
            |link, size| unsafe { nvjitlink!(nvJitLinkGetErrorLogSize(link, size)) },
            // SAFETY: as in `info_log`.
            |link, out| unsafe { nvjitlink!(nvJitLinkGetErrorLog(link, out.cast())) },
        );
        text_of(&log.unwrap_or_default())
    }

    fn explain(&self, e: Error) -> Error {
        e.with_log(&self.error_log())
    }
}

/// As many bytes of a file as an ELF header has; fewer if there are not so many, or the file cannot be read, which the
/// linker then says.
fn header(path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    // Not of what is no file: a pipe would be emptied, or make us wait.
    if path.is_file()
        && let Ok(file) = File::open(path)
    {
        let _ = file.take(64).read_to_end(&mut bytes);
    }
    bytes
}

/// What nvJitLink would answer to a code that it is better not given.
fn refused(call: &'static str, code: &ObjectCode, problem: &str) -> Error {
    Error::NvJitLink {
        call,
        status: nvJitLinkResult::NVJITLINK_ERROR_INVALID_INPUT,
        log: format!("{}: {problem}", display(code)),
    }
}
