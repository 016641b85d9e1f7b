//! Tests of the linker: names, numbers, positions.

use super::*;
use crate::ir::{Base, InitElem, Op, Operand, VarId};

fn input(name: &str, body: &str) -> Input {
    let text = format!(".version 8.0\n.target sm_80\n.address_size 64\n{body}");
    with_head(name, &text)
}

fn with_head(name: &str, text: &str) -> Input {
    Input {
        name: name.into(),
        module: crate::parse(text).unwrap_or_else(|e| panic!("{name}: {e}\n{text}")),
    }
}

fn linked(inputs: &[Input]) -> Module {
    link(inputs, &|name| name == "vprintf").unwrap_or_else(|e| panic!("{e:?}"))
}

fn errors(inputs: &[Input]) -> Vec<(LinkErrorKind, String)> {
    let errors = link(inputs, &|name| name == "vprintf").expect_err("must not link");
    errors.into_iter().map(|e| (e.kind, e.message)).collect()
}

/// Name of the callee of the first call in a kernel, and whether it has a body.
fn callee(m: &Module, kernel: &str) -> (String, bool) {
    let f = &m.functions[m.function_by_name(kernel).unwrap().0 as usize];
    let body = f.body.as_ref().unwrap();
    let call = body.instrs.iter().find(|i| i.op == Op::Call).unwrap();
    let Operand::Func(id) = call.operands[1] else {
        panic!("{call:?}")
    };
    let to = &m.functions[id.0 as usize];
    (to.name.clone(), to.body.is_some())
}

/// The first module-level variable that a function addresses.
fn addressed<'m>(m: &'m Module, function: &str) -> &'m Variable {
    let f = &m.functions[m.function_by_name(function).unwrap().0 as usize];
    let operands = f
        .body
        .as_ref()
        .unwrap()
        .instrs
        .iter()
        .flat_map(|i| &i.operands);
    let id = operands
        .filter_map(|o| match o {
            Operand::Var(VarId::Module(v), _) | Operand::Addr(Base::Var(VarId::Module(v)), _) => {
                Some(*v)
            }
            _ => None,
        })
        .next()
        .unwrap();
    &m.globals[id as usize]
}

const CALLER: &str = ".extern .func helper;
.visible .entry k() { call helper; ret; }";

#[test]
fn a_call_is_resolved_to_another_module() {
    for order in [[0, 1], [1, 0]] {
        let both = [
            input("a", CALLER),
            input("b", ".visible .func helper { ret; }"),
        ];
        let m = linked(&order.map(|i| both[i].clone()));
        assert_eq!(callee(&m, "k"), ("helper".into(), true));
        assert_eq!(m.functions.len(), 2, "the declaration is gone");
    }
}

#[test]
fn an_undefined_symbol_is_reported_with_its_user() {
    let found = errors(&[input("first", CALLER), input("second", "")]);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].0, LinkErrorKind::Undefined);
    assert!(
        found[0].1.contains("'helper'") && found[0].1.contains("'first'"),
        "{}",
        found[0].1
    );
    // An unused declaration is not an error.
    linked(&[input(
        "a",
        ".extern .func helper; .extern .global .u32 x; .visible .entry k() { ret; }",
    )]);
    let found = errors(&[input(
        "a",
        ".extern .global .u32 x; .visible .global .u64 p = x; .visible .entry k() { ret; }",
    )]);
    assert!(found[0].1.contains("'x'"), "{found:?}");
    // A function that the device provides remains a declaration.
    let print = ".extern .func (.param .b32 r) vprintf(.param .b64 a, .param .b64 b);
        .visible .entry k() { .param .b64 a; .param .b64 b; .param .b32 r; call (r), vprintf, (a, b); ret; }";
    let m = linked(&[input("a", print), input("b", "")]);
    assert_eq!(callee(&m, "k"), ("vprintf".into(), false));
}

