use super::*;
use crate::ir::{Enum, Field, Param, Record, Store, Style, Typedef};

fn builtin(builtin: Builtin) -> Type {
    Type::Builtin { builtin }
}

fn named(name: &str) -> Type {
    Type::Named { name: name.into() }
}

fn pointer(to: Type, is_const: bool) -> Type {
    let to = Box::new(to);
    Type::Pointer { to, is_const }
}

fn out(to: Type) -> Type {
    pointer(to, false)
}

fn c_function(name: &str, params: &[(&str, Type)]) -> Function {
    Function {
        name: name.into(),
        base: name.into(),
        symbol: name.into(),
        abi_version: 0,
        per_thread_symbol: None,
        per_thread_abi_version: 0,
        header: "x.h".into(),
        majors: vec![13],
        ret: named("xReturn_t"),
        params: params
            .iter()
            .map(|(name, ty)| Param {
                name: (*name).into(),
                ty: ty.clone(),
                role: Role::Unknown,
            })
            .collect(),
        python: None,
    }
}

fn field(name: &str, ty: Type, offset: usize, size: usize) -> Field {
    Field {
        name: name.into(),
        anonymous: false,
        ty,
        offset,
        size,
        bits: None,
    }
}

/// A library with a status enum, a handle, and a struct with a version.
fn library(functions: Vec<Function>) -> LibraryApi {
    let typedef = |name: &str, ty: Type| Typedef {
        name: name.into(),
        ty,
        majors: vec![13],
    };
    LibraryApi {
        name: "x".into(),
        status_enum: "xReturn_t".into(),
        functions,
        enums: vec![Enum {
            name: "xReturn_t".into(),
            tag: None,
            underlying: Builtin::UInt,
            members: Vec::new(),
            majors: vec![13],
        }],
        records: vec![Record {
            name: "xFan_v3_t".into(),
            c_name: Some("xFan_v3_t".into()),
            union: false,
            size: 12,
            align: 4,
            fields: vec![
                field("version", builtin(Builtin::UInt), 0, 4),
                field("fanIndex", builtin(Builtin::UInt), 4, 4),
                field("speed", builtin(Builtin::UInt), 8, 4),
            ],
            parent: None,
            nested: false,
            header: "x.h".into(),
            majors: vec![13],
        }],
        opaques: vec!["xDevice_st".into()],
        typedefs: vec![
            typedef("xDevice_t", out(named("xDevice_st"))),
            typedef("xFan_t", named("xFan_v3_t")),
        ],
        ..LibraryApi::default()
    }
}

fn overlay(tables: &str) -> Overlay {
    let text = format!(
        "[library]\npython = \"m\"\nstatus = \"xReturn_t\"\nsuccess = \"OK\"\nmajor = 13\nstyle = \"raises\"\n\
         prefix = \"x\"\nhandles = [\"xDevice_t\"]\n{tables}"
    );
    toml::from_str(&text).unwrap()
}

/// Derives one function.
fn made(f: Function, tables: &str) -> Result<(PyFunction, Vec<Role>), String> {
    let mut lib = library(vec![f]);
    lib.python.style = Style::Raises;
    functions(&mut lib, &overlay(tables))?;
    let f = lib.functions.remove(0);
    let roles = f.params.iter().map(|p| p.role).collect();
    Ok((f.python.unwrap(), roles))
}

#[test]
fn request_structs_expand_to_fields() {
    let params = [
        ("device", named("xDevice_t")),
        ("fan", out(named("xFan_t"))),
    ];
    let tables = "[functions.xGetFanSpeed]\nfan = { kind = \"request\", in = [\"fanIndex as fan\"], out = [\"speed\"] }";
    let (python, roles) = made(c_function("xGetFanSpeed", &params), tables).unwrap();
    assert_eq!(python.name, "get_fan_speed");
    let names: Vec<&str> = python.args.iter().map(|a| a.name.as_str()).collect();
    assert_eq!(names, ["device", "fan"]);
    assert_eq!(roles, [Role::In { arg: 0 }, Role::Request { request: 0 }]);
    let request = &python.requests[0];
    // sizeof | 3 << 24, though the typedef has no number.
    assert_eq!(request.version, 0x0300_000c);
    assert_eq!(request.store, Store::Scratch);
    assert_eq!((request.inputs[0].offset, request.inputs[0].index), (4, 1));
    assert_eq!(
        (request.outputs[0].offset, request.outputs[0].index),
        (8, 0)
    );
    assert_eq!(python.results[0].type_name, "int");
}

