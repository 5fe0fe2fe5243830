//! `-v`, `-V` and `-h`: information about the program, in the form that scripts parse of nginx.

use std::fmt::Write as _;

use crate::cli::help;
use crate::invocation::{PREFIX, Show};
use crate::messages::tell;

/// The name and the version.
pub(crate) const NAME: &str = concat!("bolide/", env!("CARGO_PKG_VERSION"));

/// Prints the requested information.
pub(crate) fn show(what: Show) {
    tell(&format!("bolide version: {NAME}"));
    match what {
        Show::Version => {}
        Show::Help => tell(&help()),
        Show::Build => {
            tell("built with rustls, aws-lc, quinn-proto, PCRE2");
            tell("TLS SNI support enabled");
            tell(&format!("configure arguments: {}", arguments()));
        }
    }
}

/// nginx's configure arguments for the same directives.
fn arguments() -> String {
    let mut text = format!(
        "--prefix={PREFIX} --conf-path={PREFIX}/bolide.conf \
         --error-log-path={PREFIX}/logs/error.log --http-log-path={PREFIX}/logs/access.log \
         --pid-path={PREFIX}/logs/bolide.pid --with-threads --with-pcre --with-pcre-jit"
    );
    for argument in bolide_conf::directives::configure_arguments() {
        let _ = write!(text, " {argument}");
    }
    text
}
