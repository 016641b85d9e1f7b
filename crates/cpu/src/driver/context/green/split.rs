//! Sets of multiprocessors and how they are split.
//!
//! The rules are those of the CUDA manual, section "Green Contexts". Where the manual is silent, [`by_count`] follows an H200
//! with 132 multiprocessors (driver 580), and sets are taken in ascending order.

use crate::driver::entry::Res;
use crate::driver::entry::errors::Code;
use crate::driver::entry::logs::refuse;

/// Words of a set.
const WORDS: usize = 9;
/// Maximum number of multiprocessors of a set. Green contexts use the first ones of a larger device.
pub(super) const MAX_SMS: u32 = 64 * WORDS as u32;

/// A set of multiprocessors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct SmSet(pub(super) [u64; WORDS]);

impl SmSet {
    /// The first `count` multiprocessors.
    pub(super) fn first(count: u32) -> SmSet {
        let mut set = SmSet::default();
        (0..count.min(MAX_SMS)).for_each(|n| set.insert(n));
        set
    }

    fn insert(&mut self, sm: u32) {
        self.0[sm as usize / 64] |= 1 << (sm % 64);
    }

    pub(super) fn len(&self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }

    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> + '_ {
        (0..MAX_SMS).filter(|&n| self.0[n as usize / 64] >> (n % 64) & 1 != 0)
    }

    pub(super) fn intersects(&self, other: &SmSet) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }

    /// Whether all multiprocessors of this set are in `other`.
    pub(super) fn is_subset(&self, other: &SmSet) -> bool {
        self.0.iter().zip(other.0).all(|(a, b)| a & !b == 0)
    }

    pub(super) fn union(&self, other: &SmSet) -> SmSet {
        SmSet(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }

    /// Removes the first `count` multiprocessors and returns them.
    fn take(&mut self, count: u32) -> SmSet {
        let mut taken = SmSet::default();
        self.numbers()
            .take(count as usize)
            .for_each(|n| taken.insert(n));
        *self = SmSet(std::array::from_fn(|i| self.0[i] & !taken.0[i]));
        taken
    }
}

/// Granularity of the partitions of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Granularity {
    /// `minSmPartitionSize`.
    pub(super) minimum: u32,
    /// `smCoscheduledAlignment`.
    pub(super) alignment: u32,
    /// Largest number of co-scheduled multiprocessors that can be requested.
    largest: u32,
}

impl Granularity {
    /// Of a set with another alignment, at most that of the device.
    pub(super) fn with_alignment(self, alignment: u32) -> Granularity {
        Granularity {
            alignment: alignment.clamp(1, self.alignment),
            ..self
        }
    }

    /// Of a device with that compute capability and number of multiprocessors: 8 from compute capability 9.0, 2 below it,
    /// less on a smaller device.
    pub(super) fn of(capability: (i32, i32), sms: u32) -> Granularity {
        let (unit, largest) = if capability.0 >= 9 { (8, 32) } else { (2, 2) };
        let fits = 1 << sms.max(1).ilog2();
        Granularity {
            minimum: unit.min(fits),
            alignment: unit.min(fits),
            largest: largest.min(fits),
        }
    }
}

/// Flags of `cuDevSmResourceSplitByCount`.
pub(super) const IGNORE_COSCHEDULING: u32 = 1;
pub(super) const MAX_CLUSTER_SIZE: u32 = 2;

