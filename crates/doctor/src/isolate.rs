//! Runs the probe in isolation, so that a driver that hangs or a library that crashes does not stop the doctor.
//!
//! A single-threaded process runs it in a child made by `fork`: a hang can be abandoned, a crash is observed from
//! outside, and nothing stays loaded. A process with more threads, or one that has used the driver, runs it in a
//! separate thread: after `fork` its child could do almost nothing.

use std::time::{Duration, Instant};

use super::probe::{self, Message, Probe, Stage};

/// How the probe ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum End {
    /// It finished, with or without problems.
    Finished,
    /// It did not answer within the deadline.
    Hung,
    /// The child was killed by a signal, or exited early.
    Crashed {
        /// Such as `SIGSEGV`, or `exit status 1`.
        how: String,
        /// The end of its standard output and standard error.
        said: String,
    },
}

/// The findings of the probe, and how it ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Outcome {
    pub(crate) probe: Probe,
    /// The last step that was started.
    pub(crate) stage: Stage,
    pub(crate) end: End,
    pub(crate) milliseconds: f64,
    /// Whether it ran in this process.
    pub(crate) in_process: bool,
}

impl Outcome {
    fn new(in_process: bool) -> Outcome {
        Outcome {
            probe: Probe::default(),
            stage: Stage::Choose,
            end: End::Finished,
            milliseconds: 0.0,
            in_process,
        }
    }

    fn hear(&mut self, message: Message) {
        match message {
            Message::Begin(stage) => self.stage = stage,
            Message::Known(probe) => self.probe = *probe,
        }
    }
}

/// Runs the probe; `in_process` forbids a child.
pub(crate) fn run(deadline: Duration, in_process: bool) -> Outcome {
    let start = Instant::now();
    let mut outcome = None;
    #[cfg(unix)]
    if !in_process && child::is_safe() {
        outcome = child::run(deadline);
    }
    let mut outcome = outcome.unwrap_or_else(|| in_thread(deadline));
    outcome.milliseconds = start.elapsed().as_secs_f64() * 1e3;
    outcome
}

/// In a thread, which is abandoned if it hangs.
fn in_thread(deadline: Duration) -> Outcome {
    use std::sync::mpsc;

    let mut outcome = Outcome::new(true);
    let (send, receive) = mpsc::channel();
    let thread = std::thread::Builder::new()
        .name("cupyrite-doctor".to_owned())
        .spawn(move || {
            // Sending fails after the deadline, when the receiver is dropped.
            probe::run(&mut |message| drop(send.send(message)));
        });
    if let Err(error) = thread {
        outcome.end = End::Crashed {
            how: format!("no thread could be started: {error}"),
            said: String::new(),
        };
        return outcome;
    }
    let end = Instant::now() + deadline;
    loop {
        match receive.recv_timeout(end.saturating_duration_since(Instant::now())) {
            Ok(message) => outcome.hear(message),
            Err(mpsc::RecvTimeoutError::Disconnected) => break,
            Err(mpsc::RecvTimeoutError::Timeout) => {
                outcome.end = End::Hung;
                break;
            }
        }
    }
    outcome
}

#[cfg(unix)]
mod child {
    use std::fs::File;
    use std::io::{Read, Seek, SeekFrom, Write};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
    use std::time::{Duration, Instant};

    use cupyrite_sys::loader;
    use libc::c_int;

    use super::{End, Outcome};
    use crate::probe::{self, Message};

    /// Bytes kept of the child's output.
    const SAID: u64 = 2000;
    /// How long to wait for a killed child; one stuck in the kernel is abandoned.
    const GRACE: Duration = Duration::from_millis(500);

    /// Whether a child made by `fork` can work: there is one thread, and no driver state to inherit.
    pub(super) fn is_safe() -> bool {
        let threads = std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
        threads == 1 && loader::chosen_backend().is_none()
    }

    /// Runs the probe in a child; `None` if that is not possible.
    pub(super) fn run(deadline: Duration) -> Option<Outcome> {
        let (read, write) = pipe()?;
        let said = memory_file()?;
        // SAFETY: this process has one thread (`is_safe`), so no lock is held by another one and the child is a
        // whole copy.
        match unsafe { libc::fork() } {
            -1 => None,
            0 => {
                drop(read);
                after_fork_in_child(write, &said)
            }
            child => {
                drop(write);
                let mut outcome = Outcome::new(false);
                let in_time = listen(read, deadline, &mut outcome);
                if !in_time {
                    // SAFETY: the child has not been reaped yet, so the PID still identifies it.
                    unsafe { libc::kill(child, libc::SIGKILL) };
                }
                let status = wait(child, if in_time { deadline } else { GRACE });
                outcome.end = match status {
                    _ if !in_time => End::Hung,
                    None => End::Hung,
                    Some(status) => end(status, said),
                };
                Some(outcome)
            }
        }
    }

