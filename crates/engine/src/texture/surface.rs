//! Surface accesses of a warp (PTX ISA, "Surface Instructions").

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed};

use super::descriptor::Surface;
use super::format::{ChannelKind, Format, Packing};
use super::sample::View;
use super::texel::{LANES, Row, Rows};

/// Behaviour of an access outside the surface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundaryMode {
    /// The kernel fails.
    Trap,
    /// Accesses the nearest element inside.
    Clamp,
    /// Loads yield zero, stores are ignored.
    Zero,
}

/// The accesses of a warp to a surface.
#[derive(Clone, Debug)]
pub struct SurfaceAccess {
    /// The shape that the instruction specifies.
    pub view: View,
    /// Coordinates; the first is in bytes, or in elements for formatted accesses.
    pub coordinates: [Row<i32>; 3],
    /// Layer, if there are layers.
    pub layer: Row<u32>,
    /// Bytes accessed by each lane; zero for a formatted access.
    pub bytes: u32,
    /// Behaviour outside the surface.
    pub outside: BoundaryMode,
}

/// An invalid access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidAccess {
    /// The lane.
    pub lane: u32,
    /// Whether the access is misaligned; otherwise it is outside.
    pub misaligned: bool,
    /// Its coordinates.
    pub coordinates: [i32; 3],
    /// Its layer.
    pub layer: u32,
}

impl Surface {
    /// Whether an access of this shape is valid for this surface: the same dimensions; cubemap faces are layers.
    pub fn accepts(&self, view: View) -> bool {
        view.dimensions == self.shape.dimensions
    }

    /// Addresses for the lanes of `mask`; zero outside.
    ///
    /// # Errors
    /// The first lane whose access is misaligned, or outside where that is an error.
    pub fn sites(&self, p: &SurfaceAccess, mask: u32) -> Result<Row<u64>, InvalidAccess> {
        let element = self.format.element_bytes();
        let (size, unit) = if p.bytes == 0 {
            (element, element)
        } else {
            (p.bytes, 1)
        };
        let row_bytes = i64::from(self.image.extent[0]) * i64::from(element);
        let [_, height, depth] = self.image.extent.map(i64::from);
        let layers = i64::from(self.layers);
        let mut out = [0; LANES];
        for lane in (0..LANES).filter(|l| mask >> l & 1 != 0) {
            let refused = |misaligned| InvalidAccess {
                lane: lane as u32,
                misaligned,
                coordinates: p.coordinates.map(|row| row[lane]),
                layer: p.layer[lane],
            };
            let [x, y, z] = p.coordinates.map(|row| i64::from(row[lane]));
            let x = x * i64::from(unit);
            let y = if p.view.dimensions > 1 { y } else { 0 };
            let z = if p.view.dimensions > 2 { z } else { 0 };
            // A negative layer wraps to a large one.
            let layer = if p.view.layered {
                i64::from(p.layer[lane])
            } else {
                0
            };
            let last = row_bytes - i64::from(size);
            let inside = (0..=last).contains(&x)
                && (0..height).contains(&y)
                && (0..depth).contains(&z)
                && (0..layers).contains(&layer);
            let (x, y, z, layer) = match p.outside {
                _ if inside => (x, y, z, layer),
                BoundaryMode::Trap => return Err(refused(false)),
                BoundaryMode::Zero => {
                    if x % i64::from(size) != 0 {
                        return Err(refused(true));
                    }
                    continue;
                }
                // An access wider than a row cannot be clamped.
                BoundaryMode::Clamp if last < 0 => continue,
                BoundaryMode::Clamp => (
                    if (0..=last).contains(&x) {
                        x
                    } else {
                        x.clamp(0, last / i64::from(size) * i64::from(size))
                    },
                    y.clamp(0, height - 1),
                    z.clamp(0, depth - 1),
                    layer.clamp(0, layers - 1),
                ),
            };
            if x % i64::from(size) != 0 {
                return Err(refused(true));
            }
            // All terms are small and non-negative here.
            out[lane] = self.image.base
                + (layer + z) as u64 * self.image.slice_pitch
                + y as u64 * self.image.row_pitch
                + x as u64;
        }
        Ok(out)
    }

