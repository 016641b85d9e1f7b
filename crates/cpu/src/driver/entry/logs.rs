//! Error log messages (CUDA driver API, "Error Log Management Functions").
//!
//! Code that refuses a request records the reason with [`because`]. If the call returns that code, the reason becomes a
//! message, followed by the call's name and code. Kernels report failures when they occur. Messages go to a bounded
//! buffer, to the registered callbacks, and to the file named by `CUDA_LOG_FILE`.
//!
//! A successful call costs one read of a thread-local flag.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ffi::{c_char, c_void};
use std::io::Write;
use std::os::unix::ffi::OsStringExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use cupyrite_engine::memory::checked;
use parking_lot::Mutex;

use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{
    get, is_executable_address, non_null, put, put_bytes, put_optional,
};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id};
use crate::driver::stream::host_call;

/// Maximum size of the message buffer, in bytes (the value in CUDA's documentation).
const BUFFER_SIZE: usize = 25600;
/// Longest message, so that one message cannot evict all others.
const MAX_MESSAGE_LENGTH: usize = 4096;

/// `CUlogLevel`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Error = 0,
    #[allow(dead_code, reason = "no warnings are issued yet")]
    Warning = 1,
}

/// The retained messages, oldest first, formatted as dump lines.
#[derive(Default)]
struct Buffer {
    lines: VecDeque<String>,
    bytes: usize,
    /// Number of the first line, that is, how many lines were dropped before it. Wraps around.
    first: u32,
}

impl Buffer {
    fn push(&mut self, line: String) {
        self.bytes += line.len();
        self.lines.push_back(line);
        while self.bytes > BUFFER_SIZE {
            let Some(removed) = self.lines.pop_front() else {
                break;
            };
            self.bytes -= removed.len();
            self.first = self.first.wrapping_add(1);
        }
    }

    /// Number of the next line.
    fn end(&self) -> u32 {
        self.first.wrapping_add(self.lines.len() as u32)
    }

    /// The lines from `iterator` on, and whether earlier ones were dropped.
    fn since(&self, iterator: Option<u32>) -> (impl DoubleEndedIterator<Item = &String>, bool) {
        let lost = match iterator {
            None => self.first != 0,
            // A distance of more than half the number range means that `iterator` is behind.
            Some(at) => at.wrapping_sub(self.first) > u32::MAX / 2,
        };
        let skip = match iterator {
            Some(at) if !lost => at.wrapping_sub(self.first) as usize,
            _ => 0,
        };
        (self.lines.iter().skip(skip), lost)
    }
}

static BUFFER: Mutex<Option<Buffer>> = Mutex::new(None);

/// A registered callback.
struct Callback {
    function: u64,
    data: u64,
}

static CALLBACKS: HandleTable<Callback> = HandleTable::new(HandleKind::LogCallback);
/// Number of registered callbacks.
static REGISTERED: AtomicU32 = AtomicU32::new(0);

thread_local! {
    /// Whether `REASONS` is non-empty.
    static REASONED: Cell<bool> = const { Cell::new(false) };
    /// Reasons recorded by the call that runs on this thread.
    static REASONS: RefCell<Vec<(Code, String)>> = const { RefCell::new(Vec::new()) };
    /// Set while a callback runs: messages that it causes do not reach callbacks.
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

/// Records `reason` for a failure with `code` and returns `code`. The reason is logged only if the call returns that
/// code.
pub(crate) fn because(code: Code, reason: impl FnOnce() -> String) -> Code {
    // At process exit the thread's reasons may be destroyed before the driver.
    let _ = REASONS.try_with(|reasons| {
        REASONED.set(true);
        let mut reasons = reasons.borrow_mut();
        // A search may try and fail many times.
        reasons.truncate(15);
        reasons.push((code, reason()));
    });
    code
}

/// [`because`] as an `Err`.
pub(crate) fn refuse<T>(code: Code, reason: impl FnOnce() -> String) -> Res<T> {
    Err(because(code, reason))
}

/// Takes this thread's reasons and returns the first one for `code`.
pub(crate) fn reason(code: Code) -> Option<String> {
    REASONED.set(false);
    let reasons = REASONS
        .try_with(|reasons| std::mem::take(&mut *reasons.borrow_mut()))
        .ok()?;
    (reasons.into_iter().find(|(known, _)| *known == code)).map(|(_, reason)| reason)
}

/// Discards the recorded reasons: the call has succeeded.
#[inline]
pub(crate) fn succeeded() {
    if REASONED.get() {
        REASONED.set(false);
        let _ = REASONS.try_with(|reasons| reasons.borrow_mut().clear());
    }
}

/// Logs the recorded reasons and the call's failure.
pub(crate) fn failed(call: &str, code: Code) {
    let reasons = if REASONED.replace(false) {
        REASONS.try_with(RefCell::take).unwrap_or_default()
    } else {
        Vec::new()
    };
    // `NOT_READY` is a query result, not a failure.
    if code == Code::NOT_READY {
        return;
    }
    for (_, reason) in reasons.into_iter().filter(|(c, _)| *c == code) {
        message(Level::Error, &reason);
    }
    message(
        Level::Error,
        &format!("{call} returned {} ({})", code.name(), code.0),
    );
}

/// Stores a message and delivers it to the file and the callbacks. No lock may be held, because callbacks run program
/// code.
pub(crate) fn message(level: Level, text: &str) {
    let mut text = text.trim_end();
    while text.len() > MAX_MESSAGE_LENGTH {
        let end = (0..=MAX_MESSAGE_LENGTH)
            .rev()
            .find(|&n| text.is_char_boundary(n));
        text = &text[..end.unwrap_or(0)];
    }
    let line = line(level, text);
    if let Some(file) = file() {
        // A failure to write the log file cannot be reported.
        let _ = file.lock().write_all(line.as_bytes());
    }
    BUFFER.lock().get_or_insert_default().push(line);
    if REGISTERED.load(Ordering::Relaxed) == 0 || CALLING.replace(true) {
        return;
    }
    for callback in CALLBACKS.pick(|_| true) {
        call(&callback, level, text);
    }
    CALLING.set(false);
}

/// `[time][thread][CUDA][E] message`, the format of the CUDA programming guide.
fn line(level: Level, text: &str) -> String {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let seconds = now.as_secs() as libc::time_t;
    // SAFETY: `tm` is a plain structure of numbers that `localtime_r` fills; both pointers are valid.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::localtime_r(&raw const seconds, &raw mut time);
        time
    };
    // SAFETY: `gettid` takes no arguments and cannot fail.
    let thread = unsafe { libc::gettid() };
    let letter = match level {
        Level::Error => 'E',
        Level::Warning => 'W',
    };
    format!(
        "[{:02}:{:02}:{:02}.{:03}][{thread}][CUDA][{letter}] {text}\n",
        time.tm_hour,
        time.tm_min,
        time.tm_sec,
        now.subsec_millis()
    )
}

