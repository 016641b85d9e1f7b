//! Graphics resources: OpenGL buffers and textures that kernels access between `cuGraphicsMapResources` and
//! `cuGraphicsUnmapResources`.
//!
//! A mapped buffer is the memory that `glMapNamedBufferRange` returns, without a copy. A mapped image is copied: arrays have a
//! layout of their own. Both need the program's OpenGL context to be current in the calling thread. Mapping waits for
//! OpenGL, unmapping for the stream, so that commands of either side that follow see the other's results.

use std::sync::Arc;

use cupyrite_engine::memory::{Region, RegionKind};
use cupyrite_sys::driver::{CUgraphicsMapResourceFlags, CUgraphicsRegisterFlags};
use parking_lot::Mutex;

use crate::driver::array::{self, Array};
use crate::driver::context::{self, Context};
use crate::driver::device;
use crate::driver::entry::Res;
use crate::driver::entry::caller_memory::{get_array, non_null, put, put_optional};
use crate::driver::entry::driver_entry_points;
use crate::driver::entry::errors::Code;
use crate::driver::entry::handles::{HandleKind, HandleTable, fresh_id};
use crate::driver::entry::logs::{because, refuse};
use crate::driver::memory::space::space;
use crate::driver::stream::capture_state;
use crate::driver::stream::resolve::resolve;

use self::format::TexelFormat;
use self::gl::{Gl, Texels};

mod format;
mod gl;

static RESOURCES: HandleTable<Resource> = HandleTable::new(HandleKind::GraphicsResource);

const READ_ONLY: u32 = CUgraphicsRegisterFlags::CU_GRAPHICS_REGISTER_FLAGS_READ_ONLY.0;
const WRITE_DISCARD: u32 = CUgraphicsRegisterFlags::CU_GRAPHICS_REGISTER_FLAGS_WRITE_DISCARD.0;
const SURFACE_LDST: u32 = CUgraphicsRegisterFlags::CU_GRAPHICS_REGISTER_FLAGS_SURFACE_LDST.0;
const TEXTURE_GATHER: u32 = CUgraphicsRegisterFlags::CU_GRAPHICS_REGISTER_FLAGS_TEXTURE_GATHER.0;
const MAP_WRITE_DISCARD: u32 =
    CUgraphicsMapResourceFlags::CU_GRAPHICS_MAP_RESOURCE_FLAGS_WRITE_DISCARD.0;

const GL_TEXTURE_2D: u32 = 0x0DE1;
const GL_TEXTURE_3D: u32 = 0x806F;
const GL_TEXTURE_RECTANGLE: u32 = 0x84F5;
const GL_TEXTURE_CUBE_MAP: u32 = 0x8513;
const GL_TEXTURE_2D_ARRAY: u32 = 0x8C1A;
const GL_RENDERBUFFER: u32 = 0x8D41;

const GL_TEXTURE_WIDTH: u32 = 0x1000;
const GL_TEXTURE_HEIGHT: u32 = 0x1001;
const GL_TEXTURE_DEPTH: u32 = 0x8071;
const GL_TEXTURE_INTERNAL_FORMAT: u32 = 0x1003;

/// The OpenGL object behind a resource.
enum Origin {
    Buffer {
        name: u32,
    },
    Image {
        name: u32,
        target: u32,
        format: TexelFormat,
    },
}

/// A part of a mapped image, as an array.
struct SubResource {
    index: u32,
    level: u32,
    handle: u64,
    array: Arc<Array>,
}

/// The memory that kernels access while a resource is mapped.
enum Mapping {
    Unmapped,
    Buffer(Region),
    Image(Vec<SubResource>),
}

struct ResourceState {
    /// Access in later mappings: 0, [`READ_ONLY`] or [`WRITE_DISCARD`].
    access: u32,
    mapping: Mapping,
}

struct Resource {
    context: Arc<Context>,
    origin: Origin,
    /// `CUDA_ARRAY3D_*` flags for arrays of an image.
    array_flags: u32,
    state: Mutex<ResourceState>,
}

/// Unregisters the resources of a destroyed context.
pub(crate) fn remove_context(context: u64) {
    // Without the OpenGL context, the buffers stay mapped.
    if let Ok(gl) = gl::current() {
        for resource in RESOURCES.pick(|r| r.context.id == context) {
            let _ = resource.unmap(gl);
        }
    }
    RESOURCES.remove_where(|r| r.context.id == context);
}

