//! Texture and surface instructions: move values between registers and the sampler.

use cupyrite_ptx::ir::{Scope, Semantics, Type};

use super::context::{Context, ExecResult, fault};
use super::lanes::{LANES, lanes};
use super::memory::model::{AccessKind, AccessRequest, MemoryModel, admit};
use super::memory::{get, host, refused, set};
use super::texture_cache::{CachedObject, reference};
use crate::bytecode::Inst;
use crate::fault::{FaultDetail, FaultKind, LaneFault};
use crate::kir::{Reg, TexDetail, TexKind, TexOp};
use crate::memory::{Access, AddressSpace, Viewer};
use crate::semantics::atomic::combine;
use crate::semantics::lane::Slot;
use crate::texture::objects::Object;
use crate::texture::{
    BoundReference, Coordinates, Detail, Fetch, ReferenceKind, Row, Rows, Sampler, Surface,
    SurfaceAccess, Texture, element_address, read_element, write_element,
};

/// Whether `[address, address + len)` lies in adjacent regions that `viewer` may read.
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

/// The fault of an invalid handle.
#[cold]
fn no_object(references: &[BoundReference], handle: u64, lane: u32, what: &str) -> Box<LaneFault> {
    let text = if let Some(bound) = reference(references, handle) {
        let name = &bound.reference.name;
        match (&bound.object, &bound.reference.kind) {
            (None, ReferenceKind::Texture | ReferenceKind::Surface) => format!(
                "the {what} reference `{name}` was bound to no memory when the kernel was launched"
            ),
            _ => format!("`{name}` is not a {what} reference"),
        }
    } else if handle == 0 {
        format!("the {what} handle is zero")
    } else {
        format!("{handle:#x} is not the handle of a {what} object")
    };
    Box::new(LaneFault {
        kind: FaultKind::IllegalAddress,
        lane,
        detail: FaultDetail::Text(text),
    })
}

/// The fault of an access to an array with deferred mapping that has no memory.
#[cold]
fn unmapped(lane: u32, what: &str) -> Box<LaneFault> {
    Box::new(LaneFault {
        kind: FaultKind::Trap,
        lane,
        detail: FaultDetail::Text(format!(
            "no memory is mapped into the array of the {what}; see cuMemMapArrayAsync"
        )),
    })
}

/// The texture of a handle. Checks that its memory is accessible.
fn texture(
    cx: &mut Context<'_, impl MemoryModel>,
    handle: u64,
    sampler: u64,
    lane: u32,
) -> Result<std::sync::Arc<Texture>, Box<LaneFault>> {
    let space = cx.launch.space;
    let references = cx.launch.references;
    let Some(entry) = cx.worker.objects.find(references, handle, sampler) else {
        return Err(no_object(references, handle, lane, "texture"));
    };
    let Object::Texture(texture) = &entry.object else {
        return Err(no_object(references, handle, lane, "texture"));
    };
    if !entry.checked {
        if !texture.is_accessible() {
            return Err(unmapped(lane, "texture"));
        }
        if let Some((address, len)) = texture.memory()
            && !covered(space, &cx.launch.viewer, address, len)
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
        entry.checked = true;
    }
    Ok(texture.clone())
}

/// The surface of a handle.
fn surface(
    cx: &mut Context<'_, impl MemoryModel>,
    handle: u64,
    lane: u32,
) -> Result<std::sync::Arc<Surface>, Box<LaneFault>> {
    let references = cx.launch.references;
    match cx.worker.objects.find(references, handle, 0) {
        Some(CachedObject {
            object: Object::Surface(surface),
            ..
        }) if !surface.is_accessible() => Err(unmapped(lane, "surface")),
        Some(CachedObject {
            object: Object::Surface(surface),
            ..
        }) => Ok(surface.clone()),
        _ => Err(no_object(references, handle, lane, "surface")),
    }
}

/// The sampler of a handle, if it names one.
fn sampler(cx: &Context<'_, impl MemoryModel>, handle: u64) -> Option<Sampler> {
    match reference(cx.launch.references, handle)?.reference.kind {
        ReferenceKind::Sampler(sampler) => Some(sampler),
        _ => None,
    }
}

