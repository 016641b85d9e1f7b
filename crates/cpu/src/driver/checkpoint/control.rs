//! Requests to other processes, over a socket that each process with a context listens on.
//!
//! The socket has an abstract address made of the user's and the process's id: no file remains when a process dies. Both
//! sides verify with the kernel that the other one belongs to the same user, so no other user can lock a process.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::perform;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::{because, reason};

/// The requested operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operation {
    State,
    RestoreThread,
    Lock,
    Checkpoint,
    Restore,
    Unlock,
}

const OPERATIONS: [Operation; 6] = [
    Operation::State,
    Operation::RestoreThread,
    Operation::Lock,
    Operation::Checkpoint,
    Operation::Restore,
    Operation::Unlock,
];

/// A request.
pub(super) struct Request {
    pub(super) operation: Operation,
    /// For [`Operation::Lock`]; 0 waits without a limit.
    pub(super) timeout_ms: u32,
    /// For [`Operation::Restore`]: old and new UUID of each device.
    pub(super) mapping: Vec<[u8; 32]>,
}

impl Request {
    pub(super) fn new(operation: Operation) -> Self {
        Self {
            operation,
            timeout_ms: 0,
            mapping: Vec::new(),
        }
    }
}

/// First word of each request; a new value for each format.
const FORMAT: u32 = 0x4350_0002;
/// Maximum size of the reason of a failure in an answer, in bytes.
const REASON: u32 = 512;
/// Maximum number of device pairs in a request.
pub(super) const PAIRS: u32 = 64;

/// Time limit for a peer to send its request, or to read its answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Time between two attempts to accept a connection, after one failed.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The descriptor of the listening socket, which a forked child closes; -1 without one.
static LISTENING: AtomicI32 = AtomicI32::new(-1);
/// The thread that listens.
static THREAD: AtomicU32 = AtomicU32::new(0);

extern "C" fn in_child() {
    let descriptor = LISTENING.swap(-1, Ordering::SeqCst);
    if descriptor >= 0 {
        // SAFETY: the child's copy of the descriptor; the thread that uses it exists only in the parent.
        unsafe { libc::close(descriptor) };
    }
}

fn address(pid: u32) -> std::io::Result<SocketAddr> {
    // SAFETY: always succeeds.
    let user = unsafe { libc::geteuid() };
    SocketAddr::from_abstract_name(format!("cupyrite-checkpoint-{user}-{pid}"))
}

/// User and process at the other end.
fn peer(stream: &UnixStream) -> Option<(u32, u32)> {
    // SAFETY: plain data that the call fills in.
    let mut credentials: libc::ucred = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: the option has this type and size.
    let status = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &raw mut length,
        )
    };
    (status == 0).then_some((credentials.uid, credentials.pid as u32))
}

fn same_user(stream: &UnixStream) -> Option<u32> {
    // SAFETY: always succeeds.
    let user = unsafe { libc::geteuid() };
    peer(stream)
        .filter(|(uid, _)| *uid == user)
        .map(|(_, pid)| pid)
}

/// Starts to listen, once per process. Without a socket (a sandbox may refuse it) only the process itself can make its
/// checkpoints.
pub(crate) fn listen() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(listener) = address(std::process::id()).and_then(|a| UnixListener::bind_addr(&a))
        else {
            return;
        };
        LISTENING.store(listener.as_raw_fd(), Ordering::SeqCst);
        // SAFETY: the handler closes a descriptor, which is allowed in a forked child.
        unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        let serve = move || {
            // SAFETY: always succeeds.
            THREAD.store(unsafe { libc::gettid() } as u32, Ordering::SeqCst);
            loop {
                match listener.accept() {
                    Ok((stream, _)) => {
                        // A step may take long; the state can be queried during it.
                        let _ = std::thread::Builder::new()
                            .name("cupyrite-control".to_owned())
                            .spawn(move || answer(stream));
                    }
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    // Out of descriptors or memory: the connection remains in the backlog.
                    Err(_) => std::thread::sleep(ACCEPT_PAUSE),
                }
            }
        };
        let _ = std::thread::Builder::new()
            .name("cupyrite-control".to_owned())
            .spawn(serve);
    });
}

/// The thread that restores this process.
pub(super) fn thread_id() -> u32 {
    match THREAD.load(Ordering::SeqCst) {
        // SAFETY: always succeeds.
        0 => unsafe { libc::gettid() as u32 },
        id => id,
    }
}