fn register(out: u64, origin: Origin, flags: u32) -> Res {
    let context = context::current()?;
    let mut array_flags = 0;
    if flags & SURFACE_LDST != 0 {
        array_flags |= cupyrite_sys::driver::CUDA_ARRAY3D_SURFACE_LDST;
    }
    if flags & TEXTURE_GATHER != 0 {
        array_flags |= cupyrite_sys::driver::CUDA_ARRAY3D_TEXTURE_GATHER;
    }
    let resource = Arc::new(Resource {
        context,
        origin,
        array_flags,
        state: Mutex::new(ResourceState {
            access: flags & (READ_ONLY | WRITE_DISCARD),
            mapping: Mapping::Unmapped,
        }),
    });
    let handle = RESOURCES.insert(fresh_id(), resource);
    put(out, handle).inspect_err(|_| {
        let _ = RESOURCES.remove(handle);
    })
}

/// Checks registration flags against those that the kind of object allows.
fn check_flags(flags: u32, allowed: u32) -> Res {
    let both = READ_ONLY | WRITE_DISCARD;
    if flags & !allowed != 0 || flags & both == both {
        return refuse(Code::INVALID_VALUE, || format!("invalid flags {flags:#x}"));
    }
    Ok(())
}

impl Resource {
    fn map(&self, gl: Gl) -> Res {
        let mut state = self.state.lock();
        if !matches!(state.mapping, Mapping::Unmapped) {
            return Err(Code::ALREADY_MAPPED);
        }
        state.mapping = match self.origin {
            Origin::Image { .. } => Mapping::Image(Vec::new()),
            Origin::Buffer { name } => {
                Mapping::Buffer(map_buffer(gl, name, state.access, self.context.id)?)
            }
        };
        Ok(())
    }

    /// Ends the mapping. The resource is unmapped whatever this returns.
    fn unmap(&self, gl: Gl) -> Res {
        let mut state = self.state.lock();
        match std::mem::replace(&mut state.mapping, Mapping::Unmapped) {
            Mapping::Unmapped => Err(Code::NOT_MAPPED),
            Mapping::Buffer(region) => {
                // Fails if the context was destroyed, which freed the region.
                let _ = space().free_if(region.base, |r| r.id == region.id);
                if let Origin::Buffer { name } = self.origin
                    && !gl.unmap_buffer(name)
                {
                    return refuse(Code::UNMAP_FAILED, || {
                        format!("OpenGL lost the content of buffer {name} while it was mapped")
                    });
                }
                Ok(())
            }
            Mapping::Image(parts) => {
                let Origin::Image {
                    name,
                    target,
                    format,
                } = self.origin
                else {
                    return Ok(());
                };
                for part in parts {
                    if state.access & READ_ONLY == 0 {
                        gl.write_texels(name, &texels(target, format, &part)?);
                    }
                    array::remove_graphics_array(part.handle);
                }
                Ok(())
            }
        }
    }

    /// The array of a part of a mapped image, with the texels of the texture.
    fn array(&self, index: u32, level: u32) -> Res<u64> {
        let mut state = self.state.lock();
        let access = state.access;
        let (parts, (name, target, format)) = match (&mut state.mapping, &self.origin) {
            (Mapping::Unmapped, _) => return Err(Code::NOT_MAPPED),
            (
                Mapping::Image(parts),
                &Origin::Image {
                    name,
                    target,
                    format,
                },
            ) => (parts, (name, target, format)),
            _ => return Err(Code::NOT_MAPPED_AS_ARRAY),
        };
        let known = parts.iter().find(|p| (p.index, p.level) == (index, level));
        if let Some(part) = known {
            return Ok(part.handle);
        }
        let gl = gl::current()?;
        let size = part_size(gl, name, target, index, level)?;
        let (handle, array) = array::create_graphics_array(
            self.context.clone(),
            (format.array_format, format.channels),
            size,
            self.array_flags,
        )?;
        let part = SubResource {
            index,
            level,
            handle,
            array,
        };
        if access & WRITE_DISCARD == 0 {
            gl.read_texels(name, &texels(target, format, &part)?);
        }
        parts.push(part);
        Ok(handle)
    }
}

