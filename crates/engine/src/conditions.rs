//! The live condition variables of the process, by handle: the values that conditional graph nodes test.
//!
//! The driver creates the handles and never reuses one. Graphs keep the variables alive; kernels set them by handle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Weak};

use parking_lot::RwLock;

/// A condition variable.
#[derive(Debug)]
pub struct Condition {
    handle: u64,
    value: AtomicU32,
}

static LIVE: LazyLock<RwLock<HashMap<u64, Weak<Condition>>>> = LazyLock::new(RwLock::default);

impl Condition {
    /// Creates the variable of `handle`, with value zero.
    pub fn create(handle: u64) -> Arc<Condition> {
        let value = AtomicU32::new(0);
        let condition = Arc::new(Condition { handle, value });
        LIVE.write().insert(handle, Arc::downgrade(&condition));
        condition
    }

    /// The handle.
    pub fn handle(&self) -> u64 {
        self.handle
    }

    /// The value.
    pub fn value(&self) -> u32 {
        self.value.load(Ordering::Acquire)
    }

    /// Sets the value.
    pub fn set(&self, value: u32) {
        self.value.store(value, Ordering::Release);
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        LIVE.write().remove(&self.handle);
    }
}

/// Sets the variable of a handle; returns whether there is one.
pub(crate) fn set(handle: u64, value: u32) -> bool {
    // The lock is released before the last reference can be dropped.
    let condition = LIVE.read().get(&handle).and_then(Weak::upgrade);
    condition.is_some_and(|condition| {
        condition.set(value);
        true
    })
}
