//! Memory of arrays and mipmapped arrays.

use std::fmt;
use std::sync::Arc;

use cupyrite_sys::driver as sys;

use super::format::Format;
use super::sparse::{Mappings, SparseProperties, TILE, Tiles, lay_out, required_bytes};
use crate::memory::object::MemoryObject;
use crate::memory::pages::Pages;

/// The shape of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Dimensions of one image: 1, 2 or 3, without layers and faces.
    pub dimensions: u8,
    /// `CUDA_ARRAY3D_LAYERED`.
    pub layered: bool,
    /// `CUDA_ARRAY3D_CUBEMAP`.
    pub cubemap: bool,
}

/// One mipmap level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Level {
    /// Address of the first element, valid as long as the [`Storage`] lives.
    pub base: u64,
    /// Width, height and depth in texels; 1 for missing dimensions. [`Storage::layers`] holds the number of layers
    /// (times six for cubemaps).
    pub extent: [u32; 3],
    /// Elements per row: texels, or blocks of a compressed format.
    pub columns: u32,
    /// Rows of elements per slice.
    pub rows: u32,
    /// Slices: the depth of a 3-D array, the layers (and faces) of a layered one, otherwise 1.
    pub slices: u32,
    /// Distance between rows in bytes.
    pub row_pitch: u64,
    /// Distance between slices in bytes; between layers if the level consists of tiles.
    pub slice_pitch: u64,
    /// The tiles of a sparse array.
    pub tiles: Option<Tiles>,
}

impl Level {
    /// Address of an element: `x` and `y` count elements, `z` slices.
    pub fn address(&self, format: &Format, x: u64, y: u64, z: u64) -> u64 {
        match self.tiles {
            Some(tiles) if self.extent[2] > 1 => self.base + tiles.offset(x, y, z),
            Some(tiles) => self.base + z * self.slice_pitch + tiles.offset(x, y, 0),
            None => {
                let element = u64::from(format.element_bytes());
                self.base + z * self.slice_pitch + y * self.row_pitch + x * element
            }
        }
    }

    /// Bytes of one row that contain elements.
    pub fn row_bytes(&self, format: &Format) -> u64 {
        u64::from(self.columns) * u64::from(format.element_bytes())
    }
}

/// Why an array cannot be created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageError {
    /// The combination of extent, flags and number of levels is invalid.
    Invalid,
    /// Too little memory is available.
    OutOfMemory,
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "invalid combination of array extent, flags and levels",
            Self::OutOfMemory => "out of memory for the array",
        })
    }
}

impl std::error::Error for StorageError {}

/// Memory of an array or a mipmapped array, zeroed initially, shared by handles, textures and surfaces.
///
/// Kernels and copies may access the same elements concurrently, as on a GPU. No Rust reference to the elements is ever
/// created: the engine accesses them by address with relaxed atomic operations, and copies use system calls or `memcpy`
/// on raw addresses.
pub struct Storage {
    format: Format,
    shape: Shape,
    flags: u32,
    size: [u64; 3],
    layers: u32,
    levels: Vec<Level>,
    bytes: u64,
    memory: Memory,
}

/// The memory of a storage.
enum Memory {
    /// Its own.
    Own(Pages),
    /// That mapped into a sparse array.
    Sparse(Mappings, SparseProperties),
    /// That mapped into an array with deferred mapping.
    Deferred(Mappings),
}

impl fmt::Debug for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Storage")
            .field("format", &self.format)
            .field("shape", &self.shape)
            .field("size", &self.size)
            .field("levels", &self.levels.len())
            .finish_non_exhaustive()
    }
}

/// Alignment of every level, so that 16-byte elements are aligned.
pub const LEVEL_ALIGN: u64 = 512;
/// Alignment of every row, so that a surface access aligned within its row is aligned.
const ROW_ALIGN: u64 = 16;

/// Where the elements of an array are, relative to its memory.
struct Layout {
    format: Format,
    shape: Shape,
    flags: u32,
    size: [u64; 3],
    layers: u64,
    levels: Vec<Level>,
    bytes: u64,
}

