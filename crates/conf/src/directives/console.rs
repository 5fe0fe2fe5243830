//! The status page of the server. Its access rules, actions and data are described in
//! [status.md](../status.md).

use crate::directive::{Args, Contexts, DirectiveSpec, own};
use crate::model::{Handler, Matcher};
use crate::reader::{ConfReader, ReadFault, ReadResult};

pub(super) const TABLE: &[DirectiveSpec] = &[own(
    "bolide_console",
    Contexts::LOCATION,
    Args::NONE,
    |r, _| console(r),
)
.doc(
    "Serves the status page of the server, with its data as JSON and buttons to purge and reload. \
     The location is a prefix that ends with a slash. Only clients of this machine are answered, \
     unless `auth_basic`, `auth_request`, client certificates, or `allow` with `deny all` say \
     otherwise; a location that lets in every client is refused.",
    "bolide_console;",
)];

fn console(r: &mut ConfReader) -> ReadResult {
    match &r.scope.matcher {
        Matcher::Prefix { path, .. } if path.ends_with(b"/") => {}
        _ => {
            let text = "\"bolide_console\" needs a location whose prefix ends with a slash, as \
                        \"location /bolide/\"";
            return Err(ReadFault::Text(text.to_owned()));
        }
    }
    r.scope.handler = Handler::Console;
    Ok(())
}
