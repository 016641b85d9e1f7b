//! CUDA arrays and mipmapped arrays: creation, levels, descriptors.
//!
//! The memory is a [`Storage`]; an [`Array`] is a handle to one of its levels. Textures, surfaces and pending copies
//! keep the storage alive, so that destroying an array too early never crashes.

use std::sync::{Arc, Weak};

use cupyrite_engine::memory::Charge;
use cupyrite_engine::memory::object::MemoryObject;
use cupyrite_engine::memory::pages::available_memory;
use cupyrite_engine::texture::{Format, LEVEL_ALIGN, Level, Storage, StorageError};
use cupyrite_sys::driver::{
    self as sys, CUDA_ARRAY_DESCRIPTOR, CUDA_ARRAY3D_DESCRIPTOR, CUarray_format,
};
use parking_lot::Mutex;

use crate::driver::context::{self, Context};
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get, non_null, put, put_with};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id};
use crate::driver::entry::logs::{because, refuse};
use crate::driver::memory::space::space;
use crate::driver::stream::capture_state;

pub(crate) mod limits;
pub(crate) mod reference_entries;
pub(crate) mod references;
pub(crate) mod sparse;
pub(crate) mod texture;

static ARRAYS: HandleTable<Array> = HandleTable::new(HandleKind::Array);
static MIPMAPPED: HandleTable<Mipmapped> = HandleTable::new(HandleKind::MipmappedArray);

/// Format and extents, as in `CUDA_ARRAY3D_DESCRIPTOR`.
#[derive(Clone, Copy, Debug)]
struct Description {
    size: [u64; 3],
    format: u32,
    channels: u32,
    flags: u32,
}

impl Description {
    fn read_2d(address: u64) -> Res<Self> {
        let given = get::<CUDA_ARRAY_DESCRIPTOR>(address)?;
        Ok(Self {
            size: [given.Width as u64, given.Height as u64, 0],
            format: given.Format.0,
            channels: given.NumChannels,
            flags: 0,
        })
    }

    fn read_3d(address: u64) -> Res<Self> {
        Ok(Self::of_3d(&get(address)?))
    }

    fn of_3d(given: &CUDA_ARRAY3D_DESCRIPTOR) -> Self {
        Self {
            size: [given.Width, given.Height, given.Depth].map(|length| length as u64),
            format: given.Format.0,
            channels: given.NumChannels,
            flags: given.Flags,
        }
    }

    fn to_2d(self) -> CUDA_ARRAY_DESCRIPTOR {
        CUDA_ARRAY_DESCRIPTOR {
            Width: self.size[0] as usize,
            Height: self.size[1] as usize,
            Format: CUarray_format(self.format),
            NumChannels: self.channels,
        }
    }

    fn write_3d(self, out: &mut CUDA_ARRAY3D_DESCRIPTOR) {
        out.Width = self.size[0] as usize;
        out.Height = self.size[1] as usize;
        out.Depth = self.size[2] as usize;
        out.Format = CUarray_format(self.format);
        out.NumChannels = self.channels;
        out.Flags = self.flags;
    }

    /// Number of levels until every dimension that halves is one.
    fn max_levels(&self) -> u32 {
        let stacked = self.flags & (sys::CUDA_ARRAY3D_LAYERED | sys::CUDA_ARRAY3D_CUBEMAP) != 0;
        let dimensions = if stacked { 2 } else { 3 };
        let largest = self.size.iter().take(dimensions).max().copied();
        largest.unwrap_or(1).max(1).ilog2() + 1
    }

    /// The description of a mipmap level: dimensions halve, layers stay.
    fn at_level(mut self, level: u32) -> Self {
        let stacked = self.flags & (sys::CUDA_ARRAY3D_LAYERED | sys::CUDA_ARRAY3D_CUBEMAP) != 0;
        let dimensions = if stacked { 2 } else { 3 };
        for length in self.size.iter_mut().take(dimensions) {
            if *length > 0 {
                *length = (*length >> level).max(1);
            }
        }
        self
    }
}

/// Owner of an array's memory.
enum Owner {
    /// The array itself.
    Itself(Charge),
    /// A mipmapped array, of which this is a level.
    Mipmapped(Weak<Mipmapped>),
    /// A mapped graphics resource, whose unmapping destroys the array.
    Graphics(Charge),
}

/// An array.
pub(crate) struct Array {
    context: Arc<Context>,
    description: Description,
    storage: Arc<Storage>,
    level: u32,
    owner: Owner,
}

impl Array {
    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// Width, height and depth, as in its descriptor.
    pub(crate) fn size(&self) -> [u64; 3] {
        self.description.size
    }

