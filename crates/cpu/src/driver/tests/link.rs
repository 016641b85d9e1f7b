//! The driver's linker.

use super::super::Code;
use super::{Session, cu, ok};
use crate::code;

const HEAD: &str = ".version 8.0\n.target sm_89\n.address_size 64\n";
const HELPER: &str = ".visible .global .align 4 .u32 base = 40;
.visible .func (.param .b32 r) twice(.param .b32 x) {
    .reg .u32 %r<3>;
    ld.param.u32 %r1, [x];
    add.u32 %r2, %r1, %r1;
    st.param.u32 [r], %r2;
    ret;
}";
const MAIN: &str = ".extern .global .align 4 .u32 base;
.extern .func (.param .b32 r) twice(.param .b32 x);
.visible .entry run(.param .u64 out, .param .u32 n) {
    .reg .u32 %r<4>; .reg .u64 %rd<2>;
    .param .b32 p; .param .b32 q;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    st.param.b32 [p], %r1;
    call (q), twice, (p);
    ld.param.b32 %r2, [q];
    ld.global.u32 %r3, [base];
    add.u32 %r2, %r2, %r3;
    st.global.u32 [%rd1], %r2;
    ret;
}";

const OPTIONS: [u32; 4] = [3, 4, 5, 6];

/// A linker with logs.
struct Linker {
    state: u64,
    info: Vec<u8>,
    error: Vec<u8>,
    values: Box<[u64; 4]>,
}

impl Linker {
    fn new() -> Linker {
        let (mut info, mut error) = (vec![0u8; 2000], vec![0u8; 2000]);
        let mut values = Box::new([
            info.as_mut_ptr() as u64,
            2000,
            error.as_mut_ptr() as u64,
            2000,
        ]);
        let mut state = 0u64;
        ok!(
            "cuLinkCreate_v2",
            4,
            &OPTIONS[0],
            &mut values[0],
            &mut state
        );
        Linker {
            state,
            info,
            error,
            values,
        }
    }

    /// Adds PTX and returns the status.
    fn add(&self, name: &str, body: &str) -> Code {
        let text = format!("{HEAD}{body}\0");
        let name = std::ffi::CString::new(name).unwrap();
        Code(cu!(
            "cuLinkAddData_v2",
            self.state,
            1,
            &text.as_bytes()[0],
            text.len(),
            name.as_c_str(),
            0,
            0u64,
            0u64
        ))
    }

    fn complete(&self) -> Result<&'static [u8], Code> {
        let (mut image, mut size) = (0u64, 0u64);
        match Code(cu!("cuLinkComplete", self.state, &mut image, &mut size)) {
            Code::SUCCESS => {
                // SAFETY: the image lives until the linker is destroyed, which the tests do last.
                Ok(unsafe { std::slice::from_raw_parts(image as *const u8, size as usize) })
            }
            code => Err(code),
        }
    }

    /// The error log, of the length that the driver reported.
    fn error(&self) -> String {
        let used = self.values[3] as usize;
        let end = self.error.iter().position(|&b| b == 0).unwrap();
        assert!(used == end + 1 || (used == 0 && end == 0), "{used} {end}");
        String::from_utf8(self.error[..end].to_vec()).unwrap()
    }
}

impl Drop for Linker {
    fn drop(&mut self) {
        assert_eq!(cu!("cuLinkDestroy", self.state), 0);
        assert_eq!(cu!("cuLinkDestroy", self.state), Code::INVALID_HANDLE.0);
        let _ = &self.info;
    }
}

fn run(image: &[u8], s: &Session) {
    let (mut m, mut f) = (0u64, 0u64);
    ok!("cuModuleLoadData", &mut m, &image[0]);
    ok!("cuModuleGetFunction", &mut f, m, c"run");
    let out = s.alloc(4);
    let n = 5u32;
    let params = [&raw const out as u64, &raw const n as u64];
    ok!(
        "cuLaunchKernel",
        f,
        1,
        1,
        1,
        1,
        1,
        1,
        0,
        0u64,
        &params[0],
        0u64
    );
    let mut value = 0u32;
    ok!("cuMemcpyDtoH_v2", &mut value, out, 4u64);
    assert_eq!(value, 50);
    ok!("cuModuleUnload", m);
}

#[test]
fn modules_are_linked() {
    let s = Session::new();
    for order in [
        [("main", MAIN), ("helper", HELPER)],
        [("helper", HELPER), ("main", MAIN)],
    ] {
        let linker = Linker::new();
        for (name, body) in order {
            assert_eq!(linker.add(name, body), Code::SUCCESS);
        }
        let image = linker.complete().unwrap();
        assert_eq!(linker.error(), "");
        run(image, &s);
        // Completing again returns the same image; no input can be added.
        assert_eq!(linker.complete().unwrap().as_ptr(), image.as_ptr());
        assert_eq!(linker.add("late", HELPER), Code::INVALID_VALUE);
        // The image of one link is an input of the next.
        let next = Linker::new();
        ok!(
            "cuLinkAddData_v2",
            next.state,
            0,
            &image[0],
            image.len(),
            0u64,
            0,
            0u64,
            0u64
        );
        run(next.complete().unwrap(), &s);
    }
}