/// Splits `input` into at most `wanted` groups of equal size, at least `count` multiprocessors each. Returns the groups
/// and the rest.
///
/// As on an H200, [`MAX_CLUSTER_SIZE`] changes nothing, unknown flags are ignored, and a group whose rounded size is larger
/// than the input is the whole input.
///
/// # Errors
/// `INVALID_VALUE` for both flags together, `INVALID_RESOURCE_CONFIGURATION` if `input` has fewer than `count`
/// multiprocessors.
pub(super) fn by_count(
    input: SmSet,
    granularity: Granularity,
    flags: u32,
    count: u32,
    wanted: u32,
) -> Res<(Vec<SmSet>, SmSet)> {
    const BOTH: u32 = IGNORE_COSCHEDULING | MAX_CLUSTER_SIZE;
    if flags & BOTH == BOTH {
        return refuse(Code::INVALID_VALUE, || {
            "flags has both CU_DEV_SM_RESOURCE_SPLIT_IGNORE_SM_COSCHEDULING and \
             CU_DEV_SM_RESOURCE_SPLIT_MAX_POTENTIAL_CLUSTER_SIZE"
                .into()
        });
    }
    let aligned = flags & IGNORE_COSCHEDULING == 0;
    let unit = if aligned {
        granularity.alignment
    } else {
        granularity.alignment.min(2)
    };
    let total = input.len();
    if count > total || total == 0 {
        return refuse(Code::INVALID_RESOURCE_CONFIGURATION, || {
            format!("minCount is {count}, and the input has {total} multiprocessors")
        });
    }
    let size = count.max(1).next_multiple_of(unit).min(total);
    let mut groups = total / size;
    // The multiprocessors that fill no group come from different clusters of an H200, and break one more group up. Larger
    // groups consist of several clusters. The number of 8-SM groups is 15 of 132 there.
    if aligned && size == unit && unit > 2 && !total.is_multiple_of(unit) && groups > 1 {
        groups -= 1;
    }
    let mut rest = input;
    let groups = groups.min(wanted);
    let groups = (0..groups).map(|_| rest.take(size)).collect();
    Ok((groups, rest))
}

/// A group of `cuDevSmResourceSplit`: `CU_DEV_SM_RESOURCE_GROUP_PARAMS`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Group {
    /// Zero to discover the number.
    pub(super) count: u32,
    pub(super) coscheduled: u32,
    pub(super) preferred: u32,
    pub(super) flags: u32,
    pub(super) domain: u32,
}

/// Flags of [`Group`].
const BACKFILL: u32 = 1;
const LOCALITY_DOMAIN: u32 = 2;
const SUPPLEMENTAL: u32 = 4;

impl Group {
    /// The number of co-scheduled multiprocessors.
    pub(super) fn unit(&self, granularity: Granularity) -> u32 {
        match self.coscheduled {
            0 => granularity.alignment,
            n => n,
        }
    }

    fn check(&self, granularity: Granularity, total: u32) -> Res {
        let step = granularity.alignment.min(2);
        let valid = |n: u32| n.is_multiple_of(step) && n <= granularity.largest;
        let unit = self.unit(granularity);
        let largest = granularity.largest;
        let invalid = |what: &str, value: u32, allowed: &str| {
            refuse(Code::INVALID_VALUE, || {
                format!("{what} of a group is {value}; expected {allowed}")
            })
        };
        if self.flags & !(BACKFILL | LOCALITY_DOMAIN | SUPPLEMENTAL) != 0
            || self.flags & (LOCALITY_DOMAIN | SUPPLEMENTAL) == SUPPLEMENTAL
        {
            return invalid("flags", self.flags, "flags of CUdevSmResourceGroup_flags");
        }
        // The device is one locality domain.
        if self.flags & LOCALITY_DOMAIN != 0 && !matches!(self.domain, 0 | u32::MAX) {
            return invalid("localityDomainId", self.domain, "0 or UINT_MAX");
        }
        if !valid(unit) {
            let allowed = format!("a multiple of {step} up to {largest}");
            return invalid("coscheduledSmCount", self.coscheduled, &allowed);
        }
        if self.preferred != 0 && !(valid(self.preferred) && self.preferred.is_multiple_of(unit)) {
            let allowed = format!("a multiple of {unit} up to {largest}");
            return invalid("preferredCoscheduledSmCount", self.preferred, &allowed);
        }
        let multiple = if self.flags & BACKFILL == 0 { unit } else { 1 };
        if self.count > total
            || !self.count.is_multiple_of(step)
            || !self.count.is_multiple_of(multiple)
        {
            let allowed = format!("a multiple of {} up to {total}", step.max(multiple));
            return invalid("smCount", self.count, &allowed);
        }
        Ok(())
    }
}

