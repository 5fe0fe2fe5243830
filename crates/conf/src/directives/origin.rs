//! Communication with upstreams of any protocol: the common part of `fastcgi_*` and its kin.
//!
//! The name of the directive determines the family: see [`ConfReader::origin`].

use std::sync::Arc;

use crate::ast::Node;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, flag, list, millis, number, value,
};
use crate::model::{IgnoreHeaders, NextUpstream};
use crate::reader::{ConfReader, ReadResult, buffers, invalid_value, show, size};

const HSL: Contexts = Contexts::HSL;

/// The rows that all families have, and the one that only some have.
macro_rules! rows {
    ($family:literal $(, $own:expr)?) => {
        &[
            millis(concat!($family, "_connect_timeout"), HSL, |r| &mut r.origin().connect_timeout)
                .doc(
                    "The timeout of a connect to the upstream.",
                    concat!($family, "_connect_timeout 60s;"),
                ),
            millis(concat!($family, "_send_timeout"), HSL, |r| &mut r.origin().send_timeout).doc(
                "The longest pause between two writes to the upstream.",
                concat!($family, "_send_timeout 60s;"),
            ),
            millis(concat!($family, "_read_timeout"), HSL, |r| &mut r.origin().read_timeout).doc(
                "The longest time between the end of a request and the head of its response, and \
                 the longest pause between two reads of the body.",
                concat!($family, "_read_timeout 60s;"),
            ),
            list(concat!($family, "_next_upstream"), HSL, Args::at_least(1), next_upstream).doc(
                "The failures after which another server of the group is tried.",
                concat!($family, "_next_upstream error timeout http_503;"),
            )
            .takes(
                "error | timeout | invalid_header | http_500 | http_502 | http_503 | http_504 | \
                 http_403 | http_404 | http_429 | non_idempotent | off…",
            )
            .default("error timeout"),
            number(concat!($family, "_next_upstream_tries"), HSL, |r| {
                &mut r.origin().next_upstream_tries
            })
            .doc(
                "The most servers tried for a request; 0 is no limit.",
                concat!($family, "_next_upstream_tries 2;"),
            ),
            millis(concat!($family, "_next_upstream_timeout"), HSL, |r| {
                &mut r.origin().next_upstream_timeout
            })
            .doc(
                "The time during which further servers are tried; 0 is no limit.",
                concat!($family, "_next_upstream_timeout 10s;"),
            ),
            flag(concat!($family, "_buffering"), HSL, |r| &mut r.origin().buffering).doc(
                "Whether responses are buffered, and so read as fast as they arrive.",
                concat!($family, "_buffering on;"),
            ),
            value(concat!($family, "_buffer_size"), HSL, Args::ONE, |r, node| {
                r.origin().buffer_size = size(node.arg(0))?;
                derive_sizes(r);
                Ok(())
            })
            .doc("The largest head of a response.", concat!($family, "_buffer_size 16k;"))
            .takes("SIZE")
            .default("4k"),
            value(concat!($family, "_buffers"), HSL, Args::TWO, |r, node| {
                r.origin().buffers = buffers(node)?;
                derive_sizes(r);
                Ok(())
            })
            .doc(
                "Number and size of the buffers for one response.",
                concat!($family, "_buffers 16 16k;"),
            )
            .takes("NUMBER SIZE")
            .default("8 4k"),
            value(concat!($family, "_busy_buffers_size"), HSL, Args::ONE, |r, node| {
                r.origin_draft().busy_buffers_size = Some(size(node.arg(0))?);
                derive_sizes(r);
                Ok(())
            })
            .doc(
                "Without effect: a bound of what may wait for the client.",
                concat!($family, "_busy_buffers_size 32k;"),
            )
            .takes("SIZE")
            .without("twice the larger of `_buffer_size` and one of `_buffers`: 8k"),
            value(concat!($family, "_max_temp_file_size"), HSL, Args::ONE, |r, node| {
                r.origin().max_temp_file_size = size(node.arg(0))? as u64;
                Ok(())
            })
            .doc(
                "The largest temporary file of one response; 0 disables files.",
                concat!($family, "_max_temp_file_size 1024m;"),
            )
            .takes("SIZE")
            .default("1024m"),
            value(concat!($family, "_temp_file_write_size"), HSL, Args::ONE, |r, node| {
                r.origin_draft().temp_file_write_size = Some(size(node.arg(0))?);
                derive_sizes(r);
                Ok(())
            })
            .doc(
                "Without effect: how much is written to that file at once.",
                concat!($family, "_temp_file_write_size 32k;"),
            )
            .takes("SIZE")
            .without("twice the larger of `_buffer_size` and one of `_buffers`: 8k"),
            value(concat!($family, "_temp_path"), HSL, Args::between(1, 4), |r, node| {
                let place = super::body::read_temp_path(r, node)?;
                r.origin().temp_path = Arc::new(place);
                Ok(())
            })
            .doc(
                "The directory for responses that exceed the buffers.",
                concat!($family, "_temp_path /var/tmp/answers;"),
            )
            .takes("DIRECTORY [NUMBER [NUMBER [NUMBER]]]")
            .default(concat!($family, "_temp")),
            flag(concat!($family, "_request_buffering"), HSL, |r| {
                &mut r.origin().request_buffering
            })
            .doc(
                "Whether a request's body is read in full before the request goes upstream.",
                concat!($family, "_request_buffering off;"),
            ),
            flag(concat!($family, "_ignore_client_abort"), HSL, |r| {
                &mut r.origin().ignore_client_abort
            })
            .doc(
                "Whether the upstream request continues after the client has left.",
                concat!($family, "_ignore_client_abort on;"),
            ),
            flag(concat!($family, "_intercept_errors"), HSL, |r| &mut r.origin().intercept_errors)
                .doc(
                    "Whether `error_page` applies to upstream responses.",
                    concat!($family, "_intercept_errors on;"),
                ),
            flag(concat!($family, "_pass_request_headers"), HSL, |r| {
                &mut r.origin().pass_request_headers
            })
            .doc(
                "Whether the client's header fields go upstream.",
                concat!($family, "_pass_request_headers off;"),
            ),
            flag(concat!($family, "_pass_request_body"), HSL, |r| {
                &mut r.origin().pass_request_body
            })
            .doc(
                "Whether the client's body goes upstream.",
                concat!($family, "_pass_request_body off;"),
            ),
            flag(concat!($family, "_socket_keepalive"), HSL, |r| &mut r.origin().socket_keepalive)
                .doc(
                    "Whether the system probes idle connections (SO_KEEPALIVE).",
                    concat!($family, "_socket_keepalive on;"),
                ),
            value(concat!($family, "_bind"), HSL, Args::between(1, 2), super::bind::bind).doc(
                "The local address of upstream connections, with a port or without.",
                concat!($family, "_bind 127.0.0.1;"),
            )
            .takes("HOST [transparent] | off")
            .default("off"),
            flag(concat!($family, "_force_ranges"), HSL, |r| &mut r.origin().force_ranges).doc(
                "Whether byte ranges are served even without `Accept-Ranges` from the upstream.",
                concat!($family, "_force_ranges on;"),
            ),
            value(concat!($family, "_limit_rate"), HSL, Args::ONE, |r, node| {
                let rate = super::core::rate(r, node)?;
                r.origin().limit_rate = Some(rate);
                Ok(())
            })
            .doc(
                "The rate limit of reading one upstream response, in bytes per second.",
                concat!($family, "_limit_rate 500k;"),
            )
            .takes("SIZE | TEXT")
            .without("0: no limit"),
            list(concat!($family, "_hide_header"), HSL, Args::ONE, |r, node| {
                let again = r.again;
                push_name(&mut r.origin().hide_headers, again, node);
                Ok(())
            })
            .doc(
                "An upstream response field that clients do not get.",
                concat!($family, "_hide_header X-Powered-By;"),
            )
            .takes("NAME")
            .without(
                "`X-Accel-…`; over HTTP `Date`, `Server` and `X-Pad` as well, over FastCGI, \
                 LSAPI and SCGI `Status`",
            ),
            list(concat!($family, "_pass_header"), HSL, Args::ONE, |r, node| {
                let again = r.again;
                push_name(&mut r.origin().pass_headers, again, node);
                Ok(())
            })
            .doc(
                "A hidden field that clients get nevertheless.",
                concat!($family, "_pass_header Status;"),
            )
            .takes("NAME")
            .without("none"),
            list(concat!($family, "_ignore_headers"), HSL, Args::at_least(1), ignore_headers).doc(
                "Upstream response fields to ignore.",
                concat!($family, "_ignore_headers Cache-Control Expires Set-Cookie;"),
            )
            .takes(
                "X-Accel-Redirect | X-Accel-Expires | X-Accel-Limit-Rate | X-Accel-Buffering | \
                 X-Accel-Charset | Expires | Cache-Control | Set-Cookie | Vary…",
            )
            .without("none"),
            accepted(concat!($family, "_socket_rcvbuf"), HSL, Args::ONE, DirectiveForm::Size).doc(
                "Without effect: the system sizes the buffer.",
                concat!($family, "_socket_rcvbuf 64k;"),
            ),
            accepted(concat!($family, "_socket_sndbuf"), HSL, Args::ONE, DirectiveForm::Size).doc(
                "Without effect: the system sizes the buffer.",
                concat!($family, "_socket_sndbuf 64k;"),
            ),
            $($own,)?
        ]
    };
}

