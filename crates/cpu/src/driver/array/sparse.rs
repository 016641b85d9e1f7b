//! Sparse arrays and arrays with deferred mapping: their properties, and the mapping of memory into them (CUDA driver API,
//! `cuMemMapArrayAsync`). The layout is in `cupyrite_engine::texture`.

use std::sync::Arc;

use cupyrite_engine::memory::Physical;
use cupyrite_engine::texture::{Level, Storage, TILE};
use cupyrite_sys::driver::{
    self as sys, CUDA_ARRAY_MEMORY_REQUIREMENTS, CUDA_ARRAY_SPARSE_PROPERTIES, CUarrayMapInfo,
    CUarraySparseSubresourceType as Subresource, CUmemHandleType, CUmemOperationType as Operation,
    CUresourcetype,
};

use super::{ARRAYS, Array, MIPMAPPED, Owner};
use crate::driver::context;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_array, non_null, put_with};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::{because, refuse};
use crate::driver::memory::virtual_memory;
use crate::driver::stream::resolve;
use crate::driver::stream::{OpPlacement, Stream};

fn put_properties(out: u64, storage: &Storage, mipmapped: bool) -> Res {
    let Some(found) = storage.sparse_properties() else {
        return refuse(Code::INVALID_VALUE, || {
            "the array was created without CUDA_ARRAY3D_SPARSE".to_owned()
        });
    };
    put_with(out, |p: &mut CUDA_ARRAY_SPARSE_PROPERTIES| {
        let [width, height, depth] = found.tile;
        (p.tileExtent.width, p.tileExtent.height, p.tileExtent.depth) = (width, height, depth);
        p.miptailFirstLevel = if mipmapped { found.first_tail_level } else { 0 };
        p.miptailSize = found.tail_bytes;
        p.flags = if found.single_tail {
            sys::CU_ARRAY_SPARSE_PROPERTIES_SINGLE_MIPTAIL
        } else {
            0
        };
        p.reserved = [0; 4];
    })
}

fn put_requirements(out: u64, storage: &Storage) -> Res {
    if !storage.is_deferred() {
        return refuse(Code::INVALID_VALUE, || {
            "the array was created without CUDA_ARRAY3D_DEFERRED_MAPPING".to_owned()
        });
    }
    put_with(out, |r: &mut CUDA_ARRAY_MEMORY_REQUIREMENTS| {
        r.size = storage.required_bytes() as usize;
        r.alignment = TILE as usize;
        r.reserved = [0; 4];
    })
}

/// An array that is not a level of a mipmapped one.
fn whole(handle: u64) -> Res<Arc<Array>> {
    let array = ARRAYS.get(handle)?;
    if matches!(array.owner, Owner::Mipmapped(_)) {
        return refuse(Code::INVALID_VALUE, || {
            "the array is a level of a mipmapped array; use the mipmapped array".to_owned()
        });
    }
    Ok(array)
}

/// A run of units of [`TILE`] bytes that are mapped to consecutive memory.
#[derive(Clone, Copy)]
struct Run {
    first: u64,
    count: u64,
}

/// A checked operation of a call.
struct Change {
    storage: Arc<Storage>,
    runs: Vec<Run>,
    /// The memory and the offset in it; `None` to unmap.
    memory: Option<(Arc<Physical>, u64)>,
}

impl Change {
    fn apply(&self) -> Res {
        let Some(mappings) = self.storage.mappings() else {
            return Ok(());
        };
        let mut offset = self.memory.as_ref().map_or(0, |(_, offset)| *offset);
        for run in &self.runs {
            let memory = self.memory.as_ref().map(|(memory, _)| (memory, offset));
            mappings
                .change(run.first, run.count, memory)
                .map_err(virtual_memory::code)?;
            offset += run.count * TILE;
        }
        Ok(())
    }
}

fn invalid<T>(reason: impl Into<String>) -> Res<T> {
    let reason = reason.into();
    refuse(Code::INVALID_VALUE, || reason)
}

