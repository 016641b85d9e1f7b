//! Lanes of a warp and masks of them.

/// The warp size.
pub const LANES: usize = 32;
/// The mask of all lanes.
pub const ALL: u32 = u32::MAX;

/// The lanes of a mask, lowest first.
#[derive(Clone, Copy)]
pub struct LanesOf(u32);

/// The lanes of `mask`, lowest first.
#[inline(always)]
pub fn lanes(mask: u32) -> LanesOf {
    LanesOf(mask)
}

impl Iterator for LanesOf {
    type Item = usize;

    #[inline(always)]
    fn next(&mut self) -> Option<usize> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros() as usize;
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// The lowest lane of a mask that is not empty.
#[inline(always)]
pub fn first_lane(mask: u32) -> usize {
    // The mask keeps array accesses in bounds without a check.
    mask.trailing_zeros() as usize & 31
}
