//! The live texture and surface objects of the process, by handle.
//!
//! The driver makes the handles and never uses one twice. A kernel's workers ask for an object once a launch and keep it
//! (it is an `Arc`): an object destroyed meanwhile lives until they are done.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;

use super::descriptor::{Surface, Texture};

/// What a handle names.
#[derive(Clone, Debug)]
pub enum Object {
    /// A texture object.
    Texture(Arc<Texture>),
    /// A surface object.
    Surface(Arc<Surface>),
}

static LIVE: LazyLock<RwLock<HashMap<u64, Object>>> = LazyLock::new(RwLock::default);

/// Makes a texture known to kernels.
pub fn insert_texture(handle: u64, texture: Arc<Texture>) {
    insert(handle, Object::Texture(texture));
}

/// Makes a surface known to kernels.
pub fn insert_surface(handle: u64, surface: Arc<Surface>) {
    insert(handle, Object::Surface(surface));
}

fn insert(handle: u64, object: Object) {
    LIVE.write().insert(handle, object);
}

/// What the handle names, if it is live.
pub fn find(handle: u64) -> Option<Object> {
    LIVE.read().get(&handle).cloned()
}

/// Forgets a texture's handle and gives the object back.
pub fn remove_texture(handle: u64) -> Option<Arc<Texture>> {
    let mut live = LIVE.write();
    match live.get(&handle) {
        Some(Object::Texture(_)) => {}
        _ => return None,
    }
    match live.remove(&handle) {
        Some(Object::Texture(texture)) => Some(texture),
        _ => None,
    }
}

/// Forgets a surface's handle and gives the object back.
pub fn remove_surface(handle: u64) -> Option<Arc<Surface>> {
    let mut live = LIVE.write();
    match live.get(&handle) {
        Some(Object::Surface(_)) => {}
        _ => return None,
    }
    match live.remove(&handle) {
        Some(Object::Surface(surface)) => Some(surface),
        _ => None,
    }
}