/// The tiles of a level that an operation names, and their number of units.
fn tiles(info: &CUarrayMapInfo, storage: &Storage) -> Res<Vec<Run>> {
    // SAFETY: a struct of integers, for which any bits are valid.
    let named = unsafe { info.subresource.sparseLevel };
    let Some(properties) = storage.sparse_properties() else {
        return invalid("the array is not sparse");
    };
    if named.level >= storage.level_count() || named.level >= properties.first_tail_level {
        return invalid(format!(
            "level {}: tiles are in the {} first of {} levels",
            named.level,
            properties.first_tail_level,
            storage.level_count()
        ));
    }
    if named.layer >= storage.layers() {
        return invalid(format!("layer {} of {}", named.layer, storage.layers()));
    }
    let (Some(level), Some(base)) = (
        storage.level(named.level),
        storage.unit(named.level, named.layer.into()),
    ) else {
        return invalid("the array has no such level");
    };
    let Level {
        extent,
        tiles: Some(tiles),
        ..
    } = level
    else {
        return invalid("the level has no tiles");
    };
    let offset = [named.offsetX, named.offsetY, named.offsetZ];
    let size = [named.extentWidth, named.extentHeight, named.extentDepth];
    let mut from = [0; 3];
    let mut to = [0; 3];
    for k in 0..3 {
        let (tile, all) = (u64::from(properties.tile[k]), u64::from(extent[k]));
        let (start, length) = (u64::from(offset[k]), u64::from(size[k]));
        let end = start + length;
        // The extent of the last tile ends with the array.
        let whole = end.is_multiple_of(tile) || end == all;
        if length == 0 || !start.is_multiple_of(tile) || !whole || end > all {
            return invalid(format!(
                "offset {start} and extent {length} in dimension {k}: tiles have {tile} elements, and the level {all}"
            ));
        }
        (from[k], to[k]) = (start / tile, end.div_ceil(tile));
    }
    let mut runs: Vec<Run> = Vec::new();
    for z in from[2]..to[2] {
        for y in from[1]..to[1] {
            let first = base + tiles.number([from[0], y, z]);
            let count = to[0] - from[0];
            match runs.last_mut() {
                Some(run) if run.first + run.count == first => run.count += count,
                _ => runs.push(Run { first, count }),
            }
        }
    }
    Ok(runs)
}

/// The part of a mip tail that an operation names.
fn tail(info: &CUarrayMapInfo, storage: &Storage) -> Res<Vec<Run>> {
    // SAFETY: a struct of integers, for which any bits are valid.
    let named = unsafe { info.subresource.miptail };
    let Some(properties) = storage.sparse_properties() else {
        return invalid("the array is not sparse");
    };
    let layers = if properties.single_tail {
        1
    } else {
        storage.layers()
    };
    let (offset, size) = (named.offset, named.size);
    let inside = offset
        .checked_add(size)
        .is_some_and(|end| end <= properties.tail_bytes);
    if size == 0 || !inside || !offset.is_multiple_of(TILE) || !size.is_multiple_of(TILE) {
        return invalid(format!(
            "offset {offset} and size {size}: the mip tail has {} bytes in units of {TILE}",
            properties.tail_bytes
        ));
    }
    if named.layer >= layers {
        return invalid(format!(
            "layer {}: {layers} layers have mip tails",
            named.layer
        ));
    }
    match storage.unit(properties.first_tail_level, named.layer.into()) {
        Some(first) => Ok(vec![Run {
            first: first + offset / TILE,
            count: size / TILE,
        }]),
        None => invalid("the array has no mip tail"),
    }
}

