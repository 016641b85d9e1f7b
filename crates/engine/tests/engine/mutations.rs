//! Mutated kernels: the process survives every mutation, and every launch returns.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cupyrite_engine::memory::AddressSpace;
use cupyrite_engine::{Image, LaunchConfig, launch};

use crate::harness::{Buffer, Printed};

const SEED: &str = r"
.version 8.3
.target sm_89
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 a);
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.global .align 1 .b8 fmt[] = {37, 100, 32, 37, 115, 10, 0};
.const .align 4 .u32 c[4] = {1, 2, 3, 4};
.func (.param .b32 r) leaf(.param .b32 x)
{
.reg .b32 %r<4>;
ld.param.u32 %r1, [x];
add.u32 %r2, %r1, 3;
st.param.b32 [r], %r2;
ret;
}
.global .align 8 .u64 table[2] = {leaf, leaf};
.func (.param .b32 r) down(.param .b32 x)
{
.reg .b32 %r<6>; .reg .pred %p<2>;
ld.param.u32 %r1, [x];
setp.eq.u32 %p1, %r1, 0;
@%p1 bra Z;
{ .param .b32 a; .param .b32 b;
sub.u32 %r2, %r1, 1;
st.param.b32 [a], %r2;
call (b), down, (a);
ld.param.b32 %r3, [b]; }
add.u32 %r1, %r3, %r1;
Z: st.param.b32 [r], %r1;
ret;
}
.visible .entry k(.param .u64 p0, .param .u64 p1, .param .align 8 .b8 p2[16])
{
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<40>; .reg .b64 %rd<40>; .reg .f32 %f<8>;
.shared .align 16 .b8 tile[256];
.local .align 16 .b8 loc[64];
.param .b32 pa; .param .b32 pb; .param .b64 pc; .param .b64 pd;
ld.param.u64 %rd1, [p0];
ld.param.u64 %rd2, [p1];
ld.param.v2.u32 {%r30, %r31}, [p2+8];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.s32 %r4, %r1, %r2, %r3;
mul.wide.u32 %rd3, %r4, 4;
add.s64 %rd4, %rd1, %rd3;
ld.global.u32 %r5, [%rd4];
mov.u32 %r6, tile;
shl.b32 %r7, %r3, 2;
add.u32 %r8, %r6, %r7;
st.shared.u32 [%r8], %r5;
bar.sync 0;
ld.shared.v2.u32 {%r9, %r10}, [tile+8];
shfl.sync.bfly.b32 %r11|%p1, %r5, 1, 31, -1;
vote.sync.ballot.b32 %r12, %p1, -1;
redux.sync.add.u32 %r13, %r3, -1;
match.any.sync.b32 %r14, %r7, -1;
mov.u64 %rd5, loc;
cvta.local.u64 %rd6, %rd5;
st.local.v4.u32 [%rd5+16], {%r9, %r10, %r11, %r12};
and.b32 %r15, %r3, 12;
cvt.u64.u32 %rd7, %r15;
add.s64 %rd8, %rd6, %rd7;
ld.u32 %r16, [%rd8+16];
mov.u32 %r17, 0;
L: atom.global.add.u32 %r18, [%rd2], %r17;
add.u32 %r17, %r17, 1;
setp.lt.u32 %p2, %r17, %r15;
@%p2 bra L;
st.param.b32 [pa], %r15;
call (pb), down, (pa);
ld.param.b32 %r19, [pb];
ld.global.u64 %rd9, [table+8];
pt: .callprototype (.param .b32 _) _ (.param .b32 _);
call (pb), %rd9, (pa), pt;
ld.param.b32 %r20, [pb];
bts: .branchtargets A, B;
and.b32 %r21, %r3, 1;
brx.idx %r21, bts;
A: ld.const.u32 %r22, [c+4];
mov.u64 %rd10, fmt;
st.param.b64 [pc], %rd10;
st.param.b64 [pd], %rd6;
setp.eq.u32 %p3, %r4, 0;
@%p3 call (pb), vprintf, (pc, pd);
B: mov.u64 %rd11, 24;
st.param.b64 [pc], %rd11;
call (pd), malloc, (pc);
ld.param.b64 %rd12, [pd];
st.u64 [%rd12], %rd4;
st.param.b64 [pc], %rd12;
call free, (pc);
bar.red.popc.u32 %r23, 0, %p2;
add.u32 %r24, %r19, %r20;
div.u32 %r25, %r24, %r21;
cp.async.ca.shared.global [%r8], [%rd4], 4;
atom.shared.cas.b32 %r26, [tile], %r1, %r2;
bar.warp.sync -1;
st.global.u32 [%rd4], %r24;
@%p1 exit;
membar.gl;
ret;
}
";

struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below.max(1)
    }
}

/// Replaces the `n`-th number of a line.
fn renumber(line: &str, random: &mut Random) -> String {
    let digits: Vec<usize> = line
        .char_indices()
        .filter(|(_, c)| c.is_ascii_digit())
        .map(|(n, _)| n)
        .collect();
    if digits.is_empty() {
        return line.to_string();
    }
    let at = digits[random.next(digits.len())];
    let values = [
        "0",
        "1",
        "2",
        "7",
        "15",
        "31",
        "64",
        "-1",
        "100000",
        "4294967295",
    ];
    format!(
        "{}{}{}",
        &line[..at],
        values[random.next(values.len())],
        &line[at + 1..]
    )
}

fn mutate(random: &mut Random) -> String {
    let mut lines: Vec<String> = SEED.lines().map(str::to_string).collect();
    let first = lines
        .iter()
        .position(|l| l.starts_with("ld.param.u64 %rd1"))
        .unwrap_or(0);
    for _ in 0..=random.next(4) {
        let n = first + random.next(lines.len() - first - 2);
        let m = first + random.next(lines.len() - first - 2);
        match random.next(6) {
            0 => lines.swap(n, m),
            1 => {
                lines.remove(n);
            }
            2 => {
                let copy = lines[m].clone();
                lines.insert(n, copy);
            }
            _ => lines[n] = renumber(&lines[n], random),
        }
    }
    lines.join("\n")
}

#[test]
fn no_mutation_crashes_the_process() {
    let space = AddressSpace::global();
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut ran, mut faulted) = (0, 0);
    for round in 0..400 {
        let text = if round == 0 {
            SEED.to_string()
        } else {
            mutate(&mut random)
        };
        let image = match Image::load(&text, space) {
            Ok(image) => image,
            Err(e) => {
                assert_ne!(round, 0, "{e}");
                continue;
            }
        };
        let Some(kernel) = image.kernel("k") else {
            continue;
        };
        if kernel.unsupported().is_some() {
            continue;
        }
        let (data, counter) = (Buffer::zeros(64), Buffer::zeros(1));
        let mut params = Vec::new();
        for v in [data.addr, counter.addr, 5, 6] {
            params.extend(v.to_le_bytes());
        }
        params.resize(kernel.param_bytes as usize, 0);
        let (cancel, done) = (AtomicBool::new(false), AtomicBool::new(false));
        let result = std::thread::scope(|s| {
            s.spawn(|| {
                for _ in 0..200 {
                    if done.load(Ordering::Relaxed) {
                        return;
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                cancel.store(true, Ordering::Relaxed);
            });
            let result = launch(
                &kernel,
                &LaunchConfig {
                    cancel: &cancel,
                    printf: &Printed::default(),
                    heap_limit: 1 << 20,
                    ..LaunchConfig::new([2, 1, 1], [32, 1, 1], &params)
                },
            );
            done.store(true, Ordering::Relaxed);
            result
        });
        if round == 0 {
            result.as_ref().unwrap();
        }
        ran += 1;
        faulted += u32::from(result.is_err());
    }
    assert!(ran > 100, "{ran} ran, {faulted} of them faulted");
}
