//! Edge Side Includes: from the bytes of a page to a program of literals and includes.
//!
//! Owns the reading of ESI as LSCache's applications and Varnish's users write it, the addresses of
//! fragments, and the arithmetic that puts a compressed page together from compressed parts.
//! Fetches nothing and knows no cache: what an include means is its caller's business.

mod builder;
mod cutter;
pub mod fuzz;
pub mod markup;
mod prepared;
pub mod program;
mod scan;
pub mod source;
pub mod splice;

pub use cutter::Cutter;
pub use prepared::Prepared;
pub use program::{Combine, EsiInclude, EsiLimits, EsiNode, Inline, Problem, ProblemKind, Program};
pub use program::{EsiParser, OnError};
