//! Callbacks at the start and at the end of a core dump.

use std::cell::Cell;
use std::ffi::c_void;

use parking_lot::Mutex;

use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{is_executable_address, put_optional};
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, fresh_id, handle_of};
use crate::driver::entry::logs::refuse;
use crate::driver::stream::host_call;

/// `CUcoredumpStatusCallback`
type Function = unsafe extern "C" fn(*mut c_void, i32, i32);

#[derive(Clone, Copy)]
struct Callback {
    handle: u64,
    function: u64,
    data: u64,
}

/// Callbacks of one kind, in the order in which they were registered.
pub(super) struct Callbacks(Mutex<Vec<Callback>>);

pub(super) static START: Callbacks = Callbacks(Mutex::new(Vec::new()));
pub(super) static COMPLETE: Callbacks = Callbacks(Mutex::new(Vec::new()));

thread_local! {
    /// Whether this thread runs a callback.
    static CALLING: Cell<bool> = const { Cell::new(false) };
}

fn refuse_inside() -> Res {
    if CALLING.get() {
        return refuse(Code::NOT_PERMITTED, || {
            "callbacks of core dumps cannot be registered or deregistered in such a callback".into()
        });
    }
    Ok(())
}

impl Callbacks {
    pub(super) fn register(&self, function: u64, data: u64, out: u64) -> Res {
        refuse_inside()?;
        if !is_executable_address(function) {
            return refuse(Code::INVALID_VALUE, || {
                format!("callback {function:#x} is not the address of a function")
            });
        }
        let handle = handle_of(HandleKind::CoredumpCallback, fresh_id());
        put_optional(out, handle)?;
        self.0.lock().push(Callback {
            handle,
            function,
            data,
        });
        Ok(())
    }

    pub(super) fn deregister(&self, handle: u64) -> Res {
        refuse_inside()?;
        let mut all = self.0.lock();
        match all.iter().position(|c| c.handle == handle) {
            Some(at) => {
                all.remove(at);
                Ok(())
            }
            None => refuse(Code::INVALID_VALUE, || {
                format!(
                    "callback {handle:#x} is not registered, or was registered with the other function"
                )
            }),
        }
    }

    /// Calls all of them, without a lock.
    pub(super) fn call(&self, device: i32) {
        let all = self.0.lock().clone();
        for callback in all {
            if !host_call::open() {
                return;
            }
            CALLING.set(true);
            // SAFETY: the program registered the address, which is executable, as a function of this type, to be called with
            // this data.
            unsafe {
                std::mem::transmute::<u64, Function>(callback.function)(
                    callback.data as *mut c_void,
                    std::process::id() as i32,
                    device,
                );
            }
            CALLING.set(false);
        }
    }
}