    /// The level's number in the storage.
    pub(crate) fn level_number(&self) -> u32 {
        self.level
    }

    /// The location of its elements.
    pub(crate) fn level(&self) -> Res<Level> {
        self.storage.level(self.level).ok_or(Code::INVALID_HANDLE)
    }

    /// The `CUDA_ARRAY3D_*` flags it was created with.
    pub(crate) fn flags(&self) -> u32 {
        self.description.flags
    }

    /// Its `CUarray_format` and number of channels.
    pub(crate) fn format(&self) -> (u32, u32) {
        (self.description.format, self.description.channels)
    }
}

/// A mipmapped array.
pub(crate) struct Mipmapped {
    context: Arc<Context>,
    description: Description,
    storage: Arc<Storage>,
    /// `None` if the memory is another API's.
    charge: Option<Charge>,
    /// Handles of the levels returned so far; zero for the others.
    levels: Mutex<Vec<u64>>,
}

impl Mipmapped {
    pub(crate) fn storage(&self) -> &Arc<Storage> {
        &self.storage
    }

    /// The `CUDA_ARRAY3D_*` flags it was created with.
    pub(crate) fn flags(&self) -> u32 {
        self.description.flags
    }

    /// Width, height and depth, as in its descriptor.
    pub(crate) fn size(&self) -> [u64; 3] {
        self.description.size
    }

    /// Its `CUarray_format` and number of channels.
    pub(crate) fn format(&self) -> (u32, u32) {
        (self.description.format, self.description.channels)
    }

    fn clear_level(&self, level: u32) {
        if let Some(slot) = self.levels.lock().get_mut(level as usize) {
            *slot = 0;
        }
    }

    fn remove_levels(&self) {
        for handle in self.levels.lock().drain(..) {
            let _ = ARRAYS.remove(handle);
        }
    }
}

/// The array of that handle.
pub(crate) fn find(handle: u64) -> Option<Arc<Array>> {
    ARRAYS.find(handle)
}

/// The mipmapped array of that handle.
pub(crate) fn find_mipmapped(handle: u64) -> Option<Arc<Mipmapped>> {
    MIPMAPPED.find(handle)
}

/// Bytes of memory in arrays of these contexts.
pub(crate) fn bytes_in(contexts: &[u64]) -> u64 {
    let of_arrays: u64 = ARRAYS
        .pick(|a| contexts.contains(&a.context.id))
        .iter()
        .map(|a| match &a.owner {
            Owner::Itself(charge) | Owner::Graphics(charge) => charge.bytes(),
            Owner::Mipmapped(_) => 0,
        })
        .sum();
    let of_mipmapped: u64 = MIPMAPPED
        .pick(|m| contexts.contains(&m.context.id))
        .iter()
        .filter_map(|m| m.charge.as_ref().map(Charge::bytes))
        .sum();
    of_arrays + of_mipmapped
}

/// Destroys the arrays of a destroyed context.
pub(crate) fn remove_context(context: u64) {
    ARRAYS.remove_where(|a| a.context.id == context);
    MIPMAPPED.remove_where(|m| m.context.id == context);
}

impl From<StorageError> for Code {
    fn from(e: StorageError) -> Self {
        match e {
            StorageError::Invalid => Code::INVALID_VALUE,
            StorageError::OutOfMemory => Code::OUT_OF_MEMORY,
        }
    }
}

/// Usage flags; the CPU device needs no preparation for any of these uses.
const USES: u32 = sys::CUDA_ARRAY3D_SURFACE_LDST
    | sys::CUDA_ARRAY3D_TEXTURE_GATHER
    | sys::CUDA_ARRAY3D_VIDEO_ENCODE_DECODE;
/// The other flags (depth textures, colour attachments) apply to graphics resources only.
const ALL: u32 = sys::CUDA_ARRAY3D_LAYERED
    | sys::CUDA_ARRAY3D_CUBEMAP
    | sys::CUDA_ARRAY3D_SPARSE
    | sys::CUDA_ARRAY3D_DEFERRED_MAPPING
    | USES;

/// Checks flags against each other, and formats against flags and shapes. `known` are the flags that are allowed.
fn check_flags(d: &Description, format: &Format, known: u32) -> Res {
    let has = |flag| d.flags & flag != 0;
    let sparse = has(sys::CUDA_ARRAY3D_SPARSE);
    if d.flags & !known != 0
        || sparse
            && (has(sys::CUDA_ARRAY3D_SURFACE_LDST)
                || has(sys::CUDA_ARRAY3D_DEFERRED_MAPPING)
                || has(sys::CUDA_ARRAY3D_CUBEMAP)
                || d.size[1] == 0)
        || format.is_compressed() && d.size[1] == 0
    {
        return Err(Code::INVALID_VALUE);
    }
    let written = format.is_compressed() && has(sys::CUDA_ARRAY3D_SURFACE_LDST);
    if written {
        return Err(Code::NOT_SUPPORTED);
    }
    Ok(())
}