impl Layout {
    fn new(
        format: Format,
        size: [u64; 3],
        flags: u32,
        levels: u32,
    ) -> Result<Layout, StorageError> {
        let [width, height, depth] = size;
        let layered = flags & sys::CUDA_ARRAY3D_LAYERED != 0;
        let cubemap = flags & sys::CUDA_ARRAY3D_CUBEMAP != 0;
        if size.iter().any(|&n| n > 1 << 27) || width == 0 {
            return Err(StorageError::Invalid);
        }
        if cubemap {
            let faces_fit = if layered {
                depth >= 6 && depth.is_multiple_of(6)
            } else {
                depth == 6
            };
            if width != height || !faces_fit {
                return Err(StorageError::Invalid);
            }
        } else if layered && depth == 0 || !layered && depth > 0 && height == 0 {
            return Err(StorageError::Invalid);
        }
        let stacked = layered || cubemap;
        let shape = Shape {
            dimensions: match (height, depth) {
                (0, _) => 1,
                (_, 0) => 2,
                _ if stacked => 2,
                _ => 3,
            },
            layered,
            cubemap,
        };
        let largest = width.max(height).max(if stacked { 0 } else { depth });
        if levels == 0 || levels > largest.ilog2() + 1 {
            return Err(StorageError::Invalid);
        }
        let block = u64::from(format.block());
        let element = u64::from(format.element_bytes());
        let layers = if stacked { depth } else { 1 };
        let mut list = Vec::with_capacity(levels as usize);
        let mut at = 0u64;
        for n in 0..levels {
            let shrink = |x: u64| (x >> n).max(1);
            let extent = [
                shrink(width),
                shrink(height),
                if stacked { 1 } else { shrink(depth) },
            ];
            let columns = extent[0].div_ceil(block);
            let rows = if shape.dimensions == 1 {
                1
            } else {
                extent[1].div_ceil(block)
            };
            let slices = if stacked { layers } else { extent[2] };
            let row_pitch = (columns * element).next_multiple_of(ROW_ALIGN);
            // Each factor is at most 2^31, so only the last product can overflow.
            let slice_pitch = row_pitch
                .checked_mul(rows)
                .ok_or(StorageError::OutOfMemory)?;
            list.push(Level {
                base: at,
                extent: extent.map(|x| x as u32),
                columns: columns as u32,
                rows: rows as u32,
                slices: slices as u32,
                row_pitch,
                slice_pitch,
                tiles: None,
            });
            at = slice_pitch
                .checked_mul(slices)
                .and_then(|bytes| at.checked_add(bytes))
                .and_then(|end| end.checked_next_multiple_of(LEVEL_ALIGN))
                .ok_or(StorageError::OutOfMemory)?;
        }
        Ok(Layout {
            format,
            shape,
            flags,
            size,
            layers,
            levels: list,
            bytes: at,
        })
    }

    /// The array at that address, which `memory` keeps mapped.
    fn at(mut self, base: u64, memory: Memory) -> Arc<Storage> {
        for level in &mut self.levels {
            level.base += base;
        }
        Arc::new(Storage {
            format: self.format,
            shape: self.shape,
            flags: self.flags,
            size: self.size,
            layers: self.layers as u32,
            levels: self.levels,
            bytes: self.bytes,
            memory,
        })
    }
}

impl Storage {
    /// Allocates memory for an array of `levels` mipmap levels.
    ///
    /// `size` is width, height and depth, as in `CUDA_ARRAY3D_DESCRIPTOR`: zero for missing dimensions; with
    /// `CUDA_ARRAY3D_LAYERED` (`CUDA_ARRAY3D_CUBEMAP`) the depth is the number of layers (faces). `flags` are the
    /// `CUDA_ARRAY3D_*` flags; those that do not affect the shape are stored.
    ///
    /// The caller checks the device's limits on extents.
    ///
    /// # Errors
    /// [`StorageError::Invalid`] for a width of zero, a height of zero with a depth (and no layers), a cubemap that is
    /// not square or whose faces are not a multiple of six, and zero or too many levels; [`StorageError::OutOfMemory`].
    pub fn new(
        format: Format,
        size: [u64; 3],
        flags: u32,
        levels: u32,
    ) -> Result<Arc<Self>, StorageError> {
        let mut layout = Layout::new(format, size, flags, levels)?;
        if flags & sys::CUDA_ARRAY3D_SPARSE != 0 {
            let Shape {
                dimensions,
                cubemap,
                ..
            } = layout.shape;
            if dimensions == 1 || cubemap {
                return Err(StorageError::Invalid);
            }
            let (properties, bytes) =
                lay_out(&format, dimensions, layout.layers, &mut layout.levels)?;
            let mappings = Mappings::reserve(bytes)?;
            layout.bytes = 0;
            let base = mappings.base();
            return Ok(layout.at(base, Memory::Sparse(mappings, properties)));
        }
        if flags & sys::CUDA_ARRAY3D_DEFERRED_MAPPING != 0 {
            // The layout of other arrays needs less than a GPU's.
            let bytes = required_bytes(&format, &layout.levels);
            let mappings = Mappings::reserve(bytes.max(layout.bytes.next_multiple_of(TILE)))?;
            layout.bytes = 0;
            let base = mappings.base();
            return Ok(layout.at(base, Memory::Deferred(mappings)));
        }
        let pages = Pages::map(layout.bytes, LEVEL_ALIGN).ok_or(StorageError::OutOfMemory)?;
        let base = pages.base();
        Ok(layout.at(base, Memory::Own(pages)))
    }