/// A row of 32-bit registers.
///
/// # Safety
/// `at` is a 32-bit slot of the register file.
#[inline(always)]
unsafe fn row<T: Copy>(regs: *mut u8, at: u32) -> Row<T> {
    const { assert!(size_of::<T>() == 4) };
    // SAFETY: upheld by the caller; every bit pattern of 32 bits is a value of the types used here (u32, i32, f32).
    unsafe { *regs.add(at as usize).cast() }
}

/// Executes a texture or surface instruction for the lanes `active`.
///
/// # Safety
/// `regs` is a register file of the program that `inst` belongs to.
#[inline(never)]
pub unsafe fn run(
    cx: &mut Context<'_, impl MemoryModel>,
    regs: *mut u8,
    inst: &Inst,
    active: u32,
) -> ExecResult {
    let program = cx.program;
    let op = &program.textures[inst.target as usize];
    // SAFETY: the handle is in a 64-bit slot.
    let handles: Row<u64> = unsafe { *regs.add(op.object.at as usize).cast() };
    let samplers: Row<u64> = match op.sampler {
        // SAFETY: the sampler's handle is in a 64-bit slot.
        Some(sampler) => unsafe { *regs.add(sampler.at as usize).cast() },
        None => [0; LANES],
    };
    let mut rows: Rows = [[0; LANES]; 4];
    // Lanes that have read a tile of a sparse array without memory.
    let mut missing = 0;
    let mut left = active;
    while left != 0 {
        // Usually all lanes use the same object.
        let first = left.trailing_zeros();
        let handle = handles[first as usize & 31];
        let separate = samplers[first as usize & 31];
        let mut group = 0;
        for (l, (h, s)) in handles.iter().zip(&samplers).enumerate() {
            group |= u32::from(*h == handle && *s == separate) << l;
        }
        group &= left;
        left &= !group;
        // SAFETY: the operands lie in the register file and have the shapes that the compiler chose.
        unsafe {
            match op.kind {
                TexKind::Fetch { .. } | TexKind::Gather(_) => {
                    let texture = texture(cx, handle, separate, first)?;
                    missing |= fetch(cx, &texture, regs, inst, op, group, &mut rows)?;
                }
                TexKind::TextureQuery(what, _) if let Some(sampler) = sampler(cx, handle) => {
                    for l in lanes(group) {
                        rows[0][l] = sampler.query(what);
                    }
                }
                TexKind::TextureQuery(what, by_level) => {
                    let texture = texture(cx, handle, 0, first)?;
                    let level: Row<u32> = row(regs, op.lod.at);
                    for l in lanes(group) {
                        rows[0][l] = texture.query(what, if by_level { level[l] } else { 0 });
                    }
                }
                TexKind::SurfaceQuery(what) => {
                    let value = surface(cx, handle, first)?.query(what);
                    for l in lanes(group) {
                        rows[0][l] = value;
                    }
                }
                TexKind::Load | TexKind::Store | TexKind::Reduce(_) => {
                    let surface = surface(cx, handle, first)?;
                    access(cx, &surface, regs, inst, op, group)?;
                }
            }
        }
    }
    if !matches!(op.kind, TexKind::Load | TexKind::Store | TexKind::Reduce(_)) {
        // SAFETY: the destinations are slots of the register file.
        unsafe { write_back(regs, op, &rows, active, active & !missing) };
    }
    Ok(())
}

