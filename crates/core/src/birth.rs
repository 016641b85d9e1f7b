//! Which process an object was made in: after `fork`, the child has the parent's objects but not its driver.
//!
//! CUDA does not work in the child of a process that had initialised it, and handles of the parent mean nothing there.
//! So objects remember where they were born, and release nothing anywhere else.

use std::sync::Once;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// Forks between the first process that used this crate and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Whether this process has initialised the driver, or is a fork of one that had.
static DRIVER: AtomicU8 = AtomicU8::new(UNUSED);
const UNUSED: u8 = 0;
const USED: u8 = 1;
const INHERITED: u8 = 2;

unsafe extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    let _ = DRIVER.compare_exchange(USED, INHERITED, Ordering::Relaxed, Ordering::Relaxed);
}

/// The driver has been initialised: this process's forks cannot use it.
pub fn driver_is_used() {
    // Has forks watched.
    Birth::now();
    let _ = DRIVER.compare_exchange(UNUSED, USED, Ordering::Relaxed, Ordering::Relaxed);
}

/// Whether this process is a fork of one that had initialised the driver.
///
/// CUDA does not work there, but NVIDIA's driver does not refuse every call: an allocation from a pool succeeds, and works
/// on the state that the parent left.
#[inline]
pub fn forked() -> bool {
    DRIVER.load(Ordering::Relaxed) == INHERITED
}

#[cold]
fn watch() {
    // SAFETY: the handler only adds to an atomic, which is allowed in the child of a process with threads.
    let status = unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    if status != 0 {
        log::warn!(
            "forks cannot be watched (pthread_atfork: {status}); do not use CUDA objects in forked children"
        );
    }
}

/// The process that an object was made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth(u32);

impl Birth {
    /// This process.
    #[inline]
    pub fn now() -> Birth {
        static WATCH: Once = Once::new();
        WATCH.call_once(watch);
        Birth(GENERATION.load(Ordering::Relaxed))
    }

    /// Whether that was this process, so that handles made then mean something now.
    #[inline]
    pub fn is_here(self) -> bool {
        self.0 == GENERATION.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_somewhere_else() {
        let birth = Birth::now();
        assert!(birth.is_here());
        // SAFETY: the child only reads an atomic and leaves at once.
        let pid = unsafe { libc::fork() };
        assert!(pid >= 0);
        if pid == 0 {
            let code = i32::from(birth.is_here())
                + 2 * i32::from(!Birth(GENERATION.load(Ordering::Relaxed)).is_here());
            // SAFETY: ends the child without running anything of the parent's.
            unsafe { libc::_exit(code) };
        }
        let mut status = 0;
        // SAFETY: the child is ours, `status` is a valid place.
        assert_eq!(unsafe { libc::waitpid(pid, &mut status, 0) }, pid);
        assert!(libc::WIFEXITED(status));
        assert_eq!(libc::WEXITSTATUS(status), 0);
        assert!(birth.is_here());
    }
}
