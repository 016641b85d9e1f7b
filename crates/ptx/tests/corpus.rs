//! Parses the output of real compilers and every instruction of the PTX ISA, and checks that nothing is lost.

use cupyrite_ptx::ir::*;
use std::path::PathBuf;

/// The texts under `tests/data`.
fn texts() -> Vec<(String, String)> {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let mut found = Vec::new();
    for folder in [data.clone(), data.join("nvrtc")] {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "ptx") {
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                found.push((name, std::fs::read_to_string(path).unwrap()));
            }
        }
    }
    assert!(found.len() >= 16);
    found
}

fn text(name: &str) -> String {
    texts().into_iter().find(|(n, _)| n == name).unwrap().1
}

fn module(name: &str) -> Module {
    cupyrite_ptx::parse(&text(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn body<'m>(module: &'m Module, name: &str) -> &'m Body {
    let id = module.function_by_name(name).unwrap();
    module.functions[id.0 as usize].body.as_ref().unwrap()
}

/// Words of an instruction in alphabetical order, in one spelling.
fn words(mnemonic: &str) -> Vec<String> {
    let mnemonic = mnemonic
        .replace("::cta", "")
        .replace("::entry", "")
        .replace("::func", "")
        .replace("membar.gl", "membar.gpu");
    let mut words: Vec<String> = mnemonic
        .split('.')
        .filter(|w| *w != "unified")
        .map(str::to_string)
        .collect();
    words.sort();
    words
}

/// The position of every instruction points at its opcode, and the words there are those of the instruction.
#[test]
fn every_word_is_kept() {
    for (name, text) in texts() {
        let module = cupyrite_ptx::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        let lines: Vec<&str> = text.lines().collect();
        let mut count = 0;
        for instr in module
            .functions
            .iter()
            .filter_map(|f| f.body.as_ref())
            .flat_map(|b| &b.instrs)
        {
            let line = &lines[instr.pos.line as usize - 1][instr.pos.column as usize - 1..];
            let end = line
                .find(|c: char| c.is_whitespace() || c == ';')
                .unwrap_or(line.len());
            assert_eq!(
                words(&line[..end]),
                words(&instr.mnemonic()),
                "{name}, {:?}: {line}",
                instr.pos
            );
            count += 1;
        }
        assert!(count > 0, "{name}");
    }
}

/// Every index of a register, variable, label or function is valid.
#[test]
fn every_index_exists() {
    fn operand(module: &Module, function: &Function, body: &Body, op: &Operand) {
        let variable = |v: &VarId| match *v {
            VarId::Module(i) => assert!((i as usize) < module.globals.len()),
            VarId::Local(i) => assert!((i as usize) < body.vars.len()),
            VarId::Param(i) => assert!((i as usize) < function.params.len()),
            VarId::Return(i) => assert!((i as usize) < function.returns.len()),
        };
        let reg = |r: &RegId| assert!((r.0 as usize) < body.regs.len());
        op.walk(&mut |op| {
            op.register().iter().for_each(reg);
            op.variable().iter().for_each(variable);
            match op {
                Operand::Label(l) => {
                    assert!(body.labels[l.0 as usize].at as usize <= body.instrs.len())
                }
                Operand::Func(f) => assert!((f.0 as usize) < module.functions.len()),
                Operand::Proto(p) => assert!((p.0 as usize) < module.prototypes.len()),
                _ => {}
            }
        });
    }
    for (name, text) in texts() {
        let module = cupyrite_ptx::parse(&text).unwrap_or_else(|e| panic!("{name}: {e}"));
        for function in &module.functions {
            let Some(body) = &function.body else { continue };
            for instr in &body.instrs {
                instr
                    .operands
                    .iter()
                    .for_each(|o| operand(&module, function, body, o));
            }
            for label in body.branch_targets.iter().flat_map(|(_, list)| list) {
                operand(&module, function, body, &Operand::Label(*label));
            }
        }
    }
}

#[test]
fn globals() {
    let m = module("globals_89.ptx");
    assert_eq!((m.version, m.arch(), m.address_size), ((9, 5), 89, 64));
    let var = |name: &str| {
        &m.globals[m.global_by_name(name).unwrap_or_else(|| panic!("{name}")) as usize]
    };
    let counter = var("counter");
    assert_eq!(
        (counter.space, counter.ty, counter.size(), counter.align),
        (Space::Global, Type::U32, 4, 4)
    );
    assert_eq!(counter.init, [InitElem::Bits(5)]);
    assert_eq!(
        (var("coefficients").space, var("coefficients").size()),
        (Space::Const, 16)
    );
    assert_eq!((var("table").size(), var("table").init.len()), (128, 16));
    assert!(var("shared_with_host").managed && !counter.managed);
    let matrix = VarId::Module(m.global_by_name("matrix").unwrap());
    let inside = InitElem::Var {
        var: matrix,
        offset: 8,
        generic: true,
        byte: None,
    };
    assert_eq!(var("pointer_inside").init, [inside]);
    assert!(matches!(
        var("names").init[2],
        InitElem::Var {
            generic: true,
            offset: 0,
            ..
        }
    ));
    assert_eq!(
        m.functions
            .iter()
            .filter(|f| f.is_entry && f.linkage == Linkage::Visible)
            .count(),
        4
    );
}

#[test]
fn functions() {
    let m = module("control_89.ptx");
    let func = |name: &str| m.function_by_name(name).unwrap();
    let table = &m.globals[m.global_by_name("table").unwrap() as usize];
    assert_eq!(
        table.init[1],
        InitElem::Func {
            func: func("_Z6squaref"),
            byte: None
        }
    );
    assert!(m.functions[func("malloc").0 as usize].body.is_none());
    assert_eq!(
        m.functions[func("malloc").0 as usize].linkage,
        Linkage::Extern
    );
    // A declaration and its definition are one function.
    assert_eq!(
        m.functions
            .iter()
            .filter(|f| f.name == "_Z6squaref")
            .count(),
        1
    );
    assert!(m.functions[func("_Z6squaref").0 as usize].body.is_some());
    let indirect = body(&m, "through_pointers")
        .instrs
        .iter()
        .find(|i| i.op == Op::Call)
        .unwrap();
    let [
        Operand::Args(returns),
        Operand::Reg(_),
        Operand::Args(args),
        Operand::Proto(proto),
    ] = &indirect.operands[..]
    else {
        panic!("{indirect:?}");
    };
    assert_eq!((returns.len(), args.len()), (1, 1));
    assert_eq!(m.prototypes[proto.0 as usize].params[0].ty, Type::B32);
    let direct = body(&m, "_Z9fibonaccii")
        .instrs
        .iter()
        .find(|i| i.op == Op::Call)
        .unwrap();
    assert_eq!(direct.operands[1], Operand::Func(func("_Z9fibonaccii")));
    assert_eq!(direct.mnemonic(), "call.uni");
}

#[test]
fn source_lines() {
    let m = module("divergent_89_lineinfo.ptx");
    assert!(m.file(1).is_some_and(|f| f.ends_with("divergent.cu")));
    let instrs = &body(&m, "collatz").instrs;
    let at = |i: &Instr| i.loc.map_or(0, |l| l.line);
    assert!(instrs.iter().any(|i| at(i) == 9) && instrs.iter().all(|i| at(i) < 20));
}

#[test]
fn scopes_and_tables() {
    let m = module("inline_ptx_100.ptx");
    let scoped = body(&m, "scoped");
    // Two scopes with a label and a predicate of the same name each.
    let done: Vec<usize> = (0..scoped.labels.len())
        .filter(|i| scoped.labels[*i].name == "DONE")
        .collect();
    assert_eq!(done.len(), 2);
    let branches: Vec<LabelId> = scoped
        .instrs
        .iter()
        .filter(|i| i.op == Op::Bra)
        .filter_map(|i| match i.operands[0] {
            Operand::Label(l) if scoped.labels[l.0 as usize].name == "DONE" => Some(l),
            _ => None,
        })
        .collect();
    assert_eq!(branches, [LabelId(done[0] as u32), LabelId(done[1] as u32)]);
    assert_eq!(scoped.regs.iter().filter(|r| r.name == "p").count(), 2);
    let table = body(&m, "branch_table");
    let jump = table.instrs.iter().find(|i| i.op == Op::BrxIdx).unwrap();
    assert_eq!(jump.operands[1], Operand::Targets(0));
    let names: Vec<&str> = table.branch_targets[0]
        .1
        .iter()
        .map(|l| table.labels[l.0 as usize].name.as_str())
        .collect();
    assert_eq!(names, ["L0", "L1", "L2", "L3"]);
    let constants: Vec<&Operand> = body(&m, "constants")
        .instrs
        .iter()
        .filter(|i| i.op == Op::Mov)
        .map(|i| &i.operands[1])
        .collect();
    for wanted in [
        Operand::F32(1.5f32.to_bits()),
        Operand::F32(2.5f32.to_bits()),
        Operand::F64((-1500f64).to_bits()),
        Operand::Int(25),
        Operand::Int(-(1 << 40)),
        Operand::Int(32),
        Operand::Int(11),
        Operand::Int(15),
        Operand::Int(8),
    ] {
        assert!(constants.contains(&&wanted), "{wanted:?}");
    }
}

#[test]
fn kernels() {
    let m = module("isa_sm90a.ptx");
    let entry = &m.functions[0];
    assert!(entry.is_entry && entry.directives.explicit_cluster);
    assert_eq!(entry.directives.req_ntid, None);
    assert_eq!(entry.directives.req_ncta_per_cluster, Some([2, 1, 1]));
    assert_eq!((entry.params[1].size(), entry.params[1].align), (128, 64));
    let m = module("isa_sm100a.ptx");
    assert_eq!(m.functions[0].params[0].ptr, Some((Some(Space::Global), 8)));
    assert_eq!(m.functions[0].directives.req_ntid, Some([128, 1, 1]));
    let m = module("isa_sm80.ptx");
    let control = &m.functions[m.function_by_name("control").unwrap().0 as usize];
    assert_eq!(control.directives.max_ntid, Some([128, 1, 1]));
    assert_eq!(control.directives.min_ncta_per_sm, Some(2));
}
