//! Device code that a program compiled by `nvcc` registers: fat binaries, kernels by the address of their host stub, and
//! variables by the address of their host counterpart.
//!
//! Registration happens in the program's static initialisers, so it calls no driver. A fat binary becomes a library of
//! the driver (`cuLibraryLoadData`) on first use of one of its kernels or variables; the library serves every context.
//! The functions and their signatures are those of `crt/host_runtime.h` and `crt/device_functions.h`.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ffi::{CString, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cupyrite_sys::driver::{CUdeviceptr, CUkernel, CUlibrary};
use cupyrite_sys::runtime::dim3;
use parking_lot::{Mutex, RwLock};

use crate::checked::{get, get_text, non_null, put, put_optional};
use crate::entry::{EntryPoint, cu, runtime_entry_points};
use crate::errors::{Error, Res};
use crate::{capture, context, launch};

/// A registered fat binary.
struct FatBinary {
    /// Address of the wrapper that `nvcc` generates (`__fatBinC_Wrapper_t`).
    wrapper: u64,
    /// The driver's library as a number; 0 until the first use.
    library: Mutex<usize>,
}

impl FatBinary {
    /// The driver's library, loaded if necessary. A failure is not cached.
    fn library(&self) -> Res<CUlibrary> {
        let mut loaded = self.library.lock();
        if *loaded == 0 {
            context::ready()?;
            let mut library: CUlibrary = std::ptr::null_mut();
            let mut outcome = Ok(());
            // The first use may be a launch in a stream that is being captured.
            capture::relaxed(|| {
                outcome = cu!(cuLibraryLoadData(
                    &mut library,
                    self.wrapper as *const c_void,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    0,
                    std::ptr::null_mut(),
                    std::ptr::null_mut(),
                    0
                ));
            });
            outcome?;
            *loaded = library as usize;
        }
        Ok(*loaded as CUlibrary)
    }

    /// Unloads the library if it is loaded.
    fn unload(&self) {
        let library = std::mem::take(&mut *self.library.lock());
        if library != 0 {
            capture::relaxed(|| {
                let _ = cu!(cuLibraryUnload(library as CUlibrary));
            });
        }
    }

    /// The key of this fat binary, which the program uses as its handle.
    fn key(self: &Arc<FatBinary>) -> u64 {
        Arc::as_ptr(self) as u64
    }
}

struct RegisteredKernel {
    binary: Arc<FatBinary>,
    name: CString,
    /// The driver's kernel; 0 until the first use.
    kernel: AtomicU64,
}

struct RegisteredVariable {
    binary: Arc<FatBinary>,
    name: CString,
    /// Whether it is a `__managed__` variable. The host counterpart is then a pointer to the variable.
    is_managed: bool,
}

impl RegisteredVariable {
    /// Address and size in bytes in the current context.
    fn find(&self) -> Res<Variable> {
        context::current()?;
        let library = self.binary.library()?;
        let (mut address, mut size): (CUdeviceptr, usize) = (0, 0);
        let outcome = if self.is_managed {
            cu!(cuLibraryGetManaged(
                &mut address,
                &mut size,
                library,
                self.name.as_ptr()
            ))
        } else {
            cu!(cuLibraryGetGlobal(
                &mut address,
                &mut size,
                library,
                self.name.as_ptr()
            ))
        };
        match outcome {
            Ok(()) => Ok(Variable { address, size }),
            Err(Error::SYMBOL_NOT_FOUND) => Err(Error::INVALID_SYMBOL),
            Err(error) => Err(error),
        }
    }
}

/// A variable of device code in the current context.
#[derive(Clone, Copy)]
pub(crate) struct Variable {
    pub(crate) address: CUdeviceptr,
    /// In bytes.
    pub(crate) size: usize,
}

#[derive(Default)]
struct Registry {
    /// By key.
    binaries: HashMap<u64, Arc<FatBinary>>,
    /// By the address of the host stub.
    kernels: HashMap<u64, Arc<RegisteredKernel>>,
    /// By the address of the host counterpart.
    variables: HashMap<u64, Arc<RegisteredVariable>>,
    /// Host stubs by the driver's kernel, for kernels in use.
    stubs: HashMap<u64, u64>,
}

static REGISTRY: RwLock<Option<Registry>> = RwLock::new(None);

/// Changes the registry.
fn change<T>(with: impl FnOnce(&mut Registry) -> T) -> T {
    with(REGISTRY.write().get_or_insert_default())
}

/// Reads the registry; `None` if the program has registered nothing.
fn read<T>(with: impl FnOnce(&Registry) -> Option<T>) -> Option<T> {
    REGISTRY.read().as_ref().and_then(with)
}

