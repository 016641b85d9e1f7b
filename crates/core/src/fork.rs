//! Detects forks: a child process inherits the parent's objects, but not its driver.
//!
//! CUDA does not work in the child of a process that had initialised it, and the parent's handles are invalid there.
//! So each object records the generation of the process that created it, and is not released in any other.

use std::sync::Once;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use crate::preparation;

/// The state of this process, in one aligned word: nearly every call reads it.
static PROCESS: Process = Process {
    generation: AtomicU32::new(0),
    driver: AtomicU8::new(UNUSED),
};

#[repr(align(8))]
struct Process {
    /// Number of forks since the first process that used this crate.
    generation: AtomicU32,
    /// [`UNUSED`], [`USED`] or [`INHERITED`].
    driver: AtomicU8,
}

const UNUSED: u8 = 0;
/// The fork handler is installed, and the CPU device is registered with the loader.
const USED: u8 = 1;
const INHERITED: u8 = 2;

unsafe extern "C" fn after_fork_in_child() {
    PROCESS.generation.fetch_add(1, Ordering::Relaxed);
    PROCESS.transition(USED, INHERITED);
}

/// Records that this process has initialised the driver, so that its forks cannot use it.
pub fn mark_driver_used() {
    // Both come first: a thread that reads `USED` relies on them.
    ForkGeneration::current();
    preparation::prepare_loader();
    PROCESS.transition(UNUSED, USED);
}

/// Whether this process has initialised the driver. Calls need no preparation then.
#[inline(always)]
pub fn is_driver_ready() -> bool {
    PROCESS.driver.load(Ordering::Acquire) == USED
}

/// Prepares the first driver call. Returns false in a fork of a process that used the driver: no call may be made
/// there.
#[cold]
#[inline(never)]
pub(crate) fn prepare_driver() -> bool {
    if is_forked_child() {
        return false;
    }
    preparation::prepare_loader();
    true
}

/// Whether this process is a fork of one that had initialised the driver.
///
/// CUDA does not work there, but NVIDIA's driver does not refuse every call: an allocation from a pool succeeds, and
/// operates on the inherited state.
#[inline]
pub fn is_forked_child() -> bool {
    PROCESS.driver.load(Ordering::Relaxed) == INHERITED
}

impl Process {
    fn transition(&self, from: u8, to: u8) {
        let _ = self
            .driver
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }
}

#[cold]
fn install_fork_handler() {
    // SAFETY: the handler only updates atomics, which is allowed in the child of a multithreaded process.
    let status = unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
    if status != 0 {
        log::warn!(
            "forks cannot be watched (pthread_atfork: {status}); do not use CUDA objects in is_forked_child children"
        );
    }
}

/// Identifies the process that created an object, among a process and its forks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkGeneration(u32);

impl ForkGeneration {
    /// The generation of this process.
    #[inline]
    pub fn current() -> ForkGeneration {
        static INSTALL: Once = Once::new();
        if PROCESS.driver.load(Ordering::Acquire) == UNUSED {
            INSTALL.call_once(install_fork_handler);
        }
        ForkGeneration(PROCESS.generation.load(Ordering::Relaxed))
    }

    /// The number of forks between the first process that used this crate and this one.
    #[inline]
    pub fn number(self) -> u32 {
        self.0
    }

    /// Whether this process created the object, so that its handles are valid.
    #[inline]
    pub fn is_current(self) -> bool {
        self.0 == PROCESS.generation.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forked_child_has_another_generation() {
        let generation = ForkGeneration::current();
        assert!(generation.is_current());
        // SAFETY: the child only reads an atomic and exits.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let code = i32::from(generation.is_current())
                + 2 * i32::from(
                    !ForkGeneration(PROCESS.generation.load(Ordering::Relaxed)).is_current(),
                );
            // SAFETY: exits without running the parent's exit handlers.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the child belongs to this process; `status` is valid for writes.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status));
        assert_eq!(libc::WEXITSTATUS(status), 0);
        assert!(generation.is_current());
    }
}
