//! nginx configuration: from text to a typed model, with nginx's own error texts.
//!
//! It reads no file itself (the binary lends a source) and decides nothing about requests.

pub mod model;
pub mod regex;
pub mod vars;

pub use regex::{Case, Regex};
pub use vars::{Part, Template, Var};
