//! From PTX to KIR: the text after the passes, and what the verifier refuses.

use std::fmt::Write as _;

use super::to_kir;
use crate::Image;
use crate::dump;
use crate::kir::{Action, Fixed, Kernel, Reg, verify};
use crate::memory::AddressSpace;
use crate::semantics::lane::Slot;

const HEADER: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";
const REGISTERS: &str =
    ".reg .pred %p<4>; .reg .b16 %h<4>; .reg .b32 %r<99>; .reg .f32 %f<9>; .reg .b64 %rd<9>;";

/// The text of a kernel after a pass, without the line numbers.
fn text(module: &str, pass: &str) -> String {
    let image = Image::load(&format!("{HEADER}{module}"), AddressSpace::global()).unwrap();
    let text = image.kernels()[0].kir(Some(pass)).unwrap();
    let lines = text
        .lines()
        .map(|l| l.split("  ;").next().unwrap_or(l).trim_end());
    lines.fold(String::new(), |all, l| all + l + "\n")
}

/// A kernel with this body, after a pass.
fn body(lines: &str, pass: &str) -> String {
    let parameters = ".param .u64 out, .param .u32 n";
    text(
        &format!(".entry k({parameters}) {{ {REGISTERS} {lines} }}"),
        pass,
    )
}

/// The KIR of a kernel with this body, after the passes.
fn kernel(lines: &str) -> Kernel {
    let module = format!("{HEADER}.entry k() {{ {REGISTERS} {lines} }}");
    let image = Image::load(&module, AddressSpace::global()).unwrap();
    let (placed, id) = image.kernels()[0].source_for_tests();
    to_kir(&placed, id, None).unwrap().0
}

const SCALE: &str = "
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r2, [n];
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %ctaid.x;
    mov.u32 %r5, %tid.x;
    mad.lo.s32 %r1, %r4, %r3, %r5;
    setp.ge.s32 %p1, %r1, %r2;
    @%p1 bra DONE;
    cvta.to.global.u64 %rd3, %rd1;
    mul.wide.s32 %rd4, %r1, 4;
    add.s64 %rd5, %rd3, %rd4;
    ld.global.f32 %f2, [%rd5+4];
    st.global.f32 [%rd5], %f2;
DONE:
    ret;";

#[test]
fn a_kernel_is_translated_block_by_block() {
    let expected = "\
function k: frame 0
  block 0 -> 2, 1
    %rd1 = load.8 global[&param[0x0]]
    %r2 = load.4 global[&param[0x8]]
    %r3 = mov.u32 %ntid.x
    %r4 = mov.u32 %ctaid.x
    %r5 = mov.u32 %tid.x
    %r1 = mad.lo.s32 %r4, %r3, %r5
    %p1 = setp.ge.s32 %r1, %r2, imm 0x6
    if %p1 branch block 2
  block 1 -> 2
    %rd3 = cvta.to.global.u64 %rd1
    %rd4 = mul.wide.s32 %r1, 4
    %rd5 = add.s64 %rd3, %rd4
    %f2 = load.4 global[%rd5 + 0x4]
    store.4 global[%rd5], %f2
  block 2
    return
  block 3
    return
";
    assert_eq!(body(SCALE, "build"), expected);
}

#[test]
fn uniform_instructions_are_hoisted_and_addresses_split() {
    let expected = "\
function k: frame 0
  once per launch:
    %rd1 = load.param.8 [0x0]
    %r2 = load.param.4 [0x8]
    %r3 = mov.u32 %ntid.x
    %rd3 = cvta.to.global.u64 %rd1
  once per block:
    %r4 = mov.u32 %ctaid.x
  block 0 -> 2, 1
    %r1 = mad.lo.s32 %r4, %r3, %tid.x
    %p1 = setp.ge.s32 %r1, %r2, imm 0x6
    if %p1 branch block 2
  block 1 -> 2
    %rd4 = mul.wide.s32 %r1, 4
    %f2 = load.4 global[%rd4 + %rd3 + 0x4]
    store.4 global[%rd4 + %rd3], %f2
  block 2
    return
  block 3
    return
";
    assert_eq!(body(SCALE, "spin_loops"), expected);
}

#[test]
fn lanes_meet_behind_the_branches_that_part_them() {
    let text = body(
        "setp.eq.u32 %p1, %r1, 0; @%p1 bra THEN;
        add.u32 %r2, %r2, 1; bra BEHIND;
        THEN: setp.eq.u32 %p2, %r1, 7; @%p2 exit;
        sub.u32 %r2, %r2, 1;
        BEHIND: setp.lt.u32 %p3, %r2, 9; @%p3 bra BEHIND; ret;",
        "control_flow",
    );
    let blocks: Vec<&str> = text.lines().filter(|l| l.starts_with("  block")).collect();
    // Nothing waits for lanes that exit in block 2.
    let expected = [
        "  block 0 -> 2, 1, meet at 4",
        "  block 1 -> 4",
        "  block 2 -> 3",
        "  block 3 -> 4",
        "  block 4 -> 4, 5, meet at 5",
        "  block 5",
        "  block 6",
    ];
    assert_eq!(blocks, expected, "{text}");
}

#[test]
fn a_sum_that_is_used_otherwise_stays() {
    let used = format!(
        "{} st.global.u64 [%rd4], %rd5; ret;",
        SCALE.replace("ret;", "")
    );
    let text = body(&used, "split_addresses");
    assert!(text.contains("%rd5 = add.s64 %rd3, %rd4"), "{text}");
    assert!(text.contains("store.4 global[%rd4 + %rd3], %f2"), "{text}");
    // Behind a label that a branch reaches, the sum may be another one.
    assert!(text.contains("store.8 global[%rd4], %rd5"), "{text}");
}