/// From this size in bytes, checks that the host has enough memory, which is mapped lazily.
const LARGE: u64 = 64 << 20;

/// Allocates memory for an array of that description, charged to the device.
fn allocate(
    context: &Context,
    d: &Description,
    levels: u32,
    mipmapped: bool,
) -> Res<(Arc<Storage>, Charge)> {
    capture_state::reject_if_capturing()?;
    let format = Format::new(d.format, d.channels).ok_or(Code::INVALID_VALUE)?;
    let device = device::by_ordinal(context.device)?;
    limits::check(device, d.size, d.flags, mipmapped)?;
    check_flags(d, &format, ALL)?;
    // A cheap upper bound, before any memory is allocated.
    let elements = d
        .size
        .iter()
        .map(|&n| n.max(1))
        .try_fold(1u64, u64::checked_mul)
        .ok_or(Code::OUT_OF_MEMORY)?;
    let block = u64::from(format.block());
    let least = (elements / (block * block)).saturating_mul(u64::from(format.element_bytes()));
    // Memory is mapped into the others later.
    let own = d.flags & (sys::CUDA_ARRAY3D_SPARSE | sys::CUDA_ARRAY3D_DEFERRED_MAPPING) == 0;
    let least = if own { least } else { 0 };
    if least >= LARGE && least > available_memory() {
        return Err(Code::OUT_OF_MEMORY);
    }
    let charge = space().charge(least)?;
    let storage = Storage::new(format, d.size, d.flags, levels)?;
    // The exact size, including the rounding of levels.
    drop(charge);
    let charge = space().charge(storage.bytes())?;
    Ok((storage, charge))
}

fn create(out: u64, read: impl FnOnce() -> Res<Description>) -> Res {
    non_null(out)?;
    let context = context::current()?;
    let description = read()?;
    let (storage, charge) = allocate(&context, &description, 1, false)?;
    let array = Arc::new(Array {
        context,
        description,
        storage,
        level: 0,
        owner: Owner::Itself(charge),
    });
    let handle = ARRAYS.insert(fresh_id(), array);
    put(out, handle).inspect_err(|_| {
        let _ = ARRAYS.remove(handle);
    })
}

/// Creates an array for a part of a mapped graphics resource. `format` is the `CUarray_format` and the number of channels.
///
/// # Errors
/// As `cuArray3DCreate`.
pub(crate) fn create_graphics_array(
    context: Arc<Context>,
    format: (u32, u32),
    size: [u64; 3],
    flags: u32,
) -> Res<(u64, Arc<Array>)> {
    let description = Description {
        size,
        format: format.0,
        channels: format.1,
        flags,
    };
    let (storage, charge) = allocate(&context, &description, 1, false)?;
    let array = Arc::new(Array {
        context,
        description,
        storage,
        level: 0,
        owner: Owner::Graphics(charge),
    });
    Ok((ARRAYS.insert(fresh_id(), array.clone()), array))
}

/// Destroys an array of [`create_graphics_array`], unless its context did.
pub(crate) fn remove_graphics_array(handle: u64) {
    let _ = ARRAYS.remove(handle);
}

/// Flags for arrays in memory of another API, without effect: the array is a colour target or a depth texture there.
const OF_GRAPHICS: u32 = sys::CUDA_ARRAY3D_COLOR_ATTACHMENT | sys::CUDA_ARRAY3D_DEPTH_TEXTURE;

/// Maps a mipmapped array onto a memory object, from an offset on; `memory` also contains the size that may be used.
///
/// # Errors
/// As `cuMipmappedArrayCreate`, and `INVALID_VALUE` if the array exceeds the memory.
pub(crate) fn map_mipmapped(
    context: Arc<Context>,
    desc: &CUDA_ARRAY3D_DESCRIPTOR,
    levels: u32,
    memory: (&MemoryObject, u64, u64),
) -> Res<u64> {
    let description = Description::of_3d(desc);
    let d = &description;
    let format = Format::new(d.format, d.channels).ok_or(Code::INVALID_VALUE)?;
    let device = device::by_ordinal(context.device)?;
    limits::check(device, d.size, d.flags & !OF_GRAPHICS, true)?;
    check_flags(d, &format, ALL | OF_GRAPHICS)?;
    let levels = levels.clamp(1, d.max_levels());
    let (object, offset, size) = memory;
    let exceeds = || {
        because(Code::INVALID_VALUE, || {
            format!(
                "offset={offset}: must be a multiple of {LEVEL_ALIGN} from which the array's {levels} levels fit into {size} bytes"
            )
        })
    };
    let storage =
        Storage::in_object(format, d.size, d.flags, levels, object, offset).map_err(|e| {
            if e == StorageError::Invalid {
                exceeds()
            } else {
                e.into()
            }
        })?;
    if offset > size || storage.bytes() > size - offset {
        return Err(exceeds());
    }
    let mipmapped = Arc::new(Mipmapped {
        context,
        description,
        storage,
        charge: None,
        levels: Mutex::new(vec![0; levels as usize]),
    });
    Ok(MIPMAPPED.insert(fresh_id(), mipmapped))
}

