//! Rejected texts: the position and the message.

use cupyrite_ptx::{ErrorKind, ir::*, parse};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

/// A kernel with some registers whose body is `lines`, from line 12 on.
fn kernel(lines: &str) -> String {
    format!(
        "{HEAD}.global .align 8 .b8 g[64];\n.func (.param .b32 r) f (.param .b64 a) {{ ret; }}\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred p<4>; .reg .b16 h<4>;\n.reg .b32 r<8>; .reg .b64 rd<8>;\n.reg .f32 f<8>; .reg .f64 d<8>;\n.reg .s32 i<4>;\n{lines}\nret;\n}}\n"
    )
}

/// Each line is rejected at this column of line 12, with a message that contains the token and these words.
#[test]
fn instructions() {
    for (line, column, token, words) in [
        ("add.s32 r1, r2 r3;", 16, "r3", "expected ';' after operand"),
        ("add.s32 r1, r2, r3", 1, "ret", "expected ';' after operand"),
        ("ad.s32 r1, r2, r3;", 1, "ad", "unknown instruction"),
        ("add.s33 r1, r2, r3;", 4, ".s33", "has no modifier"),
        (
            "add.approx.lo.f32 f1, f2, f3;",
            4,
            ".approx",
            "has no modifier",
        ),
        ("add.s32 r1, r2, %r3;", 17, "%r3", "not declared"),
        ("add.s32 r1, r2, r8;", 17, "r8", "not declared"),
        ("add.s32 r1, r2;", 15, ";", "takes 3 operands, found 2"),
        (
            "add.s32 r1, r2, r3, r4;",
            21,
            "r4",
            "takes 3 operands, found 4",
        ),
        ("add.s32 r1, rd2, r3;", 13, "rd2", "type .s32"),
        ("add.f32 f1, i2, f3;", 13, "i2", "type .f32"),
        ("add.s32 f1, r2, r3;", 9, "f1", "type .s32"),
        ("add.s32 5, r2, r3;", 9, "5", "cannot be written to"),
        ("add.s32 r1, p1, r3;", 13, "p1", "expected a value"),
        ("add.s32 r1, [rd1], r3;", 13, "[", "in brackets"),
        ("setp.lt.s32 r1, r2, r3;", 13, "r1", "expected a predicate"),
        ("selp.b32 r1, r2, r3, r4;", 22, "r4", "expected a predicate"),
        (
            "ld.global.u32 r1, rd1;",
            19,
            "rd1",
            "an address in brackets",
        ),
        ("ld.global.u64 r1, [rd1];", 15, "r1", "at least 64 bits"),
        ("ld.globl.u32 r1, [rd1];", 3, ".globl", "has no modifier"),
        (
            "tex.2d.v4.f32.f32 {f1, f2, f3}, [rd1, {f5, f6}];",
            19,
            "{",
            "has 4 results",
        ),
        (
            "tex.2d.v4.f32.f32 {f1, f2, f3, f4}, [r1, {f5, f6}];",
            37,
            "[",
            "a register of 64 bits",
        ),
        (
            "tex.2d.v4.f32.f32 {f1, f2, f3, f4}, [rd1, {f5}];",
            37,
            "[",
            "needs 2 elements",
        ),
        (
            "tex.2d.v4.f32.f32 {f1, f2, f3, d4}, [rd1, {f5, f6}];",
            19,
            "{",
            "a register of 32 bits",
        ),
        (
            "tex.v4.f32.f32 {f1, f2, f3, f4}, [rd1, {f5}];",
            1,
            "tex",
            "one of .1d, .2d",
        ),
        (
            "tld4.r.3d.v4.f32.f32 {f1, f2, f3, f4}, [rd1, {f5, f6, f7, f7}];",
            7,
            ".3d",
            "has no modifier",
        ),
        (
            "suld.b.2d.v4.b64.trap {rd1, rd2, rd3, rd4}, [rd5, {r1, r2}];",
            23,
            "{",
            "no such vector",
        ),
        (
            "sust.b.2d.b32.wrap [rd1, {r1, r2}], {r3};",
            14,
            ".wrap",
            "has no modifier",
        ),
        ("txq.colour.b32 r1, [rd1];", 4, ".colour", "has no modifier"),
        (
            "ld.global.u32 r1, [f];",
            20,
            "f",
            "cannot be part of an address",
        ),
        ("ld.global.u32 r1, [rd1;", 23, ";", "expected ']'"),
        ("ld.global.u32 r1, [rd1+x];", 24, "x", "expected a constant"),
        ("st.global.u32 [rd1], rd2, 3;", 27, "3", "takes 2 operands"),
        ("mov.b64 rd1, {r1, rd2};", 14, "{", "32 bits"),
        ("ld.global.u32 r1, [r2];", 19, "[", "fewer than 64 bits"),
        (
            "ld.shared.u32 r1, [f2];",
            20,
            "f2",
            "is not an integer of 32 or 64 bits",
        ),
        (
            "ld.global.v2.u32 {r1, r2, r3}, [rd1];",
            18,
            "{",
            "moves 2 elements",
        ),
        ("st.global.v4.u32 [rd1], r1;", 25, "r1", "moves 4 elements"),
        ("ld.global.u32 f1, [rd1];", 15, "f1", "type .u32"),
        ("mov.f32 f1, 1;", 13, "1", "is an integer"),
        (
            "fma.rn.bf16x2 r1, r2, 5, r3;",
            23,
            "5",
            "expected a register with a value of type .bf16x2, '5' is an integer",
        ),
        (
            "vadd4.u32.u32.u32 r1, r2, r3, 5;",
            31,
            "5",
            "expected a register of 32 bits, '5' is an integer",
        ),
        ("add.s32 r1, r2, 1.5;", 17, "1.5", "floating-point constant"),
        (
            "mov.b32 r1, 0d3FF0000000000000;",
            13,
            "0d3FF0000000000000",
            "floating-point constant",
        ),
        ("mov.u64 rd1, %tid.x;", 14, "%tid", "special register"),
        ("mov.b64 rd1, {h1, h2, h3};", 14, "{", "is a vector"),
        (
            "add.u64 rd1, rd2, g;",
            19,
            "g",
            "move it into a register first",
        ),
        ("cvt.f64.f32 f1, f2;", 13, "f1", "type .f64"),
        ("bar.red.popc.u32 r1, 0, r2;", 25, "r2", "a predicate"),
        ("abs.s32 _, r1;", 9, "_", "discarded"),
        ("mov.u32 r1, 0x;", 13, "0x", "malformed number"),
        (
            "mov.u32 r1, 99999999999999999999;",
            13,
            "99999999999999999999",
            "64 bits",
        ),
        ("mov.f32 f1, 0f123;", 13, "0f123", "wrong length"),
        ("mov.u32 r1, 1 / 0;", 15, "/", "by zero"),
        ("mov.u32 r1, %tid.q;", 17, ".q", "no component"),
        ("@r1 bra L;", 2, "r1", "expected a predicate register"),
        ("@p9 ret;", 2, "p9", "not declared"),
        ("bra nowhere;", 5, "nowhere", "not defined"),
        ("bra 5;", 5, "5", "expected a label"),
        ("brx.idx r1, L;", 13, "L", "not declared"),
        ("L: L: ret;", 4, "L", "defined twice"),
        ("call k;", 6, "k", "cannot be called"),
        ("call f;", 6, "f", "takes 1 arguments and returns 1"),
        ("call (r1), f, (rd1), x;", 22, "x", "not declared"),
        ("call (r1), rd1, (rd2);", 12, "rd1", "needs a prototype"),
        (
            ".reg .b32 r<4000000000>;",
            13,
            "4000000000",
            "too many names",
        ),
        (".reg .b32 %q<-1>;", 14, "-", "too many names"),
        (".reg .b32 a, a;", 14, "a", "declared twice"),
        (".reg .b31 a;", 6, ".b31", "expected a type"),
        (".reg .pred;", 11, ";", "expected a name"),
        (".shared .align 3 .b8 s[4];", 16, "3", "not a power of two"),
        (".shared .b8 s[-1];", 15, "-", "out of range"),
        (
            ".local .b64 s[4611686018427387904];",
            13,
            "s",
            "larger than the address space",
        ),
        (".shared .b32 s = 4;", 18, "4", "initial values"),
        (".entry x;", 1, ".entry", "unknown directive"),
        (".loc 1 2;", 9, ";", "expected a column number"),
        ("x y;", 1, "x", "unknown instruction"),
        ("\u{e9};", 1, "\u{e9}", "unexpected character"),
        ("\"\u{e9}\" x", 1, "\"\u{e9}\"", "expected an instruction"),
        (")", 1, ")", "expected an instruction"),
    ] {
        let error = parse(&kernel(line)).expect_err(line);
        let line_number = if token == "ret" { 13 } else { 12 };
        assert_eq!(
            (error.pos, error.token.as_str()),
            (
                Pos {
                    line: line_number,
                    column
                },
                token
            ),
            "{line}: {error}"
        );
        assert!(error.message.contains(words), "{line}: {error}");
        assert!(
            error.message.contains(&format!("'{token}'")),
            "{line}: {error}"
        );
        assert_eq!(error.kind, ErrorKind::Invalid);
        assert!(!error.to_string().contains('\n'));
    }
}

