//! `apache_htaccess`: which `.htaccess` files apply to a request, and what they make of it.
//!
//! The rules themselves are of `bolide_htaccess`; here files are found, the request is lent to the
//! evaluation, and what it decides is carried out. Refuses to go on where a file cannot be read or
//! understood.

mod decide;
mod effects;
mod levels;
mod password;
mod ruling;
mod world;

pub(crate) use effects::{
    decorate, error_answer, hides, index_fallback, index_names, lists, push_params,
};
pub(crate) use ruling::HtaccessRuling;
