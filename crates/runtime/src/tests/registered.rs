//! What programs compiled by `nvcc` register: fat binaries, kernels by host stub, variables by symbol.

use std::ffi::c_void;

use cupyrite_sys::runtime::dim3;

use super::{Error, address, ok, plug_in, rt};

const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n\
    .visible .global .align 4 .u32 total = 5;\n\
    .visible .global .align 4 .attribute(.managed) .u32 shared_total = 7;\n\
    .visible .entry add(.param .u32 n) {\n.reg .b32 %r<4>;\n\
    ld.param.u32 %r1, [n]; ld.global.u32 %r2, [total]; add.u32 %r2, %r2, %r1; st.global.u32 [total], %r2;\n\
    ld.global.u32 %r3, [shared_total]; add.u32 %r3, %r3, %r1; st.global.u32 [shared_total], %r3; ret; }\n";

/// A fat binary with PTX, and the structure that `nvcc` generates for it.
struct Program {
    _fat_binary: Vec<u8>,
    wrapper: [u64; 3],
}

fn program(ptx: &str) -> Program {
    let mut payload = ptx.as_bytes().to_vec();
    payload.push(0);
    let mut entry = vec![0u8; 64];
    entry[0..2].copy_from_slice(&1u16.to_le_bytes());
    entry[4..8].copy_from_slice(&64u32.to_le_bytes());
    entry[8..16].copy_from_slice(&(payload.len() as u64).to_le_bytes());
    entry[28..32].copy_from_slice(&80u32.to_le_bytes());
    let mut file = Vec::new();
    file.extend_from_slice(&0xBA55_ED50_u32.to_le_bytes());
    file.extend_from_slice(&1u16.to_le_bytes());
    file.extend_from_slice(&16u16.to_le_bytes());
    file.extend_from_slice(&((entry.len() + payload.len()) as u64).to_le_bytes());
    file.extend_from_slice(&entry);
    file.extend_from_slice(&payload);
    let wrapper = [0x1_4662_43B1, file.as_ptr() as u64, 0];
    Program {
        _fat_binary: file,
        wrapper,
    }
}

/// Calls a registration function, whose results are words or unused.
fn register(name: &str, arguments: [u64; 8]) -> u64 {
    type Words = unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64) -> u64;
    plug_in();
    let [a, b, c, d, e, f, g, h] = arguments;
    // SAFETY: C functions of at most eight words, which ignore the surplus ones.
    unsafe {
        let function = std::mem::transmute::<*const c_void, Words>(address(name));
        function(a, b, c, d, e, f, g, h)
    }
}

fn word(text: &std::ffi::CStr) -> u64 {
    text.as_ptr() as u64
}

