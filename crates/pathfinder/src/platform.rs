//! The supported platforms. A search takes one as data, so that tests cover all of them on any.

use std::fmt;

/// An operating system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Os {
    /// Linux, WSL included.
    Linux,
    /// Windows.
    Windows,
}

/// A processor architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Arch {
    /// x86-64, also called AMD64 and x64.
    X86_64,
    /// AArch64, also called arm64; `sbsa` in the folders of Linux toolkits.
    Aarch64,
}

/// An operating system on an architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Platform {
    /// The operating system.
    pub os: Os,
    /// The architecture of this process, which may differ from the machine's under emulation.
    pub arch: Arch,
}

impl Platform {
    /// The platform of this process.
    pub const CURRENT: Platform = Platform {
        os: if cfg!(windows) {
            Os::Windows
        } else {
            Os::Linux
        },
        arch: if cfg!(target_arch = "aarch64") {
            Arch::Aarch64
        } else {
            Arch::X86_64
        },
    };

    /// Whether this is Windows.
    pub const fn is_windows(self) -> bool {
        matches!(self.os, Os::Windows)
    }

    /// The usual folder below `targets/` in toolkits and conda environments.
    pub const fn target(self) -> &'static str {
        self.targets()[0]
    }

    /// The folders below `targets/`, the usual one first; Jetson's toolkits have their own.
    pub const fn targets(self) -> &'static [&'static str] {
        match (self.os, self.arch) {
            (Os::Linux, Arch::X86_64) => &["x86_64-linux"],
            (Os::Linux, Arch::Aarch64) => &["sbsa-linux", "aarch64-linux"],
            (Os::Windows, Arch::X86_64) => &["x64"],
            (Os::Windows, Arch::Aarch64) => &["arm64"],
        }
    }

    /// Selects the list of this operating system, without folders named after another architecture.
    pub(crate) fn choose(
        self,
        linux: &'static [&'static str],
        windows: &'static [&'static str],
    ) -> Vec<&'static str> {
        let dirs = match self.os {
            Os::Linux => linux,
            Os::Windows => windows,
        };
        let fits = |dir: &&&str| !dir.split('/').any(|part| self.is_foreign(part));
        dirs.iter().filter(fits).copied().collect()
    }

    /// Whether a folder is named after another architecture.
    fn is_foreign(self, folder: &str) -> bool {
        match self.arch {
            Arch::X86_64 => folder == "arm64",
            Arch::Aarch64 => matches!(folder, "x64" | "x86_64"),
        }
    }

    /// Debian's multiarch folder below `/usr/lib` and `/usr/include`.
    pub const fn multiarch(self) -> &'static str {
        match self.arch {
            Arch::X86_64 => "x86_64-linux-gnu",
            Arch::Aarch64 => "aarch64-linux-gnu",
        }
    }
}

impl fmt::Display for Arch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Arch::X86_64 => "x86-64",
            Arch::Aarch64 => "AArch64",
        })
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let os = match self.os {
            Os::Linux => "Linux",
            Os::Windows => "Windows",
        };
        write!(f, "{os} on {}", self.arch)
    }
}