/// Writes the results of a fetch or query to their registers. The texels of the lanes `resident` have memory.
unsafe fn write_back(regs: *mut u8, op: &TexOp, rows: &Rows, active: u32, resident: u32) {
    let half = |bits: u32| u32::from(half::f16::from_f32(f32::from_bits(bits)).to_bits());
    for (k, &Reg { at, slot }) in op.values.iter().enumerate() {
        for l in lanes(active) {
            let v = match op.ty {
                Type::F16 => half(rows[k & 3][l]),
                Type::F16x2 => half(rows[(2 * k) & 3][l]) | (half(rows[(2 * k + 1) & 3][l]) << 16),
                _ => rows[k & 3][l],
            };
            // SAFETY: upheld by the caller.
            unsafe { set(regs, at, slot, l, u128::from(v)) };
        }
    }
    if matches!(op.kind, TexKind::Fetch { .. } | TexKind::Gather(_)) {
        // SAFETY: `resident` is a predicate of the register file.
        unsafe {
            let predicate = regs.add(op.resident.at as usize).cast::<u32>();
            *predicate = (*predicate & !active) | resident;
        }
    }
}

/// The fault of an instruction whose geometry differs from that of its object.
#[cold]
fn geometry_mismatch(op: &TexOp, active: u32, what: &str) -> Box<LaneFault> {
    let shape = match (op.view.dimensions, op.view.layered, op.view.cube) {
        (_, false, true) => "a cubemap".to_string(),
        (_, true, true) => "a layered cubemap".to_string(),
        (n, false, _) => format!("{n} dimensions"),
        (n, true, _) => format!("layers of {n} dimensions"),
    };
    fault(
        FaultKind::IllegalAddress,
        active,
        format!("the instruction accesses {shape}; the {what} object has another shape"),
    )
}

/// `tex`, `tld4` for lanes that use one texture. Returns the lanes that have read texels without memory.
unsafe fn fetch(
    cx: &mut Context<'_, impl MemoryModel>,
    t: &Texture,
    regs: *mut u8,
    inst: &Inst,
    op: &TexOp,
    active: u32,
    rows: &mut Rows,
) -> Result<u32, Box<LaneFault>> {
    let texels = matches!(op.kind, TexKind::Fetch { texels: true, .. });
    if !t.accepts(op.view, texels) {
        return Err(geometry_mismatch(op, active, "texture"));
    }
    let mappings = t.sparse_mappings();
    let mut missing = 0;
    let mut admit_texels = |sites: &Row<u64>, mask: u32| {
        if let Some(mappings) = mappings {
            let unmapped =
                |l: &usize| sites[*l] != 0 && !mappings.is_mapped(element_address(sites[*l]));
            missing |= lanes(mask).filter(unmapped).fold(0, |on, l| on | 1u32 << l);
        }
        let inside = lanes(mask).fold(0, |on, l| on | u32::from(sites[l] != 0) << l);
        admit(cx, inst, inside, || AccessRequest {
            space: None,
            addresses: sites.map(element_address),
            bytes: t.format().element_bytes(),
            kind: AccessKind::Load,
            order: Semantics::Weak,
            scope: Scope::Gpu,
            asynchronous: false,
        })
        .map(drop)
    };
    // SAFETY: the operands lie in the register file. The caller has checked the texture's memory, and the launch has
    // pinned the address space.
    unsafe {
        let coordinates = if texels {
            Coordinates::Texel(op.coordinates.map(|r| row(regs, r.at)))
        } else {
            Coordinates::Position(op.coordinates.map(|r| row(regs, r.at)))
        };
        let detail = match op.kind {
            TexKind::Fetch {
                detail: TexDetail::Level,
                ..
            } if texels => Detail::Level(row::<i32>(regs, op.lod.at).map(|n| n as f32)),
            TexKind::Fetch {
                detail: TexDetail::Level,
                ..
            } => Detail::Level(row(regs, op.lod.at)),
            TexKind::Fetch {
                detail: TexDetail::Gradient,
                ..
            } => {
                let [x, y] = op.gradient.map(|g| g.map(|r| row(regs, r.at)));
                Detail::Gradient(Box::new([x, y]))
            }
            _ => Detail::Base,
        };
        let f = Fetch {
            view: op.view,
            coordinates,
            layer: row(regs, op.layer.at),
            detail,
            offset: op.offset,
        };
        match op.kind {
            TexKind::Gather(component) => {
                let component = usize::from(component);
                t.gather(&f, component, active, rows, &mut admit_texels)?;
            }
            _ => t.fetch(&f, active, rows, &mut admit_texels)?,
        }
    }
    Ok(missing)
}

