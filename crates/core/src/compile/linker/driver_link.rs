//! The driver as a linker: a link state, on a thread of its own.
//!
//! NVIDIA's driver 580 (CUDA 13.0, seen on an H200) crashes where a link state that the process's first thread made is
//! destroyed in another one: a segmentation fault, or the C library's "free(): invalid pointer". It does so whether the
//! state had inputs or not, whether the thread that destroys has a context or not, and whether that thread ends afterwards
//! or goes on. Where the same thread makes and destroys, be it the first or another, sixty rounds of sixty went well, and
//! so they did where the maker had ended before the first thread destroyed. NVIDIA's manual says nothing of threads here.
//!
//! But a [`Linker`](super::Linker) is `Send`, and Python's collector ends objects in whichever thread it runs. So every
//! state has an [`DedicatedThread`], on which it is made, fed, completed and destroyed, and which ends with it. With one thread
//! for all of them links would wait for each other.

use std::ffi::{CStr, c_uint, c_void};

use cupyrite_sys::driver::{CUjit_option, CUjitInputType, CUlinkState, CUresult};

use super::{c_string, display, text_of, with_nul};
use crate::compile::dedicated_thread::DedicatedThread;
use crate::compile::linker::options::LinkerOptions;
use crate::context::Context;
use crate::context::capture_mode;
use crate::context::device::Device;
use crate::error::{Error, Result, driver};
use crate::fork;
use crate::module::image;
use crate::module::object_code::{CodeKind, CodeSource, ObjectCode};

/// Room for each of the driver's logs.
const LOG_BYTES: usize = 16 << 10;

/// A link state of the driver, for any thread.
#[derive(Debug)]
pub(super) struct DriverLink {
    thread: DedicatedThread<State>,
    /// To be told, not to be used.
    handle: CUlinkState,
    /// The logs as they were after the last call.
    info: String,
    error: String,
}

// SAFETY: all that is not `Send` by itself is the handle, which is only told.
unsafe impl Send for DriverLink {}
// SAFETY: as above; by shared reference nothing else is done either.
unsafe impl Sync for DriverLink {}

impl DriverLink {
    pub(super) fn new(options: &LinkerOptions) -> Result<DriverLink> {
        let options = options.driver_options()?;
        // That of the calling thread; its own thread has none.
        let context = Device::current()?.active_context()?;
        const CALL: &str = "cuLinkCreate";
        let started = DedicatedThread::start("cupyrite-link", || State::new(context, options));
        let thread = started.map_err(|e| no_thread(CALL, &e.to_string()))??;
        let mut link = DriverLink {
            thread,
            handle: std::ptr::null_mut(),
            info: String::new(),
            error: String::new(),
        };
        link.handle = link.call(CALL, |state| Ok(Told(state.handle)))?.0;
        Ok(link)
    }

    /// The driver's handle.
    pub(super) fn handle(&self) -> *mut c_void {
        self.handle.cast()
    }

    pub(super) fn info_log(&self) -> String {
        self.info.clone()
    }

    pub(super) fn error_log(&self) -> String {
        self.error.clone()
    }

    pub(super) fn add(&mut self, code: &ObjectCode) -> Result<()> {
        let kind = match code.kind() {
            CodeKind::Ptx => CUjitInputType::CU_JIT_INPUT_PTX,
            CodeKind::Cubin => CUjitInputType::CU_JIT_INPUT_CUBIN,
            CodeKind::Fatbin => CUjitInputType::CU_JIT_INPUT_FATBINARY,
            CodeKind::Object => CUjitInputType::CU_JIT_INPUT_OBJECT,
            CodeKind::Library => CUjitInputType::CU_JIT_INPUT_LIBRARY,
            CodeKind::LtoIr => {
                let problem = "is LTO IR, which only nvJitLink links: install it (pip install nvidia-nvjitlink)";
                return Err(Error::argument("Linker::new", "codes", problem));
            }
        };
        match code.code() {
            CodeSource::Bytes(bytes) => {
                const CALL: &str = "cuLinkAddData";
                image::check(bytes).map_err(|log| Error::Driver {
                    call: CALL,
                    status: CUresult::CUDA_ERROR_INVALID_IMAGE,
                    log: format!("{}: {log}", display(code)),
                })?;
                let name = c_string("codes.name", code.name().as_bytes())?;
                let mut owned = with_nul(bytes);
                // PTX counts its NUL here (CUDA driver API, `cuLinkAddData`).
                let size = owned.len() - usize::from(code.kind() != CodeKind::Ptx);
                let data = &mut owned[..size];
                self.call(CALL, |state| state.add_data(kind, data, &name))
            }
            CodeSource::File(path) => {
                let name = c_string("codes.code", path.as_os_str().as_encoded_bytes())?;
                self.call("cuLinkAddFile", |state| state.add_file(kind, &name))
            }
        }
    }

    pub(super) fn complete(&mut self, target: CodeKind) -> Result<Vec<u8>> {
        if target != CodeKind::Cubin {
            let problem =
                format!("is {target}; the driver links to cubin only, nvJitLink to PTX too");
            return Err(Error::argument("Linker::link", "target", problem));
        }
        self.call("cuLinkComplete", State::complete)
    }