/// Fills the buffer; `None` if the bytes do not arrive before the deadline.
fn read_before(stream: &mut UnixStream, deadline: Instant, buffer: &mut [u8]) -> Option<()> {
    let mut filled = 0;
    while filled < buffer.len() {
        let left = deadline.checked_duration_since(Instant::now())?;
        // The socket API treats a limit of zero as no limit.
        let left = left.max(Duration::from_millis(1));
        stream.set_read_timeout(Some(left)).ok()?;
        match stream.read(&mut buffer[filled..]) {
            Ok(0) => return None,
            Ok(n) => filled += n,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
    Some(())
}

/// The request of a peer; `None` if it is invalid or does not arrive before the deadline.
fn receive(stream: &mut UnixStream, deadline: Instant) -> Option<Request> {
    let mut words = [[0; 4]; 4];
    read_before(stream, deadline, words.as_flattened_mut())?;
    let [format, operation, timeout_ms, pairs] = words.map(u32::from_ne_bytes);
    if format != FORMAT || pairs > PAIRS {
        return None;
    }
    let operation = *OPERATIONS.get(operation as usize)?;
    let mut mapping = vec![[0; 32]; pairs as usize];
    read_before(stream, deadline, mapping.as_flattened_mut())?;
    Some(Request {
        operation,
        timeout_ms,
        mapping,
    })
}

/// Serves one connection.
fn answer(mut stream: UnixStream) {
    let reply = match same_user(&stream) {
        None => Err(Code::NOT_PERMITTED),
        Some(_) => match receive(&mut stream, Instant::now() + PATIENCE) {
            None => Err(Code::INVALID_VALUE),
            Some(request) => {
                let done = std::panic::catch_unwind(|| perform(&request));
                let done = done.unwrap_or(Err(Code::UNKNOWN));
                if send(&mut stream, done) {
                    return;
                }
                // The process that asked for the lock ended, and would never release it.
                if request.operation == Operation::Lock && done.is_ok() {
                    let _ = perform(&Request::new(Operation::Unlock));
                }
                return;
            }
        },
    };
    send(&mut stream, reply);
}

fn send(stream: &mut UnixStream, reply: Res<u32>) -> bool {
    let (status, value, mut why) = match reply {
        Ok(value) => (0, value, String::new()),
        Err(code) => (code.0, 0, reason(code).unwrap_or_default()),
    };
    while why.len() > REASON as usize {
        why.pop();
    }
    let mut bytes = Vec::new();
    for word in [status, value, why.len() as u32] {
        bytes.extend(word.to_ne_bytes());
    }
    bytes.extend(why.as_bytes());
    let _ = stream.set_write_timeout(Some(PATIENCE));
    stream.write_all(&bytes).is_ok()
}

/// Why a process does not listen. The statuses are those of an H200's driver (580).
fn unreachable(pid: u32) -> Code {
    let (code, why) = match i32::try_from(pid) {
        // SAFETY: signal 0 is not sent; the call only looks for the process.
        Ok(known) if unsafe { libc::kill(known, 0) } == 0 => (
            Code::NOT_INITIALIZED,
            "has no context on the CPU device, or belongs to another user",
        ),
        Ok(_) if std::io::Error::last_os_error().raw_os_error() == Some(libc::EPERM) => {
            (Code::NOT_PERMITTED, "belongs to another user")
        }
        _ => (Code::OPERATING_SYSTEM, "does not exist"),
    };
    because(code, || format!("process {pid} {why}"))
}

/// Sends a request to another process and waits for its answer.
pub(super) fn ask(pid: u32, request: &Request) -> Res<u32> {
    let mut stream = address(pid)
        .and_then(|address| UnixStream::connect_addr(&address))
        .map_err(|_| unreachable(pid))?;
    if same_user(&stream) != Some(pid) {
        return Err(Code::NOT_PERMITTED);
    }
    let operation = OPERATIONS
        .iter()
        .position(|operation| *operation == request.operation)
        .unwrap_or(0);
    let mut bytes = Vec::new();
    for word in [
        FORMAT,
        operation as u32,
        request.timeout_ms,
        request.mapping.len() as u32,
    ] {
        bytes.extend(word.to_ne_bytes());
    }
    for pair in &request.mapping {
        bytes.extend(pair);
    }
    let lost = |_| {
        because(Code::OPERATING_SYSTEM, || {
            format!("process {pid} ended before it answered")
        })
    };
    stream.write_all(&bytes).map_err(lost)?;
    let mut words = [[0; 4]; 3];
    for word in &mut words {
        stream.read_exact(word).map_err(lost)?;
    }
    let [status, value, length] = words.map(u32::from_ne_bytes);
    let mut why = vec![0; length.min(REASON) as usize];
    stream.read_exact(&mut why).map_err(lost)?;
    match status {
        0 => Ok(value),
        status if why.is_empty() => Err(Code(status)),
        status => Err(because(Code(status), || {
            String::from_utf8_lossy(&why).into_owned()
        })),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_a_deadline() {
        let (mut peer, mut stream) = UnixStream::pair().unwrap();
        let start = Instant::now();
        let deadline = start + Duration::from_millis(60);
        assert!(receive(&mut stream, deadline).is_none());
        assert!(start.elapsed() >= Duration::from_millis(50));
        // Single bytes from the peer do not extend the deadline.
        let sender = std::thread::spawn(move || {
            for _ in 0..1000 {
                if peer.write_all(&[0]).is_err() {
                    return true;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
            false
        });
        let deadline = Instant::now() + Duration::from_millis(60);
        assert!(receive(&mut stream, deadline).is_none());
        drop(stream);
        assert!(sender.join().unwrap());
    }

    #[test]
    fn a_request_arrives_in_parts() {
        let (mut peer, mut stream) = UnixStream::pair().unwrap();
        let mut bytes = Vec::new();
        for word in [FORMAT, 4, 7, 2] {
            bytes.extend(word.to_ne_bytes());
        }
        bytes.extend([5; 64]);
        let sender = std::thread::spawn(move || {
            for part in bytes.chunks(10) {
                peer.write_all(part).unwrap();
                std::thread::sleep(Duration::from_millis(2));
            }
            peer
        });
        let request = receive(&mut stream, Instant::now() + Duration::from_secs(30)).unwrap();
        assert_eq!(request.operation, Operation::Restore);
        assert_eq!((request.timeout_ms, request.mapping), (7, vec![[5; 32]; 2]));
        drop(sender.join().unwrap());
    }
}
