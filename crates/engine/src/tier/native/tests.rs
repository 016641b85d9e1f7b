//! Launches kernels interpreted and compiled, and compares memory and faults bit by bit.

mod addresses;
mod atomics;
mod collectives;
mod control;
mod lanes;
mod local;
mod memory;
mod more_lanes;
mod random;

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::isa::Isa;
use crate::memory::{AddressSpace, RegionKind};
use crate::{Fault, FaultKind, Image, LaunchConfig, launch};

/// The words of each buffer after a launch.
type Words = Vec<Vec<u32>>;

/// Where kernels find their buffers: 64-bit parameters `p0`, `p1`, ...
struct Buffers(Vec<(u64, Vec<u32>)>);

impl Buffers {
    /// Device allocations of these sizes.
    fn new(contents: Vec<Vec<u32>>) -> Self {
        let space = AddressSpace::global();
        let place = |c: Vec<u32>| {
            let address = space.alloc(4 * c.len() as u64, 256, RegionKind::Device);
            (address.unwrap(), c)
        };
        Self(contents.into_iter().map(place).collect())
    }

    fn parameters(&self) -> Vec<u8> {
        let addresses = self.0.iter().map(|(address, _)| address);
        addresses.flat_map(|a| a.to_le_bytes()).collect()
    }

    fn fill(&self) {
        for (address, contents) in &self.0 {
            // SAFETY: the allocation has this size, and no kernel is running.
            unsafe {
                std::ptr::copy_nonoverlapping(
                    contents.as_ptr(),
                    *address as *mut u32,
                    contents.len(),
                );
            }
        }
    }

    fn words(&self) -> Words {
        let read = |(address, contents): &(u64, Vec<u32>)| {
            // SAFETY: the allocation has this size, and no kernel is running.
            unsafe { std::slice::from_raw_parts(*address as *const u32, contents.len()).to_vec() }
        };
        self.0.iter().map(read).collect()
    }
}

impl Drop for Buffers {
    fn drop(&mut self) {
        for (address, _) in &self.0 {
            AddressSpace::global().free(*address).unwrap();
        }
    }
}

/// A module with a kernel `k`.
fn module(head: &str, parameters: usize, body: &str) -> String {
    let list: Vec<String> = (0..parameters)
        .map(|n| format!(".param .u64 p{n}"))
        .collect();
    let list = list.join(", ");
    format!(
        ".version 8.6\n.target sm_90\n.address_size 64\n{head}\n.visible .entry k({list})\n{{\n{body}\n}}\n"
    )
}

/// The instruction sets of this machine.
fn isas() -> Vec<Isa> {
    let all = [Isa::Avx512, Isa::Avx2].into_iter();
    all.filter(|isa| isa.are_available()).collect()
}

/// A kernel, loaded for the interpreter, and for the compiler with each instruction set.
struct Both {
    ptx: String,
    images: Vec<Image>,
}

impl Both {
    /// Loads the first kernel of `ptx`, and compiles it; `None` where the compiler is not supported.
    fn new(ptx: String) -> Option<Self> {
        let isas = isas();
        if isas.is_empty() {
            eprintln!("skipped: needs AVX2");
            return None;
        }
        let load =
            |_| Image::load(&ptx, AddressSpace::global()).unwrap_or_else(|e| panic!("{e}\n{ptx}"));
        let images: Vec<Image> = (0..=isas.len()).map(load).collect();
        for (n, image) in images.iter().enumerate() {
            let kernel = &image.kernels()[0];
            assert_eq!(kernel.unsupported(), None, "{ptx}");
            let program = kernel.program().as_ref().unwrap();
            let compile = || {
                let isa = *isas.get(n.checked_sub(1)?)?;
                super::compile(program, isa, super::LEAST_INSTRUCTIONS)
            };
            let entries = program
                .native
                .get_or_compile(compile)
                .map_or(0, |c| c.entries.len());
            assert_eq!(
                entries > 0,
                n > 0,
                "{entries} entries of machine code\n{ptx}"
            );
        }
        Some(Self { ptx, images })
    }

    /// Launches all: the results of the interpreter, then those of machine code.
    fn launch(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        contents: Vec<Vec<u32>>,
    ) -> Vec<Result<Words, Fault>> {
        let buffers = Buffers::new(contents);
        let params = buffers.parameters();
        let run = |image: &Image| {
            buffers.fill();
            let config = LaunchConfig::new(grid, block, &params);
            launch(&image.kernels()[0], &config)?;
            Ok(buffers.words())
        };
        self.images.iter().map(run).collect()
    }