    /// Does something on the state's thread, with the context current there; notes the logs, and adds them to an error.
    fn call<R: Send>(
        &mut self,
        call: &'static str,
        body: impl FnOnce(&mut State) -> Result<R> + Send,
    ) -> Result<R> {
        let told = self.thread.with(|state| {
            let context = state.context.clone();
            let result = context.with_current(|| body(state));
            (result, text_of(&state.info), text_of(&state.error))
        });
        let Some((result, info, error)) = told else {
            return Err(no_thread(call, "it is gone"));
        };
        (self.info, self.error) = (info, error);
        result.map_err(|e| e.with_log(&self.error))
    }
}

/// The error of a call that could not be made, for want of a thread to make it on.
#[cold]
fn no_thread(call: &'static str, why: &str) -> Error {
    if fork::is_forked_child() {
        return Error::driver(call, CUresult::CUDA_ERROR_NOT_INITIALIZED);
    }
    Error::Driver {
        call,
        status: CUresult::CUDA_ERROR_OPERATING_SYSTEM,
        log: format!("links of the driver need a thread of their own: {why}"),
    }
}

/// A handle on its way to who tells it.
struct Told(CUlinkState);

// SAFETY: it is not used.
unsafe impl Send for Told {}

/// A link state, where it lives.
#[derive(Debug)]
struct State {
    handle: CUlinkState,
    context: Context,
    // The driver writes to these in its calls until the state is destroyed.
    info: Vec<u8>,
    error: Vec<u8>,
    _options: Vec<CUjit_option>,
    _values: Vec<*mut c_void>,
}

impl Drop for State {
    fn drop(&mut self) {
        let handle = self.handle;
        // This thread takes no part in a capture, but another one that captures globally has its say here.
        capture_mode::release(|| {
            // SAFETY: made by `new`; destroyed once, here, on the same thread.
            self.context
                .with_current(|| unsafe { driver!(cuLinkDestroy(handle)) })
        });
    }
}

impl State {
    fn new(context: Context, given: Vec<(CUjit_option, usize)>) -> Result<State> {
        let mut info = vec![0u8; LOG_BYTES];
        let mut error = vec![0u8; LOG_BYTES];
        let mut options: Vec<CUjit_option> = Vec::new();
        let mut values: Vec<*mut c_void> = Vec::new();
        for (option, value) in [
            (
                CUjit_option::CU_JIT_INFO_LOG_BUFFER,
                info.as_mut_ptr().cast(),
            ),
            (
                CUjit_option::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES,
                LOG_BYTES as *mut c_void,
            ),
            (
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER,
                error.as_mut_ptr().cast(),
            ),
            (
                CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                LOG_BYTES as *mut c_void,
            ),
        ] {
            options.push(option);
            values.push(value);
        }
        for (option, value) in given {
            options.push(option);
            values.push(value as *mut c_void);
        }
        let mut handle: CUlinkState = std::ptr::null_mut();
        let made = context.with_current(|| {
            // SAFETY: there are as many options and values as said, which stay until the state is destroyed, as do the
            // logs; `handle` is valid for writes.
            unsafe {
                driver!(cuLinkCreate(
                    options.len() as c_uint,
                    options.as_mut_ptr(),
                    values.as_mut_ptr(),
                    &mut handle
                ))
            }
        });
        made.map_err(|e| e.with_log(&text_of(&error)))?;
        Ok(State {
            handle,
            context,
            info,
            error,
            _options: options,
            _values: values,
        })
    }

    fn add_data(&mut self, kind: CUjitInputType, data: &mut [u8], name: &CStr) -> Result<()> {
        let none: *mut *mut c_void = std::ptr::null_mut();
        // SAFETY: the state is live; the data are as many bytes as said, and hold what their headers speak of; the
        // name is NUL-terminated. Both are copied.
        unsafe {
            driver!(cuLinkAddData(
                self.handle,
                kind,
                data.as_mut_ptr().cast(),
                data.len(),
                name.as_ptr(),
                0,
                none.cast(),
                none,
            ))
        }
    }

    fn add_file(&mut self, kind: CUjitInputType, name: &CStr) -> Result<()> {
        let none: *mut *mut c_void = std::ptr::null_mut();
        // SAFETY: the state is live, the name is NUL-terminated.
        unsafe {
            driver!(cuLinkAddFile(
                self.handle,
                kind,
                name.as_ptr(),
                0,
                none.cast(),
                none
            ))
        }
    }

