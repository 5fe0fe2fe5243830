//! Locations that show data of the server to every client: `metrics` gets a warning, a console is
//! refused.

use crate::model::{ConsoleGuard, Handler, LocationConf, LogLevel, SourcePlace, VerifyClient};
use crate::reader::{HttpDraft, show};
use crate::vars::Template;

/// The message about one location.
pub(crate) struct Unguarded {
    pub(crate) level: LogLevel,
    pub(crate) message: String,
    pub(crate) place: SourcePlace,
}

/// All of them, server by server.
pub(crate) fn unguarded(http: &HttpDraft) -> Vec<Unguarded> {
    let mut found = Vec::new();
    for server in &http.servers {
        let mut left = vec![server.root];
        while let Some(id) = left.pop() {
            let location = &http.locations[id.index()];
            left.extend(location.nested.iter().rev());
            found.extend(judge(location, server.tls.verify_client));
        }
    }
    found
}

fn judge(location: &LocationConf, verify_client: VerifyClient) -> Option<Unguarded> {
    let name = show(&location.name);
    let place = |directive| location.place_of(directive).unwrap_or(&location.place).clone();
    let settings = &location.settings;
    match location.handler {
        Handler::Metrics if !is_guarded(location, verify_client) => Some(Unguarded {
            level: LogLevel::Warn,
            message: format!(
                "every client may read the metrics of location \"{name}\": \"allow\", \"deny\" or \
                 \"auth_basic\" would limit that"
            ),
            place: place("metrics"),
        }),
        Handler::Console if ConsoleGuard::of(settings, verify_client) == ConsoleGuard::Open => {
            Some(Unguarded {
                level: LogLevel::Emerg,
                message: format!(
                    "every client would get to the console of location \"{name}\": it needs \
                     \"auth_basic\" with \"auth_basic_user_file\", or \"deny all\" behind the \
                     \"allow\" rules"
                ),
                place: place("bolide_console"),
            })
        }
        _ => None,
    }
}

/// Whether access to a location that is not a console is restricted.
fn is_guarded(location: &LocationConf, verify_client: VerifyClient) -> bool {
    let settings = &location.settings;
    let password = |realm: &Template| realm.as_text() != Some(b"off");
    verify_client == VerifyClient::On
        || location.internal
        || !settings.access.is_empty()
        || settings.auth_request.uri.is_some()
        || settings.auth_basic.as_ref().is_some_and(password)
}
