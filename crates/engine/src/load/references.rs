//! The texture, sampler and surface references of a module.

use cupyrite_ptx::ir::{Space, Type, Variable};

use crate::build::PlacedModule;
use crate::texture::{Reference, ReferenceKind, Sampler};

/// The kind of reference that a variable is; `None` for other variables.
fn kind(v: &Variable) -> Option<ReferenceKind> {
    match v.ty {
        Type::TexRef => Some(ReferenceKind::Texture),
        Type::SamplerRef => Some(ReferenceKind::Sampler(Sampler::of(&v.properties))),
        Type::SurfRef => Some(ReferenceKind::Surface),
        // PTX ISA, "Texture State Space": `.tex .u32 name` is `.global .texref name`.
        _ if v.space == Space::Tex => Some(ReferenceKind::Texture),
        _ => None,
    }
}

/// The handle of a variable with this address; the address itself if the variable is no reference.
pub fn handle(v: &Variable, address: u64) -> u64 {
    address | kind(v).map_or(0, |kind| 1 << kind.type_bit())
}

/// Whether a variable is a texture, sampler or surface reference.
pub fn is_reference(v: &Variable) -> bool {
    kind(v).is_some()
}

/// The references of a module.
pub fn references(placed: &PlacedModule) -> Vec<Reference> {
    let variables = placed.module.globals.iter().zip(&placed.globals);
    variables
        .filter_map(|(v, handle)| {
            Some(Reference {
                name: v.name.as_str().into(),
                kind: kind(v)?,
                handle: (*handle)?,
            })
        })
        .collect()
}
