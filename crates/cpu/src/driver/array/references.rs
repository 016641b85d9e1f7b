//! Texture and surface references: what they are bound to, and the objects that launches use in their place.
//!
//! A module creates the references of its variables when it is loaded, and removes their handles when it is unloaded. A launch
//! takes the objects that its module's references are bound to when the launch is made.

use std::sync::Arc;

use cupyrite_engine::Image;
use cupyrite_engine::texture::objects::Object;
use cupyrite_engine::texture::{
    BoundReference, Format, Reference, ReferenceKind, Resource, ResourceView, Storage, Surface,
    SurfaceDescriptor, Texture, TextureDescriptor,
};
use cupyrite_sys::driver::{self as sys, CUDA_TEXTURE_DESC, CUaddress_mode, CUfilter_mode};
use parking_lot::Mutex;

use crate::driver::context::Context;
use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id};
use crate::driver::entry::logs::because;

pub(crate) static TEXTURE_REFERENCES: HandleTable<TextureReference> =
    HandleTable::new(HandleKind::TextureReference);
pub(crate) static SURFACE_REFERENCES: HandleTable<SurfaceReference> =
    HandleTable::new(HandleKind::SurfaceReference);

/// The memory that a texture reference is bound to.
#[derive(Clone)]
pub(crate) enum Binding {
    /// Nothing.
    None,
    /// An array: its handle, and a level of its memory.
    Array {
        handle: u64,
        storage: Arc<Storage>,
        level: u32,
        /// Whether the format is the reference's, and not the array's.
        reinterpreted: bool,
    },
    /// A mipmapped array: its handle and memory.
    Mipmapped {
        handle: u64,
        storage: Arc<Storage>,
        /// Whether the format is the reference's, and not the array's.
        reinterpreted: bool,
    },
    /// Linear memory, from an aligned address; zero for no memory.
    Linear { address: u64, bytes: u64 },
    /// Pitched memory.
    Pitched {
        address: u64,
        width: u64,
        height: u64,
        pitch: u64,
    },
}

/// The settings of a texture reference.
pub(crate) struct TextureState {
    pub(crate) binding: Binding,
    /// `CUarray_format` and number of channels.
    pub(crate) format: (u32, u32),
    /// Everything else.
    pub(crate) descriptor: CUDA_TEXTURE_DESC,
    /// The object of the current settings, once a launch has needed it.
    object: Option<Arc<Texture>>,
}

impl Default for TextureState {
    fn default() -> Self {
        TextureState {
            binding: Binding::None,
            format: (sys::CUarray_format::CU_AD_FORMAT_FLOAT.0, 1),
            descriptor: CUDA_TEXTURE_DESC {
                addressMode: [CUaddress_mode::CU_TR_ADDRESS_MODE_CLAMP; 3],
                filterMode: CUfilter_mode::CU_TR_FILTER_MODE_POINT,
                ..CUDA_TEXTURE_DESC::default()
            },
            object: None,
        }
    }
}

impl TextureState {
    /// The format of linear memory.
    pub(crate) fn memory_format(&self) -> Res<Format> {
        super::texture::memory_format(sys::CUarray_format(self.format.0), self.format.1)
    }

    /// The descriptor without the values that NVIDIA's driver accepts but that mean nothing.
    fn usable_descriptor(&self) -> CUDA_TEXTURE_DESC {
        let mut d = self.descriptor;
        d.maxAnisotropy = d.maxAnisotropy.min(16);
        d.flags &= !super::texture::IGNORED_FLAGS;
        if d.filterMode != CUfilter_mode::CU_TR_FILTER_MODE_LINEAR {
            d.filterMode = CUfilter_mode::CU_TR_FILTER_MODE_POINT;
        }
        d
    }

