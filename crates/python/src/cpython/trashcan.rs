//! Bounded-depth destruction of chains of views and buffers, which may be thousands of objects long. Like CPython's
//! trashcan.

use std::any::Any;
use std::cell::{Cell, RefCell};

/// Maximum depth of nested deallocations.
const MAX_DEPTH: u32 = 50;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static DEFERRED: RefCell<Vec<Box<dyn Any>>> = const { RefCell::new(Vec::new()) };
}

/// Drops the references of a view or buffer: immediately, or after the outermost deallocation if the nesting is too
/// deep.
pub fn drop_bounded<T: 'static>(references: T) {
    let depth = DEPTH.get();
    if depth >= MAX_DEPTH {
        DEFERRED.with_borrow_mut(|deferred| deferred.push(Box::new(references)));
        return;
    }
    DEPTH.set(depth + 1);
    drop(references);
    if depth == 0 {
        // Dropping these may defer further objects.
        while let Some(next) = DEFERRED.with_borrow_mut(Vec::pop) {
            drop(next);
        }
    }
    DEPTH.set(depth);
}