/// The driver's kernel of the host stub at `stub`; `None` if no such stub is registered.
///
/// # Errors
/// `cudaErrorInvalidDeviceFunction` if the device code lacks the kernel, or the driver's error if the code does not load.
pub(crate) fn kernel_of_stub(stub: u64) -> Option<Res<u64>> {
    let registered = read(|registry| registry.kernels.get(&stub).cloned())?;
    let known = registered.kernel.load(Ordering::Relaxed);
    if known != 0 {
        return Some(Ok(known));
    }
    let find = || {
        let library = registered.binary.library()?;
        let mut kernel: CUkernel = std::ptr::null_mut();
        match cu!(cuLibraryGetKernel(
            &mut kernel,
            library,
            registered.name.as_ptr()
        )) {
            Ok(()) => Ok(kernel as u64),
            Err(Error::SYMBOL_NOT_FOUND) => Err(Error::INVALID_DEVICE_FUNCTION),
            Err(error) => Err(error),
        }
    };
    Some(find().inspect(|&kernel| {
        registered.kernel.store(kernel, Ordering::Relaxed);
        change(|registry| registry.stubs.insert(kernel, stub));
    }))
}

/// A `func` argument of the runtime as the driver takes it: the kernel of a registered host stub; any other value is
/// unchanged.
///
/// # Errors
/// See [`kernel_of_stub`].
pub(crate) fn resolve(func: u64) -> Res<u64> {
    kernel_of_stub(func).unwrap_or(Ok(func))
}

/// The host stub of a kernel that was found by it; other kernels are unchanged.
pub(crate) fn stub_of_kernel(kernel: u64) -> u64 {
    read(|registry| registry.stubs.get(&kernel).copied()).unwrap_or(kernel)
}

/// The variable whose host counterpart is at `symbol`. For a managed variable, `symbol` is its own address.
///
/// # Errors
/// `cudaErrorInvalidSymbol` if no such variable is registered, or the driver's error if the code does not load.
pub(crate) fn variable(symbol: u64) -> Res<Variable> {
    context::current()?;
    if symbol == 0 {
        return Err(Error::INVALID_SYMBOL);
    }
    if let Some(found) = read(|registry| registry.variables.get(&symbol).cloned()) {
        return found.find();
    }
    let managed = read(|registry| {
        let managed = registry
            .variables
            .iter()
            .filter(|(_, variable)| variable.is_managed);
        Some(managed.map(|(at, v)| (*at, v.clone())).collect::<Vec<_>>())
    });
    for (at, variable) in managed.unwrap_or_default() {
        if get::<u64>(at) == Ok(symbol) {
            return variable.find();
        }
    }
    Err(Error::INVALID_SYMBOL)
}

/// Runs the body of a registration function that returns no status. A panic yields `panicked`.
fn contained<T>(panicked: T, body: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(body)).unwrap_or(panicked)
}

/// `void **__cudaRegisterFatBinary(void *wrapper)`
extern "C" fn register_fat_binary(wrapper: u64) -> u64 {
    contained(0, || {
        let binary = Arc::new(FatBinary {
            wrapper,
            library: Mutex::new(0),
        });
        let key = binary.key();
        change(|registry| registry.binaries.insert(key, binary));
        key
    })
}

/// `void __cudaRegisterFatBinaryEnd(void **handle)`. Fat binaries are loaded on first use, so nothing follows the last
/// registration.
extern "C" fn register_fat_binary_end(_handle: u64) {}

/// `void __cudaUnregisterFatBinary(void **handle)`. Programs call it when they end, and libraries when they are unloaded.
extern "C" fn unregister_fat_binary(handle: u64) {
    contained((), || {
        let removed = change(|registry| {
            let of_binary = |binary: &Arc<FatBinary>| binary.key() == handle;
            registry.kernels.retain(|_, k| !of_binary(&k.binary));
            registry.variables.retain(|_, v| !of_binary(&v.binary));
            let Registry { kernels, stubs, .. } = registry;
            stubs.retain(|_, stub| kernels.contains_key(stub));
            registry.binaries.remove(&handle)
        });
        if let Some(binary) = removed {
            binary.unload();
        }
    });
}

/// `void __cudaRegisterFunction(void **handle, const char *stub, char *, const char *name, ...)`. The other arguments
/// repeat these or are unset.
extern "C" fn register_function(handle: u64, stub: u64, _: u64, name: u64) {
    contained((), || {
        let Ok(name) = get_text(name) else {
            return;
        };
        change(|registry| {
            let Some(binary) = registry.binaries.get(&handle).cloned() else {
                return;
            };
            let kernel = Arc::new(RegisteredKernel {
                binary,
                name,
                kernel: AtomicU64::new(0),
            });
            registry.kernels.insert(stub, kernel);
        });
    });
}

