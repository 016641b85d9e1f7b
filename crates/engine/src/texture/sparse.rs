//! Sparse arrays and arrays with deferred mapping: their layout, and the physical memory that is mapped into them.
//!
//! The addresses of such an array are reserved when it is created, and read as zero while no memory is mapped there. A sparse
//! array is mapped by units of 64 KiB: the tiles of its larger levels, and the mip tail with its smaller ones. An array with
//! deferred mapping is mapped as a whole, and has the layout of other arrays.

use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use parking_lot::Mutex;

use super::format::Format;
use super::storage::{Level, StorageError};
use crate::memory::pages::{self, Pages};
use crate::memory::{MemoryError, Physical};

/// Size of a tile in bytes, as on an H100.
pub const TILE: u64 = 64 << 10;

/// Layout of a level that consists of tiles: their extent, and how many there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tiles {
    /// Binary logarithms of a tile's extent in elements.
    shift: [u32; 3],
    /// Tiles in each dimension.
    count: [u64; 3],
    /// Bytes of an element.
    element: u64,
}

/// Binary logarithms of the extent of a tile in elements, as on an H100.
fn tile_shift(format: &Format, dimensions: u8) -> [u32; 3] {
    // Bytes of an element: 1, 2, 4, 8 or 16.
    let log = format.element_bytes().trailing_zeros();
    if dimensions == 3 {
        match log {
            0 => [6, 5, 5],
            1 => [5, 5, 5],
            2 => [5, 5, 4],
            3 => [5, 4, 4],
            _ => [4, 4, 4],
        }
    } else {
        let log = log.min(4);
        [8 - log / 2, 8 - log.div_ceil(2), 0]
    }
}

impl Tiles {
    /// The tiles of a level of `extent` elements.
    fn new(format: &Format, dimensions: u8, extent: [u64; 3]) -> Self {
        let shift = tile_shift(format, dimensions);
        Self {
            shift,
            count: std::array::from_fn(|k| extent[k].div_ceil(1 << shift[k])),
            element: u64::from(format.element_bytes()),
        }
    }

    /// Distance of an element from the first one of its layer in bytes. The coordinates are elements.
    #[inline(always)]
    pub fn offset(&self, x: u64, y: u64, z: u64) -> u64 {
        let [sx, sy, sz] = self.shift;
        let tile = ((z >> sz) * self.count[1] + (y >> sy)) * self.count[0] + (x >> sx);
        let inside = |v: u64, shift: u32| v & ((1 << shift) - 1);
        let element = (((inside(z, sz) << sy) + inside(y, sy)) << sx) + inside(x, sx);
        tile * TILE + element * self.element
    }

    /// Bytes of a row of a tile.
    pub fn row_bytes(&self) -> u64 {
        self.element << self.shift[0]
    }

    /// Tiles in each dimension.
    pub fn count(&self) -> [u64; 3] {
        self.count
    }

    /// The number of a tile of a layer.
    pub fn number(&self, [x, y, z]: [u64; 3]) -> u64 {
        (z * self.count[1] + y) * self.count[0] + x
    }

    fn bytes(&self) -> u64 {
        self.count.iter().product::<u64>() * TILE
    }
}

/// `CUDA_ARRAY_SPARSE_PROPERTIES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SparseProperties {
    /// Extent of a tile in texels.
    pub tile: [u32; 3],
    /// The first level of the mip tail; the number of levels if there is no tail.
    pub first_tail_level: u32,
    /// Bytes of the mip tail, of each layer unless [`Self::single_tail`].
    pub tail_bytes: u64,
    /// Whether all layers share one mip tail.
    pub single_tail: bool,
}

/// Bytes that a GPU needs for a level: rows of 64 bytes, in blocks of up to 16 times 8 rows.
fn gpu_bytes(format: &Format, level: &Level) -> u64 {
    let width = (u64::from(level.columns) * u64::from(format.element_bytes())).next_multiple_of(64);
    let block = u64::from(level.rows)
        .div_ceil(8)
        .next_power_of_two()
        .min(16)
        * 8;
    width * u64::from(level.rows).next_multiple_of(block) * u64::from(level.slices)
}

/// Bytes that an array with these levels needs on a GPU, a multiple of [`TILE`].
pub fn required_bytes(format: &Format, levels: &[Level]) -> u64 {
    let all: u64 = levels.iter().map(|level| gpu_bytes(format, level)).sum();
    all.next_multiple_of(TILE)
}

