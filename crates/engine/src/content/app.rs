//! The request to an application: its parameters in the form of the protocol.

use std::sync::Arc;

use bolide_cache::rules::Environment;
use bolide_conf::model::{OriginSettings, Protocol};
use bolide_http::{AppForm, AppMessage, Params, UpstreamMessage};

use crate::content::params;
use crate::content::proxied::Asking;
use crate::site::UpstreamPass;
use crate::vars::VariableScope;

/// Writes the request to an application.
///
/// # Errors
///
/// The line of the error log: a uwsgi packet has less room.
pub(crate) fn write(
    scope: &VariableScope<'_>,
    pass: &UpstreamPass,
    environment: &Environment,
    asking: Asking<'_>,
) -> Result<UpstreamMessage, Vec<u8>> {
    let mut params = Params::with_room();
    params::write(scope, pass, asking.is_to_keep, environment, &mut params);
    if let Some(old) = asking.old {
        params::write_conditions(old, &mut params);
    }
    if asking.as_get {
        params.replace(b"REQUEST_METHOD", b"GET");
    }
    // The application would wait for a body that is not read.
    if pass.conf.protocol == Protocol::Uwsgi
        && scope.request.upload.is_refused()
        && params.get(b"CONTENT_LENGTH").is_some()
    {
        params.replace(b"CONTENT_LENGTH", b"0");
    }
    message(params, pass.conf.protocol, &scope.location().settings.origin)
}

/// The message of these parameters.
fn message(
    params: Params,
    protocol: Protocol,
    settings: &OriginSettings,
) -> Result<UpstreamMessage, Vec<u8>> {
    let form = match protocol {
        Protocol::Uwsgi => uwsgi_form(&params, &settings.uwsgi_string, settings.uwsgi_modifiers)?,
        Protocol::Scgi => AppForm::Scgi,
        _ => return Ok(params.into()),
    };
    Ok(AppMessage { form, params }.into())
}

fn uwsgi_form(params: &Params, text: &Arc<[u8]>, modifiers: [u32; 2]) -> Result<AppForm, Vec<u8>> {
    let size = AppForm::packet_size(params, text);
    if size > AppForm::PACKET_MAX {
        return Err(format!("uwsgi request is too big: {size}").into_bytes());
    }
    // Neither is larger: the directives refuse it.
    let modifiers = modifiers.map(|modifier| modifier as u8);
    Ok(AppForm::Uwsgi { modifiers, text: Arc::clone(text) })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bolide_http::{AppForm, Params};

    use super::uwsgi_form;

    #[test]
    fn a_uwsgi_request_beyond_its_packet_is_refused_in_nginx_s_words() {
        let mut params = Params::new();
        params.push(b"A", &vec![b'x'; 65_535 - 5]);
        let form = AppForm::Uwsgi { modifiers: [30, 255], text: Arc::default() };
        assert_eq!(uwsgi_form(&params, &Arc::default(), [30, 255]), Ok(form));
        let line = uwsgi_form(&params, &b"abc"[..].into(), [0, 0]).unwrap_err();
        assert_eq!(line, b"uwsgi request is too big: 65538");
    }
}