#[test]
fn duplicate_definitions_are_errors() {
    let found = errors(&[
        input(
            "a",
            ".visible .func f { ret; } .visible .global .u32 x = 1;",
        ),
        input(
            "b",
            ".visible .func f { ret; } .visible .global .u32 x = 2;",
        ),
    ]);
    assert_eq!(found.len(), 2);
    for (kind, message) in &found {
        assert_eq!(*kind, LinkErrorKind::Duplicate);
        assert!(
            message.contains("'a'") && message.contains("'b'"),
            "{message}"
        );
    }
    // Kernels are shared, whatever their directive.
    let found = errors(&[
        input("a", ".entry k() { ret; }"),
        input("b", ".entry k() { ret; }"),
    ]);
    assert_eq!(found[0].0, LinkErrorKind::Duplicate);
}

#[test]
fn weak_and_common_definitions_yield() {
    let user =
        ".extern .global .u32 x; .visible .entry k() { .reg .u32 r; ld.global.u32 r, [x]; ret; }";
    let init = |inputs: &[Input]| addressed(&linked(inputs), "k").init.clone();
    let weak = |n: u32| input("w", &format!(".weak .global .u32 x = {n};"));
    let strong = input("s", ".visible .global .u32 x = 9;");
    assert_eq!(
        init(&[input("u", user), weak(1), strong.clone()]),
        [InitElem::Bits(9)]
    );
    assert_eq!(
        init(&[strong.clone(), weak(1), input("u", user)]),
        [InitElem::Bits(9)]
    );
    assert_eq!(
        init(&[input("u", user), weak(1), weak(2)]),
        [InitElem::Bits(1)]
    );
    let common = |n: u32| input("c", &format!(".common .global .u32 x[{n}];"));
    let array =
        ".extern .global .u32 x[]; .visible .entry k() { .reg .u32 r; ld.global.u32 r, [x]; ret; }";
    let m = linked(&[common(1), common(3), common(2), input("u", array)]);
    assert_eq!(addressed(&m, "k").size(), 12);
    assert_eq!(m.globals.iter().filter(|g| g.name == "x").count(), 1);
    let filled = input("f", ".common .global .u32 x[1] = {5};");
    let m = linked(&[common(1), filled.clone(), input("u", array)]);
    assert_eq!(addressed(&m, "k").init, [InitElem::Bits(5)]);
    assert_eq!(
        errors(&[filled.clone(), filled])[0].0,
        LinkErrorKind::Duplicate
    );
    // Functions, too: template instances are weak.
    let template = ".weak .func f { ret; } .visible .entry NAME() { call f; ret; }";
    let m = linked(&[
        input("a", &template.replace("NAME", "a")),
        input("b", &template.replace("NAME", "b")),
    ]);
    assert_eq!(m.functions.iter().filter(|f| f.name == "f").count(), 1);
    assert_eq!(callee(&m, "a"), callee(&m, "b"));
}

#[test]
fn names_without_a_directive_are_local() {
    let one = |k: &str, n: u32| {
        format!(
            ".global .u32 x = {n}; .func f {{ ret; }}
            .visible .entry {k}() {{ .reg .u32 r; ld.global.u32 r, [x]; call f; ret; }}"
        )
    };
    let m = linked(&[input("a", &one("a", 1)), input("b", &one("b", 2))]);
    assert_eq!(addressed(&m, "a").init, [InitElem::Bits(1)]);
    assert_eq!(addressed(&m, "b").init, [InitElem::Bits(2)]);
    assert_eq!(m.functions.iter().filter(|f| f.name == "f").count(), 2);
    // A declaration in another module does not refer to them.
    let found = errors(&[
        input("a", &one("a", 1)),
        input("u", ".extern .func f; .visible .entry u() { call f; ret; }"),
    ]);
    assert!(found[0].1.contains("'f'") && found[0].1.contains("'u'"));
}

#[test]
fn initializers_refer_to_the_right_items() {
    let table = input(
        "t",
        ".extern .func f; .extern .global .u32 x;
        .visible .global .u64 table[2] = {f, x};",
    );
    let m = linked(&[
        input("pad", ".visible .func g { ret; } .visible .global .u32 y;"),
        table,
        input(
            "d",
            ".visible .func f { ret; } .visible .global .u32 x = 3;",
        ),
    ]);
    let table = &m.globals[m.global_by_name("table").unwrap() as usize];
    let [
        InitElem::Func { func, .. },
        InitElem::Var {
            var: VarId::Module(x),
            ..
        },
    ] = table.init[..]
    else {
        panic!("{:?}", table.init)
    };
    assert_eq!(m.functions[func.0 as usize].name, "f");
    assert_eq!(m.globals[x as usize].name, "x");
}

