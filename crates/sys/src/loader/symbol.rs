//! The symbols of a library: descriptors, cached addresses, and the interposer of the CPU device.

use std::ffi::{CStr, CString, c_int, c_void};
use std::sync::atomic::{AtomicPtr, Ordering};

use super::error::intern;
use super::{
    Backend, CudaLibrary, LoadError, cpu, cpu_library, driver, driver_backend, load_library, nvml,
    runtime,
};

/// Whether a driver function has a variant for the per-thread default stream, and the suffix of that variant's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PerThreadVariant {
    /// No variant.
    None,
    /// `_ptds`: synchronous functions that use the default stream.
    Ptds,
    /// `_ptsz`: functions that take a stream, where 0 means the default stream.
    Ptsz,
}

impl PerThreadVariant {
    /// The suffix of the exported name.
    pub const fn suffix(self) -> &'static str {
        match self {
            PerThreadVariant::None => "",
            PerThreadVariant::Ptds => "_ptds",
            PerThreadVariant::Ptsz => "_ptsz",
        }
    }
}

/// One function of a library: a row of a generated table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SymbolDescriptor {
    /// The name without version, as `cuGetProcAddress` takes it: `cuMemAlloc`.
    pub name: &'static CStr,
    /// The exported symbol of this ABI version: `cuMemAlloc_v2`.
    pub export: &'static CStr,
    /// The CUDA version that introduced this ABI version, as 1000 × major + 10 × minor: 3020. 0 where the library has
    /// no such notion (NVRTC).
    pub version: c_int,
    /// The variant for the per-thread default stream.
    pub per_thread: PerThreadVariant,
}

/// The cached address of one symbol; null until it is resolved.
#[derive(Debug)]
pub struct SymbolSlot(AtomicPtr<c_void>);

impl Default for SymbolSlot {
    fn default() -> SymbolSlot {
        SymbolSlot::new()
    }
}

impl SymbolSlot {
    /// An unresolved slot; an array of them is `[const { SymbolSlot::new() }; N]`.
    pub const fn new() -> SymbolSlot {
        SymbolSlot(AtomicPtr::new(std::ptr::null_mut()))
    }
}

/// The functions of a library with their cached addresses; generated modules hold one `static` each.
///
/// ```
/// use cupyrite_sys::loader::{
///     CudaLibrary, PerThreadVariant, SymbolDescriptor, SymbolSlot, SymbolTable,
/// };
/// static SYMBOLS: [SymbolDescriptor; 1] = [SymbolDescriptor {
///     name: c"cuInit",
///     export: c"cuInit",
///     version: 2000,
///     per_thread: PerThreadVariant::None,
/// }];
/// static SLOTS: [SymbolSlot; 1] = [const { SymbolSlot::new() }; 1];
/// static TABLE: SymbolTable = SymbolTable::new(CudaLibrary::Driver, &SYMBOLS, &SLOTS);
/// assert_eq!(TABLE.symbols()[0].name, c"cuInit");
/// ```
#[derive(Debug)]
pub struct SymbolTable {
    library: CudaLibrary,
    symbols: &'static [SymbolDescriptor],
    slots: &'static [SymbolSlot],
}

impl SymbolTable {
    /// A table; `symbols` and `slots` have the same length.
    pub const fn new(
        library: CudaLibrary,
        symbols: &'static [SymbolDescriptor],
        slots: &'static [SymbolSlot],
    ) -> SymbolTable {
        assert!(symbols.len() == slots.len());
        SymbolTable {
            library,
            symbols,
            slots,
        }
    }

    /// The library that exports the symbols.
    pub const fn library(&self) -> CudaLibrary {
        self.library
    }