    fn complete(&mut self) -> Result<Vec<u8>> {
        let (mut cubin, mut size): (*mut c_void, usize) = (std::ptr::null_mut(), 0);
        // SAFETY: the state is live, both results are valid for writes.
        unsafe { driver!(cuLinkComplete(self.handle, &mut cubin, &mut size))? };
        if cubin.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the driver's memory of that size, which lives as long as the state.
        Ok(unsafe { std::slice::from_raw_parts(cubin.cast::<u8>(), size) }.to_vec())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;
    use std::thread;

    use super::*;

    const HELPER: &str = "\
.version 7.8
.target sm_75
.address_size 64
.visible .func helper() { ret; }
";
    const USER: &str = "\
.version 7.8
.target sm_75
.address_size 64
.extern .func helper();
.visible .entry k() { call helper; ret; }
";

    fn part(text: &str, name: &str) -> ObjectCode {
        ObjectCode::new(CodeKind::Ptx, text).named(name)
    }

    fn made() -> DriverLink {
        Device::new(0).unwrap().context().unwrap();
        let options = LinkerOptions {
            verbose: true,
            ..LinkerOptions::default()
        };
        DriverLink::new(&options).unwrap()
    }

    fn fed() -> DriverLink {
        let mut link = made();
        link.add(&part(HELPER, "helper")).unwrap();
        link.add(&part(USER, "user")).unwrap();
        link
    }

    fn elsewhere<T: Send>(body: impl FnOnce() -> T + Send) -> T {
        thread::scope(|scope| scope.spawn(body).join().unwrap())
    }

    #[test]
    fn links_go_from_thread_to_thread() {
        for round in 0..20 {
            let link = if round % 2 == 0 {
                made()
            } else {
                elsewhere(made)
            };
            elsewhere(|| drop(link));
            let mut link = fed();
            let handle = link.handle().addr();
            assert_ne!(handle, 0);
            let (cubin, link) = elsewhere(move || (link.complete(CodeKind::Cubin), link));
            assert!(cubin.unwrap().starts_with(b"\x7fELF"));
            assert_eq!(link.handle().addr(), handle);
            elsewhere(|| drop(link));
            drop(elsewhere(fed));
        }
    }

    #[test]
    fn many_link_at_once() {
        const THREADS: usize = 8;
        let barrier = Barrier::new(THREADS);
        let links: Vec<DriverLink> = thread::scope(|scope| {
            let work = || {
                barrier.wait();
                let mut links: Vec<DriverLink> = (0..10).map(|_| fed()).collect();
                for link in &mut links {
                    assert!(!link.complete(CodeKind::Cubin).unwrap().is_empty());
                }
                links
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            threads
                .into_iter()
                .flat_map(|t| t.join().unwrap())
                .collect()
        });
        assert_eq!(links.len(), 10 * THREADS);
        let mut links = links.into_iter();
        thread::scope(|scope| {
            while let (Some(a), Some(b)) = (links.next(), links.next()) {
                scope.spawn(move || drop(a));
                drop(b);
            }
        });
    }

    #[test]
    fn errors_and_logs_come_from_its_thread() {
        let mut link = made();
        let wrong = part(".version 7.8 .target sm_75 nonsense", "wrong");
        let e = link.add(&wrong).unwrap_err();
        assert!(e.status().is_some(), "{e}");
        assert!(!link.error_log().is_empty());
        let Error::Driver { call, log, .. } = &e else {
            panic!("{e}");
        };
        assert_eq!(*call, "cuLinkAddData");
        assert!(log.contains(link.error_log().trim_end()), "{log}");

        let mut link = made();
        link.add(&part(USER, "user")).unwrap();
        let (e, link) = elsewhere(move || (link.complete(CodeKind::Cubin).unwrap_err(), link));
        assert!(
            matches!(
                e,
                Error::Driver {
                    call: "cuLinkComplete",
                    ..
                }
            ),
            "{e}"
        );
        assert!(e.to_string().contains("helper"), "{e}");
        assert!(link.error_log().contains("helper"));

        let mut link = made();
        let e = link.add(&ObjectCode::from_file(CodeKind::Cubin, "/nowhere"));
        let e = e.unwrap_err().to_string();
        assert!(e.contains("cuLinkAddFile"), "{e}");
    }

    #[test]
    fn a_panic_on_its_thread_is_the_caller_s() {
        let mut link = fed();
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            link.call("cuLinkComplete", |_| -> Result<()> { panic!("on the way") })
        }));
        assert_eq!(
            caught.unwrap_err().downcast_ref::<&str>(),
            Some(&"on the way")
        );
        assert!(!link.complete(CodeKind::Cubin).unwrap().is_empty());
    }

    #[test]
    fn a_child_is_told_that_there_is_no_link() {
        let mut link = fed();
        // SAFETY: the child makes no call of the driver, and leaves at once.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            // SAFETY: ends the child if it waits for the thread, which is the parent's.
            unsafe { libc::alarm(20) };
            let status = link.complete(CodeKind::Cubin).unwrap_err().status();
            drop(link);
            let told = status == Some(CUresult::CUDA_ERROR_NOT_INITIALIZED);
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(i32::from(!told)) };
        }
        let mut status = 0;
        // SAFETY: the child is ours, `status` is valid for writes.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status), "{status}");
        assert_eq!(libc::WEXITSTATUS(status), 0);
        assert!(!link.complete(CodeKind::Cubin).unwrap().is_empty());
    }
}