#[test]
fn display_has_position_and_token() {
    let error = parse(&kernel("add.s32 r1, r2 %r3;")).unwrap_err();
    assert_eq!(
        error.to_string(),
        "line 12, column 16: expected ';' after operand, found '%r3'"
    );
    let long = "x".repeat(1000);
    assert!(
        parse(&kernel(&format!("{long} r1;")))
            .unwrap_err()
            .to_string()
            .len()
            < 120
    );
    let error = parse(&kernel("{ ret;").replace("\nret;\n}\n", "")).unwrap_err();
    assert!(
        error.to_string().contains("found the end of the text"),
        "{error}"
    );
    assert!(
        parse(&kernel("/* ret;"))
            .unwrap_err()
            .to_string()
            .contains("unterminated comment")
    );
}

/// Declarations at module scope; they begin in line 4.
#[test]
fn modules() {
    for (text, token, words) in [
        (".global .b32 x; .global .b32 x;", "x", "declared twice"),
        (".global .b32 x = y;", "y", "not declared"),
        (".global .b8 x[2] = {1, 2, 3};", "3", "more initial values"),
        (".global .b8 x[2] = {{1}, 2};", "{", "more levels"),
        (".global .b8 x[2] = 1;", "1", "expected '{'"),
        (".global .b8 x = {1;", ";", "expected '}'"),
        (".global .b8 y; .global .b8 x = y;", "y", "does not fit"),
        (
            ".global .b8 y; .global .b8 x[8] = {0xFFF(y)};",
            "0xFFF",
            "does not select a single byte",
        ),
        (
            ".global .b8 x[9223372036854775807][2];",
            "x",
            "larger than the address space",
        ),
        (
            ".global .b8 x[][4611686018427387904] = {{1}, {2}};",
            "x",
            "larger than the address space",
        ),
        (".global .pred x;", "x", "must be a register"),
        (".reg .b32 x;", ".reg", "cannot be declared here"),
        (".func f { ret; } .func f { ret; }", "f", "defined twice"),
        (
            ".func f(.param .b32 a); .func f { ret; }",
            "f",
            "differs from its declaration",
        ),
        (
            ".func f(.param .b32 a, .param .b32 a) { ret; }",
            "a",
            "declared twice",
        ),
        (
            ".entry k .maxntd 5 { ret; }",
            ".maxntd",
            "unknown directive",
        ),
        (
            ".entry k .maxntid 0 { ret; }",
            "0",
            "'.maxntid' takes numbers from 1 to 4294967295",
        ),
        (
            ".entry k .maxntid 32, 0 { ret; }",
            "0",
            "'.maxntid' takes numbers from 1",
        ),
        (
            ".entry k .maxntid 4294967296 { ret; }",
            "4294967296",
            "'.maxntid' takes numbers from 1",
        ),
        (
            ".entry k .reqntid 8, 8, 0 { ret; }",
            "0",
            "'.reqntid' takes numbers from 1",
        ),
        (
            ".entry k .maxntid 8 .minnctapersm 0 { ret; }",
            "0",
            "'.minnctapersm' takes numbers from 1",
        ),
        (
            ".entry k .maxnreg 0 { ret; }",
            "0",
            "'.maxnreg' takes numbers from 1",
        ),
        (
            ".entry k .maxnctapersm 0 { ret; }",
            "0",
            "'.maxnctapersm' takes numbers from 1",
        ),
        (
            ".entry k .maxntid 64 .reqntid 64 { ret; }",
            ".reqntid",
            "both '.maxntid' and '.reqntid'",
        ),
        (
            ".entry k .maxclusterrank 8 .reqnctapercluster 2 { ret; }",
            ".reqnctapercluster",
            "both '.maxclusterrank' and '.reqnctapercluster'",
        ),
        (
            ".visible .extern .func f;",
            ".extern",
            "second linking directive",
        ),
        (".section .debug_info { .b8 1", "", "end of the text"),
        (".alias a, b;", "a", "not a function"),
        ("ret;", "ret", "expected a directive"),
        (".what", ".what", "unknown directive"),
        (".file 1", "", "file name"),
        (".file 1 \"a", "\"a", "unterminated string"),
    ] {
        let error = parse(&format!("{HEAD}{text}")).expect_err(text);
        assert_eq!(
            (error.pos.line, error.token.as_str()),
            (4, token),
            "{text}: {error}"
        );
        assert!(error.message.contains(words), "{text}: {error}");
    }
}

