//! The driver as a linker: a link state on a dedicated thread.
//!
//! NVIDIA's driver 580 (CUDA 13.0, on an H200) crashes when a link state that the process's main thread created is
//! destroyed in another thread: a segmentation fault, or the C library's "free(): invalid pointer". It does so with
//! and without inputs, with and without a current context in the destroying thread, and whether that thread ends
//! afterwards or not. No crash occurred in sixty rounds of sixty links when one thread, main or not, created and
//! destroyed the state, or when the creating thread had ended before the main thread destroyed it. NVIDIA's manual
//! does not mention threads here.
//!
//! But a [`Linker`](super::Linker) is `Send`, and Python's garbage collector drops objects in any thread. So every
//! state is created, used and destroyed on a [`DedicatedThread`] of its own. With one thread for all states, links
//! would wait for each other.

use std::ffi::{CStr, c_uint, c_void};

use crate::destroyed::OwnedKind;
use cupyrite_sys::driver::{CUjit_option, CUjitInputType, CUlinkState, CUresult};

use super::strings::{c_string, display, text_of, with_nul};
use crate::compile::dedicated_thread::DedicatedThread;
use crate::compile::linker::options::LinkerOptions;
use crate::context::capture_mode;
use crate::context::{Context, Device};
use crate::error::{Error, Result, driver};
use crate::fork;
use crate::module::image;
use crate::module::object_code::{CodeKind, CodeSource, ObjectCode};

/// Size of each log buffer.
const LOG_BYTES: usize = 16 << 10;

/// A link state of the driver, usable from any thread.
#[derive(Debug)]
pub(super) struct DriverLink {
    thread: DedicatedThread<LinkState>,
    /// For [`DriverLink::handle`]; never passed to the driver here.
    handle: CUlinkState,
    /// The logs after the last call.
    info: String,
    error: String,
}

// SAFETY: only the handle is not `Send` by itself; it is never used.
unsafe impl Send for DriverLink {}
// SAFETY: the handle, the only field that is not `Sync`, is never used.
unsafe impl Sync for DriverLink {}

impl DriverLink {
    pub(super) fn new(options: &LinkerOptions) -> Result<DriverLink> {
        let options = options.driver_options()?;
        // The calling thread's context; the dedicated thread has none.
        let context = Device::current()?.active_context()?;
        const CALL: &str = "cuLinkCreate";
        let started = DedicatedThread::start("cupyrite-link", || LinkState::new(context, options));
        let thread = started.map_err(|e| no_thread(CALL, &e.to_string()))??;
        let mut link = DriverLink {
            thread,
            handle: std::ptr::null_mut(),
            info: String::new(),
            error: String::new(),
        };
        link.handle = link.call(CALL, |state| Ok(SentHandle(state.handle)))?.0;
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
                // The size of PTX includes its NUL (CUDA driver API, `cuLinkAddData`).
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
        self.call("cuLinkComplete", LinkState::complete)
    }

    /// Runs `body` on the state's thread with the context current, and copies the logs.
    fn call<R: Send>(
        &mut self,
        call: &'static str,
        body: impl FnOnce(&mut LinkState) -> Result<R> + Send,
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

/// The error of a call without a thread to run on.
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

/// Carries a handle between threads.
struct SentHandle(CUlinkState);

// SAFETY: the handle is not used.
unsafe impl Send for SentHandle {}

/// A link state, on its thread.
#[derive(Debug)]
struct LinkState {
    handle: CUlinkState,
    /// [`OwnedKind::epoch`] when it was created.
    created: u32,
    context: Context,
    // The driver writes to these during its calls until the state is destroyed.
    info: Vec<u8>,
    error: Vec<u8>,
    _options: Vec<CUjit_option>,
    _values: Vec<*mut c_void>,
}

impl Drop for LinkState {
    fn drop(&mut self) {
        if self.is_destroyed() {
            return;
        }
        let handle = self.handle;
        // This thread captures nothing, but a global capture of another thread applies here, too.
        capture_mode::release(|| {
            // SAFETY: made by `new`; destroyed once, here, on the same thread.
            self.context
                .with_current(|| unsafe { driver!(cuLinkDestroy(handle)) })
        });
    }
}

impl LinkState {
    fn new(context: Context, given: Vec<(CUjit_option, usize)>) -> Result<LinkState> {
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
            // SAFETY: the arrays have the length passed; they and the logs live until the state is destroyed; `handle`
            // is valid for writes.
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
        Ok(LinkState {
            handle,
            created: OwnedKind::LinkState.epoch(),
            context,
            info,
            error,
            _options: options,
            _values: values,
        })
    }

    /// Whether the program has destroyed it, by its handle.
    fn is_destroyed(&self) -> bool {
        OwnedKind::LinkState.is_destroyed(self.handle, std::ptr::null_mut(), self.created)
    }

    fn add_data(&mut self, kind: CUjitInputType, data: &mut [u8], name: &CStr) -> Result<()> {
        let none: *mut *mut c_void = std::ptr::null_mut();
        // SAFETY: the state is live; the data have the length passed and end where their headers say; the name is
        // NUL-terminated. Both are copied.
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
        if self.is_destroyed() {
            return Err(Error::Driver {
                call: "Linker::link",
                status: CUresult::CUDA_ERROR_INVALID_HANDLE,
                log: "the link was destroyed by the program, with cuLinkDestroy; create another Linker".into(),
            });
        }
        // SAFETY: the state is live, both results are valid for writes.
        unsafe { driver!(cuLinkComplete(self.handle, &mut cubin, &mut size))? };
        if cubin.is_null() {
            return Ok(Vec::new());
        }
        // SAFETY: the driver's memory of that size, valid while the state lives.
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
    fn links_move_between_threads() {
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
    fn many_links_run_at_once() {
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
    fn errors_and_logs_reach_the_caller() {
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
    fn a_panic_on_the_link_thread_reaches_the_caller() {
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
    fn a_forked_child_gets_an_error() {
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
