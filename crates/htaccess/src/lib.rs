//! Apache's `.htaccess` files: parses them, merges those that apply to a request, and evaluates the
//! result.
//!
//! No I/O: the caller reads the files, lends the request ([`Surroundings`]) and carries out the
//! result. A file with one unsupported line is refused as a whole: the request fails.

#[cfg(test)]
extern crate self as bolide_htaccess;

mod access;
mod applied;
mod cache;
mod effort;
mod env_table;
mod escape;
mod expires;
mod expr;
mod fault;
#[cfg(test)]
#[path = "../../fuzz-entries/src/htaccess.rs"]
pub mod fuzz;
mod headers;
mod lines;
mod maps;
mod methods;
mod mime;
mod modules;
mod options;
mod output;
mod overrides;
mod parse;
mod pattern;
mod place;
mod redirect;
mod rewrite;
mod setenv;
mod settings;
mod substitute;
mod tls;
mod variable;
mod world;

pub use applied::{Admission, Applied, AuthSetup, HiddenNames, SectionChoices};
pub use cache::{CacheOrders, CachePrefix, CacheScopes};
pub use effort::Effort;
pub use env_table::EnvTable;
pub use expires::{ExpiresAfter, ExpiresFrom};
pub use fault::HtaccessFault;
pub use headers::HeaderTimes;
pub use lines::{ArgumentWords, Lines};
pub use maps::{MAP_FILE_MAX, MapFunction, MapSource, TextMap, choose};
pub use mime::FileNature;
pub use modules::ApacheNames;
pub use options::DirOptions;
pub use output::{CodingsForbidden, OutputFilter};
pub use overrides::AllowedOverrides;
pub use parse::{FILE_MAX, parse, parse_knowing};
pub use pattern::{Pattern, fits};
pub use place::ServerPlace;
pub use redirect::{ErrorAnswer, RedirectTo};
pub use rewrite::{PassOutcome, RewritePlace, Rewritten, add_cookie, resolved_path};
pub use settings::{EtagParts, HtaccessFile, PathInfoRule, PhpSetting};
pub use substitute::{BodySubstitution, BrokenLine, SubstitutedLines};
pub use tls::{DnPart, TlsVariable, dn_value};
pub use variable::{RequestVariable, TimePart};
pub use world::{Ahead, AheadKind, Asked, Evaluation, PathTest, Stop, Surroundings};

#[cfg(test)]
mod tests;