#[test]
fn versions_and_targets() {
    let kind = |text: &str| parse(text).unwrap_err().kind;
    assert_eq!(
        kind(".version 9.6\n.target sm_80\n"),
        ErrorKind::UnsupportedVersion
    );
    assert_eq!(
        kind(".version 10.0\n.target sm_80\n"),
        ErrorKind::UnsupportedVersion
    );
    assert_eq!(
        kind(".version 8.0\n.target sm_999\n"),
        ErrorKind::UnsupportedTarget
    );
    assert_eq!(
        kind(".version 8.0\n.target compute_80\n"),
        ErrorKind::UnsupportedTarget
    );
    assert_eq!(
        kind(".version 8.0\n.target sm_80a\n"),
        ErrorKind::UnsupportedTarget
    );
    assert_eq!(kind(""), ErrorKind::Invalid);
    assert_eq!(kind("\0"), ErrorKind::Invalid);
    assert_eq!(kind(".target sm_80\n"), ErrorKind::Invalid);
    assert_eq!(kind(".version 8\n.target sm_80\n"), ErrorKind::Invalid);
    let module = parse(".version 8.7\n.target sm_90a, debug, texmode_independent\n\0").unwrap();
    assert_eq!(
        (module.version, module.arch(), module.address_size),
        ((8, 7), 90, 64)
    );
    assert_eq!(module.target[1], "debug");
    assert_eq!(
        parse(".version 9.5\n.target sm_103f\n.address_size 32")
            .unwrap()
            .address_size,
        32
    );
}

