//! User objects: caller data that graphs keep alive, with a destructor that runs after the last release.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cupyrite_sys::driver as sys;

use super::{Code, find};
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{is_executable_address, non_null, put};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id, handle_of};
use crate::driver::stream::host_call;
use crate::driver::stream::queue::Op;

static OBJECTS: HandleTable<Object> = HandleTable::new(HandleKind::UserObject);

/// Required by `cuUserObjectCreate`; there is no other flag.
const NO_DESTRUCTOR_SYNC: u32 = sys::CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.0;
/// The graph takes over the caller's references.
const MOVE: u32 = sys::CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE.0;
/// Maximum reference count.
const MAX_REFERENCES: u64 = i32::MAX as u64;

/// A user object.
struct Object {
    id: u64,
    references: AtomicU64,
    destructor: u64,
    data: u64,
}

impl Object {
    fn retain(&self, count: u64) -> Res {
        self.references
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
                n.checked_add(count).filter(|&n| n <= MAX_REFERENCES)
            })
            .map(|_| ())
            .map_err(|_| Code::INVALID_VALUE)
    }

    /// Releases references. The last one removes the handle and runs the destructor on a driver thread.
    ///
    /// # Errors
    /// `INVALID_VALUE` if there are fewer references.
    fn release(&self, count: u64) -> Res {
        if count == 0 {
            return Ok(());
        }
        let before = self
            .references
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |n| {
                n.checked_sub(count)
            })
            .map_err(|_| Code::INVALID_VALUE)?;
        if before == count {
            let _ = OBJECTS.remove(handle_of(HandleKind::UserObject, self.id));
            let (destructor, data) = (self.destructor, self.data);
            Op::new(Some(Box::new(move || {
                // SAFETY: the caller passed the address, which is executable, as a function of this type.
                unsafe { host_call::run(destructor, data) };
            })))
            .release();
        }
        Ok(())
    }
}

/// Counted references to one object.
struct CountedReferences {
    object: Arc<Object>,
    count: u64,
}

impl CountedReferences {
    /// Retains the same number of references again, for a copy of the holder.
    fn again(&self) -> Option<CountedReferences> {
        self.object.retain(self.count).ok()?;
        Some(CountedReferences {
            object: self.object.clone(),
            count: self.count,
        })
    }
}

impl Drop for CountedReferences {
    fn drop(&mut self) {
        let _ = self.object.release(self.count);
    }
}

/// The user objects that a graph keeps alive.
#[derive(Default)]
pub(in crate::driver) struct Objects(HashMap<u64, CountedReferences>);

impl Clone for Objects {
    fn clone(&self) -> Objects {
        let held = self.0.iter();
        Objects(held.filter_map(|(&id, h)| Some((id, h.again()?))).collect())
    }
}

impl Objects {
    /// Takes over references that are already counted.
    fn add(&mut self, object: &Arc<Object>, count: u64) {
        let held = self
            .0
            .entry(object.id)
            .or_insert_with(|| CountedReferences {
                object: object.clone(),
                count: 0,
            });
        held.count += count;
    }

    /// Releases references.
    fn remove(&mut self, object: &Object, count: u64) -> Res {
        let held = self.0.get_mut(&object.id).ok_or(Code::INVALID_VALUE)?;
        if held.count < count {
            return Err(Code::INVALID_VALUE);
        }
        held.count -= count;
        let empty = held.count == 0;
        held.object.release(count)?;
        if empty {
            self.0.remove(&object.id);
        }
        Ok(())
    }
}

fn get_object(handle: u64) -> Res<Arc<Object>> {
    OBJECTS.find(handle).ok_or(Code::INVALID_VALUE)
}

/// Validates a reference count: a positive `int`.
fn check_count(count: u32) -> Res<u64> {
    if count == 0 || u64::from(count) > MAX_REFERENCES {
        return Err(Code::INVALID_VALUE);
    }
    Ok(count.into())
}

driver_entry_points! {
    fn user_object_create "cuUserObjectCreate" (out: u64, data: u64, destructor: u64, count: u32, flags: u32) {
        non_null(out)?;
        if flags != NO_DESTRUCTOR_SYNC || !is_executable_address(destructor) {
            return Err(Code::INVALID_VALUE);
        }
        let references = AtomicU64::new(check_count(count)?);
        let id = fresh_id();
        let handle = OBJECTS.insert(id, Arc::new(Object { id, references, destructor, data }));
        put(out, handle).inspect_err(|_| { let _ = OBJECTS.remove(handle); })
    }
    fn user_object_retain "cuUserObjectRetain" (object: u64, count: u32) {
        get_object(object)?.retain(check_count(count)?)
    }
    fn user_object_release "cuUserObjectRelease" (object: u64, count: u32) {
        get_object(object)?.release(check_count(count)?)
    }
    fn graph_retain "cuGraphRetainUserObject" (graph: u64, object: u64, count: u32, flags: u32) {
        if flags & !MOVE != 0 {
            return Err(Code::INVALID_VALUE);
        }
        let (graph, object) = (find(graph)?, get_object(object)?);
        let count = check_count(count)?;
        if flags & MOVE == 0 {
            object.retain(count)?;
        } else if object.references.load(Ordering::Acquire) < count {
            return Err(Code::INVALID_VALUE);
        }
        graph.lock().objects.add(&object, count);
        Ok(())
    }
    fn graph_release "cuGraphReleaseUserObject" (graph: u64, object: u64, count: u32) {
        let (graph, object) = (find(graph)?, get_object(object)?);
        let count = check_count(count)?;
        graph.lock().objects.remove(&object, count)
    }
}