/// Destroys a mipmapped array of which the program did not get the handle.
pub(crate) fn remove_mipmapped(handle: u64) {
    let _ = MIPMAPPED.remove(handle);
}

fn level(mipmapped: &Arc<Mipmapped>, level: u32) -> Res<u64> {
    let mut levels = mipmapped.levels.lock();
    let slot = levels.get_mut(level as usize).ok_or(Code::INVALID_VALUE)?;
    if *slot == 0 {
        *slot = ARRAYS.insert(
            fresh_id(),
            Arc::new(Array {
                context: mipmapped.context.clone(),
                description: mipmapped.description.at_level(level),
                storage: mipmapped.storage.clone(),
                level,
                owner: Owner::Mipmapped(Arc::downgrade(mipmapped)),
            }),
        );
    }
    Ok(*slot)
}

fn described(handle: u64, out: u64) -> Res<Description> {
    non_null(out)?;
    context::current()?;
    Ok(ARRAYS.get(handle)?.description)
}

driver_entry_points! {
    fn array_create "cuArrayCreate_v2" (out: u64, descriptor: u64) {
        create(out, || Description::read_2d(descriptor))
    }
    fn array_create_3d "cuArray3DCreate_v2" (out: u64, descriptor: u64) {
        create(out, || Description::read_3d(descriptor))
    }
    fn array_get_descriptor "cuArrayGetDescriptor_v2" (out: u64, array: u64) {
        put(out, described(array, out)?.to_2d())
    }
    fn array_get_descriptor_3d "cuArray3DGetDescriptor_v2" (out: u64, array: u64) {
        let description = described(array, out)?;
        put_with(out, |told| description.write_3d(told))
    }
    fn array_destroy "cuArrayDestroy" (array: u64) {
        let context = context::current()?;
        let found = ARRAYS.get(array)?;
        if matches!(found.owner, Owner::Graphics(_)) {
            return refuse(Code::INVALID_HANDLE, || {
                "the array belongs to a mapped graphics resource; cuGraphicsUnmapResources destroys it".to_owned()
            });
        }
        context.synchronize()?;
        // Destroys only the level's handle; the memory belongs to the mipmapped array.
        if let Owner::Mipmapped(whole) = &found.owner
            && let Some(whole) = whole.upgrade()
        {
            whole.clear_level(found.level);
        }
        ARRAYS.remove(array).map(|_| ())
    }
    fn array_plane "cuArrayGetPlane" (out: u64, array: u64, _plane: u32) {
        described(array, out)?;
        // Multi-planar formats are not supported.
        Err(Code::INVALID_VALUE)
    }
    fn mipmapped_create "cuMipmappedArrayCreate" (out: u64, descriptor: u64, levels: u32) {
        non_null(out)?;
        let context = context::current()?;
        let description = Description::read_3d(descriptor)?;
        // As on hardware: at least one level, at most as many as halving yields.
        let levels = levels.clamp(1, description.max_levels());
        let (storage, charge) = allocate(&context, &description, levels, true)?;
        let mipmapped = Arc::new(Mipmapped {
            context,
            description,
            storage,
            charge: Some(charge),
            levels: Mutex::new(vec![0; levels as usize]),
        });
        let handle = MIPMAPPED.insert(fresh_id(), mipmapped);
        put(out, handle).inspect_err(|_| { let _ = MIPMAPPED.remove(handle); })
    }
    fn mipmapped_get_level "cuMipmappedArrayGetLevel" (out: u64, mipmapped: u64, number: u32) {
        non_null(out)?;
        context::current()?;
        put(out, level(&MIPMAPPED.get(mipmapped)?, number)?)
    }
    fn mipmapped_destroy "cuMipmappedArrayDestroy" (mipmapped: u64) {
        let context = context::current()?;
        MIPMAPPED.get(mipmapped)?;
        context.synchronize()?;
        MIPMAPPED.remove(mipmapped)?.remove_levels();
        Ok(())
    }
}