#[test]
fn registered_code_is_found_by_host_addresses() {
    // The addresses of these stand for the host stub and the host counterparts of variables.
    let (stub, missing_stub, total, missing) = (0u8, 0u8, 0u32, 0u32);
    let mut managed = 0u64;
    let at = |place: *const c_void| place as u64;
    let stub = at((&raw const stub).cast());
    let missing_stub = at((&raw const missing_stub).cast());
    let total = at((&raw const total).cast());
    let missing = at((&raw const missing).cast());
    let managed_at = at((&raw mut managed).cast::<c_void>());

    let program = program(PTX);
    let wrapper = program.wrapper.as_ptr() as u64;
    let handle = register("__cudaRegisterFatBinary", [wrapper, 0, 0, 0, 0, 0, 0, 0]);
    assert_ne!(handle, 0);
    for (stub, name) in [(stub, c"add"), (missing_stub, c"nothing")] {
        let all = [handle, stub, word(name), word(name), u64::MAX, 0, 0, 0];
        register("__cudaRegisterFunction", all);
    }
    for (host, name) in [(total, c"total"), (missing, c"nothing")] {
        let all = [handle, host, word(name), word(name), 0, 4, 0, 0];
        register("__cudaRegisterVar", all);
    }
    let name = word(c"shared_total");
    let all = [handle, managed_at, name, name, 0, 4, 0, 0];
    register("__cudaRegisterManagedVar", all);
    register("__cudaRegisterFatBinaryEnd", [handle, 0, 0, 0, 0, 0, 0, 0]);

    let done = register("__cudaInitModule", [handle, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(done & 0xFF, 1);
    // SAFETY: the call has stored the variable's address, which the host may access while no kernel runs.
    let shared_total = || unsafe {
        let pointer = (managed_at as *const *const u32).read_volatile();
        pointer.read_volatile()
    };
    assert_eq!(shared_total(), 7);

    let mut kernel = 0u64;
    ok!("__cudaGetKernel", &mut kernel, stub);
    let mut same = 0u64;
    ok!("cudaGetKernel", &mut same, stub);
    assert_eq!(kernel, same);
    let n = 3u32;
    let arguments = [&raw const n as u64];
    let one = dim3 { x: 1, y: 1, z: 1 };
    for (name, function) in [("cudaLaunchKernel", stub), ("__cudaLaunchKernel", kernel)] {
        type Launch = unsafe extern "C" fn(u64, dim3, dim3, u64, usize, u64) -> u32;
        // SAFETY: the function has this type; the arguments live during the call.
        let status = unsafe {
            let launch = std::mem::transmute::<*const c_void, Launch>(address(name));
            launch(function, one, one, arguments.as_ptr() as u64, 0, 0)
        };
        assert_eq!(status, 0, "{name}");
    }
    ok!("cudaDeviceSynchronize");
    assert_eq!(shared_total(), 13);
    let mut value = 0u32;
    ok!("cudaMemcpyFromSymbol", &mut value, total, 4, 0, 2);
    assert_eq!(value, 11);
    let (mut place, mut size) = (0u64, 0usize);
    ok!("cudaGetSymbolAddress", &mut place, total);
    ok!("cudaGetSymbolSize", &mut size, total);
    assert!(place != 0 && size == 4);
    // A managed variable is found by its own address too.
    ok!("cudaGetSymbolAddress", &mut place, managed);
    assert_eq!(place, managed);

    assert_eq!(
        rt!("cudaGetSymbolAddress", &mut place, missing),
        Error::INVALID_SYMBOL
    );
    // The program ignores this status; the launch reports the error.
    ok!("__cudaGetKernel", &mut kernel, missing_stub);
    assert_eq!(
        rt!("cudaGetKernel", &mut kernel, missing_stub),
        Error::INVALID_DEVICE_FUNCTION
    );
    assert_eq!(
        rt!("cudaMemcpyToSymbol", total, &value, 4, 1, 1),
        Error::INVALID_VALUE
    );

    register("__cudaUnregisterFatBinary", [handle, 0, 0, 0, 0, 0, 0, 0]);
    register("__cudaUnregisterFatBinary", [handle, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(
        rt!("cudaGetKernel", &mut kernel, stub),
        Error::INVALID_DEVICE_FUNCTION
    );
    assert_eq!(
        rt!("cudaGetSymbolSize", &mut size, total),
        Error::INVALID_SYMBOL
    );
}

#[test]
fn code_that_does_not_load_fails_at_its_use() {
    let stub = 0u8;
    let stub = &raw const stub as u64;
    let program = program("none");
    let wrapper = program.wrapper.as_ptr() as u64;
    let handle = register("__cudaRegisterFatBinary", [wrapper, 0, 0, 0, 0, 0, 0, 0]);
    let all = [handle, stub, 0, word(c"k"), 0, 0, 0, 0];
    register("__cudaRegisterFunction", all);
    let mut kernel = 0u64;
    for _ in 0..2 {
        let status = rt!("cudaGetKernel", &mut kernel, stub);
        assert!(
            status != Error::SUCCESS && status != Error::INVALID_DEVICE_FUNCTION,
            "{status:?}"
        );
    }
    register("__cudaUnregisterFatBinary", [handle, 0, 0, 0, 0, 0, 0, 0]);
}

#[test]
fn call_configurations_are_a_stack() {
    type Push = unsafe extern "C" fn(dim3, dim3, usize, u64) -> u32;
    // SAFETY: the function has this type.
    let push = unsafe {
        std::mem::transmute::<*const c_void, Push>(address("__cudaPushCallConfiguration"))
    };
    let size = |x| dim3 { x, y: 1, z: 1 };
    for x in [1, 2] {
        // SAFETY: the function only stores its arguments.
        assert_eq!(unsafe { push(size(x), size(10 * x), 7, 0x100) }, 0);
    }
    for x in [2u32, 1] {
        let (mut grid, mut block, mut shared, mut stream) = ([0u32; 3], [0u32; 3], 0usize, 0u64);
        ok!(
            "__cudaPopCallConfiguration",
            grid.as_mut_ptr() as u64,
            block.as_mut_ptr() as u64,
            &mut shared,
            &mut stream
        );
        assert_eq!((grid, block), ([x, 1, 1], [10 * x, 1, 1]));
        assert_eq!((shared, stream), (7, 0x100));
    }
    assert_eq!(
        rt!("__cudaPopCallConfiguration", 0, 0, 0, 0),
        Error::MISSING_CONFIGURATION
    );
}