    /// The view of an array in the format of the reference.
    fn view(&self) -> Res<Option<ResourceView>> {
        let (storage, levels) = match &self.binding {
            Binding::Array {
                storage,
                reinterpreted: true,
                ..
            } => (storage, 1),
            Binding::Mipmapped {
                storage,
                reinterpreted: true,
                ..
            } => (storage, storage.level_count()),
            _ => return Ok(None),
        };
        let format = Format::new(self.format.0, self.format.1).ok_or(Code::INVALID_VALUE)?;
        Ok(Some(ResourceView {
            format: Some(format).filter(|f| *f != storage.format()),
            size: [0; 3],
            first_level: 0,
            last_level: levels - 1,
            first_layer: 0,
            last_layer: storage.layers() - 1,
        }))
    }

    /// Removes the binding to an array that has been destroyed, as NVIDIA's driver does.
    fn drop_destroyed_array(&mut self) {
        let destroyed = match &self.binding {
            Binding::Array { handle, .. } => super::find(*handle).is_none(),
            Binding::Mipmapped { handle, .. } => super::find_mipmapped(*handle).is_none(),
            _ => false,
        };
        if destroyed {
            self.binding = Binding::None;
            self.object = None;
        }
    }

    /// The object of the current settings; `None` if the reference is bound to nothing.
    fn object(&mut self) -> Res<Option<Arc<Texture>>> {
        self.drop_destroyed_array();
        if let Some(object) = &self.object {
            return Ok(Some(object.clone()));
        }
        let resource = match &self.binding {
            Binding::None
            | Binding::Linear { address: 0, .. }
            | Binding::Pitched { address: 0, .. } => return Ok(None),
            Binding::Array { storage, level, .. } => Resource::Array {
                storage: storage.clone(),
                level: *level,
            },
            Binding::Mipmapped { storage, .. } => Resource::Mipmapped {
                storage: storage.clone(),
            },
            &Binding::Linear { address, bytes } => Resource::Linear {
                address,
                bytes,
                format: self.memory_format()?,
            },
            &Binding::Pitched {
                address,
                width,
                height,
                pitch,
            } => Resource::Pitch2D {
                address,
                width,
                height,
                pitch,
                format: self.memory_format()?,
            },
        };
        let descriptor = TextureDescriptor::from_c(&self.usable_descriptor())?;
        let view = self.view()?;
        let object = Arc::new(Texture::new(resource, descriptor, view.as_ref())?);
        self.object = Some(object.clone());
        Ok(Some(object))
    }
}

/// A texture reference.
pub(crate) struct TextureReference {
    pub(crate) context: u64,
    state: Mutex<TextureState>,
}

impl TextureReference {
    /// Registers a reference of a context.
    pub(crate) fn register(context: u64) -> (u64, Arc<TextureReference>) {
        let reference = Arc::new(TextureReference {
            context,
            state: Mutex::default(),
        });
        let handle = TEXTURE_REFERENCES.insert(fresh_id(), reference.clone());
        (handle, reference)
    }

    /// Reads the settings.
    pub(crate) fn read<T>(&self, f: impl FnOnce(&TextureState) -> T) -> T {
        let mut state = self.state.lock();
        state.drop_destroyed_array();
        f(&state)
    }

    /// Changes the settings. Launches that are already made keep theirs.
    pub(crate) fn change<T>(&self, f: impl FnOnce(&mut TextureState) -> Res<T>) -> Res<T> {
        let mut state = self.state.lock();
        state.object = None;
        f(&mut state)
    }
}

/// The array that a surface reference is bound to: its handle, and its object.
pub(crate) type BoundSurface = (u64, Arc<Surface>);

/// A surface reference.
pub(crate) struct SurfaceReference {
    pub(crate) context: u64,
    bound: Mutex<Option<BoundSurface>>,
}

impl SurfaceReference {
    /// What the reference is bound to, unless the array has been destroyed.
    pub(crate) fn bound(&self) -> Option<BoundSurface> {
        let mut bound = self.bound.lock();
        if bound
            .as_ref()
            .is_some_and(|(array, _)| super::find(*array).is_none())
        {
            *bound = None;
        }
        bound.clone()
    }