/// Lays out the levels of a sparse array, whose addresses are relative to its first byte, and returns its properties and the
/// bytes of its addresses.
///
/// # Errors
/// [`StorageError::OutOfMemory`] if the array exceeds the address space.
pub fn lay_out(
    format: &Format,
    dimensions: u8,
    layers: u64,
    levels: &mut [Level],
) -> Result<(SparseProperties, u64), StorageError> {
    let full = StorageError::OutOfMemory;
    let shift = tile_shift(format, dimensions);
    let spans_a_tile = |level: &Level| {
        let extent = [level.columns, level.rows, level.extent[2]];
        (0..usize::from(dimensions)).all(|k| extent[k] >> shift[k] != 0)
    };
    let first = levels.iter().position(|level| !spans_a_tile(level));
    let first = first.unwrap_or(levels.len());
    let mut at = 0u64;
    for level in &mut levels[..first] {
        let extent = [level.columns, level.rows, level.extent[2]].map(u64::from);
        let tiles = Tiles::new(format, dimensions, extent);
        level.base = at;
        level.slice_pitch = tiles.bytes();
        level.tiles = Some(tiles);
        at = tiles
            .bytes()
            .checked_mul(layers)
            .and_then(|bytes| at.checked_add(bytes))
            .ok_or(full)?;
    }
    // The tail of a layer: its levels one after the other, each with its rows.
    let tail = &mut levels[first..];
    let single = first == 0;
    let of_layer = |level: &Level| match layers {
        1 => gpu_bytes(format, level),
        _ => gpu_bytes(format, level) / layers,
    };
    let sum: u64 = tail.iter().map(of_layer).sum();
    let (tail_bytes, stride) = if single {
        ((sum * layers).next_multiple_of(TILE), sum)
    } else {
        (sum.next_multiple_of(TILE), sum.next_multiple_of(TILE))
    };
    let mut inside = 0;
    for level in tail {
        level.base = at + inside;
        if layers > 1 {
            level.slice_pitch = stride;
        }
        inside += of_layer(level);
    }
    at = if single {
        tail_bytes
    } else {
        tail_bytes * layers
    }
    .checked_add(at)
    .ok_or(full)?;
    let block = format.block();
    Ok((
        SparseProperties {
            tile: std::array::from_fn(|k| (1 << shift[k]) * if k < 2 { block } else { 1 }),
            first_tail_level: first as u32,
            tail_bytes,
            single_tail: single,
        },
        at,
    ))
}

/// The memory mapped into an array.
pub struct Mappings {
    pages: Pages,
    bytes: u64,
    /// The memory of each unit of [`TILE`] bytes that has any. The file pages live as long as they are mapped; this keeps
    /// their charge.
    units: Mutex<BTreeMap<u64, Arc<Physical>>>,
}

impl Mappings {
    /// Reserves addresses that read as zero.
    ///
    /// # Errors
    /// [`StorageError::OutOfMemory`] if the address space is exhausted.
    pub(super) fn reserve(bytes: u64) -> Result<Self, StorageError> {
        let full = StorageError::OutOfMemory;
        let pages = Pages::reserve(bytes, TILE).ok_or(full)?;
        if !pages::open_zeros(pages.base(), bytes) {
            return Err(full);
        }
        Ok(Self {
            pages,
            bytes,
            units: Mutex::default(),
        })
    }

    /// Size of the addresses in bytes.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The first address.
    pub(super) fn base(&self) -> u64 {
        self.pages.base()
    }

    /// Whether memory is mapped at an address of the array.
    pub fn is_mapped(&self, address: u64) -> bool {
        let unit = address.wrapping_sub(self.base()) / TILE;
        self.units.lock().contains_key(&unit)
    }

