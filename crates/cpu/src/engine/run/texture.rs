//! Texture and surface instructions: from a warp's registers to the sampler and back.

use cupyrite_ptx::ir::Type;

use super::atomics::combine;
use super::interpreter::{Cx, Done, fault};
use super::memory::{refused, set};
use super::warp::LANES;
use crate::engine::fault_report::{FaultKind, LaneFault, What};
use crate::engine::ops::Slot;
use crate::engine::program::{Inst, TexDetail, TexKind, TexOp};
use crate::memory::{Access, AddressSpace, Viewer};
use crate::texture::objects::{self, Object};
use crate::texture::{
    Coordinates, Detail, Fetch, Row, Rows, Surface, SurfaceAccess, Texture, read_element,
    write_element,
};

/// Objects that a worker has used.
#[derive(Default)]
pub struct ObjectCache {
    entries: [Option<Entry>; 16],
}

struct Entry {
    handle: u64,
    object: Object,
    /// The memory it reads has been looked up.
    proved: bool,
}

impl ObjectCache {
    /// Memory has come or gone: what textures read must be looked up again.
    pub fn forget_memory(&mut self) {
        for e in self.entries.iter_mut().flatten() {
            e.proved = false;
        }
    }

    /// What a handle names.
    #[inline]
    fn find(&mut self, handle: u64) -> Option<&mut Entry> {
        // Handles of the driver differ from their fifth bit on.
        let slot = &mut self.entries[(handle >> 4) as usize & 15];
        if slot.as_ref().is_none_or(|e| e.handle != handle) {
            *slot = Some(Entry {
                handle,
                object: objects::find(handle)?,
                proved: false,
            });
        }
        slot.as_mut()
    }
}

/// Whether all of `[address, address + len)` lies in regions that touch each other and that `viewer` may read.
fn covered(space: &AddressSpace, viewer: &Viewer, address: u64, len: u64) -> bool {
    let Some(end) = address.checked_add(len) else {
        return false;
    };
    let mut at = address;
    while at < end {
        match space.find(at) {
            Some(region) if viewer.access(&region) != Access::None => at = region.end(),
            _ => return false,
        }
    }
    true
}

#[cold]
fn no_object(handle: u64, lane: u32, what: &str) -> Box<LaneFault> {
    let text = if handle == 0 {
        format!("the {what} handle is zero")
    } else {
        format!("{handle:#x} is the handle of no {what} object")
    };
    Box::new(LaneFault {
        kind: FaultKind::IllegalAddress,
        lane,
        what: What::Text(text),
    })
}

fn texture(
    cx: &mut Cx<'_>,
    handle: u64,
    lane: u32,
) -> Result<std::sync::Arc<Texture>, Box<LaneFault>> {
    let space = cx.run.space;
    let Some(entry) = cx.worker.objects.find(handle) else {
        return Err(no_object(handle, lane, "texture"));
    };
    let Object::Texture(texture) = &entry.object else {
        return Err(no_object(handle, lane, "texture"));
    };
    if !entry.proved {
        if let Some((address, len)) = texture.memory()
            && !covered(space, &cx.run.viewer, address, len)
        {
            let len = u32::try_from(len).unwrap_or(u32::MAX);
            return Err(refused(
                FaultKind::IllegalAddress,
                lane,
                address,
                len,
                false,
                "global",
                None,
            ));
        }
        entry.proved = true;
    }
    Ok(texture.clone())
}

fn surface(
    cx: &mut Cx<'_>,
    handle: u64,
    lane: u32,
) -> Result<std::sync::Arc<Surface>, Box<LaneFault>> {
    match cx.worker.objects.find(handle) {
        Some(Entry {
            object: Object::Surface(surface),
            ..
        }) => Ok(surface.clone()),
        _ => Err(no_object(handle, lane, "surface")),
    }
}

/// A row of 32-bit registers.
///
/// # Safety
/// `at` is a 32-bit slot of the register file.
#[inline(always)]
unsafe fn row<T: Copy>(regs: *mut u8, at: u32) -> Row<T> {
    const { assert!(size_of::<T>() == 4) };
    // SAFETY: the caller's promise; every bit pattern of 32 bits is a value of the types used here (u32, i32, f32).
    unsafe { *regs.add(at as usize).cast() }
}

