//! Expectations for each library: names and wheel folders from `rows.txt` (one line per library), locations from the
//! layouts that NVIDIA and conda document. Independent of the crate's table.

use cupyrite_pathfinder::{Arch, FoundVia, Os, Platform};

use super::World;

/// One library.
pub struct LibraryRow {
    pub name: &'static str,
    pub origin: &'static str,
    linux: Vec<&'static str>,
    wheels: Vec<&'static str>,
    windows: Vec<&'static str>,
    archs: Vec<&'static str>,
    pub dependencies: Vec<&'static str>,
}

/// All libraries.
pub fn rows() -> Vec<LibraryRow> {
    let list = |text: &'static str| match text {
        "-" => Vec::new(),
        text => text.split(',').collect(),
    };
    include_str!("rows.txt")
        .lines()
        .map(|line| match line.split(' ').collect::<Vec<_>>()[..] {
            [name, origin, linux, wheels, windows, archs, dependencies] => LibraryRow {
                name,
                origin,
                linux: list(linux),
                wheels: list(wheels),
                windows: list(windows),
                archs: list(archs),
                dependencies: list(dependencies),
            },
            _ => panic!("{line}"),
        })
        .collect()
}

/// A location of a library.
#[derive(Debug, Clone)]
pub struct ExpectedLocation {
    /// Label for assertion messages.
    pub label: &'static str,
    /// The folder.
    pub folder: String,
    /// The CUDA major of the folder, if it implies one.
    pub major: Option<u32>,
    /// The expected step.
    pub via: FoundVia,
}

impl LibraryRow {
    /// Its file names, the preferred one first.
    pub fn names(&self, platform: Platform) -> &[&'static str] {
        let arch = match platform.arch {
            Arch::X86_64 => "x64",
            Arch::Aarch64 => "arm64",
        };
        match platform.os {
            Os::Linux => &self.linux,
            Os::Windows if self.archs.contains(&arch) => &self.windows,
            Os::Windows => &[],
        }
    }