    /// An array whose elements are in a shared memory object, from `offset` on. The levels follow each other at multiples
    /// of 512 bytes; rows are padded to 16 bytes.
    ///
    /// # Errors
    /// As [`Storage::new`], and [`StorageError::Invalid`] for sparse arrays and deferred mapping, if the offset is not a multiple of [`LEVEL_ALIGN`] or the array
    /// exceeds the object, [`StorageError::OutOfMemory`] if the object cannot be mapped.
    pub fn in_object(
        format: Format,
        size: [u64; 3],
        flags: u32,
        levels: u32,
        object: &MemoryObject,
        offset: u64,
    ) -> Result<Arc<Self>, StorageError> {
        if flags & (sys::CUDA_ARRAY3D_SPARSE | sys::CUDA_ARRAY3D_DEFERRED_MAPPING) != 0 {
            return Err(StorageError::Invalid);
        }
        let layout = Layout::new(format, size, flags, levels)?;
        let at = object
            .locate(offset, layout.bytes)
            .filter(|_| offset.is_multiple_of(LEVEL_ALIGN))
            .ok_or(StorageError::Invalid)?;
        let pages = object
            .reserve(at, layout.bytes)
            .then(|| Pages::of_file(object.file(), at, layout.bytes))
            .flatten()
            .ok_or(StorageError::OutOfMemory)?;
        let base = pages.base() + at % Pages::SIZE;
        Ok(layout.at(base, Memory::Own(pages)))
    }

    /// Format of the elements.
    pub fn format(&self) -> Format {
        self.format
    }

    /// Shape.
    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The `CUDA_ARRAY3D_*` flags it was created with.
    pub fn flags(&self) -> u32 {
        self.flags
    }

    /// Width, height and depth as given, including zeros.
    pub fn size(&self) -> [u64; 3] {
        self.size
    }

    /// Number of layers; for cubemaps, of all faces. 1 if it is neither layered nor a cubemap.
    pub fn layers(&self) -> u32 {
        self.layers
    }

    /// Number of mipmap levels.
    pub fn level_count(&self) -> u32 {
        self.levels.len() as u32
    }

    /// A mipmap level.
    pub fn level(&self, n: u32) -> Option<Level> {
        self.levels.get(n as usize).copied()
    }

    /// Size of the memory in bytes; zero for an array that others' memory is mapped into.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The properties of a sparse array.
    pub fn sparse_properties(&self) -> Option<SparseProperties> {
        match &self.memory {
            Memory::Sparse(_, properties) => Some(*properties),
            _ => None,
        }
    }

    /// Whether it is an array with deferred mapping.
    pub fn is_deferred(&self) -> bool {
        matches!(self.memory, Memory::Deferred(_))
    }

    /// Bytes of memory that must be mapped into an array with deferred mapping.
    pub fn required_bytes(&self) -> u64 {
        match &self.memory {
            Memory::Deferred(mappings) => mappings.bytes(),
            _ => self.bytes,
        }
    }

    /// The memory that is mapped into a sparse array or one with deferred mapping.
    pub fn mappings(&self) -> Option<&Mappings> {
        match &self.memory {
            Memory::Sparse(mappings, _) | Memory::Deferred(mappings) => Some(mappings),
            Memory::Own(_) => None,
        }
    }

    /// The number of the first unit of [`TILE`] bytes of a level and layer, or of the mip tail from a level on.
    pub fn unit(&self, level: u32, layer: u64) -> Option<u64> {
        let level = self.level(level)?;
        let first = level.base + layer * level.slice_pitch;
        Some((first - self.mappings()?.base()) / TILE)
    }

