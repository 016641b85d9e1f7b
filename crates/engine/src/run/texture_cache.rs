//! Cache of texture and surface objects.

use crate::texture::objects::{self, Object};

/// Cache of texture and surface objects, by handle.
#[derive(Default)]
pub struct ObjectCache {
    entries: [Option<CachedObject>; 16],
}

/// A cached object.
pub struct CachedObject {
    handle: u64,
    /// The object.
    pub object: Object,
    /// Whether the memory that the object reads has been checked.
    pub checked: bool,
}

impl ObjectCache {
    /// Requires the memory of every object to be checked again.
    pub fn invalidate_memory_checks(&mut self) {
        for e in self.entries.iter_mut().flatten() {
            e.checked = false;
        }
    }

    /// The object of a handle.
    #[inline]
    pub fn find(&mut self, handle: u64) -> Option<&mut CachedObject> {
        // Handles are multiples of 16.
        let slot = &mut self.entries[(handle >> 4) as usize & 15];
        if slot.as_ref().is_none_or(|e| e.handle != handle) {
            *slot = Some(CachedObject {
                handle,
                object: objects::find(handle)?,
                checked: false,
            });
        }
        slot.as_mut()
    }
}