#[test]
fn a_guarded_or_repeated_definition_is_not_hoisted() {
    let text = body(
        "mov.u32 %r1, 7; mov.u32 %r1, 8; setp.eq.u32 %p1, %r1, 0; @%p1 mov.u32 %r2, 9; ret;",
        "uniformity",
    );
    assert!(!text.contains("once per"), "{text}");
    assert!(text.contains("if %p1 %r2 = mov.u32 9"), "{text}");
}

#[test]
fn uniform_definitions_are_found_in_any_order() {
    const COUNT: usize = 60;
    // Each definition uses the one before it; the order in the text is a permutation.
    let mut lines = String::from("mov.u32 %r0, 7; ");
    for k in (0..COUNT).map(|n| n * 37 % COUNT) {
        let _ = write!(lines, "add.s32 %r{}, %r{k}, 1; ", k + 1);
    }
    let kernel = kernel(&(lines + "ret;"));
    let f = &kernel.functions[0];
    assert_eq!(f.launch_prologue.len(), COUNT + 1);
    let mut defined = vec![false; f.registers.len()];
    for i in &f.launch_prologue {
        let Action::Lanes(op) = &i.action else {
            panic!("{i:?}");
        };
        for r in op
            .src
            .iter()
            .flatten()
            .filter(|r| f.operand(**r).starts_with('%'))
        {
            assert!(
                defined[r.at as usize],
                "{} is used before its definition",
                f.operand(*r)
            );
        }
        op.dst
            .iter()
            .flatten()
            .for_each(|r| defined[r.at as usize] = true);
    }
}

#[test]
fn loops_around_instructions_that_wait_spin() {
    let text = body(
        "ld.param.u64 %rd1, [out];
        A: ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra A;
        B: add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 9; @%p2 bra B; ret;",
        "spin_loops",
    );
    let branches: Vec<&str> = text
        .lines()
        .filter(|l| l.contains("branch"))
        .map(str::trim)
        .collect();
    assert_eq!(
        branches,
        ["if %p1 branch block 1, spins", "if %p2 branch block 2"]
    );
}

#[test]
fn addresses_are_in_the_state_space_that_is_known() {
    let text = body(
        "ld.shared.u32 %r1, [%r2+8]; ld.u16 %h1, [%rd1]; atom.shared.add.u32 %r3, [%r2], %r1; ret;",
        "build",
    );
    assert!(text.contains("%r1 = load.4 shared[%r2 + 0x8]"), "{text}");
    assert!(text.contains("%h1 = load.2 [%rd1]"), "{text}");
    assert!(
        text.contains("%r3 = atomic.Add.U32.relaxed shared[%r2], %r1"),
        "{text}"
    );
}

#[test]
fn every_dump_has_a_text() {
    for pass in dump::POINTS {
        assert!(
            body(SCALE, pass).starts_with("function k: frame 0\n"),
            "{pass}"
        );
    }
    let text = body(SCALE, "register_allocation");
    assert!(text.contains("\nregisters: "), "{text}");
    let image = Image::load(
        &format!("{HEADER}.entry k() {{ ret; }}"),
        AddressSpace::global(),
    );
    let error = image.unwrap().kernels()[0]
        .kir(Some("inlining"))
        .unwrap_err();
    assert!(
        error.contains("no pass 'inlining'") && error.contains("uniformity"),
        "{error}"
    );
}

#[test]
fn a_register_file_that_is_too_large_is_refused() {
    let mut lines = String::from(".reg .b64 %wide<70000>; ");
    for n in 1..70_000 {
        // Read before they are written, the registers are live together.
        let _ = writeln!(lines, "add.u64 %wide0, %wide0, %wide{n};");
    }
    let module = format!("{HEADER}.entry k() {{ {lines} ret; }}");
    let image = Image::load(&module, AddressSpace::global()).unwrap();
    let refused = image.kernels()[0].unsupported().unwrap();
    assert!(
        refused.contains("needs a register file of 179"),
        "{refused}"
    );
}

/// A kernel with one change, which the verifier must refuse.
fn refused(change: impl FnOnce(&mut Kernel)) -> String {
    let mut kernel = kernel("add.u32 %r1, %r2, %r3; setp.eq.u32 %p1, %r1, 0; @%p1 bra A; A: ret;");
    verify(&kernel, "test");
    change(&mut kernel);
    let result = std::panic::catch_unwind(|| verify(&kernel, "test"));
    *result.unwrap_err().downcast::<String>().unwrap()
}

#[test]
fn the_verifier_refuses_what_is_inconsistent() {
    let of_first = |change: fn(&mut Action)| {
        refused(|k| change(&mut k.functions[0].blocks[0].instructions[0].action))
    };
    let message = of_first(|a| {
        a.for_each_mut(&mut |_, r| {
            *r = Reg {
                slot: Slot::R64,
                ..*r
            };
        });
    });
    assert!(message.contains("is R32, not R64"), "{message}");
    let message = of_first(|a| a.for_each_mut(&mut |_, r| r.at = 9999));
    assert!(message.contains("does not exist"), "{message}");
    let message = of_first(|a| a.for_each_mut(&mut |_, r| *r = Fixed::Frame.reg()));
    assert!(message.contains("cannot be written"), "{message}");
    let message = of_first(|a| *a = Action::Return);
    assert!(
        message.contains("leaves the block before its end"),
        "{message}"
    );
    let message = refused(|k| {
        k.functions[0].blocks.truncate(1);
    });
    assert!(message.contains("does not exist"), "{message}");
    let message = refused(|k| {
        if let Some(b) = k.functions[0].blocks.last_mut() {
            b.instructions.clear();
        }
    });
    assert!(message.contains("falls through"), "{message}");
}
