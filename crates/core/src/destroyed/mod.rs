//! Records the handles that the program destroys, so that their owners neither use nor destroy them again.
//!
//! Safe code owns libraries, streams and events, and lends their handles. A program can destroy such a handle through
//! the functions of `cupyrite_sys`'s tables: numba-cuda calls `cuLibraryUnload` on each reset. Measured on an H200 with
//! NVIDIA's driver 580: unloading a library twice, destroying a stream twice, using either afterwards, and destroying a
//! stream or an event of a context that was reset meanwhile crash. The driver has no query for the liveness of a
//! handle, and it reuses the values of destroyed handles.
//!
//! [`install`] therefore makes `wrap` interpose a function of `wrappers.rs` on each call that destroys such a handle. The wrapper
//! records the handle before the call: afterwards, another thread may get the same value. Each kind of handle has an
//! epoch, which every such call advances. An owner keeps the epoch of its handle's creation; while the epoch is
//! unchanged, its handle is live. Until a kind has its first owner, nothing is recorded: a program that uses only the
//! bindings pays one load. Owners destroy their own handles through the functions of this module ([`cuLibraryUnload`],
//! [`cuArrayDestroy`], ...), which record nothing.
//!
//! The CPU device never reuses handles: they are recorded after the call, without an epoch
//! ([`NEVER_REUSED`](cupyrite_sys::loader::NEVER_REUSED)).
//!
//! Libraries and graphs belong to no context and outlive a reset. The nodes of a graph refer to objects of their
//! context: they are neither used nor destroyed after its reset. Destroying a graph destroys its nodes; the graph
//! definition detects that. Calls that bypass the tables (ctypes, bindings of another package) are not recorded.

mod handles;
mod memory;
mod wrappers;

use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use cupyrite_sys::driver::{self, CUcontext, CUdevice, CUresult};
use handles::{ByHandle, Handles, is_later, is_never_reused};
pub use memory::{
    cuMemFree, cuMemFreeAsync, cuMemFreeHost, disown_memory, is_memory_freed, own_memory,
};
use wrappers::wrap;
pub use wrappers::{
    cuArrayDestroy, cuEventDestroy, cuGraphDestroy, cuGraphDestroyNode, cuGraphExecDestroy,
    cuLibraryUnload, cuMemPoolDestroy, cuMipmappedArrayDestroy, cuStreamDestroy,
    cuSurfObjectDestroy, cuTexObjectDestroy,
};

/// Wraps the functions of the tables from now on; before the first owner of a handle. Cheap after the first call.
pub fn install() {
    cupyrite_sys::loader::wrap_symbols(wrap);
}

/// A kind of handle that safe code owns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OwnedKind {
    /// `CUlibrary`.
    Library,
    /// `CUstream`.
    Stream,
    /// `CUevent`.
    Event,
    /// `CUarray`.
    Array,
    /// `CUmipmappedArray`.
    MipmappedArray,
    /// `CUtexObject`.
    Texture,
    /// `CUsurfObject`.
    Surface,
    /// `CUgraph`.
    Graph,
    /// `CUgraphExec`.
    GraphExec,
    /// `CUgraphNode`.
    GraphNode,
    /// `CUmemoryPool`.
    MemoryPool,
    /// `CUlinkState`.
    LinkState,
    /// `nvrtcProgram`.
    NvrtcProgram,
    /// `nvvmProgram`.
    NvvmProgram,
    /// `nvJitLinkHandle`.
    JitLink,
    /// Memory that one call frees, by its address. Its owners call [`own_memory`] and [`disown_memory`].
    Memory,
}

/// The number of kinds.
const KINDS: usize = 16;

/// The number of calls that destroyed a handle of a kind, wrapping around.
static EPOCHS: [AtomicU32; KINDS] = [const { AtomicU32::new(0) }; KINDS];

/// Whether a kind has ever had an owner.
static OWNED: [AtomicBool; KINDS] = [const { AtomicBool::new(false) }; KINDS];

