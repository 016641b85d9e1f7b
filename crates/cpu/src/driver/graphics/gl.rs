//! The functions of the current OpenGL context, found through the EGL or GLX library that the program has loaded.
//!
//! The library is not loaded here: a process without it has no OpenGL context. Everything goes through functions of direct
//! state access (OpenGL 4.5), which leave the bindings of the program unchanged.

use std::ffi::{CStr, c_char, c_void};
use std::sync::OnceLock;

use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::because;

const GL_VERSION: u32 = 0x1F02;
const GL_MAJOR_VERSION: u32 = 0x821B;
const GL_MINOR_VERSION: u32 = 0x821C;
const GL_BUFFER_SIZE: u32 = 0x8764;
const GL_BUFFER_MAPPED: u32 = 0x88BC;
const GL_TEXTURE_TARGET: u32 = 0x1006;
const GL_PIXEL_PACK_BUFFER: u32 = 0x88EB;
const GL_PIXEL_PACK_BUFFER_BINDING: u32 = 0x88ED;
const GL_PIXEL_UNPACK_BUFFER: u32 = 0x88EC;
const GL_PIXEL_UNPACK_BUFFER_BINDING: u32 = 0x88EF;

/// `GL_MAP_READ_BIT`
pub(super) const MAP_READ: u32 = 1;
/// `GL_MAP_WRITE_BIT`
pub(super) const MAP_WRITE: u32 = 2;
/// `GL_MAP_INVALIDATE_BUFFER_BIT`
pub(super) const MAP_INVALIDATE: u32 = 8;

/// How pixels lie in memory: `GL_PACK_*` or `GL_UNPACK_*`, whose numbers are in this order.
struct PixelStore {
    swap_bytes: u32,
    lsb_first: u32,
    row_length: u32,
    skip_rows: u32,
    skip_pixels: u32,
    alignment: u32,
    skip_images: u32,
    image_height: u32,
    target: u32,
    binding: u32,
}

const PACK: PixelStore = PixelStore {
    swap_bytes: 0x0D00,
    lsb_first: 0x0D01,
    row_length: 0x0D02,
    skip_rows: 0x0D03,
    skip_pixels: 0x0D04,
    alignment: 0x0D05,
    skip_images: 0x806B,
    image_height: 0x806C,
    target: GL_PIXEL_PACK_BUFFER,
    binding: GL_PIXEL_PACK_BUFFER_BINDING,
};

const UNPACK: PixelStore = PixelStore {
    swap_bytes: 0x0CF0,
    lsb_first: 0x0CF1,
    row_length: 0x0CF2,
    skip_rows: 0x0CF3,
    skip_pixels: 0x0CF4,
    alignment: 0x0CF5,
    skip_images: 0x806D,
    image_height: 0x806E,
    target: GL_PIXEL_UNPACK_BUFFER,
    binding: GL_PIXEL_UNPACK_BUFFER_BINDING,
};

/// A box of texels of one mipmap level, and their location in memory.
#[derive(Clone, Copy, Debug)]
pub(super) struct Texels {
    pub(super) level: i32,
    /// First slice or layer.
    pub(super) z: i32,
    /// Width, height and depth.
    pub(super) extent: [i32; 3],
    /// Whether the texture has slices or layers.
    pub(super) is_3d: bool,
    /// Format and type of a texel, as OpenGL's pixel transfers name them.
    pub(super) format: u32,
    pub(super) kind: u32,
    /// Address of the first texel.
    pub(super) address: u64,
    /// Texels from row to row.
    pub(super) row_length: i32,
    /// Size of the memory in bytes.
    pub(super) bytes: u64,
}