#[test]
fn files_and_embedded_ptx() {
    let s = Session::new();
    let linker = Linker::new();
    let folder = std::env::temp_dir().join(format!("cupyrite-link-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let path = |name: &str| std::ffi::CString::new(folder.join(name).to_str().unwrap()).unwrap();
    std::fs::write(folder.join("helper.ptx"), format!("{HEAD}{HELPER}")).unwrap();
    let unit = cupyrite_engine::Unit::new("", format!("{HEAD}{MAIN}"));
    std::fs::write(folder.join("main.cubin"), code::wrap(&[unit])).unwrap();
    ok!(
        "cuLinkAddFile_v2",
        linker.state,
        1,
        path("helper.ptx").as_c_str(),
        0,
        0u64,
        0u64
    );
    ok!(
        "cuLinkAddFile_v2",
        linker.state,
        0,
        path("main.cubin").as_c_str(),
        0,
        0u64,
        0u64
    );
    assert_eq!(
        cu!(
            "cuLinkAddFile_v2",
            linker.state,
            0,
            path("none").as_c_str(),
            0,
            0u64,
            0u64
        ),
        Code::FILE_NOT_FOUND.0
    );
    run(linker.complete().unwrap(), &s);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn link_errors_name_the_symbols() {
    let _s = Session::new();
    let linker = Linker::new();
    assert_eq!(linker.add("main", MAIN), Code::SUCCESS);
    assert_eq!(linker.complete(), Err(Code::NO_BINARY_FOR_GPU));
    let log = linker.error();
    for word in ["'twice'", "'base'", "'main'"] {
        assert!(log.contains(word), "{log}");
    }
    let linker = Linker::new();
    assert_eq!(linker.add("one", HELPER), Code::SUCCESS);
    assert_eq!(linker.add("two", HELPER), Code::SUCCESS);
    assert_eq!(linker.complete(), Err(Code::NO_BINARY_FOR_GPU));
    let log = linker.error();
    assert!(
        log.contains("'twice'") && log.contains("'one'") && log.contains("'two'"),
        "{log}"
    );
    // Syntax errors are detected when the input is added.
    let linker = Linker::new();
    assert_eq!(
        linker.add("wrong", ".visible .entry k() { nonsense; }"),
        Code::INVALID_PTX
    );
    assert!(linker.error().contains("'wrong'"), "{}", linker.error());
}

#[test]
fn invalid_inputs_are_refused() {
    let _s = Session::new();
    let linker = Linker::new();
    let text = format!("{HEAD}{HELPER}");
    let add = |kind: u32, data: &[u8], size: u64| {
        Code(cu!(
            "cuLinkAddData_v2",
            linker.state,
            kind,
            data.as_ptr() as u64,
            size,
            0u64,
            0,
            0u64,
            0u64
        ))
    };
    let text = text.as_bytes();
    assert_eq!(add(6, text, 10), Code::INVALID_VALUE);
    assert_eq!(add(1, text, 0), Code::INVALID_VALUE);
    assert_eq!(add(1, text, 1 << 40), Code::INVALID_VALUE);
    assert_eq!(add(0, text, text.len() as u64), Code::INVALID_IMAGE);
    assert!(linker.error().contains("not a cubin"), "{}", linker.error());
    let cubin = code::wrap(&[]);
    assert_eq!(add(1, &cubin, cubin.len() as u64), Code::INVALID_IMAGE);
    let foreign = code::attach_reason(&cubin, "foreign code").unwrap();
    assert_eq!(
        add(0, &foreign, foreign.len() as u64),
        Code::NO_BINARY_FOR_GPU
    );
    assert!(
        linker.error().contains("foreign code"),
        "{}",
        linker.error()
    );
    let nowhere = 8u64 as *const u8 as u64;
    assert_eq!(
        cu!(
            "cuLinkAddData_v2",
            linker.state,
            1,
            nowhere,
            10,
            0u64,
            0,
            0u64,
            0u64
        ),
        Code::INVALID_VALUE.0
    );
    let mut none = 0u64;
    assert_eq!(
        cu!("cuLinkComplete", linker.state, 0u64, &mut none),
        Code::INVALID_VALUE.0
    );
    assert_eq!(
        cu!("cuLinkComplete", 77u64, &mut none, 0u64),
        Code::INVALID_HANDLE.0
    );
    assert_eq!(
        cu!("cuLinkCreate_v2", 1, &99u32, &mut none, &mut none),
        Code::INVALID_VALUE.0
    );
    // Without inputs, the image is empty.
    let empty = Linker::new();
    let mut module = 0u64;
    ok!(
        "cuModuleLoadData",
        &mut module,
        &empty.complete().unwrap()[0]
    );
    ok!("cuModuleUnload", module);
}
