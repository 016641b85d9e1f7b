//! External semaphores, and lists of operations on them.
//!
//! A binary semaphore is an eventfd: a signal adds one, and a wait takes what is there. A timeline semaphore is the unsigned
//! 64-bit counter at the beginning of a shared memory object: a signal sets it, and a wait is over when it has reached the
//! value. Programs may use both without CUDA.

use std::mem::offset_of;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cupyrite_engine::memory::files::{self, Words};
use cupyrite_engine::memory::object::{self, MemoryObject};
use cupyrite_sys::driver::{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS as Params,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUexternalSemaphoreHandleType as HandleType,
};

use super::{check_flags, refuse_descriptor, waits};
use crate::driver::context::{self, Context};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{Kept, get_array, non_null};
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable};
use crate::driver::entry::logs::refuse;
use crate::driver::stream::capture_state;

pub(super) static SEMAPHORES: HandleTable<Semaphore> =
    HandleTable::new(HandleKind::ExternalSemaphore);

const BINARY: u32 = HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD.0;
const TIMELINE: u32 = HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD.0;

/// What a semaphore is for the system.
enum Counter {
    Binary(OwnedFd),
    Timeline(Words),
}

/// An imported semaphore.
pub(crate) struct Semaphore {
    context: Arc<Context>,
    counter: Counter,
}

/// Destroys the semaphores of a destroyed context.
pub(super) fn remove_context(context: u64) {
    SEMAPHORES.remove_where(|s| s.context.id == context);
}

/// Imports the semaphore of a descriptor; returns it with the descriptor, which stays the caller's.
pub(super) fn import(desc: &CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC) -> Res<(Arc<Semaphore>, i32)> {
    let context = context::current()?;
    capture_state::reject_if_capturing()?;
    let is_timeline = match desc.r#type {
        HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD => false,
        HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD => true,
        HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_NVSCISYNC => {
            return refuse(Code::NOT_SUPPORTED, || {
                "type=NVSCISYNC: NvSci exists on NVIDIA's embedded systems only; the CPU device imports OPAQUE_FD and TIMELINE_SEMAPHORE_FD".into()
            });
        }
        HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32
        | HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT
        | HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE
        | HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_FENCE
        | HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX
        | HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D11_KEYED_MUTEX_KMT
        | HandleType::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32 => {
            return refuse(Code::NOT_SUPPORTED, || {
                format!(
                    "type={}: a handle of Windows; the CPU device imports OPAQUE_FD and TIMELINE_SEMAPHORE_FD",
                    desc.r#type.0
                )
            });
        }
        HandleType(kind) => {
            return refuse(Code::INVALID_VALUE, || {
                format!("type={kind} is not a CUexternalSemaphoreHandleType")
            });
        }
    };
    check_flags(desc.flags, 0, &desc.reserved)?;
    // SAFETY: an integer, for which any bits are valid.
    let descriptor = unsafe { desc.handle.fd };
    let counter = if is_timeline {
        timeline(descriptor)?
    } else {
        binary(descriptor)?
    };
    Ok((Arc::new(Semaphore { context, counter }), descriptor))
}

/// The binary semaphore of an eventfd.
fn binary(descriptor: i32) -> Res<Counter> {
    let refused = |reason: &dyn std::fmt::Display| refuse_descriptor(BINARY, descriptor, reason);
    let event = object::duplicate(descriptor).map_err(|error| refused(&error))?;
    let name = files::describe(event.as_raw_fd());
    if name != "anon_inode:[eventfd]" {
        let reason = format!("it is {name}; a binary semaphore of the CPU device is an eventfd");
        return Err(refused(&reason));
    }
    Ok(Counter::Binary(event))
}

/// The timeline semaphore of a shared memory object that begins with its counter.
fn timeline(descriptor: i32) -> Res<Counter> {
    let refused = |reason: &dyn std::fmt::Display| refuse_descriptor(TIMELINE, descriptor, reason);
    let object = MemoryObject::open(descriptor).map_err(|error| refused(&error))?;
    let words = (object.locate(0, 8) == Some(0) && object.reserve(0, 8))
        .then(|| Words::map(object.file(), 1))
        .flatten();
    words.map(Counter::Timeline).ok_or_else(|| {
        let bytes = object.size();
        refused(&format!(
            "a timeline semaphore of the CPU device is a shared memory object that begins with its 64-bit counter; the object \
             has {bytes} bytes"
        ))
    })
}

impl Semaphore {
    /// Signals the semaphore. A counter that has passed `value` keeps its value.
    fn signal(&self, value: u64) -> Res {
        match &self.counter {
            Counter::Binary(event) => add_one(event)?,
            Counter::Timeline(words) => {
                words.word(0).fetch_max(value, Ordering::SeqCst);
                words.wake(0);
            }
        }
        waits::notify();
        Ok(())
    }

    /// Whether a wait for `value` is over. A binary semaphore is then no longer signaled. Does not block.
    pub(super) fn acquire(&self, value: u64) -> bool {
        match &self.counter {
            Counter::Binary(event) => take(event),
            Counter::Timeline(words) => words.word(0).load(Ordering::SeqCst) >= value,
        }
    }
}

