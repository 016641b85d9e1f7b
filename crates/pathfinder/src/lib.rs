//! Finding and loading NVIDIA's libraries.
//!
//! Belongs here: where libraries lie (wheels, conda, toolkits, system), opening them, and errors that say
//! what was looked for and where. Does not belong here: any C signature, any Python.
