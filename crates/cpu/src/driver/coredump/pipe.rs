//! The pipe by which a user triggers a core dump: whatever is written to it.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::settings::{expand, process};
use crate::driver::entry::logs;

/// The name without a setting, as driver 580 forms it.
const DEFAULT_NAME: &[u8] = b"corepipe_%h_%p";

/// The pipe of this process, to be removed at its exit. `None` if it could not be created.
static PIPE: OnceLock<Option<(CString, u32)>> = OnceLock::new();

/// Whether the pipe has a name that can no longer be changed.
pub(super) fn is_open() -> bool {
    PIPE.get().is_some()
}

/// Creates the pipe and waits for a request in a thread of its own, if the settings ask for it.
pub(crate) fn listen() {
    let settings = process();
    if !settings.user_trigger || is_open() {
        return;
    }
    let name = match settings.pipe.as_slice() {
        [] => expand(DEFAULT_NAME),
        name => name.to_vec(),
    };
    let mut pipe = None;
    PIPE.get_or_init(|| {
        let path = absolute(Path::new(std::ffi::OsStr::from_bytes(&name)));
        match create(&path) {
            Ok(file) => {
                pipe = Some(file);
                // SAFETY: registers a function that takes no arguments and does not unwind.
                unsafe { libc::atexit(remove) };
                let path = CString::new(path.as_os_str().as_bytes()).ok()?;
                Some((path, std::process::id()))
            }
            Err(error) => {
                let text = format!(
                    "core dumps cannot be triggered: cannot create the pipe {}: {error}",
                    path.display()
                );
                eprintln!("cupyrite: {text}");
                logs::message(logs::Level::Error, &text);
                None
            }
        }
    });
    if let Some(pipe) = pipe {
        let thread = std::thread::Builder::new().name("cupyrite-coredump".into());
        // Without a thread, nothing can be triggered, which the program cannot change.
        let _ = thread.spawn(move || wait(pipe));
    }
}

/// The working directory may change before the pipe is removed.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn create(path: &Path) -> std::io::Result<File> {
    let name = CString::new(path.as_os_str().as_bytes())?;
    // SAFETY: the name is a C string.
    if unsafe { libc::mkfifo(name.as_ptr(), 0o640) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // Open for writing too, so that the end of a writer is not the end of the pipe.
    OpenOptions::new().read(true).write(true).open(path)
}

fn wait(mut pipe: File) {
    let mut bytes = [0u8; 256];
    match pipe.read(&mut bytes) {
        Ok(1..) => {
            remove_file();
            super::on_request();
        }
        // The pipe stays unused.
        _ => remove_file(),
    }
}

fn remove_file() {
    if let Some(Some((path, owner))) = PIPE.get()
        && *owner == std::process::id()
    {
        // SAFETY: the path is a C string. It may have been removed by others.
        unsafe { libc::unlink(path.as_ptr()) };
    }
}

extern "C" fn remove() {
    remove_file();
}