#[test]
fn initial_values() {
    let module = parse(&format!(
        "{HEAD}.global .b32 a[2][3] = {{{{1, 2}}, {{3}}}};\n.global .v2 .f32 v = {{1.0, 0f40000000}};\n.global .b16 b[] = {{1, -2, 0x12345}};\n\
         .global .b32 e[][2] = {{{{1, 2}}, {{3, 4}}, {{5}}}};\n.global .b64 n = generic(a)+8, m = a-4;\n\
         .global .b8 bytes[8] = {{0xFF(a), 0xFF00(a), 0xFF0000(generic(a)+4)}};\n.const .f64 h = 0f3F800000;\n.global .f16 z;\n\
         .func f;\n.global .u64 t[2] = {{f, 0}};\n.global .b8 huge[1000000][1000000] = {{{{1}}, {{2}}}};\n\
         .extern .global .b32 late[];\n.visible .global .b32 late[2] = {{7}};\n.global .texref tex = {{ width = 4, filter_mode = linear }};\n"
    ))
    .unwrap_or_else(|e| panic!("{e}"));
    let var = |name: &str| &module.globals[module.global_by_name(name).unwrap() as usize];
    let tex: Vec<(&str, &str)> = var("tex")
        .properties
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    assert_eq!(tex, [("width", "4"), ("filter_mode", "linear")]);
    let bits = |list: &[u64]| list.iter().map(|b| InitElem::Bits(*b)).collect::<Vec<_>>();
    let a = VarId::Module(module.global_by_name("a").unwrap());
    let mut padded = bits(&[1, 2]);
    padded.extend([InitElem::Zeros(1), InitElem::Bits(3), InitElem::Zeros(2)]);
    assert_eq!(var("a").init, padded);
    assert_eq!(var("v").init, bits(&[0x3f80_0000, 0x4000_0000]));
    assert_eq!(
        (var("b").size(), &var("b").init),
        (6, &bits(&[1, 0xfffe, 0x2345]))
    );
    assert_eq!(
        (var("e").size(), &var("e").dims),
        (24, &vec![Some(3), Some(2)])
    );
    assert_eq!(
        var("n").init,
        [InitElem::Var {
            var: a,
            offset: 8,
            generic: true,
            byte: None
        }]
    );
    assert_eq!(
        var("m").init,
        [InitElem::Var {
            var: a,
            offset: -4,
            generic: false,
            byte: None
        }]
    );
    assert_eq!(
        var("bytes").init[1],
        InitElem::Var {
            var: a,
            offset: 0,
            generic: false,
            byte: Some(1)
        }
    );
    assert_eq!(
        var("bytes").init[2],
        InitElem::Var {
            var: a,
            offset: 4,
            generic: true,
            byte: Some(2)
        }
    );
    assert_eq!(var("h").init, bits(&[1f64.to_bits()]));
    assert_eq!(
        var("t").init[0],
        InitElem::Func {
            func: FuncId(0),
            byte: None
        }
    );
    assert_eq!(
        var("huge").init[..2],
        [InitElem::Bits(1), InitElem::Zeros(999_999)]
    );
    assert_eq!(
        (var("late").linkage, var("late").size()),
        (Linkage::Visible, 8)
    );
}