#[test]
fn two_step_calls_query_the_count() {
    let params = [
        ("device", named("xDevice_t")),
        ("count", out(builtin(Builtin::UInt))),
        ("pids", out(builtin(Builtin::UInt))),
    ];
    let f = || c_function("xGetPids", &params);
    let tables = "[functions.xGetPids]\npids = { count = \"count\" }";
    let (python, roles) = made(f(), tables).unwrap();
    assert_eq!(
        roles,
        [Role::In { arg: 0 }, Role::Count, Role::Out { result: 0 }]
    );
    assert_eq!(python.sizing.unwrap().arrays, [0]);
    assert!(matches!(
        python.results[0].kind,
        ResultKind::Slice {
            builtin: Builtin::UInt,
            address: false,
            len: Len::Counted
        }
    ));
    // Without the overlay, both are integer outputs.
    let (python, _) = made(f(), "").unwrap();
    assert_eq!(python.results.len(), 2);
    let typo = made(f(), "[functions.xGetPids]\npids = { count = \"cuont\" }");
    assert!(typo.unwrap_err().contains("cuont"));
}

#[test]
fn texts_and_buffers() {
    let text = pointer(builtin(Builtin::Char), true);
    let params = [
        ("data", pointer(Type::Void, true)),
        ("size", builtin(Builtin::SizeT)),
        ("name", text.clone()),
        ("numOptions", builtin(Builtin::Int)),
        ("options", out(text)),
    ];
    let (python, _) = made(c_function("xAddData", &params), "").unwrap();
    let kinds: Vec<&ArgKind> = python.args.iter().map(|a| &a.kind).collect();
    assert_eq!(*kinds[0], ArgKind::Buffer { size: Some(1) });
    assert_eq!(*kinds[2], ArgKind::Str);
    assert_eq!(*kinds[4], ArgKind::StrList { count: Some(3) });
    assert_eq!(python.args[3].name, "num_options");

    let params = [
        ("device", named("xDevice_t")),
        ("name", out(builtin(Builtin::Char))),
        ("length", builtin(Builtin::UInt)),
    ];
    let f = || c_function("xGetName", &params);
    let (python, roles) = made(f(), "[functions.xGetName]\nname = { len = 96 }").unwrap();
    assert_eq!(roles[2], Role::Const { value: 96 });
    assert_eq!(python.results[0].type_name, "str");
    assert!(made(f(), "").unwrap_err().contains("a text needs len"));
}

#[test]
fn handles_are_tracked() {
    let f = c_function("xCreate", &[("device", out(named("xDevice_t")))]);
    let (python, _) = made(f, "").unwrap();
    assert!(
        matches!(&python.results[0].kind, ResultKind::NewHandle { handle } if handle == "xDevice_t")
    );
    let f = || c_function("xDestroy", &[("device", out(named("xDevice_t")))]);
    let tables = "[functions.xDestroy]\ndevice = { dir = \"in\", destroys = true }";
    let (python, _) = made(f(), tables).unwrap();
    assert!(matches!(
        &python.args[0].kind,
        ArgKind::LiveHandle { destroys: true, .. }
    ));
    let f = c_function("xSet", &[("speed", builtin(Builtin::UInt))]);
    let error = made(f, "[functions.xSet]\nspeed = { destroys = true }").unwrap_err();
    assert!(error.contains("destroys"), "{error}");
}

#[test]
fn unused_overlay_entries_are_errors() {
    let f = || c_function("xSet", &[("speed", builtin(Builtin::UInt))]);
    for (tables, want) in [
        ("[functions.xGone]\nhook = \"Y\"", "xGone"),
        ("[functions.xSet]\nspede = { dir = \"in\" }", "spede"),
        ("[functions.xSet]\nspeed = { in = [\"a\"] }", "request"),
        (
            "[functions.xSet]\nspeed = { dir = \"sideways\" }",
            "sideways",
        ),
    ] {
        let error = made(f(), tables).unwrap_err();
        assert!(error.contains(want), "{error}");
    }
}
