//! `apache_htaccess`: which `.htaccess` files apply to a request, and their effects on it.
//!
//! `bolide_htaccess` evaluates the rules. This module finds the files, lends the request to the
//! evaluation and carries out the result. A file that cannot be read or parsed fails the request.

mod admission;
mod admit_user;
mod ahead;
mod asked;
pub(crate) mod decide;
mod depart;
pub(crate) mod effects;
mod follow;
mod levels;
pub(crate) mod listed;
mod looks;
pub(crate) mod memory;
mod password;
mod program;
mod questions;
mod reason;
mod reliance;
pub(crate) mod ruling;
pub(crate) mod searched;
mod target;
mod tls;
pub(crate) mod unindexed;
mod world;