/// Spellings of the PTX ISA that compilers do not emit.
#[test]
fn uncommon_spellings() {
    let module = parse(&kernel(
        ".reg .v4 .f32 v; .reg .u32 %r<10>, x, y; .shared .v2 .f32 s2[3];\n\
         mov.f32 f1, v.x; mov.f32 f1, v.a; ld.global.u32 x, g[4]; ld.shared.v2.f32 {f0, f1}, s2[2]; mov.u64 rd1, g[8];\n\
         ld.global.u32 x, [rd1 + 4 * 2 - 1]; mov.u32 %r9, (3 + 4) * 2; @!p1 bra L; mov.pred p1, 1; st.global.u8 [g+0x10], x;\n\
         # a line of a preprocessor\n@@DWARF .byte 0x01, what?\nL: ; mov.f32 f1, 1.0; mov.b32 r1, 0f3F000000; call (r1), f, (rd1);\n\
         { .reg .pred p1; { .reg .f32 r1; mov.f32 r1, f1; } setp.eq.s32 p1, r1, 0; }",
    ))
    .unwrap_or_else(|e| panic!("{e}"));
    let body = module.functions[1].body.as_ref().unwrap();
    let instr = |i: usize| &body.instrs[i].operands;
    assert!(
        matches!(instr(0)[1], Operand::RegComponent(_, 0))
            && matches!(instr(1)[1], Operand::RegComponent(_, 3))
    );
    assert_eq!(instr(2)[1], Operand::Addr(Base::Var(VarId::Module(0)), 4));
    assert_eq!(instr(3)[1], Operand::Addr(Base::Var(VarId::Local(0)), 16));
    assert_eq!(instr(4)[1], Operand::Var(VarId::Module(0), 8));
    assert!(matches!(instr(5)[1], Operand::Addr(Base::Reg(_), 7)));
    assert_eq!(instr(6)[1], Operand::Int(14));
    assert_eq!(instr(8)[1], Operand::Int(1));
    assert_eq!(instr(9)[0], Operand::Addr(Base::Var(VarId::Module(0)), 16));
    assert_eq!(instr(10)[1], Operand::F32(1f32.to_bits()));
    assert_eq!(instr(11)[1], Operand::F32(0.5f32.to_bits()));
    assert_eq!(instr(12).len(), 3);
}

