//! Apache's configuration (`httpd.conf`, `apache2.conf`) to a configuration in nginx's language.
//!
//! Thinks and does no I/O: the caller lends the files ([`ApacheFiles`]). What has no counterpart is
//! named in a comment with its file and line; what restricts access and has none closes the place
//! that it stands in, so that the result is never more open than Apache. The one exception are
//! certificates of backends without `SSLProxyVerify` ([`Imported::unverified`]).

mod access;
mod backend_tls;
mod balancers;
mod body;
mod conditions;
mod defines;
mod early;
mod error_pages;
mod expression;
mod handlers;
mod heads;
mod import;
mod listens;
mod logs;
mod matching;
mod named_places;
mod names;
mod networks;
mod out;
mod passing;
mod paths;
mod php;
mod prepare;
mod proxy;
mod proxy_protocol;
mod quiet;
mod read;
mod redirect;
mod rewrite;
mod rules;
mod server;
mod settings;
mod tls;
mod tree;
mod verifying;
mod words;
mod write;

#[cfg(test)]
mod tests;

pub use import::{ApacheFiles, ConfPlace, ImportFault, ImportRequest, Imported};
pub use words::is_apache;

/// Translates a configuration.
///
/// # Errors
///
/// The first thing that Apache could not read either, or a file that is not there.
pub fn import(
    files: &dyn ApacheFiles,
    request: &ImportRequest<'_>,
) -> Result<Imported, ImportFault> {
    let read = read::read(files, request)?;
    let nodes = tree::build(read.lines)?;
    Ok(write::write(nodes, read.notes, &read.names, request))
}
