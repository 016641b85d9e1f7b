//! Cache of texture and surface objects.

use std::sync::Arc;

use crate::texture::objects::{self, Object};
use crate::texture::{BoundReference, ReferenceKind};

/// Cache of texture and surface objects, by their handle and that of their separate sampler.
#[derive(Default)]
pub struct ObjectCache {
    entries: [Option<CachedObject>; 16],
}

/// A cached object.
pub struct CachedObject {
    handle: u64,
    /// The handle of the separate sampler; zero without one.
    sampler: u64,
    /// The object.
    pub object: Object,
    /// Whether the memory that the object reads has been checked.
    pub checked: bool,
}

/// The reference of a handle.
pub fn reference(references: &[BoundReference], handle: u64) -> Option<&BoundReference> {
    references.iter().find(|r| r.reference.handle == handle)
}

/// The object of a handle or of a reference, combined with a separate sampler.
#[cold]
fn look_up(references: &[BoundReference], handle: u64, sampler: u64) -> Option<Object> {
    let object = match reference(references, handle) {
        Some(bound) => bound.object.clone()?,
        None => objects::find(handle)?,
    };
    if sampler == 0 {
        return Some(object);
    }
    let (Object::Texture(texture), Some(ReferenceKind::Sampler(sampler))) = (
        object,
        reference(references, sampler).map(|bound| &bound.reference.kind),
    ) else {
        return None;
    };
    let texture = texture.with_sampler(sampler).ok()?;
    Some(Object::Texture(Arc::new(texture)))
}

impl ObjectCache {
    /// Requires the memory of every object to be checked again.
    pub fn invalidate_memory_checks(&mut self) {
        for e in self.entries.iter_mut().flatten() {
            e.checked = false;
        }
    }

    /// The object of a handle. `sampler` is the handle of a separate sampler, zero without one.
    #[inline]
    pub fn find(
        &mut self,
        references: &[BoundReference],
        handle: u64,
        sampler: u64,
    ) -> Option<&mut CachedObject> {
        // Handles are multiples of 16.
        let slot = &mut self.entries[((handle ^ sampler) >> 4) as usize & 15];
        if slot
            .as_ref()
            .is_none_or(|e| e.handle != handle || e.sampler != sampler)
        {
            *slot = Some(CachedObject {
                handle,
                sampler,
                object: look_up(references, handle, sampler)?,
                checked: false,
            });
        }
        slot.as_mut()
    }
}