macro_rules! send_lowat {
    ($family:literal) => {
        accepted(
            concat!($family, "_send_lowat"),
            HSL,
            Args::ONE,
            DirectiveForm::Check(super::core::lowat),
        )
        .doc(
            "Without effect: the least free space of a writable socket.",
            concat!($family, "_send_lowat 0;"),
        )
        .takes("SIZE")
    };
}

/// `fastcgi_*`, which apply to `lsapi_pass` and `php_pass` as well.
pub(super) const FASTCGI: &[DirectiveSpec] = rows!("fastcgi", send_lowat!("fastcgi"));
/// `proxy_*`
pub(super) const PROXY: &[DirectiveSpec] = rows!("proxy", send_lowat!("proxy"));
/// `uwsgi_*`
pub(super) const UWSGI: &[DirectiveSpec] = rows!("uwsgi");
/// `scgi_*`
pub(super) const SCGI: &[DirectiveSpec] = rows!("scgi");

/// Adjusts the derived sizes to the ones they follow from.
fn derive_sizes(r: &mut ConfReader) {
    let draft = *r.origin_draft();
    let origin = r.origin();
    let double = origin.buffer_size.max(origin.buffers.1).saturating_mul(2);
    origin.busy_buffers_size = draft.busy_buffers_size.unwrap_or(double);
    origin.temp_file_write_size = draft.temp_file_write_size.unwrap_or(double);
}

