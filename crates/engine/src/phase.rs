//! The phases before content: rewriting and access.

pub(crate) mod access;
pub(crate) mod auth;
pub(crate) mod auth_request;
pub(crate) mod checks;
pub(crate) mod limits;
pub(crate) mod real_ip;
pub(crate) mod reception;
pub(crate) mod referer;
pub(crate) mod rewrite;
pub(crate) mod secure_link;