/// Large numbers and deep nesting need little memory and time.
#[test]
fn hostile_texts() {
    let deep =
        |c: &str| parse(&kernel(&format!("mov.u32 r1, {};", c.repeat(100_000)))).unwrap_err();
    assert!(deep("(").message.contains("deep"));
    assert!(deep("{").message.contains("deep"));
    assert!(deep("[").message.contains("deep"));
    assert!(deep("-").message.contains("deep"));
    assert!(
        parse(&kernel(&"{".repeat(100_000)))
            .unwrap_err()
            .message
            .contains("deep")
    );
    assert!(parse(&format!("{HEAD}.global .b8 x[1] = {}", "{".repeat(100_000))).is_err());
    assert!(parse(&format!("{HEAD}.global .b8 x{}", "[2]".repeat(100_000))).is_err());
    let registers: String = (0..1000)
        .map(|i| format!(".reg .b32 a{i}_<16000000>;\n"))
        .collect();
    let module = parse(&kernel(&registers)).unwrap();
    assert!(module.functions[1].body.as_ref().unwrap().regs.is_empty());
}

/// The message for a module of this version and target with this instruction; empty if it is accepted.
fn refusal(version: &str, target: &str, instruction: &str) -> String {
    let text = format!(
        ".version {version}\n.target {target}\n.address_size 64\n.visible .entry k() {{\n\
         .reg .pred p<4>; .reg .b32 r<4>; .reg .b64 l<4>;\n{instruction}\nret;\n}}"
    );
    cupyrite_ptx::parse(&text).map_or_else(|error| error.message, |_| String::new())
}

/// Forms and modifiers need the version and the architecture that introduced them.
#[test]
fn gates() {
    let add = "add.f32x2 l1, l2, l3;";
    assert_eq!(
        refusal("7.8", "sm_89", add),
        "'add.f32x2' needs PTX ISA 8.6 and sm_100; the module says '.version 7.8', '.target sm_89'"
    );
    assert_eq!(refusal("8.6", "sm_100", add), "");
    let load = "ld.relaxed.cluster.global.b32 r1, [l1];";
    assert!(refusal("7.8", "sm_89", load).contains("needs PTX ISA 7.8 and sm_90"));
    assert_eq!(refusal("7.8", "sm_90", load), "");
    // Ended with sm_70 and PTX ISA 6.4.
    let vote = "vote.all.pred p1, p2;";
    assert_eq!(refusal("6.3", "sm_70", vote), "");
    assert_eq!(refusal("7.0", "sm_60", vote), "");
    assert!(refusal("7.0", "sm_70", vote).contains("before 6.4 or an architecture before sm_70"));
}

/// Modifiers and types that the assembler does not combine.
#[test]
fn illegal_combinations() {
    for instruction in [
        "atom.global.and.u32 r1, [l1], r2;",
        "atom.global.add.b32 r1, [l1], r2;",
        "setp.lo.s32 p1, r1, r2;",
        "setp.lt.b32 p1, r1, r2;",
        "ld.volatile.const.b32 r1, [l1];",
        "ld.mmio.relaxed.sys.global.v2.b32 {r1, r2}, [l1];",
        "cvt.rni.u32.s32 r1, r2;",
        "vadd2.u32.u32.u32.sat.add r1, r2, r3, r1;",
    ] {
        assert_ne!(refusal("9.0", "sm_90", instruction), "", "{instruction}");
    }
}