pub(super) fn push_name(names: &mut Arc<Vec<Box<[u8]>>>, again: bool, node: &Node) {
    if !again {
        *names = Arc::default();
    }
    Arc::make_mut(names).push(node.arg(0).to_ascii_lowercase().into());
}

/// Sets one flag of several; an unknown word is refused, a repeated one gets a warning.
fn set(slot: Option<&mut bool>, warnings: &mut Vec<String>, word: &[u8]) -> ReadResult {
    let slot = slot.ok_or_else(|| invalid_value(word))?;
    if std::mem::replace(slot, true) {
        warnings.push(format!("duplicate value \"{}\"", show(word)));
    }
    Ok(())
}

/// The words of `…_next_upstream` that were read.
#[derive(Default)]
pub(super) struct NextUpstreamWords {
    pub(super) next: NextUpstream,
    pub(super) off: bool,
    updating: bool,
}

/// Reads the words of `…_next_upstream`, each of which sets the flag that `slot` names.
pub(super) fn next_upstream_words(
    r: &mut ConfReader,
    node: &Node,
    slot: impl for<'a> Fn(&'a mut NextUpstreamWords, &[u8]) -> Option<&'a mut bool>,
) -> ReadResult {
    let mut words = NextUpstreamWords::default();
    if r.again {
        (words.next, words.off) = (r.origin().next_upstream, r.origin_draft().next_off);
    }
    let mut warnings = Vec::new();
    for word in node.args() {
        set(slot(&mut words, &word.to_ascii_lowercase()), &mut warnings, word)?;
    }
    warnings.into_iter().for_each(|warning| r.warn(warning));
    let NextUpstreamWords { next, off, .. } = words;
    r.origin_draft().next_off = off;
    r.origin().next_upstream = if off { NextUpstream::default() } else { next };
    Ok(())
}

fn next_upstream(r: &mut ConfReader, node: &Node) -> ReadResult {
    let has_gateways = r.family.has_gateway_statuses();
    next_upstream_words(r, node, |words, word| {
        let next = &mut words.next;
        match word {
            b"error" => Some(&mut next.error),
            b"timeout" => Some(&mut next.timeout),
            b"invalid_header" => Some(&mut next.invalid_header),
            b"non_idempotent" => Some(&mut next.non_idempotent),
            b"http_500" => Some(&mut next.http_500),
            b"http_502" if has_gateways => Some(&mut next.http_502),
            b"http_503" => Some(&mut next.http_503),
            b"http_504" if has_gateways => Some(&mut next.http_504),
            b"http_403" => Some(&mut next.http_403),
            b"http_404" => Some(&mut next.http_404),
            b"http_429" => Some(&mut next.http_429),
            b"updating" => Some(&mut words.updating),
            b"off" => Some(&mut words.off),
            _ => None,
        }
    })
}

pub(super) fn ignore_headers(r: &mut ConfReader, node: &Node) -> ReadResult {
    let mut ignored = IgnoreHeaders::default();
    if r.again {
        ignored = r.origin().ignore_headers;
    }
    let mut warnings = Vec::new();
    for word in node.args() {
        let slot = match word.to_ascii_lowercase().as_slice() {
            b"x-accel-redirect" => Some(&mut ignored.redirect),
            b"x-accel-expires" => Some(&mut ignored.accel_expires),
            b"x-accel-limit-rate" => Some(&mut ignored.limit_rate),
            b"x-accel-buffering" => Some(&mut ignored.buffering),
            b"x-accel-charset" => Some(&mut ignored.charset),
            b"expires" => Some(&mut ignored.expires),
            b"cache-control" => Some(&mut ignored.cache_control),
            b"set-cookie" => Some(&mut ignored.set_cookie),
            b"vary" => Some(&mut ignored.vary),
            _ => None,
        };
        set(slot, &mut warnings, word)?;
    }
    warnings.into_iter().for_each(|warning| r.warn(warning));
    r.origin().ignore_headers = ignored;
    Ok(())
}
