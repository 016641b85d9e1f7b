//! Enumerations. A number that this crate does not know is `None` in results.

use std::ffi::c_uint;

use cupyrite_sys::nvml::{
    self, nvmlBrandType_t as Brands, nvmlClockId_t as ClockIds, nvmlClockType_t as ClockTypes,
    nvmlCoolerControl_t as CoolerControls, nvmlCoolerTarget_t as CoolerTargets,
    nvmlGpuP2PCapsIndex_t as Capabilities, nvmlGpuP2PStatus_t as Statuses,
    nvmlGpuTopologyLevel_t as Levels, nvmlInforomObject_t as Objects,
    nvmlTemperatureThresholds_t as Thresholds, nvmlThermalController_t as Controllers,
    nvmlThermalTarget_t as ThermalTargets,
};

/// A Rust enum with the numbers of NVML.
macro_rules! enums {
    ($($(#[$doc:meta])* $name:ident: $c:ty { $($(#[$member:meta])* $variant:ident = $value:expr,)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum $name { $($(#[$member])* $variant,)* }

        impl $name {
            const MEMBERS: &[($name, $c)] = &[$(($name::$variant, $value)),*];

            /// NVML's number.
            #[allow(dead_code)] // some enumerations are results only
            pub(super) fn number(self) -> $c {
                match self { $($name::$variant => $value,)* }
            }

            /// The member of a number.
            #[allow(dead_code)] // some enumerations are arguments only
            pub(super) fn of(number: $c) -> Option<$name> {
                $name::MEMBERS.iter().find(|(_, known)| *known == number).map(|(member, _)| *member)
            }
        }
    )*};
}

enums! {
    /// Brands of GPUs.
    Brand: Brands {
        /// Quadro.
        Quadro = Brands::NVML_BRAND_QUADRO,
        /// Tesla.
        Tesla = Brands::NVML_BRAND_TESLA,
        /// NVS.
        Nvs = Brands::NVML_BRAND_NVS,
        /// GRID.
        Grid = Brands::NVML_BRAND_GRID,
        /// GeForce.
        GeForce = Brands::NVML_BRAND_GEFORCE,
        /// Titan.
        Titan = Brands::NVML_BRAND_TITAN,
        /// NVIDIA vApps.
        VApps = Brands::NVML_BRAND_NVIDIA_VAPPS,
        /// NVIDIA VPC.
        Vpc = Brands::NVML_BRAND_NVIDIA_VPC,
        /// NVIDIA VCS.
        Vcs = Brands::NVML_BRAND_NVIDIA_VCS,
        /// NVIDIA VWS.
        Vws = Brands::NVML_BRAND_NVIDIA_VWS,
        /// NVIDIA vGaming.
        VGaming = Brands::NVML_BRAND_NVIDIA_VGAMING,
        /// Quadro RTX.
        QuadroRtx = Brands::NVML_BRAND_QUADRO_RTX,
        /// NVIDIA RTX.
        NvidiaRtx = Brands::NVML_BRAND_NVIDIA_RTX,
        /// NVIDIA.
        Nvidia = Brands::NVML_BRAND_NVIDIA,
        /// GeForce RTX.
        GeForceRtx = Brands::NVML_BRAND_GEFORCE_RTX,
        /// Titan RTX.
        TitanRtx = Brands::NVML_BRAND_TITAN_RTX,
        /// NVIDIA DLA.
        Dla = Brands::NVML_BRAND_NVIDIA_DLA,
        /// NVIDIA vGameDev.
        VGameDev = Brands::NVML_BRAND_NVIDIA_VGAMEDEV,
        /// NVIDIA NPU.
        Npu = Brands::NVML_BRAND_NVIDIA_NPU,
    }

    /// Architectures of GPUs.
    Architecture: c_uint {
        /// Kepler.
        Kepler = nvml::NVML_DEVICE_ARCH_KEPLER,
        /// Maxwell.
        Maxwell = nvml::NVML_DEVICE_ARCH_MAXWELL,
        /// Pascal.
        Pascal = nvml::NVML_DEVICE_ARCH_PASCAL,
        /// Volta.
        Volta = nvml::NVML_DEVICE_ARCH_VOLTA,
        /// Turing.
        Turing = nvml::NVML_DEVICE_ARCH_TURING,
        /// Ampere.
        Ampere = nvml::NVML_DEVICE_ARCH_AMPERE,
        /// Ada.
        Ada = nvml::NVML_DEVICE_ARCH_ADA,
        /// Hopper.
        Hopper = nvml::NVML_DEVICE_ARCH_HOPPER,
        /// Blackwell.
        Blackwell = nvml::NVML_DEVICE_ARCH_BLACKWELL,
        /// Rubin.
        Rubin = nvml::NVML_DEVICE_ARCH_RUBIN,
    }

    /// How a GPU addresses pageable memory of the host.
    AddressingMode: c_uint {
        /// By software: heterogeneous memory management of the kernel.
        Hmm = 1,
        /// By hardware: address translation services.
        Ats = 2,
    }

    /// Part of a machine that an affinity refers to.
    AffinityScope: c_uint {
        /// A NUMA node.
        Node = nvml::NVML_AFFINITY_SCOPE_NODE,
        /// A CPU socket.
        Socket = nvml::NVML_AFFINITY_SCOPE_SOCKET,
    }

    /// Clock domains.
    ClockType: ClockTypes {
        /// Graphics.
        Graphics = ClockTypes::NVML_CLOCK_GRAPHICS,
        /// Streaming multiprocessors.
        Sm = ClockTypes::NVML_CLOCK_SM,
        /// Memory.
        Memory = ClockTypes::NVML_CLOCK_MEM,
        /// Video engines.
        Video = ClockTypes::NVML_CLOCK_VIDEO,
    }

    /// Which value of a clock is queried.
    ClockId: ClockIds {
        /// The current frequency.
        Current = ClockIds::NVML_CLOCK_ID_CURRENT,
        /// The highest boost frequency that the manufacturer defined.
        CustomerBoostMax = ClockIds::NVML_CLOCK_ID_CUSTOMER_BOOST_MAX,
    }

    /// Reasons why clocks are lower than the maximum.
    ClockEventReason: u64 {
        /// Nothing runs on the GPU.
        GpuIdle = nvml::nvmlClocksEventReasonGpuIdle as u64,
        /// The setting of application clocks.
        ApplicationClocksSetting = nvml::nvmlClocksEventReasonApplicationsClocksSetting as u64,
        /// The power limit, enforced by software.
        SwPowerCap = nvml::nvmlClocksEventReasonSwPowerCap as u64,
        /// Hardware reduces the clocks: temperature, power brake or power draw.
        HwSlowdown = nvml::nvmlClocksThrottleReasonHwSlowdown as u64,
        /// Another GPU of its sync boost group.
        SyncBoost = nvml::nvmlClocksEventReasonSyncBoost as u64,
        /// Temperature, by software.
        SwThermalSlowdown = nvml::nvmlClocksEventReasonSwThermalSlowdown as u64,
        /// Temperature, by hardware.
        HwThermalSlowdown = nvml::nvmlClocksThrottleReasonHwThermalSlowdown as u64,
        /// An external power brake.
        HwPowerBrakeSlowdown = nvml::nvmlClocksThrottleReasonHwPowerBrakeSlowdown as u64,
        /// The setting of display clocks.
        DisplayClockSetting = nvml::nvmlClocksEventReasonDisplayClockSetting as u64,
        /// A limit of the board.
        BoardLimit = nvml::nvmlClocksEventReasonBoardLimit as u64,
        /// Reliability.
        Reliability = nvml::nvmlClocksEventReasonReliability as u64,
    }

    /// How a cooler is controlled.
    CoolerControl: CoolerControls {
        /// On or off only.
        Toggle = CoolerControls::NVML_THERMAL_COOLER_SIGNAL_TOGGLE,
        /// At variable speed.
        Variable = CoolerControls::NVML_THERMAL_COOLER_SIGNAL_VARIABLE,
    }

    /// What a cooler cools.
    CoolerTarget: CoolerTargets {
        /// Nothing.
        None = CoolerTargets::NVML_THERMAL_COOLER_TARGET_NONE,
        /// The GPU.
        Gpu = CoolerTargets::NVML_THERMAL_COOLER_TARGET_GPU,
        /// The memory.
        Memory = CoolerTargets::NVML_THERMAL_COOLER_TARGET_MEMORY,
        /// The power supply.
        PowerSupply = CoolerTargets::NVML_THERMAL_COOLER_TARGET_POWER_SUPPLY,
    }

    /// What controls a fan's speed.
    FanControlPolicy: c_uint {
        /// The temperature.
        TemperatureControlled = nvml::NVML_FAN_POLICY_TEMPERATURE_CONTINOUS_SW,
        /// The user.
        Manual = nvml::NVML_FAN_POLICY_MANUAL,
    }

    /// Temperature thresholds.
    TemperatureThreshold: Thresholds {
        /// The GPU shuts down.
        Shutdown = Thresholds::NVML_TEMPERATURE_THRESHOLD_SHUTDOWN,
        /// The GPU slows down.
        Slowdown = Thresholds::NVML_TEMPERATURE_THRESHOLD_SLOWDOWN,
        /// The memory slows down.
        MemoryMax = Thresholds::NVML_TEMPERATURE_THRESHOLD_MEM_MAX,
        /// The GPU's maximum in operation.
        GpuMax = Thresholds::NVML_TEMPERATURE_THRESHOLD_GPU_MAX,
        /// The lowest setting of the acoustic threshold.
        AcousticMin = Thresholds::NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MIN,
        /// The current acoustic threshold.
        AcousticCurrent = Thresholds::NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_CURR,
        /// The highest setting of the acoustic threshold.
        AcousticMax = Thresholds::NVML_TEMPERATURE_THRESHOLD_ACOUSTIC_MAX,
        /// The current GPS threshold.
        GpsCurrent = Thresholds::NVML_TEMPERATURE_THRESHOLD_GPS_CURR,
    }

    /// What a thermal sensor measures.
    ThermalTarget: ThermalTargets {
        /// Nothing.
        None = ThermalTargets::NVML_THERMAL_TARGET_NONE,
        /// The GPU.
        Gpu = ThermalTargets::NVML_THERMAL_TARGET_GPU,
        /// The memory.
        Memory = ThermalTargets::NVML_THERMAL_TARGET_MEMORY,
        /// The power supply.
        PowerSupply = ThermalTargets::NVML_THERMAL_TARGET_POWER_SUPPLY,
        /// The board.
        Board = ThermalTargets::NVML_THERMAL_TARGET_BOARD,
        /// The board of a visual computing device.
        VcdBoard = ThermalTargets::NVML_THERMAL_TARGET_VCD_BOARD,
        /// The inlet of a visual computing device.
        VcdInlet = ThermalTargets::NVML_THERMAL_TARGET_VCD_INLET,
        /// The outlet of a visual computing device.
        VcdOutlet = ThermalTargets::NVML_THERMAL_TARGET_VCD_OUTLET,
        /// All of them.
        All = ThermalTargets::NVML_THERMAL_TARGET_ALL,
    }

    /// Controllers of thermal sensors.
    ThermalController: Controllers {
        /// None.
        None = Controllers::NVML_THERMAL_CONTROLLER_NONE,
        /// Within the GPU.
        GpuInternal = Controllers::NVML_THERMAL_CONTROLLER_GPU_INTERNAL,
        /// ADM1032.
        Adm1032 = Controllers::NVML_THERMAL_CONTROLLER_ADM1032,
        /// ADT7461.
        Adt7461 = Controllers::NVML_THERMAL_CONTROLLER_ADT7461,
        /// MAX6649.
        Max6649 = Controllers::NVML_THERMAL_CONTROLLER_MAX6649,
        /// MAX1617.
        Max1617 = Controllers::NVML_THERMAL_CONTROLLER_MAX1617,
        /// LM99.
        Lm99 = Controllers::NVML_THERMAL_CONTROLLER_LM99,
        /// LM89.
        Lm89 = Controllers::NVML_THERMAL_CONTROLLER_LM89,
        /// LM64.
        Lm64 = Controllers::NVML_THERMAL_CONTROLLER_LM64,
        /// G781.
        G781 = Controllers::NVML_THERMAL_CONTROLLER_G781,
        /// ADT7473.
        Adt7473 = Controllers::NVML_THERMAL_CONTROLLER_ADT7473,
        /// SBMAX6649.
        SbMax6649 = Controllers::NVML_THERMAL_CONTROLLER_SBMAX6649,
        /// VBIOSEVT.
        VbiosEvt = Controllers::NVML_THERMAL_CONTROLLER_VBIOSEVT,
        /// The operating system.
        Os = Controllers::NVML_THERMAL_CONTROLLER_OS,
        /// NVSYSCON, Canoas.
        NvSysConCanoas = Controllers::NVML_THERMAL_CONTROLLER_NVSYSCON_CANOAS,
        /// NVSYSCON, E551.
        NvSysConE551 = Controllers::NVML_THERMAL_CONTROLLER_NVSYSCON_E551,
        /// MAX6649R.
        Max6649R = Controllers::NVML_THERMAL_CONTROLLER_MAX6649R,
        /// ADT7473S.
        Adt7473S = Controllers::NVML_THERMAL_CONTROLLER_ADT7473S,
    }

    /// Objects of the InfoROM.
    InforomObject: Objects {
        /// The manufacturer's.
        Oem = Objects::NVML_INFOROM_OEM,
        /// Error correction.
        Ecc = Objects::NVML_INFOROM_ECC,
        /// Power management.
        Power = Objects::NVML_INFOROM_POWER,
        /// Dynamic encryption.
        Den = Objects::NVML_INFOROM_DEN,
    }

    /// The closest common ancestor of two devices.
    TopologyLevel: Levels {
        /// On the same board.
        Internal = Levels::NVML_TOPOLOGY_INTERNAL,
        /// Below one PCIe switch.
        Single = Levels::NVML_TOPOLOGY_SINGLE,
        /// Below several PCIe switches.
        Multiple = Levels::NVML_TOPOLOGY_MULTIPLE,
        /// Below one host bridge.
        HostBridge = Levels::NVML_TOPOLOGY_HOSTBRIDGE,
        /// On one NUMA node.
        Node = Levels::NVML_TOPOLOGY_NODE,
        /// Across NUMA nodes.
        System = Levels::NVML_TOPOLOGY_SYSTEM,
    }

    /// Capabilities between two devices.
    PeerCapability: Capabilities {
        /// Reading.
        Read = Capabilities::NVML_P2P_CAPS_INDEX_READ,
        /// Writing.
        Write = Capabilities::NVML_P2P_CAPS_INDEX_WRITE,
        /// NVLink.
        NvLink = Capabilities::NVML_P2P_CAPS_INDEX_NVLINK,
        /// Atomic operations.
        Atomics = Capabilities::NVML_P2P_CAPS_INDEX_ATOMICS,
        /// Access over PCIe.
        Pci = Capabilities::NVML_P2P_CAPS_INDEX_PCI,
    }

    /// Whether two devices have a capability, or why they do not.
    PeerStatus: Statuses {
        /// They have it.
        Ok = Statuses::NVML_P2P_STATUS_OK,
        /// The chipset does not support it.
        ChipsetNotSupported = Statuses::NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED,
        /// A GPU does not support it.
        GpuNotSupported = Statuses::NVML_P2P_STATUS_GPU_NOT_SUPPORTED,
        /// The topology of the input/output hub does not support it.
        TopologyNotSupported = Statuses::NVML_P2P_STATUS_IOH_TOPOLOGY_NOT_SUPPORTED,
        /// A setting of the driver disables it.
        Disabled = Statuses::NVML_P2P_STATUS_DISABLED_BY_REGKEY,
        /// It is not supported.
        NotSupported = Statuses::NVML_P2P_STATUS_NOT_SUPPORTED,
    }

    /// Events of a device.
    EventType: u64 {
        /// An error of one bit that was corrected.
        SingleBitEccError = nvml::nvmlEventTypeSingleBitEccError as u64,
        /// An error of two bits.
        DoubleBitEccError = nvml::nvmlEventTypeDoubleBitEccError as u64,
        /// Another performance state.
        PerformanceState = nvml::nvmlEventTypePState as u64,
        /// A critical error (Xid).
        XidCriticalError = nvml::nvmlEventTypeXidCriticalError as u64,
        /// Another clock frequency.
        Clock = nvml::nvmlEventTypeClock as u64,
        /// Another source of power.
        PowerSourceChange = nvml::nvmlEventTypePowerSourceChange as u64,
        /// Another partitioning (MIG).
        MigConfigChange = nvml::nvmlEventMigConfigChange as u64,
        /// Many errors of one bit.
        SingleBitEccErrorStorm = nvml::nvmlEventTypeSingleBitEccErrorStorm as u64,
        /// Memory was retired.
        DramRetirement = nvml::nvmlEventTypeDramRetirementEvent as u64,
        /// Memory could not be retired.
        DramRetirementFailure = nvml::nvmlEventTypeDramRetirementFailure as u64,
        /// Corrupted data that was contained.
        NonFatalPoisonError = nvml::nvmlEventTypeNonFatalPoisonError as u64,
        /// Corrupted data that was not contained.
        FatalPoisonError = nvml::nvmlEventTypeFatalPoisonError as u64,
        /// The GPU is unavailable.
        GpuUnavailableError = nvml::nvmlEventTypeGpuUnavailableError as u64,
        /// The GPU needs an action to recover.
        GpuRecoveryAction = nvml::nvmlEventTypeGpuRecoveryAction as u64,
    }

    /// Events of the system.
    SystemEventType: u64 {
        /// A device was unbound from the driver.
        Unbind = nvml::nvmlSystemEventTypeGpuDriverUnbind as u64,
        /// A device was bound to the driver.
        Bind = nvml::nvmlSystemEventTypeGpuDriverBind as u64,
    }
}

/// Members that are bits of a mask.
macro_rules! masks {
    ($($name:ident)*) => {$(
        impl $name {
            /// The members of a mask.
            #[allow(dead_code)] // some are arguments only
            pub(super) fn in_mask(mask: u64) -> Vec<$name> {
                let members = $name::MEMBERS.iter().filter(|(_, bit)| mask & bit != 0);
                members.map(|(member, _)| *member).collect()
            }

            /// The mask of some members.
            #[allow(dead_code)] // some are results only
            pub(super) fn mask(members: &[$name]) -> u64 {
                members.iter().fold(0, |mask, member| mask | member.number())
            }
        }
    )*};
}
masks! { ClockEventReason EventType SystemEventType }

impl CoolerTarget {
    /// The members of a mask.
    pub(super) fn in_mask(mask: CoolerTargets) -> Vec<CoolerTarget> {
        let members = CoolerTarget::MEMBERS.iter();
        let members = members.filter(|(_, bit)| mask.0 & bit.0 != 0);
        members.map(|(member, _)| *member).collect()
    }
}
