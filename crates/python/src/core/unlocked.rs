//! Objects of the crate that are dropped without the GIL.

use std::mem::ManuallyDrop;
use std::ops::Deref;

use pyo3::prelude::*;

/// A value whose end may wait for the device, as unloading code does.
///
/// Python objects end with the GIL held. Work that the device still has to do may need it, a host function of a stream
/// for one, so it is let go of meanwhile.
#[derive(Debug)]
pub struct Unlocked<T: Send>(ManuallyDrop<T>);

impl<T: Send> Unlocked<T> {
    /// Such a value.
    pub fn new(value: T) -> Unlocked<T> {
        Unlocked(ManuallyDrop::new(value))
    }
}

impl<T: Send> Deref for Unlocked<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Send> Drop for Unlocked<T> {
    fn drop(&mut self) {
        // SAFETY: taken once, here; nothing looks at it afterwards.
        let value = unsafe { ManuallyDrop::take(&mut self.0) };
        let mut value = Some(value);
        // Where the interpreter is ending there may be no GIL to let go of.
        Python::try_attach(|py| {
            let value = value.take();
            py.detach(|| drop(value));
        });
    }
}