/// Checks one operation for a stream.
fn change(info: &CUarrayMapInfo, stream: &Stream) -> Res<Change> {
    // SAFETY: both members are handles, for which any bits are valid.
    let handle = unsafe { info.resource.array }.addr() as u64;
    let storage = match info.resourceType {
        CUresourcetype::CU_RESOURCE_TYPE_ARRAY => whole(handle)?.storage().clone(),
        CUresourcetype::CU_RESOURCE_TYPE_MIPMAPPED_ARRAY => {
            MIPMAPPED.get(handle)?.storage().clone()
        }
        other => return invalid(format!("resourceType is {}", other.0)),
    };
    if info.flags != 0 || info.reserved != [0; 2] {
        return invalid("flags and reserved must be zero");
    }
    let device = stream.context.device;
    if info.deviceBitMask.checked_ilog2() != u32::try_from(device).ok()
        || !info.deviceBitMask.is_power_of_two()
    {
        return invalid(format!(
            "deviceBitMask is {:#x}; it must have the one bit of device {device}, the stream's",
            info.deviceBitMask
        ));
    }
    let runs = if storage.is_deferred() {
        vec![Run {
            first: 0,
            count: storage.required_bytes() / TILE,
        }]
    } else if storage.sparse_properties().is_none() {
        return invalid("the array is neither sparse nor has a deferred mapping");
    } else {
        match info.subresourceType {
            Subresource::CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_SPARSE_LEVEL => tiles(info, &storage)?,
            Subresource::CU_ARRAY_SPARSE_SUBRESOURCE_TYPE_MIPTAIL => tail(info, &storage)?,
            other => return invalid(format!("subresourceType is {}", other.0)),
        }
    };
    // SAFETY: a number, for which any bits are valid.
    let memory = unsafe { info.memHandle.memHandle };
    let memory = match info.memOperationType {
        Operation::CU_MEM_OPERATION_TYPE_MAP => {
            if info.memHandleType != CUmemHandleType::CU_MEM_HANDLE_TYPE_GENERIC {
                return invalid("memHandleType must be CU_MEM_HANDLE_TYPE_GENERIC");
            }
            let found = virtual_memory::tile_pool(memory, device).map_err(|code| {
                because(code, || {
                    format!("{memory:#x} is not memory of device {device} created with CU_MEM_CREATE_USAGE_TILE_POOL")
                })
            })?;
            let size = runs.iter().map(|run| run.count).sum::<u64>() * TILE;
            let fits = info
                .offset
                .checked_add(size)
                .is_some_and(|end| end <= found.size());
            if !info.offset.is_multiple_of(TILE) || !fits {
                return invalid(format!(
                    "offset {} in memory of {} bytes: the mapping needs {size} bytes at a multiple of {TILE}",
                    info.offset,
                    found.size()
                ));
            }
            Some((found, info.offset))
        }
        Operation::CU_MEM_OPERATION_TYPE_UNMAP if memory == 0 => None,
        Operation::CU_MEM_OPERATION_TYPE_UNMAP => {
            return invalid("memHandle must be null to unmap");
        }
        other => return invalid(format!("memOperationType is {}", other.0)),
    };
    Ok(Change {
        storage,
        runs,
        memory,
    })
}

/// The most operations of one call.
const MOST: u32 = 1 << 20;

driver_entry_points! {
    fn array_sparse_properties "cuArrayGetSparseProperties" (out: u64, array: u64) {
        non_null(out)?;
        context::current()?;
        put_properties(out, whole(array)?.storage(), false)
    }
    fn mipmapped_sparse_properties "cuMipmappedArrayGetSparseProperties" (out: u64, mipmapped: u64) {
        non_null(out)?;
        context::current()?;
        put_properties(out, MIPMAPPED.get(mipmapped)?.storage(), true)
    }
    // As in NVIDIA's driver, the device need not exist.
    fn array_memory_requirements "cuArrayGetMemoryRequirements" (out: u64, array: u64, _device: i32) {
        non_null(out)?;
        context::current()?;
        put_requirements(out, whole(array)?.storage())
    }
    fn mipmapped_memory_requirements "cuMipmappedArrayGetMemoryRequirements" (out: u64, mipmapped: u64, _device: i32) {
        non_null(out)?;
        context::current()?;
        put_requirements(out, MIPMAPPED.get(mipmapped)?.storage())
    }
    fn mem_map_array "cuMemMapArrayAsync" | "cuMemMapArrayAsync_ptsz" (list: u64, count: u32, stream: u64) {
        let stream = resolve::resolve(stream, PER_THREAD)?;
        non_null(list)?;
        if count == 0 || count > MOST {
            return invalid(format!("count is {count}; a call has 1 to {MOST} operations"));
        }
        let changes = get_array::<CUarrayMapInfo>(list, count as usize)?
            .iter()
            .map(|info| change(info, &stream))
            .collect::<Res<Vec<Change>>>()?;
        stream.enqueue(&[], OpPlacement::CallerIfIdle, move |_| changes.iter().try_for_each(Change::apply));
        Ok(())
    }
}