    /// Launches both, and asserts that buffers, or faults, are equal. Returns those of the interpreter.
    fn compare(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        contents: Vec<Vec<u32>>,
    ) -> Result<Words, Fault> {
        let ptx = &self.ptx;
        let mut results = self.launch(grid, block, contents).into_iter();
        let expected = results.next().expect("the interpreter has run");
        for found in results {
            Self::assert_equal(&expected, &found, ptx);
        }
        expected
    }

    /// Launches all: for each instruction set, the words that the interpreter has written, and those that machine code has.
    fn pairs(
        &self,
        grid: [u32; 3],
        block: [u32; 3],
        contents: Vec<Vec<u32>>,
    ) -> impl Iterator<Item = [Words; 2]> {
        let results = self.launch(grid, block, contents).into_iter();
        let ptx = &self.ptx;
        let mut words = results.map(move |r| r.unwrap_or_else(|f| panic!("{f}\n{ptx}")));
        let expected = words.next().expect("the interpreter has run");
        words.map(move |found| [expected.clone(), found])
    }

    /// Asserts that an endless kernel with two buffers ends when its launch is cancelled, in blocks of these sizes.
    fn assert_cancelled(&self, blocks: &[u32]) {
        let buffers = Buffers::new(vec![vec![1; 256]; 2]);
        let params = buffers.parameters();
        for image in &self.images {
            for &block in blocks {
                let cancel = AtomicBool::new(false);
                let config = LaunchConfig {
                    cancel: &cancel,
                    ..LaunchConfig::new([1; 3], [block, 1, 1], &params)
                };
                let result = std::thread::scope(|s| {
                    s.spawn(|| {
                        std::thread::sleep(Duration::from_millis(20));
                        cancel.store(true, Ordering::Relaxed);
                    });
                    launch(&image.kernels()[0], &config)
                });
                assert_eq!(result.err().map(|f| f.kind), Some(FaultKind::Cancelled));
            }
        }
    }

    fn assert_equal(expected: &Result<Words, Fault>, found: &Result<Words, Fault>, ptx: &str) {
        match (expected, found) {
            (Ok(expected), Ok(found)) => {
                for (n, (e, f)) in expected.iter().zip(found).enumerate() {
                    let different: Vec<usize> = (0..e.len()).filter(|&k| e[k] != f[k]).collect();
                    if let Some(&at) = different.first() {
                        panic!(
                            "buffer {n}, word {at}: {:#x}, expected {:#x}; different: {different:?}\n{ptx}",
                            f[at], e[at]
                        );
                    }
                }
            }
            (Err(expected), Err(found)) => {
                assert_eq!(expected.kind, found.kind, "{expected}\n{found}\n{ptx}");
                // The nearest allocation may be one of the launch.
                let lines = |f: &Fault| {
                    let lines = f.report.lines();
                    lines
                        .filter(|l| !l.contains(" allocation "))
                        .map(str::to_owned)
                        .collect::<Vec<_>>()
                };
                assert_eq!(lines(expected), lines(found), "{ptx}");
            }
            (expected, found) => {
                let [expected, found] = [expected, found].map(|r| r.as_ref().map(|_| "no fault"));
                panic!("expected {expected:?}\nfound {found:?}\n{ptx}");
            }
        }
    }

    /// [`Self::compare`] for a kernel that must not fault.
    fn same_in(&self, grid: [u32; 3], block: [u32; 3], contents: Vec<Vec<u32>>) -> Words {
        let words = self.compare(grid, block, contents);
        words.unwrap_or_else(|f| panic!("{f}\n{}", self.ptx))
    }

    /// [`Self::same_in`] for blocks of one dimension.
    fn same(&self, grid: u32, block: u32, contents: Vec<Vec<u32>>) -> Words {
        self.same_in([grid, 1, 1], [block, 1, 1], contents)
    }
}

/// The kind of a fault: an address in shared memory of a block that does not exist counts as an illegal one.
fn address_fault(kind: FaultKind) -> FaultKind {
    match kind {
        FaultKind::ClusterBlockNotPresent => FaultKind::IllegalAddress,
        kind => kind,
    }
}

/// Pseudo-random numbers.
struct Random(u64);

impl Random {
    /// The next 64 bits.
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// A number below `n`.
    fn below(&mut self, n: usize) -> usize {
        (self.bits() % n as u64) as usize
    }

    /// An element of a list.
    fn of<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}