/// Whether an operation on the descriptor would not block.
fn is_ready(event: &OwnedFd, operation: libc::c_short) -> bool {
    let mut poll = libc::pollfd {
        fd: event.as_raw_fd(),
        events: operation,
        revents: 0,
    };
    // SAFETY: one complete structure, and a timeout of zero.
    unsafe { libc::poll(&mut poll, 1, 0) > 0 && poll.revents & operation != 0 }
}

/// Adds one to an eventfd. At the maximum it is signaled already.
fn add_one(event: &OwnedFd) -> Res {
    let one = 1u64;
    if !is_ready(event, libc::POLLOUT) {
        return Ok(());
    }
    // SAFETY: writes the eight bytes of an integer.
    let n = unsafe { libc::write(event.as_raw_fd(), (&raw const one).cast(), 8) };
    if n == 8 {
        Ok(())
    } else {
        Err(Code::OPERATING_SYSTEM)
    }
}

/// Takes the value of an eventfd, or one of an eventfd that counts (`EFD_SEMAPHORE`). False if it is zero.
fn take(event: &OwnedFd) -> bool {
    if !is_ready(event, libc::POLLIN) {
        return false;
    }
    let mut value = 0u64;
    let part = libc::iovec {
        iov_base: (&raw mut value).cast(),
        iov_len: 8,
    };
    // Another process may take the value in the meantime. The flag keeps the read from blocking without a change of the
    // eventfd, which others use.
    // SAFETY: reads eight bytes into an integer.
    let n = unsafe { libc::preadv2(event.as_raw_fd(), &part, 1, -1, libc::RWF_NOWAIT) };
    if n == 8 {
        return true;
    }
    let unknown = matches!(
        std::io::Error::last_os_error().raw_os_error(),
        Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL)
    );
    // SAFETY: reads eight bytes into an integer.
    unknown && unsafe { libc::read(event.as_raw_fd(), (&raw mut value).cast(), 8) } == 8
}

// The parameters of waits have the same layout, as far as they are used.
const _: () = {
    type Wait = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS;
    assert!(size_of::<Params>() == size_of::<Wait>());
    assert!(offset_of!(Params, flags) == offset_of!(Wait, flags));
    assert!(offset_of!(Params, params.fence.value) == offset_of!(Wait, params.fence.value));
};

/// Operations on semaphores: all signals, or all waits.
#[derive(Clone)]
pub(crate) struct Operations {
    handles: Box<[u64]>,
    /// The caller's parameters.
    params: Box<[Kept<Params>]>,
    semaphores: Box<[Arc<Semaphore>]>,
}

impl Operations {
    /// Reads a list of operations.
    ///
    /// # Errors
    /// `INVALID_VALUE` for null arrays and invalid flags, `INVALID_HANDLE` for a semaphore that does not exist.
    pub(crate) fn read(handles: u64, params: u64, count: u32) -> Res<Operations> {
        if count > 0 {
            non_null(handles)?;
            non_null(params)?;
        }
        let handles = get_array::<u64>(handles, count as usize)?;
        let semaphores: Res<Box<[Arc<Semaphore>]>> = handles
            .iter()
            .map(|&handle| SEMAPHORES.get(handle))
            .collect();
        let semaphores = semaphores?;
        let params = get_array::<Params>(params, count as usize)?;
        for (at, p) in params.iter().enumerate() {
            // The first two of these words are the timeout of a wait for a keyed mutex.
            let reserved = p.params.reserved[2..].iter().chain(&p.reserved);
            if p.flags != 0 || reserved.into_iter().any(|&word| word != 0) {
                return refuse(Code::INVALID_VALUE, || {
                    format!(
                        "paramsArray[{at}]: flags must be 0 for semaphores other than NVSCISYNC, and reserved words zero; clear the structure first"
                    )
                });
            }
        }
        Ok(Operations {
            handles: handles.into(),
            params: params.into_iter().map(Kept).collect(),
            semaphores,
        })
    }

    pub(crate) fn len(&self) -> usize {
        self.handles.len()
    }

    /// Addresses of the handles and of the parameters, valid as long as `self` lives; zeros for an empty list.
    pub(crate) fn addresses(&self) -> (u64, u64) {
        if self.handles.is_empty() {
            return (0, 0);
        }
        (self.handles.as_ptr() as u64, self.params.as_ptr() as u64)
    }

    /// A line for each operation: the semaphore and the value of its parameters.
    pub(crate) fn lines(&self) -> Vec<String> {
        let values = self.params.iter().map(|p| p.0.params.fence.value);
        let line = |(handle, value)| format!("semaphore {handle:#x}, value {value}");
        self.handles.iter().zip(values).map(line).collect()
    }

    /// The semaphores with their values.
    pub(super) fn pairs(&self) -> Vec<(Arc<Semaphore>, u64)> {
        let values = self.params.iter().map(|p| p.0.params.fence.value);
        self.semaphores.iter().cloned().zip(values).collect()
    }

    /// Signals all semaphores.
    ///
    /// # Errors
    /// `OPERATING_SYSTEM` if the system refuses.
    pub(crate) fn signal(&self) -> Res {
        self.pairs()
            .iter()
            .try_for_each(|(s, value)| s.signal(*value))
    }
}