struct DestroyedHandles {
    /// By [`OwnedKind`].
    handles: [Handles; KINDS],
    /// The epoch of the last call that destroyed or reset a context, by [`OwnedKind`] of the objects in it.
    contexts: [ByHandle<u32>; KINDS],
}

/// Null until the first use. A forked child starts with a table of its own: a thread of the parent, which the child does not
/// have, may hold the lock.
static TABLE: AtomicPtr<Mutex<Option<DestroyedHandles>>> = AtomicPtr::new(std::ptr::null_mut());

unsafe extern "C" fn start_anew_in_child() {
    TABLE.store(std::ptr::null_mut(), Ordering::Relaxed);
}

/// Locks the table. No function of a CUDA library is called under this lock.
fn table() -> MutexGuard<'static, Option<DestroyedHandles>> {
    let known = TABLE.load(Ordering::Acquire);
    let known = if known.is_null() { create() } else { known };
    // SAFETY: `create` made the pointer from a box, which is never freed.
    let mutex = unsafe { &*known };
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The table's mutex, created by this call or by another thread meanwhile.
#[cold]
fn create() -> *mut Mutex<Option<DestroyedHandles>> {
    static WATCH_FORKS: Once = Once::new();
    // SAFETY: the handler only stores to an atomic, which the child of a multithreaded process may do.
    WATCH_FORKS.call_once(|| unsafe {
        libc::pthread_atfork(None, None, Some(start_anew_in_child));
    });
    let new = Box::into_raw(Box::new(Mutex::new(None)));
    let (success, failure) = (Ordering::AcqRel, Ordering::Acquire);
    match TABLE.compare_exchange(std::ptr::null_mut(), new, success, failure) {
        Ok(_) => new,
        Err(other) => {
            // SAFETY: this call made the box, and has not shared it.
            drop(unsafe { Box::from_raw(new) });
            other
        }
    }
}

impl OwnedKind {
    /// The current epoch. An owner reads it right after its handle was created, and from then on destroyed handles of
    /// this kind are recorded.
    #[inline(always)]
    pub fn epoch(self) -> u32 {
        let owned = &OWNED[self as usize];
        // The first owner's handle is unknown to the program until its constructor returns, so no call is missed.
        if !owned.load(Ordering::Relaxed) {
            owned.store(true, Ordering::Release);
        }
        self.current()
    }

    #[inline(always)]
    fn current(self) -> u32 {
        EPOCHS[self as usize].load(Ordering::Acquire)
    }

    /// Whether the program has destroyed a handle, or its context, since the epoch of its creation. Costs one atomic load
    /// unless the program has destroyed any handle of this kind since then.
    #[inline(always)]
    pub fn is_destroyed<T>(self, handle: *mut T, context: CUcontext, created: u32) -> bool {
        self.current() != created && self.look_up(handle.addr(), context.addr(), created)
    }

    #[cold]
    #[inline(never)]
    fn look_up(self, handle: usize, context: usize, created: u32) -> bool {
        let table = table();
        let Some(table) = table.as_ref() else {
            return false;
        };
        let context = table.contexts[self as usize].get(&context);
        table.handles[self as usize].is_destroyed(handle, created)
            || context.is_some_and(|&destroyed| is_later(destroyed, created))
    }

    /// The next epoch.
    fn advance(self) -> u32 {
        EPOCHS[self as usize]
            .fetch_add(1, Ordering::AcqRel)
            .wrapping_add(1)
    }
}

impl DestroyedHandles {
    fn new() -> DestroyedHandles {
        DestroyedHandles {
            handles: Default::default(),
            contexts: Default::default(),
        }
    }
}

