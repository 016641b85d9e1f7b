//! The attributes of core dumps: sizes, order of the checks, precedence.

use super::super::Code;
use super::{Session, cu, ok};

const ENABLE: u32 = 1;
const TRIGGER_HOST: u32 = 2;
const LIGHTWEIGHT: u32 = 3;
const USER_TRIGGER: u32 = 4;
const FILE: u32 = 5;
const PIPE: u32 = 6;
const FLAGS: u32 = 7;

#[test]
fn values_have_exact_sizes() {
    // Those of the process need no `cuInit`, as on an H100 (driver 580).
    let (mut size, mut byte) = (1u64, 7u8);
    ok!("cuCoredumpGetAttributeGlobal", ENABLE, &mut byte, &mut size);
    assert_eq!(byte, 0);
    let not_ready = cu!("cuCoredumpGetAttribute", ENABLE, &mut byte, &mut size);
    assert_eq!(not_ready, Code::NOT_INITIALIZED.0);
    ok!("cuInit", 0);
    for (attribute, status) in [(ENABLE, Code::INVALID_CONTEXT), (99, Code::INVALID_VALUE)] {
        assert_eq!(
            cu!("cuCoredumpGetAttribute", attribute, &mut byte, &mut size),
            status.0
        );
        assert_eq!(
            cu!("cuCoredumpSetAttribute", attribute, &mut byte, &mut size),
            status.0
        );
    }
    let _session = Session::new();
    for (attribute, wanted) in [
        (ENABLE, 1),
        (TRIGGER_HOST, 1),
        (LIGHTWEIGHT, 1),
        (USER_TRIGGER, 1),
        (FILE, 1024),
        (PIPE, 1024),
        (FLAGS, 4),
    ] {
        let mut value = [0u8; 2048];
        let names = matches!(attribute, FILE | PIPE);
        let of_context = !matches!(attribute, USER_TRIGGER | PIPE);
        for name in [
            "cuCoredumpGetAttributeGlobal",
            "cuCoredumpGetAttribute",
            "cuCoredumpSetAttributeGlobal",
            "cuCoredumpSetAttribute",
        ] {
            let known = of_context || name.ends_with("Global");
            let status = |wanted: bool| {
                if wanted && known {
                    Code::SUCCESS.0
                } else {
                    Code::INVALID_VALUE.0
                }
            };
            size = 0;
            let call = |value: u64, size: u64| super::call(name, &[attribute.into(), value, size]);
            assert_eq!(
                call(0, &raw mut size as u64),
                status(true),
                "{name} {attribute}"
            );
            assert_eq!(size, if known { wanted } else { 0 });
            assert_eq!(call(value.as_mut_ptr() as u64, 0), Code::INVALID_VALUE.0);
            for given in [0u64, 1, 3, 4, 8, 1024, 1025, u64::MAX] {
                size = given;
                let sets = name.contains("Set");
                let fits = if names {
                    !sets || given <= 1024
                } else {
                    given == wanted
                };
                value.fill(0);
                let status = status(fits);
                assert_eq!(
                    call(value.as_mut_ptr() as u64, &raw mut size as u64),
                    status,
                    "{name} {attribute} {given}"
                );
            }
        }
    }
    for attribute in [0, 8, u32::MAX] {
        size = 4;
        assert_eq!(
            cu!(
                "cuCoredumpGetAttributeGlobal",
                attribute,
                &mut byte,
                &mut size
            ),
            Code::INVALID_VALUE.0
        );
    }
}

#[test]
fn names_are_expanded_and_contexts_inherit() {
    let _session = Session::new();
    let get = |name: &str, attribute: u32| {
        let (mut value, mut size) = ([0xAAu8; 1024], 1024u64);
        assert_eq!(
            super::call(
                name,
                &[
                    attribute.into(),
                    value.as_mut_ptr() as u64,
                    &raw mut size as u64
                ]
            ),
            0
        );
        let end = value.iter().position(|b| *b == 0).unwrap();
        String::from_utf8(value[..end].to_vec()).unwrap()
    };
    let set = |name: &str, attribute: u32, value: &[u8]| {
        let mut size = value.len() as u64;
        super::call(
            name,
            &[
                attribute.into(),
                value.as_ptr() as u64,
                &raw mut size as u64,
            ],
        )
    };
    assert_eq!(get("cuCoredumpGetAttribute", FILE), "");
    assert_eq!(set("cuCoredumpSetAttributeGlobal", FILE, b"a.%p\0rest"), 0);
    let expanded = format!("a.{}", std::process::id());
    assert_eq!(get("cuCoredumpGetAttributeGlobal", FILE), expanded);
    assert_eq!(get("cuCoredumpGetAttribute", FILE), expanded);
    assert_eq!(set("cuCoredumpSetAttribute", FILE, b"b.%p"), 0);
    assert_eq!(get("cuCoredumpGetAttribute", FILE), "b.%p");
    assert_eq!(get("cuCoredumpGetAttributeGlobal", FILE), expanded);
    assert_eq!(set("cuCoredumpSetAttributeGlobal", FILE, &[b'x'; 1024]), 0);
    assert_eq!(get("cuCoredumpGetAttributeGlobal", FILE).len(), 1023);
    // Room for less than the name.
    let (mut short, mut size) = ([0xAAu8; 8], 4u64);
    ok!("cuCoredumpGetAttributeGlobal", FILE, &mut short, &mut size);
    assert_eq!(&short, b"xxx\0\xAA\xAA\xAA\xAA");
    // The flags, and the booleans that are parts of them.
    assert_eq!(
        set(
            "cuCoredumpSetAttributeGlobal",
            FLAGS,
            &0x10u32.to_le_bytes()
        ),
        0
    );
    let (mut byte, mut size) = (7u8, 1u64);
    ok!("cuCoredumpGetAttribute", TRIGGER_HOST, &mut byte, &mut size);
    assert_eq!(byte, 0);
    assert_eq!(set("cuCoredumpSetAttribute", LIGHTWEIGHT, &[2]), 0);
    let (mut flags, mut size) = (0u32, 4u64);
    ok!("cuCoredumpGetAttribute", FLAGS, &mut flags, &mut size);
    assert_eq!(flags, 0x13f);
    ok!("cuCoredumpGetAttributeGlobal", FLAGS, &mut flags, &mut size);
    assert_eq!(flags, 0x10);
}

#[test]
fn callbacks_must_be_functions_and_handles_live() {
    extern "C" fn callback(_: *mut std::ffi::c_void, _: i32, _: i32) {}
    ok!("cuInit", 0);
    let mut handle = 0u64;
    let function = callback as *const () as u64;
    for name in [
        "cuCoredumpRegisterStartCallback",
        "cuCoredumpRegisterCompleteCallback",
    ] {
        for invalid in [0u64, 1, &raw mut handle as u64] {
            assert_eq!(
                super::call(name, &[invalid, 0, &raw mut handle as u64]),
                Code::INVALID_VALUE.0
            );
        }
        assert_eq!(super::call(name, &[function, 0, 0]), 0);
        assert_ne!(super::call(name, &[function, 0, 3]), 0);
    }
    ok!(
        "cuCoredumpRegisterStartCallback",
        function,
        0u64,
        &mut handle
    );
    assert_eq!(
        cu!("cuCoredumpDeregisterCompleteCallback", handle),
        Code::INVALID_VALUE.0
    );
    ok!("cuCoredumpDeregisterStartCallback", handle);
    assert_eq!(
        cu!("cuCoredumpDeregisterStartCallback", handle),
        Code::INVALID_VALUE.0
    );
}