macro_rules! functions {
    ($($name:ident: $symbol:literal fn($($arg:ty),*) $(-> $ret:ty)?;)*) => {
        /// OpenGL functions of one window system.
        struct Functions {
            $($name: unsafe extern "system" fn($($arg),*) $(-> $ret)?,)*
        }

        impl Functions {
            /// Asks the window system for each function; `None` if it lacks one.
            fn find(get: impl Fn(&CStr) -> *const c_void) -> Option<Functions> {
                Some(Functions {
                    $($name: {
                        let address = get($symbol);
                        if address.is_null() {
                            return None;
                        }
                        // SAFETY: OpenGL defines the function of this name with this signature.
                        unsafe {
                            std::mem::transmute::<
                                *const c_void,
                                unsafe extern "system" fn($($arg),*) $(-> $ret)?,
                            >(address)
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    get_integer: c"glGetIntegerv" fn(u32, *mut i32);
    get_string: c"glGetString" fn(u32) -> *const c_char;
    finish: c"glFinish" fn();
    is_buffer: c"glIsBuffer" fn(u32) -> u8;
    is_texture: c"glIsTexture" fn(u32) -> u8;
    bind_buffer: c"glBindBuffer" fn(u32, u32);
    buffer_parameter: c"glGetNamedBufferParameteri64v" fn(u32, u32, *mut i64);
    map_buffer: c"glMapNamedBufferRange" fn(u32, isize, isize, u32) -> *mut c_void;
    unmap_buffer: c"glUnmapNamedBuffer" fn(u32) -> u8;
    texture_parameter: c"glGetTextureParameteriv" fn(u32, u32, *mut i32);
    level_parameter: c"glGetTextureLevelParameteriv" fn(u32, i32, u32, *mut i32);
    read_texels: c"glGetTextureSubImage"
        fn(u32, i32, i32, i32, i32, i32, i32, i32, u32, u32, i32, *mut c_void);
    write_texels_2d: c"glTextureSubImage2D"
        fn(u32, i32, i32, i32, i32, i32, u32, u32, *const c_void);
    write_texels_3d: c"glTextureSubImage3D"
        fn(u32, i32, i32, i32, i32, i32, i32, i32, u32, u32, *const c_void);
    pixel_store: c"glPixelStorei" fn(u32, i32);
}

/// A window system that the program has loaded.
struct WindowSystem {
    current_context: unsafe extern "system" fn() -> *const c_void,
    get: unsafe extern "system" fn(*const c_char) -> *const c_void,
    functions: OnceLock<Option<Functions>>,
}

/// The library, if the process has loaded it, and its functions that return the current context and function addresses.
fn loaded(library: &CStr, current: &CStr, get: &CStr) -> Option<WindowSystem> {
    // SAFETY: the names end with nul. `RTLD_NOLOAD` runs no code. The reference is kept, so the library stays loaded. Both
    // functions have these signatures in every implementation of EGL and GLX.
    unsafe {
        let handle = libc::dlopen(library.as_ptr(), libc::RTLD_LAZY | libc::RTLD_NOLOAD);
        if handle.is_null() {
            return None;
        }
        let current = libc::dlsym(handle, current.as_ptr());
        let get = libc::dlsym(handle, get.as_ptr());
        if current.is_null() || get.is_null() {
            return None;
        }
        Some(WindowSystem {
            current_context: std::mem::transmute::<
                *mut c_void,
                unsafe extern "system" fn() -> *const c_void,
            >(current),
            get: std::mem::transmute::<
                *mut c_void,
                unsafe extern "system" fn(*const c_char) -> *const c_void,
            >(get),
            functions: OnceLock::new(),
        })
    }
}

/// EGL and GLX, each looked up until the program has loaded it.
fn window_systems() -> impl Iterator<Item = &'static WindowSystem> {
    static EGL: OnceLock<WindowSystem> = OnceLock::new();
    static GLX: OnceLock<WindowSystem> = OnceLock::new();
    let find = |place: &'static OnceLock<WindowSystem>, names: [(&CStr, &CStr, &CStr); 2]| {
        place.get().or_else(|| {
            let found = names.iter().find_map(|n| loaded(n.0, n.1, n.2))?;
            Some(place.get_or_init(|| found))
        })
    };
    let egl = (
        c"libEGL.so.1",
        c"eglGetCurrentContext",
        c"eglGetProcAddress",
    );
    let glx = |library| (library, c"glXGetCurrentContext", c"glXGetProcAddressARB");
    let egl = find(&EGL, [egl, egl]);
    let glx = find(&GLX, [glx(c"libGLX.so.0"), glx(c"libGL.so.1")]);
    egl.into_iter().chain(glx)
}

/// The OpenGL context that is current in this thread.
#[derive(Clone, Copy)]
pub(super) struct Gl {
    functions: &'static Functions,
}

/// Returns the OpenGL context that is current in this thread.
///
/// # Errors
/// `INVALID_GRAPHICS_CONTEXT` without a current context, `NOT_SUPPORTED` if it is older than OpenGL 4.5 or of OpenGL ES.
pub(super) fn current() -> Res<Gl> {
    let system = window_systems()
        // SAFETY: the function may be called in any thread.
        .find(|system| !unsafe { (system.current_context)() }.is_null())
        .ok_or_else(|| {
            because(Code::INVALID_GRAPHICS_CONTEXT, || {
                "no OpenGL context is current in this thread".to_owned()
            })
        })?;
    // SAFETY: the name ends with a nul.
    let find = || Functions::find(|name| unsafe { (system.get)(name.as_ptr()) });
    let functions = system.functions.get_or_init(find).as_ref();
    let old = |version: String| {
        because(Code::NOT_SUPPORTED, || {
            format!("the current OpenGL context is of {version}; OpenGL 4.5 or later is required")
        })
    };
    let functions = functions.ok_or_else(|| old("an OpenGL before 4.5".to_owned()))?;
    let gl = Gl { functions };
    // SAFETY: a context is current; `GL_VERSION` is a string of every context, which lives as long.
    let version = unsafe {
        let text = (functions.get_string)(GL_VERSION);
        if text.is_null() {
            String::new()
        } else {
            CStr::from_ptr(text).to_string_lossy().into_owned()
        }
    };
    if version.starts_with("OpenGL ES")
        || (gl.integer(GL_MAJOR_VERSION), gl.integer(GL_MINOR_VERSION)) < (4, 5)
    {
        return Err(old(format!("version \"{version}\"")));
    }
    Ok(gl)
}

impl Gl {
    fn integer(self, parameter: u32) -> i32 {
        let mut value = 0;
        // SAFETY: `current` found the function and a current context, which stays current during the call; OpenGL
        // writes one integer for this parameter.
        unsafe { (self.functions.get_integer)(parameter, &raw mut value) };
        value
    }

    /// Waits for all OpenGL commands issued so far.
    pub(super) fn finish(self) {
        // SAFETY: `current` found the function and a current context, which stays current during the call.
        unsafe { (self.functions.finish)() }
    }

    /// The size of a buffer in bytes; `None` if there is no such buffer.
    pub(super) fn buffer_size(self, buffer: u32) -> Option<u64> {
        let mut size = 0i64;
        // SAFETY: `current` found the function and a current context, which stays current during the call; OpenGL
        // writes one 64-bit integer for this parameter.
        unsafe {
            if (self.functions.is_buffer)(buffer) == 0 {
                return None;
            }
            (self.functions.buffer_parameter)(buffer, GL_BUFFER_SIZE, &raw mut size);
        }
        u64::try_from(size).ok()
    }

    /// Whether the program has mapped the buffer.
    pub(super) fn is_mapped(self, buffer: u32) -> bool {
        let mut mapped = 0i64;
        // SAFETY: `current` found the function and a current context, which stays current during the call; OpenGL
        // writes one 64-bit integer for this parameter.
        unsafe { (self.functions.buffer_parameter)(buffer, GL_BUFFER_MAPPED, &raw mut mapped) };
        mapped != 0
    }

    /// Maps a buffer of `size` bytes; 0 if OpenGL refuses.
    pub(super) fn map_buffer(self, buffer: u32, size: u64, access: u32) -> u64 {
        let size = size.cast_signed() as isize;
        // SAFETY: `current` found the function and a current context, which stays current during the call. OpenGL
        // validates the buffer and the range.
        unsafe { (self.functions.map_buffer)(buffer, 0, size, access) }.expose_provenance() as u64
    }

    /// Ends the mapping of a buffer. False if OpenGL lost its content meanwhile.
    pub(super) fn unmap_buffer(self, buffer: u32) -> bool {
        // SAFETY: `current` found the function and a current context, which stays current during the call. OpenGL
        // validates the buffer.
        unsafe { (self.functions.unmap_buffer)(buffer) != 0 }
    }

    /// The target of a texture (`GL_TEXTURE_2D`, ...); `None` if there is no such texture.
    pub(super) fn texture_target(self, texture: u32) -> Option<u32> {
        let mut target = 0;
        // SAFETY: `current` found the function and a current context, which stays current during the call; OpenGL
        // writes one integer for this parameter.
        unsafe {
            if (self.functions.is_texture)(texture) == 0 {
                return None;
            }
            (self.functions.texture_parameter)(texture, GL_TEXTURE_TARGET, &raw mut target);
        }
        u32::try_from(target).ok()
    }

    /// A parameter of a texture's mipmap level; 0 for a level that it lacks.
    pub(super) fn level_parameter(self, texture: u32, level: i32, parameter: u32) -> i32 {
        let mut value = 0;
        // SAFETY: `current` found the function and a current context, which stays current during the call; OpenGL
        // writes one integer for this parameter.
        unsafe {
            (self.functions.level_parameter)(texture, level, parameter, &raw mut value);
        }
        value
    }

    /// Copies texels of a texture to memory.
    pub(super) fn read_texels(self, texture: u32, texels: &Texels) {
        let [width, height, depth] = texels.extent;
        let bytes = i32::try_from(texels.bytes).unwrap_or(i32::MAX);
        let to = std::ptr::with_exposed_provenance_mut(texels.address as usize);
        // SAFETY: `current` found the function and a current context, which stays current during the call. The memory
        // has room for these rows (`Texels`), and OpenGL writes at most `bytes`.
        self.with_pixel_store(&PACK, texels.row_length, || unsafe {
            (self.functions.read_texels)(
                texture,
                texels.level,
                0,
                0,
                texels.z,
                width,
                height,
                depth,
                texels.format,
                texels.kind,
                bytes,
                to,
            );
        });
    }

    /// Copies texels from memory to a texture.
    pub(super) fn write_texels(self, texture: u32, texels: &Texels) {
        let [width, height, depth] = texels.extent;
        let from = std::ptr::with_exposed_provenance(texels.address as usize);
        let Texels {
            level,
            z,
            format,
            kind,
            ..
        } = *texels;
        // SAFETY: `current` found the function and a current context, which stays current during the call. The memory
        // contains these rows (`Texels`).
        self.with_pixel_store(&UNPACK, texels.row_length, || unsafe {
            if texels.is_3d {
                (self.functions.write_texels_3d)(
                    texture, level, 0, 0, z, width, height, depth, format, kind, from,
                );
            } else {
                (self.functions.write_texels_2d)(
                    texture, level, 0, 0, width, height, format, kind, from,
                );
            }
        });
    }

    /// Runs a pixel transfer with rows of `row_length` texels in the memory of the process; restores the program's settings.
    fn with_pixel_store(self, store: &PixelStore, row_length: i32, transfer: impl FnOnce()) {
        let wanted = [
            (store.swap_bytes, 0),
            (store.lsb_first, 0),
            (store.row_length, row_length),
            (store.skip_rows, 0),
            (store.skip_pixels, 0),
            (store.alignment, 1),
            (store.skip_images, 0),
            (store.image_height, 0),
        ];
        let before = wanted.map(|(parameter, _)| self.integer(parameter));
        let bound = self.integer(store.binding).cast_unsigned();
        // SAFETY: `current` found the function and a current context, which stays current during the call. These calls
        // take no addresses.
        unsafe {
            (self.functions.bind_buffer)(store.target, 0);
            for (parameter, value) in wanted {
                (self.functions.pixel_store)(parameter, value);
            }
        }
        transfer();
        // SAFETY: `current` found the function and a current context, which stays current during the call. These calls
        // take no addresses.
        unsafe {
            for ((parameter, _), value) in wanted.into_iter().zip(before) {
                (self.functions.pixel_store)(parameter, value);
            }
            (self.functions.bind_buffer)(store.target, bound);
        }
    }
}