/// Makes the program's call that destroys a handle, and records the handle unless the call was refused.
fn noting(
    kind: OwnedKind,
    handle: usize,
    is_refusal: impl FnOnce(c_int) -> bool,
    call: impl FnOnce() -> c_int,
) -> c_int {
    if is_never_reused(handle) {
        let status = call();
        if !is_refusal(status) {
            let mut table = table();
            table.get_or_insert_with(DestroyedHandles::new).handles[kind as usize].destroy(handle);
            kind.advance();
        }
        return status;
    }
    let note = note_handle(kind, handle);
    let status = call();
    if is_refusal(status) {
        undo(kind, handle, note);
    }
    status
}

/// Records that the program destroys a handle; the result is for [`undo`].
fn note_handle(kind: OwnedKind, handle: usize) -> (u32, Option<u32>) {
    let mut table = table();
    let epoch = kind.advance();
    let handles = &mut table.get_or_insert_with(DestroyedHandles::new).handles[kind as usize];
    (epoch, handles.reused.insert(handle, epoch))
}

/// Reverts a record: the driver refused the call.
fn undo(kind: OwnedKind, handle: usize, (epoch, former): (u32, Option<u32>)) {
    let mut table = table();
    let handles =
        &mut table.get_or_insert_with(DestroyedHandles::new).handles[kind as usize].reused;
    if handles.get(&handle) == Some(&epoch) {
        match former {
            Some(former) => handles.insert(handle, former),
            None => handles.remove(&handle),
        };
    }
}

/// The kinds of handles that belong to a context.
///
/// Memory of a pool outlives a reset: on an H100 with driver 580, `cuMemFreeAsync` frees it afterwards. Other memory does not,
/// and the CPU device frees both. Its owners therefore make the call, and look here for the reason if it fails.
const OF_CONTEXT: [OwnedKind; 9] = [
    OwnedKind::Stream,
    OwnedKind::Event,
    OwnedKind::Array,
    OwnedKind::MipmappedArray,
    OwnedKind::Texture,
    OwnedKind::Surface,
    OwnedKind::Graph,
    OwnedKind::GraphExec,
    OwnedKind::Memory,
];

/// The records of a context, by [`OF_CONTEXT`].
type ContextNotes = [(u32, Option<u32>); OF_CONTEXT.len()];

/// The number of calls in progress that destroy or reset a context.
static ENDING: AtomicUsize = AtomicUsize::new(0);

/// Whether a call is in progress that destroys or resets a context. The call may wait for work that still uses the
/// objects of the context, although the context counts as destroyed.
pub fn is_context_ending() -> bool {
    ENDING.load(Ordering::SeqCst) != 0
}

/// Makes a call that destroys or resets a context.
fn ending(call: impl FnOnce() -> c_int) -> c_int {
    ENDING.fetch_add(1, Ordering::SeqCst);
    let status = call();
    ENDING.fetch_sub(1, Ordering::SeqCst);
    status
}

/// Records that the program destroys or resets a context, with the objects in it; the result is for [`undo_context`].
fn note_context(context: usize) -> ContextNotes {
    let mut table = table();
    OF_CONTEXT.map(|kind| {
        let epoch = kind.advance();
        let contexts = &mut table.get_or_insert_with(DestroyedHandles::new).contexts[kind as usize];
        (epoch, contexts.insert(context, epoch))
    })
}

/// Reverts a record: the driver refused the call.
fn undo_context(context: usize, notes: ContextNotes) {
    let mut table = table();
    for (kind, (epoch, former)) in OF_CONTEXT.into_iter().zip(notes) {
        let contexts = &mut table.get_or_insert_with(DestroyedHandles::new).contexts[kind as usize];
        if contexts.get(&context) == Some(&epoch) {
            match former {
                Some(former) => contexts.insert(context, former),
                None => contexts.remove(&context),
            };
        }
    }
}

