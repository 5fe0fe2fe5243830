//! The engine from outside: requests against a site, without sockets, in the world of
//! `bolide-world`. What counts allocations is a program of its own.

mod assembly;
mod behaviour;
mod closed_files;
mod commands;
mod htaccess_kept;
mod origins;
mod rewriting;
mod routing;
mod static_answers;