    /// The descriptors, indexed by the generated `Symbol` enum.
    pub const fn symbols(&self) -> &'static [SymbolDescriptor] {
        self.symbols
    }

    /// The address of the symbol with this index. After the first success: one atomic load.
    ///
    /// # Errors
    ///
    /// The library or the symbol is missing, or `CUPYRITE_DEVICE` is invalid or selects a device that does not exist.
    ///
    /// # Panics
    ///
    /// If `index` is not below the number of symbols; indices come from generated constants.
    #[inline(always)]
    pub fn get(&self, index: usize) -> Result<*const c_void, &'static LoadError> {
        // Acquire pairs with the release in `resolve`: the library's data is visible before its address.
        let address = self.slots[index].0.load(Ordering::Acquire);
        if address.is_null() {
            self.resolve(index)
        } else {
            Ok(address)
        }
    }

    /// Whether the symbol is resolved; resolves nothing.
    pub fn is_resolved(&self, index: usize) -> bool {
        !self.slots[index].0.load(Ordering::Relaxed).is_null()
    }

    /// Clears every cached address.
    fn clear(&self) {
        for slot in self.slots {
            slot.0.store(std::ptr::null_mut(), Ordering::SeqCst);
        }
    }

    #[cold]
    #[inline(never)]
    fn resolve(&self, index: usize) -> Result<*const c_void, &'static LoadError> {
        let symbol = &self.symbols[index];
        let address = match self.library {
            CudaLibrary::Driver => driver::symbol(symbol),
            CudaLibrary::Nvml => nvml::symbol(symbol),
            CudaLibrary::Runtime => runtime::symbol(symbol),
            library => match cpu_library::handle_of_program(library) {
                Some(handle) => Ok(handle),
                None => load_library(library).map(|loaded| loaded.handle),
            }
            .map(|handle| library.find_symbol(symbol, |name| handle.symbol(name).cast_const())),
        }
        .map_err(intern)?;
        if address.is_null() {
            return Err(intern(LoadError::symbol(self.library, symbol)));
        }
        let original = interposed(self.library, symbol.export, address);
        loop {
            let wrapper = WRAPPER.load(Ordering::SeqCst);
            let address = if wrapper.is_null() {
                original
            } else {
                // SAFETY: `wrap_symbols` stores functions of this type only.
                let wrap = unsafe { std::mem::transmute::<*mut c_void, SymbolInterposer>(wrapper) };
                wrap(self.library, symbol.name, original)
            };
            self.slots[index]
                .0
                .store(address.cast_mut(), Ordering::SeqCst);
            // `wrap_symbols` clears the slots after it has stored the function: a slot written before is cleared, and one
            // written later is written again here.
            if WRAPPER.load(Ordering::SeqCst) == wrapper {
                return Ok(address);
            }
        }
    }
}

/// The function of [`wrap_symbols`], or null.
static WRAPPER: AtomicPtr<c_void> = AtomicPtr::new(std::ptr::null_mut());

/// Passes each function through `wrap` when its address is resolved, with its name without version: the safe API observes the
/// calls that destroy handles. Functions that are already resolved are resolved again. Has an effect once per process.
pub fn wrap_symbols(wrap: SymbolInterposer) {
    let (success, failure) = (Ordering::SeqCst, Ordering::SeqCst);
    let wrap = (wrap as *const c_void).cast_mut();
    if WRAPPER
        .compare_exchange(std::ptr::null_mut(), wrap, success, failure)
        .is_ok()
    {
        for library in CudaLibrary::ALL {
            crate::table(library).clear();
        }
    }
}

/// Passes the exported name to `lookup`, with the suffix of the per-thread variant if `per_thread` is set.
pub(super) fn lookup_export(
    symbol: &SymbolDescriptor,
    per_thread: bool,
    lookup: impl Fn(&CStr) -> *const c_void,
) -> *const c_void {
    if !per_thread {
        return lookup(symbol.export);
    }
    let mut name = symbol.export.to_bytes().to_vec();
    name.extend_from_slice(symbol.per_thread.suffix().as_bytes());
    match CString::new(name) {
        Ok(name) => lookup(&name),
        Err(_) => std::ptr::null(),
    }
}

/// Replaces functions of the libraries: takes a library, the name of one of its functions and the function's address; returns the address to call instead, of a function of the same type, or the same address.
pub type SymbolInterposer = fn(CudaLibrary, &CStr, *const c_void) -> *const c_void;

/// The functions that the CPU device replaces ([`CpuDevice::interpose`](super::CpuDevice)). Resolving one of them chooses the
/// device.
pub const INTERPOSED: &[(CudaLibrary, &CStr)] = &[
    (CudaLibrary::Nvrtc, c"nvrtcGetCUBINSize"),
    (CudaLibrary::Nvrtc, c"nvrtcGetCUBIN"),
    (CudaLibrary::NvJitLink, c"nvJitLinkCreate"),
    (CudaLibrary::NvJitLink, c"nvJitLinkDestroy"),
    (CudaLibrary::NvJitLink, c"nvJitLinkAddData"),
    (CudaLibrary::NvJitLink, c"nvJitLinkAddFile"),
    (CudaLibrary::NvJitLink, c"nvJitLinkGetLinkedCubinSize"),
    (CudaLibrary::NvJitLink, c"nvJitLinkGetLinkedCubin"),
];

/// The address to call for a function: the CPU device's replacement if that device is chosen.
fn interposed(library: CudaLibrary, name: &CStr, address: *const c_void) -> *const c_void {
    let is_interposed = || {
        INTERPOSED
            .iter()
            .any(|&(of, one)| of == library && one == name)
    };
    if !cpu::is_registered() || !is_interposed() {
        return address;
    }
    match driver_backend() {
        Ok(Backend::Cpu) => {
            cpu::device().map_or(address, |device| (device.interpose)(library, name, address))
        }
        _ => address,
    }
}

/// Resolves the functions of [`INTERPOSED`] again: the CPU device was chosen, and an earlier attempt may have failed.
pub(super) fn clear_interposed() {
    crate::nvrtc::TABLE.clear();
    crate::nvjitlink::TABLE.clear();
}
