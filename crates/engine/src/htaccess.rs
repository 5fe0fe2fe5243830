//! `apache_htaccess`: which `.htaccess` files apply to a request, and what they make of it.
//!
//! The rules themselves are of `bolide_htaccess`; here files are found, the request is lent to the
//! evaluation, and what it decides is carried out. Refuses to go on where a file cannot be read or
//! understood.

mod admission;
mod admit_user;
mod ahead;
pub(crate) mod decide;
mod depart;
pub(crate) mod effects;
mod follow;
mod levels;
mod looks;
pub(crate) mod memory;
mod password;
mod questions;
mod reason;
mod reliance;
pub(crate) mod ruling;
pub(crate) mod searched;
mod target;
mod tls;
pub(crate) mod unindexed;
mod world;
