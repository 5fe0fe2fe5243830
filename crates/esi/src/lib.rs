//! Edge Side Includes: from the bytes of a page to a program of literals and includes.
//!
//! Owns the parsing of ESI as LSCache applications and Varnish users write it, the URLs of
//! fragments, and the joining of compressed parts into one compressed page. Fetches nothing and
//! knows no cache: the caller resolves an include.

mod builder;
mod cutter;
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
