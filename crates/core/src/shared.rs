//! Shared ownership that is free for values that live until the process ends.

use std::ops::Deref;
use std::sync::Arc;

/// A reference to a value: static, or counted. A clone of a static one is a plain copy.
#[derive(Debug)]
pub(crate) enum Shared<T: 'static> {
    Static(&'static T),
    Counted(Arc<T>),
}

impl<T> Shared<T> {
    /// A value that is never dropped.
    pub(crate) fn leak(value: T) -> Shared<T> {
        Shared::Static(Box::leak(Box::new(value)))
    }
}

impl<T> Clone for Shared<T> {
    #[inline]
    fn clone(&self) -> Self {
        match self {
            Shared::Static(value) => Shared::Static(value),
            Shared::Counted(value) => Shared::Counted(value.clone()),
        }
    }
}

impl<T> Deref for Shared<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        match self {
            Shared::Static(value) => value,
            Shared::Counted(value) => value,
        }
    }
}