/// Splits `input` into the groups, in order, and fills in the numbers that are to be discovered. With `creates`, every
/// group must have multiprocessors. Returns the groups and the rest.
///
/// # Errors
/// `INVALID_VALUE` for invalid groups, `INVALID_RESOURCE_CONFIGURATION` if there are too few multiprocessors.
pub(super) fn by_groups(
    input: SmSet,
    granularity: Granularity,
    groups: &mut [Group],
    creates: bool,
) -> Res<(Vec<SmSet>, SmSet)> {
    let total = input.len();
    groups
        .iter()
        .try_for_each(|g| g.check(granularity, total))?;
    let mut rest = input;
    let mut sets = Vec::with_capacity(groups.len());
    for group in groups {
        let unit = group.unit(granularity);
        let step = granularity.alignment.min(2);
        let left = rest.len();
        let step = if group.flags & BACKFILL != 0 {
            step
        } else {
            unit
        };
        let available = left / step * step;
        if group.count == 0 {
            group.count = available;
        }
        // Even with backfill, a group has one co-scheduled set.
        let too_few = group.count > available || creates && group.count < unit.min(total);
        if too_few || creates && group.count == 0 {
            let wanted = group.count;
            return refuse(Code::INVALID_RESOURCE_CONFIGURATION, || {
                format!(
                    "a group of {wanted} multiprocessors, {unit} of them co-scheduled, with {left} left"
                )
            });
        }
        sets.push(rest.take(group.count));
    }
    Ok((sets, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOPPER: (i32, i32) = (9, 0);

    fn counts(split: &(Vec<SmSet>, SmSet)) -> (Vec<u32>, u32) {
        (split.0.iter().map(SmSet::len).collect(), split.1.len())
    }

    fn split(sms: u32, flags: u32, count: u32, wanted: u32) -> Res<(Vec<u32>, u32)> {
        let granularity = Granularity::of(HOPPER, sms);
        by_count(SmSet::first(sms), granularity, flags, count, wanted).map(|s| counts(&s))
    }

    #[test]
    fn counts_are_rounded_up_to_the_alignment() {
        assert_eq!(split(132, 0, 0, 3), Ok((vec![8; 3], 108)));
        assert_eq!(split(132, 0, 8, 2), Ok((vec![8; 2], 116)));
        assert_eq!(split(132, 0, 9, 100), Ok((vec![16; 8], 4)));
        assert_eq!(split(132, 0, 60, 100), Ok((vec![64; 2], 4)));
        assert_eq!(split(132, 0, 128, 1), Ok((vec![128], 4)));
        assert_eq!(split(132, IGNORE_COSCHEDULING, 3, 3), Ok((vec![4; 3], 120)));
        assert_eq!(split(132, IGNORE_COSCHEDULING, 0, 99), Ok((vec![2; 66], 0)));
    }

    /// The number of groups, their size and the rest, as observed on an H200 with 132 multiprocessors (driver 580).
    #[test]
    fn an_h200_is_split_as_observed() {
        let observed = [
            (1, 15, 8, 12),
            (8, 15, 8, 12),
            (9, 8, 16, 4),
            (17, 5, 24, 12),
            (32, 4, 32, 4),
            (40, 3, 40, 12),
            (48, 2, 48, 36),
            (64, 2, 64, 4),
            (65, 1, 72, 60),
            (121, 1, 128, 4),
            (129, 1, 132, 0),
            (132, 1, 132, 0),
        ];
        for flags in [0, MAX_CLUSTER_SIZE, 4] {
            for (count, groups, size, rest) in observed {
                let expected = Ok((vec![size; groups], rest));
                assert_eq!(
                    split(132, flags, count, u32::MAX),
                    expected,
                    "{flags} {count}"
                );
            }
        }
        // Contexts of groups that ignore co-scheduling, which have an alignment of 2.
        for (sms, groups) in [(16, 2), (24, 3), (64, 8), (100, 12), (124, 15), (128, 16)] {
            let granularity = Granularity::of(HOPPER, 132).with_alignment(2);
            let (made, rest) = by_count(SmSet::first(sms), granularity, 0, 8, u32::MAX).unwrap();
            assert_eq!((made.len(), rest.len()), (groups, sms % 8), "{sms}");
        }
        let ignoring = |count| split(132, IGNORE_COSCHEDULING, count, u32::MAX);
        assert_eq!(ignoring(8), Ok((vec![8; 16], 4)));
        assert_eq!(ignoring(27), Ok((vec![28; 4], 20)));
        assert_eq!(ignoring(131), Ok((vec![132], 0)));
    }

    #[test]
    fn impossible_counts_are_refused() {
        let refused = Err(Code::INVALID_RESOURCE_CONFIGURATION);
        assert_eq!(split(132, 0, 133, 1), refused);
        assert_eq!(split(132, IGNORE_COSCHEDULING, 133, 1), refused);
        assert_eq!(split(132, 0, u32::MAX, 1), refused);
        assert_eq!(split(132, 3, 8, 1), Err(Code::INVALID_VALUE));
    }

    #[test]
    fn groups_are_disjoint_and_complete() {
        let granularity = Granularity::of(HOPPER, 132);
        let all = SmSet::first(132);
        let (groups, rest) = by_count(all, granularity, 0, 24, 5).unwrap();
        let mut union = rest;
        for group in &groups {
            assert!(!group.intersects(&union));
            union = union.union(group);
        }
        assert_eq!(union, all);
    }

    #[test]
    fn small_devices_have_smaller_units() {
        assert_eq!(Granularity::of(HOPPER, 4).alignment, 4);
        assert_eq!(Granularity::of((8, 9), 64).alignment, 2);
        assert_eq!(Granularity::of((8, 9), 1).minimum, 1);
        assert_eq!(split(1, 0, 0, 9), Ok((vec![1], 0)));
        assert_eq!(split(0, 0, 0, 9), Err(Code::INVALID_RESOURCE_CONFIGURATION));
    }

    fn structured(groups: &mut [Group], creates: bool) -> Res<(Vec<u32>, u32)> {
        let granularity = Granularity::of(HOPPER, 132);
        by_groups(SmSet::first(132), granularity, groups, creates).map(|s| counts(&s))
    }

    #[test]
    fn groups_of_different_sizes() {
        let group = |count, coscheduled, flags| Group {
            count,
            coscheduled,
            flags,
            ..Group::default()
        };
        assert_eq!(
            structured(&mut [group(10, 2, 0)], true),
            Ok((vec![10], 122))
        );
        assert_eq!(
            structured(&mut [group(8, 4, 0), group(0, 2, BACKFILL)], true),
            Ok((vec![8, 124], 0))
        );
        let mut discovered = [group(0, 0, 0)];
        assert_eq!(structured(&mut discovered, false), Ok((vec![128], 4)));
        assert_eq!(discovered[0].count, 128);
        assert_eq!(
            structured(&mut [group(10, 0, BACKFILL)], true),
            Ok((vec![10], 122))
        );
    }

    #[test]
    fn invalid_groups_are_refused() {
        let group = |count, coscheduled, preferred, flags| Group {
            count,
            coscheduled,
            preferred,
            flags,
            domain: 0,
        };
        for invalid in [
            group(3, 2, 0, 0),
            group(10, 0, 0, 0),
            group(134, 2, 0, 0),
            group(8, 64, 0, 0),
            group(8, 3, 0, 0),
            group(8, 8, 12, 0),
            group(8, 8, 0, 8),
            group(8, 8, 0, SUPPLEMENTAL),
            group(u32::MAX, 1, 0, BACKFILL),
        ] {
            assert_eq!(
                structured(&mut [invalid], true),
                Err(Code::INVALID_VALUE),
                "{invalid:?}"
            );
        }
        let refused = Err(Code::INVALID_RESOURCE_CONFIGURATION);
        let all = group(128, 0, 0, 0);
        assert_eq!(structured(&mut [all, group(8, 0, 0, 0)], true), refused);
        assert_eq!(structured(&mut [all, group(0, 0, 0, 0)], true), refused);
        // Without a result array, an empty remainder is not an error.
        assert_eq!(
            structured(&mut [all, group(0, 0, 0, 0)], false),
            Ok((vec![128, 0], 4))
        );
    }
}
