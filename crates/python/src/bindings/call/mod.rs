//! The routes of a call from Python to C: [`specialized`] and [`fast`] for exact ints, handles and enum members,
//! [`general`] for everything else. [`convert`] turns arguments into words.

pub mod convert;
pub mod fast;
pub mod general;
pub mod specialized;