/// Maps an OpenGL buffer and makes its memory accessible to kernels.
fn map_buffer(gl: Gl, name: u32, access: u32, context: u64) -> Res<Region> {
    let size = gl.buffer_size(name).ok_or_else(|| {
        because(Code::MAP_FAILED, || {
            format!("OpenGL buffer {name} was deleted or belongs to another OpenGL context")
        })
    })?;
    if size == 0 {
        return refuse(Code::MAP_FAILED, || {
            format!("OpenGL buffer {name} has no storage")
        });
    }
    let bits = match access {
        READ_ONLY => gl::MAP_READ,
        // Kernels may read what they wrote.
        WRITE_DISCARD => gl::MAP_WRITE | gl::MAP_INVALIDATE,
        _ => gl::MAP_READ | gl::MAP_WRITE,
    };
    if gl.is_mapped(name) {
        return refuse(Code::MAP_FAILED, || {
            format!("the program has mapped OpenGL buffer {name}")
        });
    }
    let base = gl.map_buffer(name, size, bits);
    if base == 0 {
        return refuse(Code::MAP_FAILED, || {
            format!(
                "OpenGL refuses to map buffer {name}; an immutable buffer needs the flags GL_MAP_READ_BIT and GL_MAP_WRITE_BIT"
            )
        });
    }
    space()
        .register(
            base,
            size,
            RegionKind::Graphics,
            access == READ_ONLY,
            context,
        )
        .map_err(|error| {
            gl.unmap_buffer(name);
            Code::from(error)
        })
}

/// Width, height and depth of a part of a texture, as in an array descriptor.
fn part_size(gl: Gl, name: u32, target: u32, index: u32, level: u32) -> Res<[u64; 3]> {
    let number = i32::try_from(level).map_err(|_| Code::INVALID_VALUE)?;
    let [width, height, depth] = [GL_TEXTURE_WIDTH, GL_TEXTURE_HEIGHT, GL_TEXTURE_DEPTH]
        .map(|parameter| gl.level_parameter(name, number, parameter).max(0) as u64);
    if width == 0 || height == 0 {
        return refuse(Code::INVALID_VALUE, || {
            format!("texture {name} has no level {level}")
        });
    }
    let (layers, depth) = match target {
        GL_TEXTURE_3D => (1, depth),
        GL_TEXTURE_2D_ARRAY => (depth, 0),
        GL_TEXTURE_CUBE_MAP => (6, 0),
        _ => (1, 0),
    };
    if u64::from(index) >= layers {
        return refuse(Code::INVALID_VALUE, || {
            format!("array index {index} of texture {name}, which has {layers}")
        });
    }
    Ok([width, height, depth])
}

/// The texels of a part, in the texture and in its array.
fn texels(target: u32, format: TexelFormat, part: &SubResource) -> Res<Texels> {
    let storage = part.array.storage();
    let level = part.array.level()?;
    let element = u64::from(storage.format().element_bytes());
    let number = |n: u64| i32::try_from(n).map_err(|_| Code::INVALID_VALUE);
    let extent = level.extent.map(|n| n as i32);
    Ok(Texels {
        level: part.level as i32,
        z: part.index as i32,
        extent,
        is_3d: matches!(
            target,
            GL_TEXTURE_3D | GL_TEXTURE_2D_ARRAY | GL_TEXTURE_CUBE_MAP
        ),
        format: format.format,
        kind: format.kind,
        address: level.base,
        // Rows are padded to 16 bytes, of which every element size is a divisor.
        row_length: number(level.row_pitch / element)?,
        bytes: level.slice_pitch * u64::from(level.slices),
    })
}

/// The resources of a list of handles, each once.
fn listed(count: u32, list: u64) -> Res<Vec<Arc<Resource>>> {
    if count == 0 {
        return Err(Code::INVALID_VALUE);
    }
    non_null(list)?;
    let handles = get_array::<u64>(list, count as usize)?;
    handles
        .into_iter()
        .map(|handle| RESOURCES.get(handle))
        .collect()
}

/// `CU_GL_DEVICE_LIST_ALL`, `_CURRENT_FRAME`, `_NEXT_FRAME`
const DEVICE_LISTS: std::ops::RangeInclusive<u32> = 1..=3;

