//! Host functions as graph nodes.

use std::any::Any;
use std::ffi::c_void;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use cupyrite_sys::driver::CUDA_HOST_NODE_PARAMS;

use crate::graph::retained::Retained;
use crate::stream::lending::within_callback;

/// A host function that a graph calls. It must not call CUDA.
#[derive(Clone)]
pub struct HostCallback {
    function: unsafe extern "C" fn(*mut c_void),
    data: *mut c_void,
    owner: Option<Retained>,
}

// SAFETY: `from_raw` requires a function and data for any thread; `new` requires `Send + Sync`.
unsafe impl Send for HostCallback {}
// SAFETY: `from_raw` requires a function and data for any thread; `new` requires `Send + Sync`.
unsafe impl Sync for HostCallback {}

impl fmt::Debug for HostCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostCallback({:p})", self.function as *const c_void)
    }
}

type Closure = Box<dyn Fn() + Send + Sync>;

/// Calls a closure of [`HostCallback::new`].
unsafe extern "C" fn call_closure(data: *mut c_void) {
    // SAFETY: `new` made the pointer, and the graph that calls this retains the closure.
    let closure = unsafe { &*data.cast_const().cast::<Closure>() };
    if let Err(payload) = catch_unwind(AssertUnwindSafe(|| within_callback(closure))) {
        report_panic(payload);
    }
}

/// Logs a panic. Its payload may panic when it is dropped, and so may a logger: neither must unwind into the driver.
#[cold]
fn report_panic(payload: Box<dyn Any + Send>) {
    let reported = catch_unwind(AssertUnwindSafe(|| {
        log::error!("a host callback of a graph panicked");
        drop(payload);
    }));
    if let Err(another) = reported {
        // Leaked, because it may do the same.
        std::mem::forget(another);
    }
}

impl HostCallback {
    /// A closure. A panic of it is logged. The graph owns the closure.
    pub fn new(closure: impl Fn() + Send + Sync + 'static) -> HostCallback {
        let closure: Arc<Closure> = Arc::new(Box::new(closure));
        HostCallback {
            function: call_closure,
            data: Arc::as_ptr(&closure).cast_mut().cast(),
            owner: Some(closure),
        }
    }

    /// A C function and its argument. The graph retains `owner`.
    ///
    /// # Safety
    ///
    /// `function(data)` can be called on any thread, until `owner` is dropped if there is one, else until the graph and
    /// its launches are done. It does not unwind.
    pub unsafe fn from_raw(
        function: unsafe extern "C" fn(*mut c_void),
        data: *mut c_void,
        owner: Option<Retained>,
    ) -> HostCallback {
        HostCallback {
            function,
            data,
            owner,
        }
    }

    pub(crate) fn params(&self) -> CUDA_HOST_NODE_PARAMS {
        CUDA_HOST_NODE_PARAMS {
            r#fn: Some(self.function),
            userData: self.data,
        }
    }

    /// What the graph retains.
    pub(crate) fn retained(&self) -> Retained {
        match &self.owner {
            Some(owner) => owner.clone(),
            None => Arc::new(()),
        }
    }
}
