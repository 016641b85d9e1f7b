//! Handles: opaque numbers that name live objects.
//!
//! A handle is never dereferenced and never reused, so a table lookup detects destroyed, foreign and invented handles.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use parking_lot::RwLock;

use crate::driver::entry::errors::Code;
use crate::driver::entry::logs;

/// The high bits of every handle; no mapped address has them.
const TAG: u64 = cupyrite_sys::loader::NEVER_REUSED;

static NEXT: AtomicU64 = AtomicU64::new(1);

/// Returns a number that is unique in the process.
pub(crate) fn fresh_id() -> u64 {
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The type of object a handle names. It is part of the handle's value, so handles of different types never match.
#[derive(Clone, Copy, Debug)]
#[repr(u8)]
pub(crate) enum HandleKind {
    Context = 1,
    Stream,
    Event,
    Module,
    Library,
    Function,
    Kernel,
    Pool,
    Array,
    MipmappedArray,
    Texture,
    Surface,
    Memory,
    Graph,
    Node,
    Exec,
    UserObject,
    Linker,
    LogCallback,
    Condition,
    GreenContext,
    ResourceDescriptor,
    GraphicsResource,
    /// A stream that a kernel created.
    DeviceStream,
    /// An event that a kernel created.
    DeviceEvent,
    Multicast,
    CoredumpCallback,
    ExternalMemory,
    ExternalSemaphore,
    AsyncNotification,
    TextureReference,
    SurfaceReference,
}

impl std::fmt::Display for HandleKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            HandleKind::Context => "context",
            HandleKind::Stream => "stream",
            HandleKind::Event => "event",
            HandleKind::Module => "module",
            HandleKind::Library => "library",
            HandleKind::Function => "function",
            HandleKind::Kernel => "kernel",
            HandleKind::Pool => "memory pool",
            HandleKind::Array => "array",
            HandleKind::MipmappedArray => "mipmapped array",
            HandleKind::Texture => "texture object",
            HandleKind::Surface => "surface object",
            HandleKind::Memory => "memory handle",
            HandleKind::Graph => "graph",
            HandleKind::Node => "graph node",
            HandleKind::Exec => "executable graph",
            HandleKind::UserObject => "user object",
            HandleKind::Linker => "linker state",
            HandleKind::LogCallback => "log callback",
            HandleKind::Condition => "condition",
            HandleKind::GreenContext => "green context",
            HandleKind::ResourceDescriptor => "resource descriptor",
            HandleKind::GraphicsResource => "graphics resource",
            HandleKind::DeviceStream => "stream of a kernel",
            HandleKind::DeviceEvent => "event of a kernel",
            HandleKind::Multicast => "multicast object",
            HandleKind::CoredumpCallback => "core dump callback",
            HandleKind::ExternalMemory => "external memory",
            HandleKind::ExternalSemaphore => "external semaphore",
            HandleKind::AsyncNotification => "asynchronous notification",
            HandleKind::TextureReference => "texture reference",
            HandleKind::SurfaceReference => "surface reference",
        })
    }
}

/// The handle of object `id` of type `kind`.
pub(crate) const fn handle_of(kind: HandleKind, id: u64) -> u64 {
    TAG | (kind as u64) << 48 | id << 4
}

/// The live objects of one type, by handle.
pub(crate) struct HandleTable<T> {
    kind: HandleKind,
    live: LazyLock<RwLock<HashMap<u64, Arc<T>>>>,
}

impl<T> HandleTable<T> {
    pub(crate) const fn new(kind: HandleKind) -> Self {
        Self {
            kind,
            live: LazyLock::new(|| RwLock::new(HashMap::new())),
        }
    }

    /// Registers `object` under the handle of `id`.
    pub(crate) fn insert(&self, id: u64, object: Arc<T>) -> u64 {
        let handle = handle_of(self.kind, id);
        self.insert_handle(handle, object);
        handle
    }

    /// Registers `object` under `handle`.
    pub(crate) fn insert_handle(&self, handle: u64, object: Arc<T>) {
        self.live.write().insert(handle, object);
    }

    pub(crate) fn find(&self, handle: u64) -> Option<Arc<T>> {
        self.live.read().get(&handle).cloned()
    }

    /// Returns the object, or `INVALID_HANDLE`.
    pub(crate) fn get(&self, handle: u64) -> Result<Arc<T>, Code> {
        self.find(handle).ok_or_else(|| self.unknown(handle))
    }

    /// Reports `INVALID_HANDLE` for a handle that names no live object.
    fn unknown(&self, handle: u64) -> Code {
        let kind = self.kind;
        logs::because(Code::INVALID_HANDLE, || {
            if handle == 0 {
                format!("the {kind} handle is null")
            } else {
                format!(
                    "{handle:#x} is not a live {kind} handle: it was never created, was destroyed, or names another type"
                )
            }
        })
    }

    /// Removes the handle and returns its object, or `INVALID_HANDLE`.
    pub(crate) fn remove(&self, handle: u64) -> Result<Arc<T>, Code> {
        self.live
            .write()
            .remove(&handle)
            .ok_or_else(|| self.unknown(handle))
    }

    /// Removes a handle that may have been removed already.
    pub(crate) fn remove_quietly(&self, handle: u64) -> Option<Arc<T>> {
        self.live.write().remove(&handle)
    }

    /// Returns the objects that match `wanted`, in no particular order.
    pub(crate) fn pick(&self, mut wanted: impl FnMut(&T) -> bool) -> Vec<Arc<T>> {
        let live = self.live.read();
        live.values()
            .filter(|object| wanted(object))
            .cloned()
            .collect()
    }

    /// Removes every object that matches `doomed`. The objects are dropped after the lock is released.
    pub(crate) fn remove_where(&self, mut doomed: impl FnMut(&T) -> bool) {
        self.remove_where_key(|_, object| doomed(object));
    }

    /// [`HandleTable::remove_where`] for callers that need the handles.
    pub(crate) fn remove_where_key(&self, mut doomed: impl FnMut(u64, &T) -> bool) {
        let mut removed = Vec::new();
        self.live.write().retain(|&handle, object| {
            let dead = doomed(handle, object);
            if dead {
                removed.push(object.clone());
            }
            !dead
        });
    }
}
