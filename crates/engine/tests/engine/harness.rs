//! Buffers and launches for the tests.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use cupyrite_engine::memory::{AddressSpace, RegionKind};
use cupyrite_engine::{
    Bounds, Fault, Image, LaunchConfig, MemoryModel, PrintfSink, launch_clusters, launch_with,
};

/// Collects the output of kernels.
#[derive(Default)]
pub struct Printed(pub Mutex<Vec<u8>>);

impl PrintfSink for Printed {
    fn emit(&self, text: &[u8]) {
        self.0.lock().unwrap().extend_from_slice(text);
    }
}

/// A device allocation of 32-bit words.
pub struct Buffer {
    pub addr: u64,
    words: usize,
}

impl Buffer {
    pub fn new(contents: &[u32]) -> Self {
        let addr = AddressSpace::global()
            .alloc(4 * contents.len() as u64, 256, RegionKind::Device)
            .unwrap();
        // SAFETY: the allocation has this size.
        unsafe {
            std::ptr::copy_nonoverlapping(contents.as_ptr(), addr as *mut u32, contents.len())
        };
        Self {
            addr,
            words: contents.len(),
        }
    }
    pub fn zeros(words: usize) -> Self {
        Self::new(&vec![0; words])
    }
    pub fn get(&self) -> Vec<u32> {
        // SAFETY: the allocation has this size, and no kernel is running.
        unsafe { std::slice::from_raw_parts(self.addr as *const u32, self.words).to_vec() }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        AddressSpace::global().free(self.addr).unwrap();
    }
}

/// Parameters of a launch.
pub struct Launch<'a> {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub cluster: Option<[u32; 3]>,
    pub shared: u32,
    pub cooperative: bool,
    pub cancel: &'a AtomicBool,
    pub stack: u32,
}

static NEVER: AtomicBool = AtomicBool::new(false);

impl Launch<'_> {
    pub fn new(grid: u32, block: u32) -> Self {
        Self {
            grid: [grid, 1, 1],
            block: [block, 1, 1],
            cluster: None,
            shared: 0,
            cooperative: false,
            cancel: &NEVER,
            stack: 1024,
        }
    }
    /// Runs the first kernel of `ptx`; every argument is a 64-bit parameter.
    pub fn run(&self, ptx: &str, args: &[u64]) -> Result<String, Fault> {
        let words: Vec<u32> = args
            .iter()
            .flat_map(|a| [*a as u32, (*a >> 32) as u32])
            .collect();
        self.run_words(ptx, &words)
    }
    /// Runs the first kernel of `ptx` with these words as its parameters.
    pub fn run_words(&self, ptx: &str, args: &[u32]) -> Result<String, Fault> {
        self.run_in(AddressSpace::global(), ptx, args)
    }
    /// Runs the first kernel of `ptx` in an address space.
    pub fn run_in(
        &self,
        space: &Arc<AddressSpace>,
        ptx: &str,
        args: &[u32],
    ) -> Result<String, Fault> {
        self.run_under(&Bounds, space, ptx, args)
    }
    /// Runs the first kernel of `ptx` in an address space under a memory model.
    pub fn run_under(
        &self,
        model: &impl MemoryModel,
        space: &Arc<AddressSpace>,
        ptx: &str,
        args: &[u32],
    ) -> Result<String, Fault> {
        let image = Image::load(ptx, space).unwrap_or_else(|e| panic!("{e}"));
        let kernel = &image.kernels()[0];
        assert_eq!(kernel.unsupported(), None);
        let params: Vec<u8> = args.iter().flat_map(|a| a.to_le_bytes()).collect();
        assert_eq!(params.len(), kernel.param_bytes as usize);
        let printed = Printed::default();
        let config = LaunchConfig {
            dynamic_shared: self.shared,
            cooperative: self.cooperative,
            cancel: self.cancel,
            printf: &printed,
            local_limit: self.stack,
            ..LaunchConfig::new(self.grid, self.block, &params)
        };
        match self.cluster {
            Some(cluster) => launch_clusters(kernel, &config, cluster, model)?,
            None => launch_with(kernel, &config, model)?,
        }
        Ok(String::from_utf8(printed.0.into_inner().unwrap()).unwrap())
    }
}

/// A module with one kernel `k` of `params` 64-bit parameters `p0`, `p1`, ..., after `head`.
pub fn module(head: &str, params: usize, body: &str) -> String {
    let list: Vec<String> = (0..params).map(|n| format!(".param .u64 p{n}")).collect();
    format!(
        ".version 8.3\n.target sm_89\n.address_size 64\n{head}\n.visible .entry k({})\n{{\n{body}\n}}\n",
        list.join(", ")
    )
}