    /// The name for a CUDA major; the first if names imply no major.
    pub fn name_for(&self, platform: Platform, major: u32) -> &'static str {
        let names = self.names(platform);
        match (self.has_majors(platform), major) {
            (true, 12) => names[names.len() - 1],
            _ => names[0],
        }
    }

    /// Whether the names imply the CUDA major: the first is for CUDA 13, the last for CUDA 12.
    pub fn has_majors(&self, platform: Platform) -> bool {
        // The numbers of these are the library's own versions, or ambiguous.
        self.names(platform).len() > 1
            && !["nvvm", "cudss", "cufftMp", "curand", "cusparseLt"].contains(&self.name)
    }

    /// Its folder in a toolkit, as installed.
    fn toolkit(&self, root: &str, platform: Platform) -> String {
        let bin = match platform.arch {
            Arch::X86_64 => "bin/x64",
            Arch::Aarch64 => "bin/arm64",
        };
        match (platform.os, self.name) {
            (Os::Linux, "nvvm") => format!("{root}/nvvm/lib64"),
            (Os::Linux, "cupti") => format!("{root}/extras/CUPTI/lib64"),
            (Os::Linux, _) => format!("{root}/lib64"),
            (Os::Windows, "nvvm") => format!("{root}/nvvm/{bin}"),
            (Os::Windows, "cupti") => format!("{root}/extras/CUPTI/lib64"),
            (Os::Windows, _) => format!("{root}/{bin}"),
        }
    }

    fn conda(&self, root: &str, platform: Platform) -> String {
        match (platform.os, self.name) {
            (Os::Linux, "nvvm") => format!("{root}/nvvm/lib64"),
            (Os::Linux, _) => format!("{root}/lib"),
            (Os::Windows, "nvvm") => format!("{root}/Library/nvvm/bin"),
            (Os::Windows, _) => format!("{root}/Library/bin"),
        }
    }

    /// Folders of its wheels, with the CUDA major of each.
    fn wheels(&self, platform: Platform) -> Vec<(String, Option<u32>)> {
        let major = |folder: &str| match (folder.contains("cu13"), folder.contains("cu12")) {
            (true, _) => Some(13),
            (_, true) => Some(12),
            _ if self.origin == "toolkit" => Some(12),
            _ => None,
        };
        let folders = self.wheels.iter().map(|folder| match platform.os {
            Os::Linux => (*folder).to_owned(),
            Os::Windows => {
                let arch = match (self.name, platform.arch) {
                    // Product wheels do not all follow the toolkit's layout.
                    ("cudss" | "mathdx", _) => "",
                    ("cusparseLt", Arch::X86_64) => "/x64",
                    (_, Arch::X86_64) => "/x86_64",
                    (_, Arch::Aarch64) => "/arm64",
                };
                match *folder {
                    "nvidia/cu13/lib" => format!("nvidia/cu13/bin{arch}"),
                    "nvidia/cuda_nvcc/nvvm/lib64" => "nvidia/cuda_nvcc/nvvm/bin".to_owned(),
                    folder => folder.strip_suffix("lib").unwrap().to_owned() + "bin",
                }
            }
        });
        let arm = platform.os == Os::Windows && platform.arch == Arch::Aarch64;
        folders
            // cuSPARSELt's wheel of CUDA 13 has no folder for Windows on AArch64.
            .filter(|folder| !(arm && self.name == "cusparseLt" && folder.contains("cu13")))
            .map(|folder| {
                let of = major(&folder);
                (folder, of)
            })
            .collect()
    }

    /// Every location, in search order.
    pub fn places(&self, platform: Platform) -> Vec<ExpectedLocation> {
        let drive = match platform.os {
            Os::Linux => "",
            Os::Windows => "C:",
        };
        let at = |folder: &str| format!("{drive}/{folder}");
        let place = |label, folder, via| ExpectedLocation {
            label,
            folder,
            major: None,
            via,
        };
        let mut places = vec![
            place("process", at("process"), FoundVia::AlreadyLoaded),
            place("override", at("override"), FoundVia::Override),
        ];
        if self.origin == "driver" {
            places.push(place("system", at("system"), FoundVia::System));
            places.push(place("driver folder", at("driver"), FoundVia::System));
            return places;
        }
        for (folder, major) in self.wheels(platform) {
            places.push(ExpectedLocation {
                major,
                ..place(
                    "wheel",
                    at(&format!("site/{folder}")),
                    FoundVia::SitePackages,
                )
            });
        }
        places.push(place(
            "conda",
            self.conda(&at("conda"), platform),
            FoundVia::Conda,
        ));
        places.push(place("system", at("system"), FoundVia::System));
        match (self.name, platform.os) {
            ("cudnn", Os::Linux) => {
                let via = FoundVia::Variable("CUDNN_PATH");
                places.push(place("CUDNN_PATH", at("cudnn/lib"), via));
                places.push(place("CUDNN_PATH", at("cudnn/lib64"), via));
            }
            ("cudnn", Os::Windows) => {
                let via = FoundVia::Variable("CUDNN_PATH");
                places.push(place("CUDNN_PATH", at("cudnn/bin"), via));
            }
            ("nccl", _) => {
                for dir in ["lib", "lib64", "build/lib"] {
                    let via = FoundVia::Variable("NCCL_HOME");
                    places.push(place("NCCL_HOME", at(&format!("nccl/{dir}")), via));
                }
            }
            _ => {}
        }
        for (label, root) in [("CUDA_PATH", "path"), ("CUDA_HOME", "home")] {
            let folder = self.toolkit(&at(root), platform);
            places.push(place(label, folder, FoundVia::CudaPath));
        }
        if platform.os == Os::Windows {
            let folder = match (self.origin, self.name, platform.arch) {
                ("toolkit", ..) => {
                    let root = "C:/Program Files/NVIDIA GPU Computing Toolkit/CUDA/v13.0";
                    Some(self.toolkit(root, platform))
                }
                (_, "cudnn", Arch::X86_64) => {
                    Some("C:/Program Files/NVIDIA/CUDNN/v9.14/bin/13.0/x64".to_owned())
                }
                (_, "cudnn", Arch::Aarch64) => {
                    Some("C:/Program Files/NVIDIA/CUDNN/v9.14/bin/13.0/arm64".to_owned())
                }
                _ => None,
            };
            let via = FoundVia::ProgramFiles;
            places.extend(folder.map(|folder| place("ProgramFiles", folder, via)));
        }
        if ["nvvm", "cupti"].contains(&self.name) {
            let folder = self.toolkit(&at("canary"), platform);
            places.push(place("canary", folder, FoundVia::Canary));
        }
        let folder = self.toolkit(&at("known"), platform);
        places.push(place("well-known", folder, FoundVia::WellKnown));
        places
    }

    /// A machine on which every variable is set, every folder is searched, and the dependencies are loaded.
    pub fn world(&self, platform: Platform, rows: &[LibraryRow]) -> World {
        let drive = match platform.os {
            Os::Linux => "",
            Os::Windows => "C:",
        };
        let at = |folder: &str| format!("{drive}/{folder}").into();
        let mut world = World::new(platform)
            .system(&format!("{drive}/system"))
            .with(|env| {
                env.site_packages = vec![at("elsewhere"), at("site")];
                env.conda_prefix = Some(at("conda"));
                env.cuda_path = Some(at("path"));
                env.cuda_home = Some(at("home"));
                env.toolkit_roots = vec![at("known")];
                env.driver_dirs = vec![at("driver")];
                env.variables = [
                    ("CUDNN_PATH", at("cudnn")),
                    ("NCCL_HOME", at("nccl")),
                    ("ProgramFiles", "C:/Program Files".into()),
                ]
                .into();
            });
        for dependency in &self.dependencies {
            let row = rows.iter().find(|row| row.name == *dependency).unwrap();
            for name in row.names(platform) {
                let path = format!("{drive}/dependencies/{name}");
                world = world.library(&path, &[]).in_process(&path);
            }
        }
        if ["nvvm", "cupti"].contains(&self.name) {
            // The system finds the CUDA runtime of a toolkit with both majors, which serves every test.
            let (folder, names) = match (platform.os, platform.arch) {
                (Os::Linux, _) => ("/canary/lib64", ["libcudart.so.13", "libcudart.so.12"]),
                (Os::Windows, Arch::X86_64) => {
                    ("C:/canary/bin/x64", ["cudart64_13.dll", "cudart64_12.dll"])
                }
                (Os::Windows, Arch::Aarch64) => (
                    "C:/canary/bin/arm64",
                    ["cudart64_13.dll", "cudart64_12.dll"],
                ),
            };
            for name in names {
                world = world.library(&format!("{folder}/{name}"), &[]);
            }
            world = world.system(folder);
        }
        world
    }
}

impl ExpectedLocation {
    /// Puts a library there.
    pub fn put(&self, row: &LibraryRow, name: &str, world: World) -> World {
        let path = self.path(name);
        let world = world.library(&path, &[]);
        match self.label {
            "process" => world.in_process(&path),
            "override" => world.with(|env| {
                env.overrides = [(row.name, path.into())].into();
            }),
            _ => world,
        }
    }

    /// The file there.
    pub fn path(&self, name: &str) -> String {
        format!("{}/{name}", self.folder)
    }
}