/// Runs a texture or surface instruction for the lanes `m`.
///
/// # Safety
/// `inst` is a decoded instruction of the program whose register file `regs` is.
#[inline(never)]
pub unsafe fn run(cx: &mut Cx<'_>, regs: *mut u8, inst: &Inst, m: u32) -> Done {
    let program = cx.program;
    let op = &program.textures[inst.target as usize];
    // SAFETY: the handle is in a 64-bit slot.
    let handles: Row<u64> = unsafe { *regs.add(op.object as usize).cast() };
    let mut rows: Rows = [[0; LANES]; 4];
    let mut left = m;
    while left != 0 {
        // Nearly always all lanes use the same object.
        let first = left.trailing_zeros();
        let handle = handles[first as usize & 31];
        let mut group = 0;
        for (l, h) in handles.iter().enumerate() {
            group |= u32::from(*h == handle) << l;
        }
        group &= left;
        left &= !group;
        // SAFETY: places lie in the register file, and have the widths that the decoder gave them.
        unsafe {
            match op.kind {
                TexKind::Fetch { .. } | TexKind::Gather(_) => {
                    let texture = texture(cx, handle, first)?;
                    fetch(&texture, regs, op, group, &mut rows)?;
                }
                TexKind::TextureQuery(what, by_level) => {
                    let texture = texture(cx, handle, first)?;
                    let level: Row<u32> = row(regs, op.lod);
                    for l in (0..LANES).filter(|l| group >> l & 1 != 0) {
                        rows[0][l] = texture.query(what, if by_level { level[l] } else { 0 });
                    }
                }
                TexKind::SurfaceQuery(what) => {
                    let value = surface(cx, handle, first)?.query(what);
                    for l in (0..LANES).filter(|l| group >> l & 1 != 0) {
                        rows[0][l] = value;
                    }
                }
                TexKind::Load | TexKind::Store | TexKind::Reduce(_) => {
                    let surface = surface(cx, handle, first)?;
                    access(&surface, regs, op, group)?;
                }
            }
        }
    }
    if !matches!(op.kind, TexKind::Load | TexKind::Store | TexKind::Reduce(_)) {
        // SAFETY: the destinations are slots of the register file.
        unsafe { write_back(regs, op, &rows, m) };
    }
    Ok(())
}

/// Puts the results of a fetch or query into their registers.
unsafe fn write_back(regs: *mut u8, op: &TexOp, rows: &Rows, m: u32) {
    let half = |bits: u32| u32::from(half::f16::from_f32(f32::from_bits(bits)).to_bits());
    for (k, &(at, slot)) in op.values.iter().enumerate() {
        for l in (0..LANES).filter(|l| m >> l & 1 != 0) {
            let v = match op.ty {
                Type::F16 => half(rows[k & 3][l]),
                Type::F16x2 => half(rows[(2 * k) & 3][l]) | (half(rows[(2 * k + 1) & 3][l]) << 16),
                _ => rows[k & 3][l],
            };
            // SAFETY: the caller's promise.
            unsafe { set(regs, at, slot, l, u128::from(v)) };
        }
    }
    if matches!(op.kind, TexKind::Fetch { .. } | TexKind::Gather(_)) {
        // Everything is resident.
        // SAFETY: the place of a predicate.
        unsafe { *regs.add(op.resident as usize).cast::<u32>() |= m };
    }
}

#[cold]
fn wrong_shape(op: &TexOp, m: u32, what: &str) -> Box<LaneFault> {
    let shape = match (op.view.dimensions, op.view.layered, op.view.cube) {
        (_, false, true) => "a cubemap".to_string(),
        (_, true, true) => "a layered cubemap".to_string(),
        (n, false, _) => format!("{n} dimensions"),
        (n, true, _) => format!("layers of {n} dimensions"),
    };
    fault(
        FaultKind::IllegalAddress,
        m,
        format!("the instruction is for {shape}, the {what} object has another shape"),
    )
}

unsafe fn fetch(t: &Texture, regs: *mut u8, op: &TexOp, m: u32, rows: &mut Rows) -> Done {
    let texels = matches!(op.kind, TexKind::Fetch { texels: true, .. });
    if !t.accepts(op.view, texels) {
        return Err(wrong_shape(op, m, "texture"));
    }
    // SAFETY: places lie in the register file; the caller has looked the texture's memory up, and a pin keeps it.
    unsafe {
        let coordinates = if texels {
            Coordinates::Texel(op.coordinates.map(|at| row(regs, at)))
        } else {
            Coordinates::Position(op.coordinates.map(|at| row(regs, at)))
        };
        let detail = match op.kind {
            TexKind::Fetch {
                detail: TexDetail::Level,
                ..
            } if texels => Detail::Level(row::<i32>(regs, op.lod).map(|n| n as f32)),
            TexKind::Fetch {
                detail: TexDetail::Level,
                ..
            } => Detail::Level(row(regs, op.lod)),
            TexKind::Fetch {
                detail: TexDetail::Gradient,
                ..
            } => {
                let [x, y] = op.gradient.map(|g| g.map(|at| row(regs, at)));
                Detail::Gradient(Box::new([x, y]))
            }
            _ => Detail::Base,
        };
        let f = Fetch {
            view: op.view,
            coordinates,
            layer: row(regs, op.layer),
            detail,
            offset: op.offset,
        };
        match op.kind {
            TexKind::Gather(component) => t.gather(&f, usize::from(component), m, rows),
            _ => t.fetch(&f, m, rows),
        }
    }
    Ok(())
}

