//! Rewriting of URLs and cookies in responses of HTTP upstreams: `proxy_redirect`,
//! `proxy_cookie_*`.

use std::sync::Arc;

use super::proxy::settings;
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, list};
use crate::model::{
    CookieFlags, CookieName, Handler, Pass, PassTo, Protocol, ProxySettings, Redirect, Replacement,
};
use crate::reader::{ConfReader, DUPLICATE, ReadFault, ReadResult, invalid_parameter};
use crate::regex::{LetterCase, Regex};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("proxy_redirect", HSL, Args::between(1, 2), redirect)
        .doc(
            "The rewriting of URLs in `Location` and `Refresh`.",
            "proxy_redirect http://backend/ /;",
        )
        .takes("default | off | TEXT TEXT | ~REGEX TEXT")
        .default("default"),
    list("proxy_cookie_domain", HSL, Args::between(1, 2), |r, node| {
        // RFC 6265 §5.2.3: letters of a domain are the same in either case.
        cookie_rule(r, node, LetterCase::Insensitive, |settings| &mut settings.cookie_domains)
    })
    .doc("The rewriting of the domain of cookies.", "proxy_cookie_domain localhost example.org;")
    .takes("off | TEXT TEXT | ~REGEX TEXT")
    .default("off"),
    list("proxy_cookie_path", HSL, Args::between(1, 2), |r, node| {
        cookie_rule(r, node, LetterCase::Sensitive, |settings| &mut settings.cookie_paths)
    })
    .doc("The rewriting of the path of cookies.", "proxy_cookie_path /two/ /;")
    .takes("off | TEXT TEXT | ~REGEX TEXT")
    .default("off"),
    list("proxy_cookie_flags", HSL, Args::between(1, 4), cookie_flags)
        .doc(
            "Flags to add to cookies or remove from them.",
            "proxy_cookie_flags session secure httponly samesite=lax;",
        )
        .takes(
            "off | NAME [secure | httponly | samesite=strict|lax|none | nosecure | nohttponly | \
         nosamesite]…",
        )
        .default("off"),
];

/// The text to replace: a literal, or the match of an expression.
enum From {
    Text(crate::vars::Template),
    Pattern(Regex),
}

fn from(r: &mut ConfReader, word: &[u8], case: LetterCase) -> Result<From, ReadFault> {
    Ok(match word {
        [b'~', b'*', pattern @ ..] => From::Pattern(r.regex(pattern, LetterCase::Insensitive)?),
        [b'~', pattern @ ..] => From::Pattern(r.regex(pattern, case)?),
        text => From::Text(r.template(text)?),
    })
}

/// Appends to a list, which starts empty with the first directive of a block; after `off` nothing
/// is appended.
fn extend<T: Clone>(
    r: &mut ConfReader,
    slot: fn(&mut ProxySettings) -> &mut Arc<Vec<T>>,
    more: Option<T>,
) -> ReadResult {
    let again = r.again;
    let items = slot(settings(r));
    if again && (items.is_empty() || more.is_none()) {
        return Err(DUPLICATE);
    }
    if !again {
        *items = Arc::default();
    }
    Arc::make_mut(items).extend(more);
    Ok(())
}

fn redirect(r: &mut ConfReader, node: &Node) -> ReadResult {
    let word = node.arg(0);
    if node.args_count() == 1 {
        let made = match word {
            b"off" => None,
            b"default" => Some(default_redirect(r)?),
            _ => return Err(invalid_parameter(word)),
        };
        // No directive may precede `off`; `default` is one among others.
        return extend(r, |settings| &mut settings.redirects, made);
    }
    let made = replacement(r, node, LetterCase::Sensitive)?;
    extend(r, |settings| &mut settings.redirects, Some(Redirect::Rule(made)))
}

fn replacement(
    r: &mut ConfReader,
    node: &Node,
    case: LetterCase,
) -> Result<Replacement, ReadFault> {
    let to = r.template(node.arg(1))?;
    Ok(match from(r, node.arg(0), case)? {
        From::Text(from) => Replacement::Text { from, to },
        From::Pattern(regex) => Replacement::Pattern { regex, to },
    })
}

fn default_redirect(r: &ConfReader) -> Result<Redirect, ReadFault> {
    let fault = |text: &str| Err(ReadFault::Text(text.to_owned()));
    match &r.scope.handler {
        Handler::Pass(Pass { protocol: Protocol::Http, to: PassTo::Group(_), .. }) => {
            Ok(Redirect::Default(None))
        }
        Handler::Pass(Pass { protocol: Protocol::Http, .. }) => fault(
            "\"proxy_redirect default\" cannot be used with \"proxy_pass\" directive with \
             variables",
        ),
        _ => {
            fault("\"proxy_redirect default\" should be placed after the \"proxy_pass\" directive")
        }
    }
}

fn cookie_rule(
    r: &mut ConfReader,
    node: &Node,
    case: LetterCase,
    slot: fn(&mut ProxySettings) -> &mut Arc<Vec<Replacement>>,
) -> ReadResult {
    let word = node.arg(0);
    if node.args_count() == 1 {
        return if word == b"off" { extend(r, slot, None) } else { Err(invalid_parameter(word)) };
    }
    let made = replacement(r, node, case)?;
    extend(r, slot, Some(made))
}

fn cookie_flags(r: &mut ConfReader, node: &Node) -> ReadResult {
    let word = node.arg(0);
    if node.args_count() == 1 {
        return match word {
            b"off" => extend(r, |settings| &mut settings.cookie_flags, None),
            _ => Err(invalid_parameter(word)),
        };
    }
    let name = match from(r, word, LetterCase::Insensitive)? {
        From::Text(name) => CookieName::Text(name),
        From::Pattern(regex) => CookieName::Pattern(regex),
    };
    let mut flags = Vec::new();
    for word in node.args().skip(1) {
        flags.push(r.template(word)?);
    }
    extend(r, |settings| &mut settings.cookie_flags, Some(CookieFlags { name, flags }))
}