    /// Whether an access does not fail: memory is mapped into an array with deferred mapping.
    pub fn is_accessible(&self) -> bool {
        match &self.memory {
            Memory::Deferred(mappings) => mappings.is_mapped(mappings.base()),
            _ => true,
        }
    }

    /// Whether an address lies in the array's memory.
    pub fn contains(&self, address: u64) -> bool {
        match &self.memory {
            Memory::Own(pages) => address.wrapping_sub(pages.base()) < self.bytes,
            Memory::Sparse(mappings, _) | Memory::Deferred(mappings) => {
                address.wrapping_sub(mappings.base()) < mappings.bytes()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texture::ChannelKind;

    const F32: Format = Format::plain(ChannelKind::Float, 32, 1);

    #[test]
    fn levels_halve_and_do_not_overlap() {
        let s = Storage::new(F32, [20, 7, 3], 0, 5).unwrap();
        assert_eq!(s.shape().dimensions, 3);
        let extents: Vec<_> = (0..5).map(|n| s.level(n).unwrap().extent).collect();
        assert_eq!(
            extents,
            [[20, 7, 3], [10, 3, 1], [5, 1, 1], [2, 1, 1], [1, 1, 1]]
        );
        let mut end = 0;
        for n in 0..5 {
            let l = s.level(n).unwrap();
            assert!(l.base >= end && l.base.is_multiple_of(16));
            end = l.base + l.slice_pitch * u64::from(l.slices);
            // SAFETY: the level lies within the storage's memory.
            let all =
                unsafe { std::slice::from_raw_parts(l.base as *const u8, (end - l.base) as usize) };
            assert!(all.iter().all(|b| *b == 0));
        }
        assert!(s.level(5).is_none());
        let layered = Storage::new(F32, [8, 0, 5], sys::CUDA_ARRAY3D_LAYERED, 4).unwrap();
        assert_eq!(layered.shape().dimensions, 1);
        assert_eq!(layered.level(3).unwrap().slices, 5);
        let bc1 = Format::new(145, 4).unwrap();
        let l = Storage::new(bc1, [10, 10, 0], 0, 1)
            .unwrap()
            .level(0)
            .unwrap();
        assert_eq!((l.columns, l.rows, l.row_pitch), (3, 3, 32));
        assert_eq!(l.row_bytes(&bc1), 24);
    }

    #[test]
    fn arrays_lie_in_a_shared_memory_object() {
        use std::os::fd::AsRawFd;
        let file = crate::memory::files::create("array", 16_384).unwrap();
        let object = MemoryObject::open(file.as_raw_fd()).unwrap();
        let array = Storage::in_object(F32, [16, 4, 0], 0, 2, &object, 5120).unwrap();
        let (first, second) = (array.level(0).unwrap(), array.level(1).unwrap());
        assert_eq!(second.base - first.base, 512);
        let [word] = {
            crate::memory::checked::write(second.base, &7u64).unwrap();
            crate::memory::files::read_words::<1>(&file, 5120 + 512).unwrap()
        };
        assert_eq!(word, 7);
        let refused = |offset| Storage::in_object(F32, [16, 4, 0], 0, 2, &object, offset).err();
        for offset in [1, 16, 16_384, 16_384 - 512, u64::MAX - 511] {
            assert_eq!(refused(offset), Some(StorageError::Invalid), "{offset}");
        }
        assert_eq!(refused(16_384 - 1024), None);
    }

    #[test]
    fn invalid_arrays_are_refused() {
        const CUBE: u32 = sys::CUDA_ARRAY3D_CUBEMAP;
        const LAYERED: u32 = sys::CUDA_ARRAY3D_LAYERED;
        for (size, flags, levels) in [
            ([0, 4, 0], 0, 1),
            ([4, 0, 4], 0, 1),
            ([4, 4, 0], LAYERED, 1),
            ([4, 5, 6], CUBE, 1),
            ([4, 4, 5], CUBE, 1),
            ([4, 4, 12], CUBE, 1),
            ([4, 4, 7], CUBE | LAYERED, 1),
            ([4, 4, 0], 0, 0),
            ([4, 4, 0], 0, 4),
            ([u64::MAX, 0, 0], 0, 1),
        ] {
            assert_eq!(
                Storage::new(F32, size, flags, levels).err(),
                Some(StorageError::Invalid),
                "{size:?} {flags} {levels}"
            );
        }
        let all = 1 << 27;
        assert_eq!(
            Storage::new(F32, [all, all, all], 0, 1).err(),
            Some(StorageError::OutOfMemory)
        );
    }
}