    fn after_fork_in_child(write: OwnedFd, said: &OwnedFd) -> ! {
        // SAFETY: plain system calls with valid arguments, on descriptors that this process owns. Signals get their
        // default handler, so that Python's handlers (or faulthandler's) do not run in the copy.
        unsafe {
            for signal in [
                libc::SIGINT,
                libc::SIGTERM,
                libc::SIGHUP,
                libc::SIGSEGV,
                libc::SIGBUS,
                libc::SIGABRT,
                libc::SIGILL,
                libc::SIGFPE,
            ] {
                libc::signal(signal, libc::SIG_DFL);
            }
            libc::signal(libc::SIGPIPE, libc::SIG_IGN);
            #[cfg(target_os = "linux")]
            libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
            let none = libc::rlimit {
                rlim_cur: 0,
                rlim_max: 0,
            };
            libc::setrlimit(libc::RLIMIT_CORE, &raw const none);
            libc::dup2(said.as_raw_fd(), 1);
            libc::dup2(said.as_raw_fd(), 2);
        }
        let mut pipe = File::from(write);
        let work = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            probe::run(&mut |message| {
                if let Ok(mut line) = serde_json::to_vec(&message) {
                    line.push(b'\n');
                    // The parent has closed the pipe.
                    let _ = pipe.write_all(&line);
                }
            });
        }));
        // SAFETY: `_exit` terminates at once, without running the parent's exit handlers or flushing its buffers.
        unsafe { libc::_exit(if work.is_ok() { 0 } else { 101 }) }
    }

    /// Reads the child's messages until it is done; returns whether it met the deadline.
    fn listen(read: OwnedFd, deadline: Duration, outcome: &mut Outcome) -> bool {
        let end = Instant::now() + deadline;
        let mut pipe = File::from(read);
        let mut text = Vec::new();
        let mut buffer = vec![0; 1 << 16];
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            let mut poll = libc::pollfd {
                fd: pipe.as_raw_fd(),
                events: libc::POLLIN,
                revents: 0,
            };
            let wait = left.as_millis().clamp(1, 1000) as c_int;
            // SAFETY: one valid entry. An interrupted call counts as one without an event.
            if unsafe { libc::poll(&raw mut poll, 1, wait) } <= 0 {
                continue;
            }
            match pipe.read(&mut buffer) {
                Ok(0) => return true,
                Ok(count) => text.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return true,
            }
            while let Some(at) = text.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = text.drain(..=at).collect();
                if let Ok(message) = serde_json::from_slice::<Message>(&line) {
                    outcome.hear(message);
                }
            }
        }
    }

    /// The child's status; `None` if it does not exit in time.
    fn wait(child: libc::pid_t, longest: Duration) -> Option<c_int> {
        let end = Instant::now() + longest;
        loop {
            let mut status = 0;
            // SAFETY: `status` is valid for one integer.
            match unsafe { libc::waitpid(child, &raw mut status, libc::WNOHANG) } {
                0 if Instant::now() < end => std::thread::sleep(Duration::from_micros(200)),
                0 => return None,
                -1 if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted => {
                }
                // A SIGCHLD handler of the program has reaped it: only its messages are known.
                -1 => return Some(0),
                _ => return Some(status),
            }
        }
    }

    fn end(status: c_int, said: OwnedFd) -> End {
        let how = if libc::WIFSIGNALED(status) {
            let number = libc::WTERMSIG(status);
            let known = [
                (libc::SIGSEGV, "SIGSEGV"),
                (libc::SIGBUS, "SIGBUS"),
                (libc::SIGABRT, "SIGABRT"),
                (libc::SIGILL, "SIGILL"),
                (libc::SIGFPE, "SIGFPE"),
                (libc::SIGKILL, "SIGKILL"),
                (libc::SIGTERM, "SIGTERM"),
                (libc::SIGINT, "SIGINT"),
            ];
            match known.iter().find(|(n, _)| *n == number) {
                Some((_, name)) => (*name).to_owned(),
                None => format!("signal {number}"),
            }
        } else {
            match libc::WEXITSTATUS(status) {
                0 => return End::Finished,
                status => format!("exit status {status}"),
            }
        };
        let said = last_words(said).unwrap_or_default();
        End::Crashed { how, said }
    }

    fn last_words(said: OwnedFd) -> Option<String> {
        let mut file = File::from(said);
        let length = file.seek(SeekFrom::End(0)).ok()?;
        file.seek(SeekFrom::Start(length.saturating_sub(SAID)))
            .ok()?;
        let mut bytes = Vec::new();
        file.take(SAID).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A pipe whose ends are not 0, 1 or 2: the child redirects those, and they may be closed here.
    fn pipe() -> Option<(OwnedFd, OwnedFd)> {
        let mut ends = [0; 2];
        // SAFETY: `ends` has room for two descriptors.
        if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
            return None;
        }
        let [read, write] = ends.map(|fd| {
            // SAFETY: just created and valid; nothing else owns it.
            unsafe { OwnedFd::from_raw_fd(fd) }
        });
        Some((high(&read)?, high(&write)?))
    }

    /// An in-memory file.
    fn memory_file() -> Option<OwnedFd> {
        // SAFETY: the name is NUL-terminated.
        let fd = unsafe { libc::memfd_create(c"cupyrite-doctor".as_ptr(), 0) };
        // SAFETY: just created and valid; nothing else owns it.
        high(&(fd >= 0).then(|| unsafe { OwnedFd::from_raw_fd(fd) })?)
    }

    fn high(fd: &impl AsRawFd) -> Option<OwnedFd> {
        // SAFETY: `fd` is open; nothing else owns the copy.
        let copy: RawFd = unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) };
        // SAFETY: the copy was just made, and nothing else owns it.
        (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) })
    }
}