/// Whether `CUDA_LOG_FILE` sends messages to standard error.
pub(crate) fn reach_standard_error() -> bool {
    std::env::var_os("CUDA_LOG_FILE").is_some_and(|name| name == "stderr")
}

/// The file that `CUDA_LOG_FILE` names.
fn file() -> Option<&'static Mutex<Box<dyn Write + Send>>> {
    static FILE: OnceLock<Option<Mutex<Box<dyn Write + Send>>>> = OnceLock::new();
    FILE.get_or_init(|| {
        let name = std::env::var_os("CUDA_LOG_FILE").filter(|n| !n.is_empty())?;
        let to: Box<dyn Write + Send> = match name.to_str() {
            Some("stdout") => Box::new(std::io::stdout()),
            Some("stderr") => Box::new(std::io::stderr()),
            _ => Box::new(
                std::fs::File::options()
                    .create(true)
                    .append(true)
                    .open(&name)
                    .ok()?,
            ),
        };
        Some(Mutex::new(to))
    })
    .as_ref()
}

/// `CUlogsCallback`
type Function = unsafe extern "C" fn(*mut c_void, u32, *mut c_char, usize);

fn call(callback: &Callback, level: Level, text: &str) {
    if !host_call::open() {
        return;
    }
    // C receives a mutable string.
    let mut bytes: Vec<u8> = text.bytes().filter(|&b| b != 0).collect();
    let length = bytes.len();
    bytes.push(0);
    // SAFETY: the program registered the address as a function of this type, to be called with this data; the text ends
    // in NUL and outlives the call.
    unsafe {
        std::mem::transmute::<u64, Function>(callback.function)(
            callback.data as *mut c_void,
            level as u32,
            bytes.as_mut_ptr().cast(),
            length,
        );
    }
}

/// Reads the caller's optional iterator.
fn start(iterator: u64) -> Res<Option<u32>> {
    if iterator == 0 {
        return Ok(None);
    }
    Ok(Some(get::<u32>(iterator)?))
}

fn reject_flags(flags: u32) -> Res {
    if flags == 0 {
        return Ok(());
    }
    refuse(Code::INVALID_VALUE, || format!("flags={flags}: must be 0"))
}

const LOST: &str = "[CUDA] earlier messages were dropped: the log buffer keeps only the latest
";
const OMITTED: &str = "[CUDA] earlier messages were omitted: the destination buffer is too small
";

/// Formats a dump of at most `room` bytes: all lines, or a remark and the latest lines that fit. `None` if no line
/// fits.
fn dump<'l>(
    lines: impl DoubleEndedIterator<Item = &'l String>,
    lost: bool,
    room: usize,
) -> Option<String> {
    let lines: Vec<&String> = lines.collect();
    let all: usize = lines.iter().map(|l| l.len()).sum();
    let remark = if lost { LOST } else { "" };
    if lines.is_empty() && !lost {
        return Some(String::new());
    }
    if remark.len() + all <= room {
        return Some(
            lines
                .into_iter()
                .fold(remark.to_owned(), |text, l| text + l),
        );
    }
    let mut left = room.checked_sub(OMITTED.len())?;
    let fit = lines.iter().rev().take_while(|l| {
        let fits = l.len() <= left;
        left = left.saturating_sub(l.len());
        fits
    });
    match fit.count() {
        0 => None,
        n => Some(
            lines[lines.len() - n..]
                .iter()
                .fold(OMITTED.to_owned(), |text, l| text + l),
        ),
    }
}