/// Whether a status means that nothing was destroyed: the arguments or the state did not allow the call. Any other
/// status may be an error of earlier work, returned after the object was destroyed.
fn is_refusal(status: c_int) -> bool {
    matches!(
        CUresult(status as _),
        CUresult::CUDA_ERROR_INVALID_VALUE
            | CUresult::CUDA_ERROR_NOT_INITIALIZED
            | CUresult::CUDA_ERROR_INVALID_CONTEXT
            | CUresult::CUDA_ERROR_INVALID_HANDLE
            | CUresult::CUDA_ERROR_CONTEXT_IS_DESTROYED
            | CUresult::CUDA_ERROR_NOT_PERMITTED
            | CUresult::CUDA_ERROR_NOT_SUPPORTED
            | CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
            | CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
            | CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
            | CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD
    )
}

/// The handle of a device's primary context, if it is active.
fn active_primary(device: CUdevice) -> Option<usize> {
    let (mut flags, mut active) = (0, 0);
    let mut context: CUcontext = std::ptr::null_mut();
    // SAFETY: valid places for the results; the retain is undone at once.
    unsafe {
        let state = driver::cuDevicePrimaryCtxGetState(device, &mut flags, &mut active);
        if !matches!(state, Ok(CUresult::CUDA_SUCCESS)) || active == 0 {
            return None;
        }
        let retained = driver::cuDevicePrimaryCtxRetain(&mut context, device);
        if !matches!(retained, Ok(CUresult::CUDA_SUCCESS)) {
            return None;
        }
        let _ = driver::cuDevicePrimaryCtxRelease(device);
    }
    Some(context.addr())
}

#[cfg(test)]
mod tests {
    use std::ffi::c_void;

    use cupyrite_sys::loader::NEVER_REUSED;

    use super::wrappers::Original;
    use super::*;

    const NO_CONTEXT: CUcontext = std::ptr::null_mut();

    unsafe extern "C" fn succeed(_: *mut c_void) -> c_int {
        0
    }

    unsafe extern "C" fn refuse(_: *mut c_void) -> c_int {
        400
    }

    fn handle(value: usize) -> *mut c_void {
        std::ptr::without_provenance_mut(value)
    }

    fn program_destroys(
        function: unsafe extern "C" fn(*mut c_void) -> c_int,
        kind: OwnedKind,
        value: usize,
    ) -> c_int {
        let original = Original(AtomicPtr::new(function as *mut c_void));
        // SAFETY: the function ignores its argument.
        unsafe { original.noted(kind, handle(value)) }
    }

    #[test]
    fn a_destroyed_handle_stays_destroyed_for_its_former_owner_only() {
        let kind = OwnedKind::Library;
        let first = kind.epoch();
        assert!(!kind.is_destroyed(handle(0x1000), NO_CONTEXT, first));
        assert_eq!(program_destroys(succeed, kind, 0x1000), 0);
        assert!(kind.is_destroyed(handle(0x1000), NO_CONTEXT, first));
        assert!(!kind.is_destroyed(handle(0x1008), NO_CONTEXT, first));
        assert!(!OwnedKind::Stream.is_destroyed(handle(0x1000), NO_CONTEXT, first));
        // The driver reuses the value for a new object.
        let second = kind.epoch();
        assert!(!kind.is_destroyed(handle(0x1000), NO_CONTEXT, second));
        assert_eq!(program_destroys(succeed, kind, 0x1000), 0);
        assert!(kind.is_destroyed(handle(0x1000), NO_CONTEXT, second));
        assert!(kind.is_destroyed(handle(0x1000), NO_CONTEXT, first));
    }

    #[test]
    fn handles_that_are_never_reused_are_noted_after_the_call() {
        let kind = OwnedKind::Array;
        let unique = |id: usize| NEVER_REUSED as usize | 9 << 48 | id << 4;
        let created = kind.epoch();
        assert_eq!(program_destroys(refuse, kind, unique(1)), 400);
        assert!(!kind.is_destroyed(handle(unique(1)), NO_CONTEXT, created));
        assert_eq!(program_destroys(succeed, kind, unique(1)), 0);
        assert!(kind.is_destroyed(handle(unique(1)), NO_CONTEXT, created));
        assert!(!kind.is_destroyed(handle(unique(2)), NO_CONTEXT, created));
        // The second destruction is refused; its undo changes nothing.
        assert_eq!(program_destroys(refuse, kind, unique(1)), 400);
        assert!(kind.is_destroyed(handle(unique(1)), NO_CONTEXT, created));
    }