unsafe fn access(s: &Surface, regs: *mut u8, op: &TexOp, m: u32) -> Done {
    if !s.accepts(op.view) {
        return Err(wrong_shape(op, m, "surface"));
    }
    if op.formatted && matches!(op.kind, TexKind::Reduce(_)) && s.format().element_bytes() != 4 {
        return Err(fault(
            FaultKind::IllegalAddress,
            m,
            "the surface's elements are no single integers of 32 bits",
        ));
    }
    let width = op.ty.bytes();
    let bytes = width * op.values.len() as u32;
    // SAFETY: places lie in the register file.
    let places = unsafe {
        SurfaceAccess {
            view: op.view,
            coordinates: op.coordinates.map(|at| row(regs, at)),
            layer: row(regs, op.layer),
            bytes: if op.formatted { 0 } else { bytes },
            outside: op.outside,
        }
    };
    let sites = s.sites(&places, m).map_err(|r| {
        let [x, y, z] = r.coordinates;
        let at = match op.view.dimensions {
            1 => format!("x {x}"),
            2 => format!("({x}, {y})"),
            _ => format!("({x}, {y}, {z})"),
        };
        let layer = if op.view.layered {
            format!(", layer {}", r.layer as i32)
        } else {
            String::new()
        };
        let (kind, what) = if r.misaligned {
            (FaultKind::MisalignedAddress, "is not aligned to the access")
        } else {
            (FaultKind::IllegalAddress, "lies outside of the surface")
        };
        let unit = if op.formatted { "element" } else { "byte" };
        Box::new(LaneFault {
            kind,
            lane: r.lane,
            what: What::Text(format!("{at}{layer} (x in {unit}s) {what}")),
        })
    })?;
    let active = |l: &usize| m >> l & 1 != 0;
    // SAFETY: the sites are zero or elements of the surface's memory; the rest is the caller's promise.
    unsafe {
        let part = |at: u32, slot: Slot, l: usize| super::memory::get(regs, at, slot, l);
        let keep = u128::MAX >> (128 - 8 * width);
        match op.kind {
            TexKind::Load => {
                for l in (0..LANES).filter(active) {
                    let v = if sites[l] == 0 {
                        0
                    } else {
                        read_element(sites[l], bytes)
                    };
                    for (k, &(at, slot)) in op.values.iter().enumerate() {
                        set(regs, at, slot, l, v >> (8 * width * k as u32) & keep);
                    }
                }
            }
            TexKind::Reduce(what) => {
                let ty = if op.formatted && s.format().kind == crate::texture::ChannelKind::Signed {
                    Type::S32
                } else {
                    op.ty
                };
                for l in (0..LANES).filter(active).filter(|l| sites[*l] != 0) {
                    let Some(&(at, slot)) = op.values.first() else {
                        continue;
                    };
                    let v = part(at, slot, l) as u64;
                    reduce(sites[l], ty, |old| combine(what, ty, old, v, 0));
                }
            }
            _ if op.formatted => {
                let mut rows: Rows = [[0; LANES]; 4];
                for (k, &(at, slot)) in op.values.iter().enumerate().take(4) {
                    for l in (0..LANES).filter(active) {
                        rows[k][l] = part(at, slot, l) as u32;
                    }
                }
                s.store_formatted(&sites, &rows, m);
            }
            _ => {
                for l in (0..LANES).filter(active).filter(|l| sites[*l] != 0) {
                    let mut v = 0;
                    for (k, &(at, slot)) in op.values.iter().enumerate() {
                        v |= (part(at, slot, l) & keep) << (8 * width * k as u32);
                    }
                    write_element(sites[l], bytes, v);
                }
            }
        }
    }
    Ok(())
}

/// Replaces the integer at an address atomically.
///
/// # Safety
/// The address is that of an integer of the type's size, aligned, in a surface.
unsafe fn reduce(site: u64, ty: Type, next: impl Fn(u64) -> u64) {
    use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
    // SAFETY: the caller's promise.
    unsafe {
        if ty.bits() == 64 {
            let p = AtomicU64::from_ptr(site as *mut u64);
            let _ = p.fetch_update(Relaxed, Relaxed, |old| Some(next(old)));
        } else {
            let p = AtomicU32::from_ptr(site as *mut u32);
            let _ = p.fetch_update(Relaxed, Relaxed, |old| Some(next(old.into()) as u32));
        }
    }
}
