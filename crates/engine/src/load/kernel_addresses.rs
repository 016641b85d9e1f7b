//! Addresses of kernels in device code.
//!
//! Unlike those of functions, they differ in all modules of the process: a kernel can launch one of another module, by an
//! address from memory. They are reused as late as possible, so that a stale address is noticed.

use std::collections::VecDeque;

use cupyrite_ptx::ir::FuncId;
use parking_lot::Mutex;

use super::error::{LoadError, LoadErrorKind};
use crate::address_windows::{WINDOW, windows};

/// Distance between addresses.
const STEP: u64 = 16;

/// Positions in the window of kernels.
struct Positions {
    /// First one that was never used.
    next: u32,
    /// Those that were freed, in this order.
    freed: VecDeque<u32>,
}

static POSITIONS: Mutex<Positions> = Mutex::new(Positions {
    next: 0,
    freed: VecDeque::new(),
});

/// Addresses of the kernels of a module that its code or variables name.
#[derive(Debug)]
pub struct KernelAddresses {
    /// Index of the function and position in the window, by function.
    positions: Vec<(u32, u32)>,
}

impl KernelAddresses {
    /// Assigns addresses to the kernels, whose indices must be sorted in ascending order.
    ///
    /// # Errors
    /// [`LoadErrorKind::OutOfMemory`] if the process has none left.
    pub fn new(kernels: &[FuncId]) -> Result<Self, LoadError> {
        let most = (WINDOW / STEP) as u32;
        let mut all = POSITIONS.lock();
        let mut made = Self {
            positions: Vec::with_capacity(kernels.len()),
        };
        for f in kernels {
            let position = if all.next < most {
                all.next += 1;
                Some(all.next - 1)
            } else {
                all.freed.pop_front()
            };
            let Some(position) = position else {
                // Before `made` is dropped, which locks.
                drop(all);
                return Err(LoadError {
                    kind: LoadErrorKind::OutOfMemory,
                    line: 0,
                    column: 0,
                    message: format!(
                        "more than {most} kernels of all modules are named by device code"
                    ),
                });
            };
            made.positions.push((f.0, position));
        }
        Ok(made)
    }

    /// The address of the kernel that is the function with this index.
    pub fn of(&self, function: u32) -> Option<u64> {
        let n = self.positions.binary_search_by_key(&function, |p| p.0);
        let position = self.positions[n.ok()?].1;
        Some(windows().kernels + STEP * u64::from(position))
    }
}

impl Drop for KernelAddresses {
    fn drop(&mut self) {
        let mut all = POSITIONS.lock();
        all.freed.extend(self.positions.iter().map(|p| p.1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_of_all_modules_have_different_addresses() {
        let ids = [FuncId(1), FuncId(4)];
        let (a, b) = (
            KernelAddresses::new(&ids).expect("free addresses"),
            KernelAddresses::new(&ids).expect("free addresses"),
        );
        let mut all: Vec<_> = [&a, &b]
            .iter()
            .flat_map(|k| [k.of(1), k.of(4)])
            .map(|k| k.expect("an address"))
            .collect();
        assert_eq!(a.of(2), None);
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 4);
    }
}
