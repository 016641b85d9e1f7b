//! The live texture and surface objects of the process, by handle.
//!
//! The driver creates the handles and never reuses one. A kernel's workers look an object up once per launch and keep
//! its `Arc`: an object destroyed in the meantime lives until they are done.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;

use super::descriptor::{Surface, Texture};

/// The object of a handle.
#[derive(Clone, Debug)]
pub enum Object {
    /// A texture object.
    Texture(Arc<Texture>),
    /// A surface object.
    Surface(Arc<Surface>),
}

static LIVE: LazyLock<RwLock<HashMap<u64, Object>>> = LazyLock::new(RwLock::default);

/// Registers a texture.
pub fn insert_texture(handle: u64, texture: Arc<Texture>) {
    insert(handle, Object::Texture(texture));
}

/// Registers a surface.
pub fn insert_surface(handle: u64, surface: Arc<Surface>) {
    insert(handle, Object::Surface(surface));
}

fn insert(handle: u64, object: Object) {
    LIVE.write().insert(handle, object);
}

/// The live object of a handle.
pub fn find(handle: u64) -> Option<Object> {
    LIVE.read().get(&handle).cloned()
}

/// Removes a texture's handle and returns the object.
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

/// Removes a surface's handle and returns the object.
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
