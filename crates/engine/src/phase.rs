//! The phases before content: rewriting, and who may come in.

mod access;
mod auth;
pub(crate) mod auth_request;
pub(crate) mod limits;
mod real_ip;
mod referer;
pub(crate) mod rewrite;
pub(crate) mod secure_link;