    /// Maps `count` units from `first` on to consecutive memory, or removes what is mapped there.
    ///
    /// # Errors
    /// [`MemoryError::InvalidRequest`] for units that the array lacks or memory that `physical` lacks,
    /// [`MemoryError::OutOfMemory`] if the system has too many mappings.
    pub fn change(
        &self,
        first: u64,
        count: u64,
        memory: Option<(&Arc<Physical>, u64)>,
    ) -> Result<(), MemoryError> {
        let bad = MemoryError::InvalidRequest;
        let end = first
            .checked_add(count)
            .filter(|&end| end <= self.bytes / TILE);
        let end = end.ok_or(bad)?;
        let (address, size) = (self.base() + first * TILE, count * TILE);
        let mut units = self.units.lock();
        let done = match memory {
            Some((physical, offset)) => {
                let fits = offset
                    .checked_add(size)
                    .is_some_and(|end| end <= physical.size());
                if !fits || !offset.is_multiple_of(TILE) {
                    return Err(MemoryError::InvalidRequest);
                }
                pages::open_window(address, size, physical.file().as_raw_fd(), offset)
            }
            None => pages::open_zeros(address, size),
        };
        if !done {
            return Err(MemoryError::OutOfMemory);
        }
        match memory {
            Some((physical, _)) => units.extend((first..end).map(|unit| (unit, physical.clone()))),
            None => units.retain(|unit, _| !(first..end).contains(unit)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::texture::{ChannelKind, Storage};
    use cupyrite_sys::driver as sys;

    fn properties(
        bits: u8,
        channels: u8,
        size: [u64; 3],
        flags: u32,
        levels: u32,
    ) -> SparseProperties {
        let format = Format::plain(ChannelKind::Unsigned, bits, channels);
        let flags = flags | sys::CUDA_ARRAY3D_SPARSE;
        let storage = Storage::new(format, size, flags, levels).unwrap();
        storage.sparse_properties().unwrap()
    }

    /// The properties that an H100 (driver 580) reports.
    #[test]
    fn properties_are_those_of_a_gpu() {
        for (bits, channels, flat, deep) in [
            (8, 1, [256, 256, 1], [64, 32, 32]),
            (16, 1, [256, 128, 1], [32, 32, 32]),
            (32, 1, [128, 128, 1], [32, 32, 16]),
            (32, 2, [128, 64, 1], [32, 16, 16]),
            (32, 4, [64, 64, 1], [16, 16, 16]),
        ] {
            assert_eq!(properties(bits, channels, [1024, 1024, 0], 0, 1).tile, flat);
            assert_eq!(properties(bits, channels, [256, 256, 64], 0, 1).tile, deep);
        }
        const LAYERED: u32 = sys::CUDA_ARRAY3D_LAYERED;
        for (bits, channels, size, flags, levels, first, bytes, single) in [
            (32, 1, [1024, 1024, 0], 0, 11, 4, 65536, false),
            (32, 4, [1024, 1024, 0], 0, 11, 5, 65536, false),
            (8, 1, [1024, 1024, 0], 0, 11, 3, 65536, false),
            (32, 1, [1024, 1024, 3], LAYERED, 11, 4, 65536, false),
            (32, 1, [256, 256, 64], 0, 9, 3, 65536, false),
            (32, 4, [256, 256, 64], 0, 9, 3, 196_608, false),
            (8, 1, [256, 256, 64], 0, 9, 2, 131_072, false),
            (32, 1, [1000, 700, 0], 0, 10, 3, 131_072, false),
            (32, 4, [1000, 700, 0], 0, 10, 4, 131_072, false),
            (8, 1, [1000, 700, 0], 0, 10, 2, 131_072, false),
            (32, 1, [1024, 1024, 0], 0, 2, 2, 0, false),
            (32, 1, [64, 64, 0], 0, 7, 0, 65536, true),
            (32, 4, [64, 64, 0], 0, 7, 1, 65536, false),
        ] {
            let p = properties(bits, channels, size, flags, levels);
            let got = (p.first_tail_level, p.tail_bytes, p.single_tail);
            assert_eq!(
                got,
                (first, bytes, single),
                "{bits}x{channels} {size:?} {levels}"
            );
        }
    }

    /// The sizes that an H100 (driver 580) requires.
    #[test]
    fn deferred_arrays_require_the_memory_of_a_gpu() {
        const LAYERED: u32 = sys::CUDA_ARRAY3D_LAYERED;
        const CUBE: u32 = sys::CUDA_ARRAY3D_CUBEMAP;
        for (size, flags, levels, bytes) in [
            ([1024, 0, 0], 0, 1, 65536),
            ([1024, 1024, 0], 0, 1, 4_194_304),
            ([100, 100, 3], LAYERED, 1, 196_608),
            ([64, 64, 64], 0, 1, 1_048_576),
            ([16, 16, 0], 0, 1, 65536),
            ([64, 64, 6], CUBE, 1, 131_072),
            ([1024, 0, 3], LAYERED, 1, 131_072),
            ([1024, 1024, 0], 0, 11, 5_636_096),
        ] {
            let format = Format::plain(ChannelKind::Float, 32, 1);
            let flags = flags | sys::CUDA_ARRAY3D_DEFERRED_MAPPING;
            let storage = Storage::new(format, size, flags, levels).unwrap();
            assert_eq!(storage.required_bytes(), bytes, "{size:?} {flags} {levels}");
            assert!(!storage.is_accessible());
        }
    }

    #[test]
    fn every_element_has_an_address_of_its_own() {
        for (size, flags, levels) in [
            ([200, 130, 0], 0, 1),
            ([200, 130, 2], sys::CUDA_ARRAY3D_LAYERED, 4),
            ([70, 40, 20], 0, 3),
            ([20, 20, 3], sys::CUDA_ARRAY3D_LAYERED, 5),
        ] {
            let format = Format::plain(ChannelKind::Float, 32, 1);
            let s = Storage::new(format, size, flags | sys::CUDA_ARRAY3D_SPARSE, levels).unwrap();
            let mut seen = std::collections::HashSet::new();
            for n in 0..levels {
                let level = s.level(n).unwrap();
                for z in 0..u64::from(level.slices) {
                    for y in 0..u64::from(level.rows) {
                        for x in 0..u64::from(level.columns) {
                            let a = level.address(&format, x, y, z);
                            assert!(
                                a.is_multiple_of(4) && s.contains(a),
                                "{size:?} {n} {x} {y} {z}"
                            );
                            assert!(seen.insert(a), "{size:?} {n} {x} {y} {z}");
                        }
                    }
                }
            }
        }
    }
}