fn register(handle: u64, host: u64, name: u64, is_managed: bool) {
    let Ok(name) = get_text(name) else {
        return;
    };
    change(|registry| {
        let Some(binary) = registry.binaries.get(&handle).cloned() else {
            return;
        };
        let variable = Arc::new(RegisteredVariable {
            binary,
            name,
            is_managed,
        });
        registry.variables.insert(host, variable);
    });
}

/// `void __cudaRegisterVar(void **handle, char *host, char *, const char *name, int extern, size_t size, int constant,
/// int)`. The size is that of the driver's variable, which also has those of unknown extent.
extern "C" fn register_var(handle: u64, host: u64, _: u64, name: u64) {
    contained((), || register(handle, host, name, false));
}

/// `void __cudaRegisterManagedVar(void **handle, void **host, char *, const char *name, int extern, size_t size, int
/// constant, int)`
extern "C" fn register_managed_var(handle: u64, host: u64, _: u64, name: u64) {
    contained((), || register(handle, host, name, true));
}

/// `char __cudaInitModule(void **handle)`: stores the addresses of the fat binary's managed variables in their host
/// counterparts. Programs call it before they access such a variable, until it returns a number other than 0.
extern "C" fn init_module(handle: u64) -> u8 {
    let mut done = 0;
    crate::entry::guard(|| {
        let managed = read(|registry| {
            let of_binary = registry
                .variables
                .iter()
                .filter(|(_, v)| v.is_managed && v.binary.key() == handle);
            Some(
                of_binary
                    .map(|(at, v)| (*at, v.clone()))
                    .collect::<Vec<_>>(),
            )
        });
        for (host, variable) in managed.unwrap_or_default() {
            put(host, variable.find()?.address)?;
        }
        done = 1;
        Ok(())
    });
    done
}

/// A launch configuration between `<<<...>>>` and the launch.
#[derive(Clone, Copy)]
struct CallConfiguration {
    grid: dim3,
    block: dim3,
    shared: usize,
    stream: u64,
}

thread_local! {
    static CALLS: RefCell<Vec<CallConfiguration>> = const { RefCell::new(Vec::new()) };
}

runtime_entry_points! {
    /// `unsigned __cudaPushCallConfiguration(dim3, dim3, size_t, CUstream_st *)`. The program skips the launch if the
    /// result is not 0.
    fn push_call_configuration "__cudaPushCallConfiguration" (grid: dim3, block: dim3, shared: usize, stream: u64) {
        let call = CallConfiguration { grid, block, shared, stream };
        CALLS
            .try_with(|calls| calls.borrow_mut().push(call))
            .map_err(|_| Error::MISSING_CONFIGURATION)
    }
    fn pop_call_configuration "__cudaPopCallConfiguration" (grid: u64, block: u64, shared: u64, stream: u64) {
        let call = CALLS.try_with(|calls| calls.borrow_mut().pop());
        let call = call.ok().flatten().ok_or(Error::MISSING_CONFIGURATION)?;
        put_optional(grid, call.grid)?;
        put_optional(block, call.block)?;
        put_optional(shared, call.shared)?;
        put_optional(stream, call.stream)
    }
    /// The program stores the result and passes it to each `__cudaLaunchKernel`. It ignores the status, so if the kernel
    /// cannot be found yet, the result is the host stub: the launch then reports why.
    fn get_kernel "__cudaGetKernel" (out: u64, stub: u64) {
        non_null(out)?;
        match kernel_of_stub(stub) {
            Some(kernel) => put(out, kernel.unwrap_or(stub)),
            None => Err(Error::INVALID_DEVICE_FUNCTION),
        }
    }
    fn launch_kernel "__cudaLaunchKernel" | "__cudaLaunchKernel_ptsz"
        (func: u64, grid: dim3, block: dim3, arguments: u64, shared: usize, stream: u64) {
        launch::plain::<PER_THREAD>(func, grid, block, arguments, shared, stream)
    }
    also [
        EntryPoint { name: "__cudaRegisterFatBinary", address: register_fat_binary as *const c_void },
        EntryPoint { name: "__cudaRegisterFatBinaryEnd", address: register_fat_binary_end as *const c_void },
        EntryPoint { name: "__cudaUnregisterFatBinary", address: unregister_fat_binary as *const c_void },
        EntryPoint { name: "__cudaRegisterFunction", address: register_function as *const c_void },
        EntryPoint { name: "__cudaRegisterVar", address: register_var as *const c_void },
        EntryPoint { name: "__cudaRegisterManagedVar", address: register_managed_var as *const c_void },
        EntryPoint { name: "__cudaInitModule", address: init_module as *const c_void },
    ]
}

/// Names of the functions that only programs compiled by `nvcc` call, in no particular order.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    ENTRIES.iter().map(|entry| entry.name)
}