    #[test]
    fn a_refused_call_destroys_nothing() {
        let kind = OwnedKind::Event;
        let first = kind.epoch();
        assert_eq!(program_destroys(refuse, kind, 0x2000), 400);
        assert!(!kind.is_destroyed(handle(0x2000), NO_CONTEXT, first));
        program_destroys(succeed, kind, 0x2000);
        let second = kind.epoch();
        assert_eq!(program_destroys(refuse, kind, 0x2000), 400);
        assert!(kind.is_destroyed(handle(0x2000), NO_CONTEXT, first));
        assert!(!kind.is_destroyed(handle(0x2000), NO_CONTEXT, second));
    }

    #[test]
    fn a_handle_whose_destruction_returns_an_earlier_error_is_destroyed() {
        unsafe extern "C" fn fault(_: *mut c_void) -> c_int {
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS.0 as c_int
        }
        let kind = OwnedKind::Event;
        let created = kind.epoch();
        assert_eq!(program_destroys(fault, kind, 0x4000), 700);
        assert!(kind.is_destroyed(handle(0x4000), NO_CONTEXT, created));
    }

    #[test]
    fn a_context_that_is_not_destroyed_keeps_its_streams() {
        let context: CUcontext = handle(0x5000).cast();
        let created = OwnedKind::Stream.epoch();
        let note = note_context(0x5000);
        assert!(OwnedKind::Stream.is_destroyed(handle(1), context, created));
        undo_context(0x5000, note);
        assert!(!OwnedKind::Stream.is_destroyed(handle(1), context, created));
    }

    #[test]
    fn a_context_takes_its_streams_and_events_along() {
        let context: CUcontext = handle(0x3000).cast();
        let created =
            [OwnedKind::Library, OwnedKind::Stream, OwnedKind::Event].map(OwnedKind::epoch);
        let memory = OwnedKind::Memory.current();
        note_context(0x3000);
        assert!(!OwnedKind::Library.is_destroyed(handle(1), context, created[0]));
        assert!(OwnedKind::Stream.is_destroyed(handle(1), context, created[1]));
        assert!(OwnedKind::Event.is_destroyed(handle(1), context, created[2]));
        assert!(!OwnedKind::Event.is_destroyed(handle(1), NO_CONTEXT, created[2]));
        assert!(OwnedKind::Memory.is_destroyed(handle(0x7300), context, memory));
        assert!(!is_memory_freed(0x7300, memory), "not by the program");
        let later = OwnedKind::Stream.epoch();
        assert!(!OwnedKind::Stream.is_destroyed(handle(1), context, later));
    }

    #[test]
    fn a_forked_child_does_not_wait_for_a_thread_of_its_parent() {
        let kind = OwnedKind::Surface;
        let created = kind.epoch();
        assert_eq!(program_destroys(succeed, kind, 0x5600), 0);
        let (held, fork) = (std::sync::Barrier::new(2), std::sync::Barrier::new(2));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _table = table();
                held.wait();
                fork.wait();
            });
            held.wait();
            // SAFETY: the child only uses the table, which it creates anew, and exits.
            let pid = unsafe { libc::fork() };
            assert!(pid >= 0);
            if pid == 0 {
                // SAFETY: ends the child if it waits, and without the parent's exit handlers.
                unsafe {
                    libc::alarm(20);
                    let known = kind.is_destroyed(handle(0x5600), NO_CONTEXT, created);
                    libc::_exit(c_int::from(known));
                }
            }
            fork.wait();
            let mut status = 0;
            // SAFETY: the child belongs to this process; `status` is valid for writes.
            assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
            assert_eq!(status, 0);
        });
        assert!(kind.is_destroyed(handle(0x5600), NO_CONTEXT, created));
    }
}