driver_entry_points! {
    fn register_buffer "cuGraphicsGLRegisterBuffer" (out: u64, buffer: u32, flags: u32) {
        non_null(out)?;
        context::current()?;
        capture_state::reject_if_capturing()?;
        check_flags(flags, READ_ONLY | WRITE_DISCARD)?;
        if gl::current()?.buffer_size(buffer).is_none() {
            return refuse(Code::INVALID_VALUE, || format!("{buffer} is not a buffer of the current OpenGL context"));
        }
        register(out, Origin::Buffer { name: buffer }, flags)
    }
    fn register_image "cuGraphicsGLRegisterImage" (out: u64, image: u32, target: u32, flags: u32) {
        non_null(out)?;
        context::current()?;
        capture_state::reject_if_capturing()?;
        check_flags(flags, READ_ONLY | WRITE_DISCARD | SURFACE_LDST | TEXTURE_GATHER)?;
        match target {
            GL_TEXTURE_2D | GL_TEXTURE_3D | GL_TEXTURE_RECTANGLE | GL_TEXTURE_CUBE_MAP | GL_TEXTURE_2D_ARRAY => {}
            GL_RENDERBUFFER => return refuse(Code::NOT_SUPPORTED, || "the CPU device cannot access renderbuffers; draw to a texture".to_owned()),
            _ => return refuse(Code::INVALID_VALUE, || format!("invalid target {target:#x}")),
        }
        let gl = gl::current()?;
        match gl.texture_target(image) {
            Some(actual) if actual == target => {}
            Some(actual) => return refuse(Code::INVALID_VALUE, || format!("texture {image} has the target {actual:#x}, not {target:#x}")),
            None => return refuse(Code::INVALID_VALUE, || format!("{image} is not a texture of the current OpenGL context")),
        }
        let internal = gl.level_parameter(image, 0, GL_TEXTURE_INTERNAL_FORMAT);
        let format = format::of_internal(internal).ok_or_else(|| because(Code::INVALID_VALUE, || {
            format!("texture {image} has the internal format {internal:#x}, which CUDA arrays lack")
        }))?;
        register(out, Origin::Image { name: image, target, format }, flags)
    }
    fn unregister "cuGraphicsUnregisterResource" (resource: u64) {
        context::current()?;
        capture_state::reject_if_capturing()?;
        let found = RESOURCES.get(resource)?;
        if !matches!(found.state.lock().mapping, Mapping::Unmapped) {
            let gl = gl::current()?;
            found.context.synchronize()?;
            found.unmap(gl)?;
        }
        RESOURCES.remove(resource).map(|_| ())
    }
    fn set_map_flags "cuGraphicsResourceSetMapFlags_v2" (resource: u64, flags: u32) {
        context::current()?;
        let found = RESOURCES.get(resource)?;
        if flags > MAP_WRITE_DISCARD {
            return refuse(Code::INVALID_VALUE, || format!("invalid flags {flags:#x}"));
        }
        let mut state = found.state.lock();
        if !matches!(state.mapping, Mapping::Unmapped) {
            return Err(Code::ALREADY_MAPPED);
        }
        // The values are those of the registration flags.
        state.access = flags;
        Ok(())
    }
    fn map "cuGraphicsMapResources" | "cuGraphicsMapResources_ptsz" (count: u32, list: u64, stream: u64) {
        let resources = listed(count, list)?;
        resolve(stream, PER_THREAD)?;
        capture_state::reject_if_capturing()?;
        let gl = gl::current()?;
        gl.finish();
        for (at, resource) in resources.iter().enumerate() {
            if let Err(code) = resource.map(gl) {
                for mapped in &resources[..at] {
                    let _ = mapped.unmap(gl);
                }
                return Err(code);
            }
        }
        Ok(())
    }
    fn unmap "cuGraphicsUnmapResources" | "cuGraphicsUnmapResources_ptsz" (count: u32, list: u64, stream: u64) {
        let resources = listed(count, list)?;
        let stream = resolve(stream, PER_THREAD)?;
        capture_state::reject_if_capturing()?;
        let gl = gl::current()?;
        let unmapped = |r: &Arc<Resource>| matches!(r.state.lock().mapping, Mapping::Unmapped);
        if resources.iter().any(unmapped) {
            return Err(Code::NOT_MAPPED);
        }
        // Unmaps also after a failed kernel, but not while work may use the memory.
        let done = stream.synchronize();
        if done.is_err() && !stream.is_idle() {
            return done;
        }
        for resource in &resources {
            resource.unmap(gl)?;
        }
        done
    }
    fn mapped_pointer "cuGraphicsResourceGetMappedPointer_v2" (out: u64, size: u64, resource: u64) {
        context::current()?;
        let found = RESOURCES.get(resource)?;
        match &found.state.lock().mapping {
            Mapping::Unmapped => Err(Code::NOT_MAPPED),
            Mapping::Image(_) => Err(Code::NOT_MAPPED_AS_POINTER),
            Mapping::Buffer(region) => {
                put_optional(out, region.base)?;
                put_optional(size, region.size)
            }
        }
    }
    fn mapped_array "cuGraphicsSubResourceGetMappedArray" (out: u64, resource: u64, index: u32, level: u32) {
        non_null(out)?;
        context::current()?;
        put(out, RESOURCES.get(resource)?.array(index, level)?)
    }
    fn gl_devices "cuGLGetDevices_v2" (count: u64, devices: u64, room: u32, list: u32) {
        if !DEVICE_LISTS.contains(&list) {
            return Err(Code::INVALID_VALUE);
        }
        gl::current()?;
        let all = device::all()?.len() as u32;
        if devices != 0 {
            for ordinal in 0..all.min(room) {
                put(devices + 4 * u64::from(ordinal), ordinal)?;
            }
        }
        put_optional(count, all)
    }
}