    /// Stores the values of a formatted access, converted to the surface's format: `f32` for floating-point and
    /// normalised formats, saturated integers for integer formats.
    ///
    /// # Safety
    /// Each site is zero or is returned by [`Self::sites`] for a formatted access to this surface.
    pub unsafe fn store_formatted(&self, sites: &Row<u64>, values: &Rows, mask: u32) {
        for lane in (0..LANES).filter(|l| mask >> l & 1 != 0 && sites[*l] != 0) {
            let texel = encode(&self.format, std::array::from_fn(|k| values[k][lane]));
            // SAFETY: guaranteed by the caller; the element lies in the surface's memory.
            unsafe { write(sites[lane], self.format.element_bytes(), texel) };
        }
    }
}

/// The bits of an element with these values.
fn encode(format: &Format, values: [u32; 4]) -> u128 {
    let number = |k: usize| f32::from_bits(values[k]);
    // Rounds to nearest, ties to even; NaN becomes zero.
    let scaled = |v: f32, low: f32, most: f32| {
        let v = v.max(low).min(1.0) * most;
        libm::rintf(if v.is_nan() { 0.0 } else { v }) as i32 as u32
    };
    if format.packing == Packing::Rgb10A2 {
        let parts = [(0, 1023.0), (10, 1023.0), (20, 1023.0), (30, 3.0)];
        return (0..4)
            .map(|k| scaled(number(k), 0.0, parts[k].1) << parts[k].0)
            .sum::<u32>()
            .into();
    }
    let bits = u32::from(format.bits);
    let keep = u32::MAX >> (32 - bits);
    let mut out = 0u128;
    for (k, &value) in values.iter().enumerate().take(usize::from(format.channels)) {
        let channel = match (format.kind, bits) {
            (ChannelKind::Float, 16) => half::f16::from_f32(number(k)).to_bits().into(),
            (ChannelKind::Unorm, _) => scaled(number(k), 0.0, keep as f32),
            (ChannelKind::Snorm, _) => scaled(number(k), -1.0, (keep >> 1) as f32),
            // Integers saturate.
            (ChannelKind::Signed, 32) => value,
            (ChannelKind::Signed, _) => {
                let most = (keep >> 1) as i32;
                (value as i32).clamp(-most - 1, most) as u32
            }
            (ChannelKind::Unsigned, _) => value.min(keep),
            (ChannelKind::Float, _) => value,
        };
        out |= u128::from(channel & keep) << (bits as usize * k);
    }
    out
}

/// Reads `bytes` (1, 2, 4, 8 or 16) at an address; each part of up to 8 bytes is read atomically.
///
/// # Safety
/// The address is that of `bytes` bytes of a surface, aligned to that size.
pub unsafe fn read(site: u64, bytes: u32) -> u128 {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match bytes {
            1 => AtomicU8::from_ptr(site as *mut u8).load(Relaxed).into(),
            2 => AtomicU16::from_ptr(site as *mut u16).load(Relaxed).into(),
            4 => AtomicU32::from_ptr(site as *mut u32).load(Relaxed).into(),
            8 => AtomicU64::from_ptr(site as *mut u64).load(Relaxed).into(),
            _ => {
                let low = AtomicU64::from_ptr(site as *mut u64).load(Relaxed);
                let high = AtomicU64::from_ptr((site + 8) as *mut u64).load(Relaxed);
                u128::from(low) | u128::from(high) << 64
            }
        }
    }
}

/// Writes `bytes` (1, 2, 4, 8 or 16) at an address; each part of up to 8 bytes is written atomically.
///
/// # Safety
/// As for [`read`].
pub unsafe fn write(site: u64, bytes: u32, v: u128) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        match bytes {
            1 => AtomicU8::from_ptr(site as *mut u8).store(v as u8, Relaxed),
            2 => AtomicU16::from_ptr(site as *mut u16).store(v as u16, Relaxed),
            4 => AtomicU32::from_ptr(site as *mut u32).store(v as u32, Relaxed),
            8 => AtomicU64::from_ptr(site as *mut u64).store(v as u64, Relaxed),
            _ => {
                AtomicU64::from_ptr(site as *mut u64).store(v as u64, Relaxed);
                AtomicU64::from_ptr((site + 8) as *mut u64).store((v >> 64) as u64, Relaxed);
            }
        }
    }
}