/// `suld`, `sust`, `sured` for lanes that use one surface.
unsafe fn access(
    cx: &mut Context<'_, impl MemoryModel>,
    s: &Surface,
    regs: *mut u8,
    inst: &Inst,
    op: &TexOp,
    active: u32,
) -> ExecResult {
    if !s.accepts(op.view) {
        return Err(geometry_mismatch(op, active, "surface"));
    }
    if op.formatted && matches!(op.kind, TexKind::Reduce(_)) && s.format().element_bytes() != 4 {
        return Err(fault(
            FaultKind::IllegalAddress,
            active,
            "the elements of the surface must be single 32-bit integers",
        ));
    }
    let width = op.ty.bytes();
    let bytes = width * op.values.len() as u32;
    // SAFETY: the operands lie in the register file.
    let places = unsafe {
        SurfaceAccess {
            view: op.view,
            coordinates: op.coordinates.map(|r| row(regs, r.at)),
            layer: row(regs, op.layer.at),
            bytes: if op.formatted { 0 } else { bytes },
            outside: op.outside,
        }
    };
    let sites = s.sites(&places, active).map_err(|r| {
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
            (FaultKind::IllegalAddress, "lies outside the surface")
        };
        let unit = if op.formatted { "element" } else { "byte" };
        Box::new(LaneFault {
            kind,
            lane: r.lane,
            detail: FaultDetail::Text(format!("{at}{layer} (x in {unit}s) {what}")),
        })
    })?;
    let inside = lanes(active).fold(0, |on, l| on | u32::from(sites[l] != 0) << l);
    admit(cx, inst, inside, || {
        let (kind, order) = match op.kind {
            TexKind::Load => (AccessKind::Load, Semantics::Weak),
            TexKind::Reduce(_) => (AccessKind::Atomic, Semantics::Relaxed),
            _ => (AccessKind::Store, Semantics::Weak),
        };
        let bytes = match op.formatted {
            true => s.format().element_bytes(),
            false => bytes,
        };
        AccessRequest {
            space: None,
            addresses: sites,
            bytes,
            kind,
            order,
            scope: Scope::Gpu,
            asynchronous: false,
        }
    })?;
    // SAFETY: a site is zero or the address of an element of the surface; the caller upholds the rest.
    unsafe {
        let part = |at: u32, slot: Slot, l: usize| get(regs, at, slot, l);
        let keep = u128::MAX >> (128 - 8 * width);
        match op.kind {
            TexKind::Load => {
                for l in lanes(active) {
                    let v = if sites[l] == 0 {
                        0
                    } else {
                        read_element(sites[l], bytes)
                    };
                    for (k, &Reg { at, slot }) in op.values.iter().enumerate() {
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
                for l in lanes(active).filter(|l| sites[*l] != 0) {
                    let Some(&Reg { at, slot }) = op.values.first() else {
                        continue;
                    };
                    let v = part(at, slot, l) as u64;
                    reduce(sites[l], ty, |old| combine(what, ty, old, v, 0));
                }
            }
            _ if op.formatted => {
                let mut rows: Rows = [[0; LANES]; 4];
                for (k, &Reg { at, slot }) in op.values.iter().enumerate().take(4) {
                    for l in lanes(active) {
                        rows[k][l] = part(at, slot, l) as u32;
                    }
                }
                s.store_formatted(&sites, &rows, active);
            }
            _ => {
                for l in lanes(active).filter(|l| sites[*l] != 0) {
                    let mut v = 0;
                    for (k, &Reg { at, slot }) in op.values.iter().enumerate() {
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
    // SAFETY: upheld by the caller.
    unsafe {
        if ty.bits() == 64 {
            let p = host::atomic::<AtomicU64>(site);
            let _ = p.fetch_update(Relaxed, Relaxed, |old| Some(next(old)));
        } else {
            let p = host::atomic::<AtomicU32>(site);
            let _ = p.fetch_update(Relaxed, Relaxed, |old| Some(next(old.into()) as u32));
        }
    }
}
