//! The phases before content: rewriting, and who may come in.

mod access;
mod referer;
pub(crate) mod rewrite;