#[test]
fn dynamic_shared_memory_is_shared_by_all_modules() {
    let one = |k: &str| {
        format!(
            ".extern .shared .align 16 .b8 s[]; .visible .entry {k}() {{ .reg .u32 r; ld.shared.u32 r, [s]; ret; }}"
        )
    };
    let m = linked(&[input("a", &one("a")), input("b", &one("b"))]);
    assert!(addressed(&m, "a").is_unsized() && addressed(&m, "b").is_unsized());
}

#[test]
fn aliases_prototypes_and_files_keep_their_meaning() {
    let alias = input(
        "a",
        ".visible .func real; .visible .func other; .visible .func real { ret; } .alias other, real;",
    );
    let m = linked(&[
        input(
            "u",
            ".extern .func other; .visible .entry k() { call other; ret; }",
        ),
        alias,
    ]);
    assert_eq!(callee(&m, "k"), ("real".into(), true));
    let indirect = |k: &str, n: u32| {
        format!(
            ".file 1 \"{k}.cu\"\n.visible .func {k}f {{ ret; }}
            .visible .entry {k}() {{ .reg .u64 p; .loc 1 {n} 0\nmov.u64 p, {k}f;
            P: .callprototype _ (); call p, P; ret; }}"
        )
    };
    let m = linked(&[input("a", &indirect("a", 7)), input("b", &indirect("b", 8))]);
    for (kernel, proto, line) in [("a", 0, 7), ("b", 1, 8)] {
        let f = &m.functions[m.function_by_name(kernel).unwrap().0 as usize];
        let instrs = &f.body.as_ref().unwrap().instrs;
        let loc = instrs[0].loc.unwrap();
        assert_eq!(
            (m.file(loc.file), loc.line),
            (Some(&*format!("{kernel}.cu")), line)
        );
        let call = instrs.iter().find(|i| i.op == Op::Call).unwrap();
        assert!(
            call.operands
                .contains(&Operand::Proto(crate::ir::ProtoId(proto)))
        );
    }
}

#[test]
fn inconsistent_declarations_are_errors() {
    let define = ".visible .func (.param .b32 r) f(.param .b64 a) { ret; }
        .visible .global .u32 x; .visible .func g { ret; } .visible .const .u32 c;";
    let declare = ".extern .func (.param .b32 r) f(.param .b32 a); .extern .global .u64 x;
        .extern .global .u32 g; .extern .global .u32 c;";
    let found = errors(&[input("d", define), input("u", declare)]);
    let kinds: Vec<_> = found.iter().map(|e| e.0).collect();
    assert_eq!(kinds, [LinkErrorKind::Mismatch; 4], "{found:?}");
    for (message, says) in found.iter().zip([
        "4 bytes instead of 8",
        "8 bytes instead of 4",
        "a function there",
        ".global instead of .const",
    ]) {
        assert!(message.1.contains(says), "{} / {says}", message.1);
    }
    let found = errors(&[
        input("d", define),
        input("u", ".extern .func (.param .b32 r) f();"),
    ]);
    assert!(
        found[0].1.contains("0 parameters instead of 1"),
        "{found:?}"
    );
}

#[test]
fn version_target_and_address_size() {
    let head = |name: &str, version, target, size| {
        with_head(
            name,
            &format!(".version {version}\n.target {target}\n.address_size {size}\n"),
        )
    };
    let m = linked(&[
        head("a", "7.8", "sm_70, debug", 64),
        head("b", "8.4", "sm_90a", 64),
        head("c", "8.0", "sm_90", 64),
    ]);
    assert_eq!((m.version, m.address_size), ((8, 4), 64));
    assert_eq!(m.target, ["sm_90a", "debug"]);
    let found = errors(&[head("a", "7.8", "sm_70", 64), head("b", "7.8", "sm_70", 32)]);
    assert_eq!(found[0].0, LinkErrorKind::Incompatible);
    let found = errors(&[
        head("a", "7.8", "sm_70, texmode_unified", 64),
        head("b", "7.8", "sm_70, texmode_independent", 64),
    ]);
    assert!(found[0].1.contains("texmode_independent"), "{found:?}");
    assert_eq!(linked(&[]).functions.len(), 0);
}