driver_entry_points! { bare;
    fn logs_register "cuLogsRegisterCallback" (function: u64, data: u64, out: u64) {
        if !is_executable_address(function) {
            return refuse(Code::INVALID_VALUE, || {
                format!("callbackFunc={function:#x}: not the address of a function")
            });
        }
        let handle = CALLBACKS.insert(fresh_id(), Arc::new(Callback { function, data }));
        REGISTERED.fetch_add(1, Ordering::Relaxed);
        put_optional(out, handle).inspect_err(|_| {
            let _ = CALLBACKS.remove(handle);
            REGISTERED.fetch_sub(1, Ordering::Relaxed);
        })
    }
    fn logs_unregister "cuLogsUnregisterCallback" (handle: u64) {
        CALLBACKS.remove(handle).map_err(|_| {
            because(Code::INVALID_VALUE, || format!("callback={handle:#x}: not a registered callback"))
        })?;
        REGISTERED.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    }
    fn logs_current "cuLogsCurrent" (out: u64, flags: u32) {
        non_null(out)?;
        reject_flags(flags)?;
        put(out, BUFFER.lock().get_or_insert_default().end())
    }
    fn logs_to_file "cuLogsDumpToFile" (iterator: u64, path: u64, flags: u32) {
        non_null(path)?;
        reject_flags(flags)?;
        let from = start(iterator)?;
        let path = std::ffi::OsString::from_vec(checked::read_c_string(path, 1 << 16)?);
        let (text, end) = {
            let mut guard = BUFFER.lock();
            let buffer = guard.get_or_insert_default();
            let (lines, lost) = buffer.since(from);
            (dump(lines, lost, usize::MAX).unwrap_or_default(), buffer.end())
        };
        std::fs::write(&path, text).map_err(|e| {
            because(Code::INVALID_VALUE, || format!("pathToFile={}: {e}", path.to_string_lossy()))
        })?;
        put_optional(iterator, end)
    }
    fn logs_to_memory "cuLogsDumpToMemory" (iterator: u64, buffer: u64, size: u64, flags: u32) {
        if buffer == 0 || size == 0 {
            let which = if buffer == 0 { "buffer" } else { "size" };
            return refuse(Code::INVALID_VALUE, || format!("{which} is a null pointer"));
        }
        reject_flags(flags)?;
        let from = start(iterator)?;
        let room = usize::try_from(get::<u64>(size)?).unwrap_or(usize::MAX);
        let (text, end) = {
            let mut guard = BUFFER.lock();
            let kept = guard.get_or_insert_default();
            let (lines, lost) = kept.since(from);
            // Leaves room for the terminating NUL.
            (room.checked_sub(1).and_then(|room| dump(lines, lost, room)), kept.end())
        };
        let Some(text) = text else {
            put(size, 0u64)?;
            return refuse(Code::INVALID_VALUE, || format!("size={room}: the buffer is too small for one message"));
        };
        put_bytes(buffer, &[text.as_bytes(), b"\0"].concat())?;
        put(size, text.len() as u64)?;
        put_optional(iterator, end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oldest_lines_are_dropped() {
        let mut buffer = Buffer::default();
        for n in 0..1000 {
            buffer.push(format!("{n:099}\n"));
        }
        assert_eq!(buffer.end(), 1000);
        assert_eq!(buffer.lines.len(), BUFFER_SIZE / 100);
        let (lines, lost) = buffer.since(None);
        assert!(lost);
        assert!(lines.last().unwrap().ends_with("999\n"));
        assert!(buffer.since(Some(3)).1);
        let (lines, lost) = buffer.since(Some(998));
        assert_eq!((lines.count(), lost), (2, false));
        assert_eq!(buffer.since(Some(1000)).0.count(), 0);
    }

    #[test]
    fn dump_keeps_the_latest_lines() {
        let lines: Vec<String> = (10..40).map(|n| format!("line {n}\n")).collect();
        assert_eq!(dump(lines.iter(), false, 240).unwrap(), lines.concat());
        let room = OMITTED.len() + 17;
        let latest = format!("{OMITTED}line 38\nline 39\n");
        assert_eq!(dump(lines.iter(), false, room).unwrap(), latest);
        assert_eq!(dump(lines.iter(), false, OMITTED.len() + 7), None);
        assert_eq!(dump(lines.iter(), false, 20), None);
        assert_eq!(dump([].iter(), false, 0).unwrap(), "");
        assert!(dump(lines.iter(), true, 1000).unwrap().starts_with(LOST));
    }
}
