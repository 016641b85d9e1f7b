//! Texture, surface and sampler references: module variables that name an object, which the host binds before a launch (PTX
//! ISA, "Texture Sampler and Surface Types").
//!
//! The handle of a reference is the address of its variable with a bit that tells its type, which `istypep` tests. No handle of
//! an object has an address of device memory in its other bits, so the two never collide.

use std::sync::Arc;

use super::descriptor::{AddressMode, Filter, Texture, TextureError};
use super::objects::Object;

/// Type of a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReferenceKind {
    /// `.texref`, and a variable in the state space `.tex` of PTX 1.x.
    Texture,
    /// `.samplerref` (`.texmode_independent`).
    Sampler(Sampler),
    /// `.surfref`.
    Surface,
}

impl ReferenceKind {
    /// The bit of a handle that tells its type, as on an H100.
    pub const fn type_bit(self) -> u32 {
        match self {
            Self::Texture => 61,
            Self::Sampler(_) => 62,
            Self::Surface => 63,
        }
    }
}

/// The initial values of a `.samplerref` variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Sampler {
    /// Addressing of each dimension.
    pub address: [AddressMode; 3],
    /// Filtering of texels.
    pub filter: Filter,
    /// Whether coordinates are texels even if the texture's are normalised.
    pub force_unnormalized: bool,
}

impl Default for Sampler {
    fn default() -> Self {
        Self {
            address: [AddressMode::Clamp; 3],
            filter: Filter::Point,
            force_unnormalized: false,
        }
    }
}

impl Sampler {
    /// A sampler with these properties, as written in the PTX; the others have their defaults.
    pub fn of(properties: &[(String, String)]) -> Self {
        let mut sampler = Self::default();
        for (name, value) in properties {
            match name.as_str() {
                "filter_mode" => {
                    sampler.filter = match value.as_str() {
                        "linear" => Filter::Linear,
                        _ => Filter::Point,
                    }
                }
                "force_unnormalized_coords" => sampler.force_unnormalized = value != "0",
                _ => {
                    let dimension = ["addr_mode_0", "addr_mode_1", "addr_mode_2"]
                        .iter()
                        .position(|d| d == name);
                    if let Some(dimension) = dimension {
                        sampler.address[dimension] = match value.as_str() {
                            "wrap" => AddressMode::Wrap,
                            "mirror" => AddressMode::Mirror,
                            "clamp_to_border" => AddressMode::Border,
                            _ => AddressMode::Clamp,
                        };
                    }
                }
            }
        }
        sampler
    }
}

impl Texture {
    /// The texture with another sampler.
    ///
    /// # Errors
    /// As [`Texture::new`].
    pub fn with_sampler(&self, sampler: &Sampler) -> Result<Texture, TextureError> {
        let mut descriptor = self.descriptor;
        descriptor.address = sampler.address;
        descriptor.filter = sampler.filter;
        descriptor.normalized &= !sampler.force_unnormalized;
        Texture::new(self.resource.clone(), descriptor, None)
    }
}

/// A reference of a module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Name in the PTX.
    pub name: Arc<str>,
    /// Type.
    pub kind: ReferenceKind,
    /// Its value in a kernel.
    pub handle: u64,
}

/// A reference during a launch.
#[derive(Clone, Debug)]
pub struct BoundReference {
    /// The reference.
    pub reference: Reference,
    /// The object to which it is bound; `None` for a sampler, and if it is bound to none.
    pub object: Option<Object>,
}
