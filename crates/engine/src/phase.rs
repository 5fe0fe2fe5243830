//! The phases before content: rewriting, and who may come in.

mod access;
mod auth;
mod referer;
pub(crate) mod rewrite;