    /// Binds the reference to an array.
    ///
    /// # Errors
    /// `INVALID_VALUE` for a compressed format.
    pub(crate) fn bind(&self, handle: u64, array: &super::Array) -> Res {
        let surface = Surface::new(SurfaceDescriptor {
            storage: array.storage().clone(),
            level: array.level_number(),
        })?;
        *self.bound.lock() = Some((handle, Arc::new(surface)));
        Ok(())
    }
}

/// The driver's part of a reference.
enum Target {
    Texture(u64, Arc<TextureReference>),
    Surface(u64, Arc<SurfaceReference>),
    /// A sampler, whose state is in the PTX.
    Sampler,
}

/// The references of a module.
#[derive(Default)]
pub(crate) struct ModuleReferences(Vec<(Reference, Target)>);

impl ModuleReferences {
    /// Creates the references of an image that is loaded into a context.
    pub(crate) fn new(context: &Context, image: &Image) -> Arc<ModuleReferences> {
        let references = image.references().iter().map(|reference| {
            let target = match reference.kind {
                ReferenceKind::Texture => {
                    let (handle, made) = TextureReference::register(context.id);
                    Target::Texture(handle, made)
                }
                ReferenceKind::Surface => {
                    let made = Arc::new(SurfaceReference {
                        context: context.id,
                        bound: Mutex::new(None),
                    });
                    Target::Surface(SURFACE_REFERENCES.insert(fresh_id(), made.clone()), made)
                }
                ReferenceKind::Sampler(_) => Target::Sampler,
            };
            (reference.clone(), target)
        });
        Arc::new(ModuleReferences(references.collect()))
    }

    /// Whether a texture reference is one of these.
    pub(crate) fn has_texture(&self, handle: u64) -> bool {
        self.0
            .iter()
            .any(|(_, target)| matches!(target, Target::Texture(own, _) if *own == handle))
    }

    fn named(&self, name: &str) -> Option<&Target> {
        let found = self.0.iter().find(|(r, _)| &*r.name == name);
        found.map(|(_, target)| target)
    }

    /// The handle of the texture reference with this name.
    pub(crate) fn texture(&self, name: &str) -> Option<u64> {
        match self.named(name)? {
            // `cuTexRefDestroy` removes it.
            Target::Texture(handle, _) => {
                Some(*handle).filter(|h| TEXTURE_REFERENCES.find(*h).is_some())
            }
            _ => None,
        }
    }

    /// The handle of the surface reference with this name.
    pub(crate) fn surface(&self, name: &str) -> Option<u64> {
        match self.named(name)? {
            Target::Surface(handle, _) => Some(*handle),
            _ => None,
        }
    }

    /// The objects that the references are bound to now.
    ///
    /// # Errors
    /// `INVALID_VALUE` if the settings of a reference contradict each other.
    pub(crate) fn bound(&self) -> Res<Arc<[BoundReference]>> {
        let bound = self.0.iter().map(|(reference, target)| {
            let object = match target {
                Target::Texture(_, texture) => texture
                    .state
                    .lock()
                    .object()
                    .map_err(|code| {
                        because(code, || {
                            format!(
                                "the memory, format and flags of texture reference '{}' do not fit together",
                                reference.name
                            )
                        })
                    })?
                    .map(Object::Texture),
                Target::Surface(_, surface) => {
                    surface.bound().map(|(_, s)| Object::Surface(s))
                }
                Target::Sampler => None,
            };
            Ok(BoundReference {
                reference: reference.clone(),
                object,
            })
        });
        bound.collect()
    }

    /// Invalidates the handles. Pending launches keep their objects.
    pub(crate) fn remove(&self) {
        for (_, target) in &self.0 {
            // A handle is missing if its context was destroyed.
            match target {
                Target::Texture(handle, _) => drop(TEXTURE_REFERENCES.remove_quietly(*handle)),
                Target::Surface(handle, _) => drop(SURFACE_REFERENCES.remove_quietly(*handle)),
                Target::Sampler => {}
            }
        }
    }
}

/// Invalidates the references of a destroyed context.
pub(crate) fn remove_context(context: u64) {
    TEXTURE_REFERENCES.remove_where(|r| r.context == context);
    SURFACE_REFERENCES.remove_where(|r| r.context == context);
}
