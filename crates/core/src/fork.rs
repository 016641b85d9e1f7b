//! Which process an object was made in: after `fork`, the child has the parent's objects but not its driver.
//!
//! CUDA does not work in the child of a process that had initialised it, and handles of the parent mean nothing there.
//! So objects remember where they were born, and release nothing anywhere else.

use std::sync::Once;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// What is known of this process; of a few bytes side by side, since nearly every call looks at them.
static PROCESS: Process = Process {
    generation: AtomicU32::new(0),
    driver: AtomicU8::new(UNUSED),
};

#[repr(align(8))]
struct Process {
    /// Forks between the first process that used this crate and this one.
    generation: AtomicU32,
    /// Whether this process has initialised the driver, or is a fork of one that had.
    driver: AtomicU8,
}

const UNUSED: u8 = 0;
/// Forks are watched by then, and the CPU device has been offered to the loader.
const USED: u8 = 1;
const INHERITED: u8 = 2;

unsafe extern "C" fn after_fork_in_child() {
    PROCESS.generation.fetch_add(1, Ordering::Relaxed);
    PROCESS.change(USED, INHERITED);
}

/// The driver has been initialised: this process's forks cannot use it.
pub fn mark_driver_used() {
    // Both are there for everyone who sees that the driver is used.
    ForkGeneration::current();
    crate::init_software_driver();
    PROCESS.change(UNUSED, USED);
}

/// Whether this process has initialised the driver, so that nothing is left to do before a call of it.
#[inline(always)]
pub fn is_driver_ready() -> bool {
    PROCESS.driver.load(Ordering::Acquire) == USED
}

/// Whether this process is a fork of one that had initialised the driver.
///
/// CUDA does not work there, but NVIDIA's driver does not refuse every call: an allocation from a pool succeeds, and works
/// on the state that the parent left.
#[inline]
pub fn is_forked_child() -> bool {
    PROCESS.driver.load(Ordering::Relaxed) == INHERITED
}

impl Process {
    fn change(&self, from: u8, to: u8) {
        let _ = self
            .driver
            .compare_exchange(from, to, Ordering::AcqRel, Ordering::Relaxed);
    }
}

#[cold]
fn watch() {
    // SAFETY: the handler only adds to an atomic, which is allowed in the child of a process with threads.
    let status = unsafe { libc::pthread_atfork(None, None, Some(after_fork_in_child)) };
    if status != 0 {
        log::warn!(
            "forks cannot be watched (pthread_atfork: {status}); do not use CUDA objects in is_forked_child children"
        );
    }
}

/// The process that an object was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForkGeneration(u32);

impl ForkGeneration {
    /// This process.
    #[inline]
    pub fn current() -> ForkGeneration {
        static WATCH: Once = Once::new();
        if PROCESS.driver.load(Ordering::Acquire) == UNUSED {
            WATCH.call_once(watch);
        }
        ForkGeneration(PROCESS.generation.load(Ordering::Relaxed))
    }

    /// Whether that was this process, so that handles made then mean something now.
    #[inline]
    pub fn is_current(self) -> bool {
        self.0 == PROCESS.generation.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_somewhere_else() {
        let generation = ForkGeneration::current();
        assert!(generation.is_current());
        // SAFETY: the child only reads an atomic and leaves at once.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let code = i32::from(generation.is_current())
                + 2 * i32::from(
                    !ForkGeneration(PROCESS.generation.load(Ordering::Relaxed)).is_current(),
                );
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the child is ours, `status` is a valid place.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status));
        assert_eq!(libc::WEXITSTATUS(status), 0);
        assert!(generation.is_current());
    }
}
