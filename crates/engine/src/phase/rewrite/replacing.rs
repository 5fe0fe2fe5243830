//! The second word of `rewrite`: the URL of a redirect, or another path and other arguments.

use bolide_conf::model::{LogLevel, RewriteRule, Then};

use crate::answer::Answer;
use crate::ctx::StepCtx;
use crate::exchange::NextStep;
use crate::log_lines;
use crate::request::Request;
use crate::route::LocationIndex;
use crate::site::Site;
use crate::vars::{CaptureGroups, VariableScope};

/// Writes the target of a redirect.
pub(super) fn redirect_by(
    request: &mut Request,
    answer: &mut Answer,
    rule: &RewriteRule,
    program: LocationIndex,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    let mut text = std::mem::take(&mut answer.scratch);
    text.clear();
    let groups = if is_encoded(request) { CaptureGroups::Encoded } else { CaptureGroups::Plain };
    VariableScope::new(request, answer, site, ctx).expand_as(&rule.path, groups, &mut text);
    decode_redirect(&mut text);
    let args = request.args();
    if rule.keeps_args && !args.is_empty() {
        text.push(if rule.has_mark { b'&' } else { b'?' });
        text.extend_from_slice(args);
    }
    if site.location(program).settings.rewrite_log {
        request.log_notes(b"", site, ctx);
        log_lines::error(request, site, ctx, LogLevel::Notice, |out| {
            out.extend_from_slice(b"rewritten redirect: \"");
            out.extend_from_slice(&text);
            out.push(b'"');
        });
    }
    answer.write_redirect(&text);
    answer.scratch = text;
}

/// Changes path and query; returns the step that follows if that fails.
pub(super) fn change_uri(
    request: &mut Request,
    answer: &mut Answer,
    rule: &RewriteRule,
    program: LocationIndex,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) -> Option<NextStep> {
    let mut path = std::mem::take(&mut answer.scratch);
    path.clear();
    let scope = VariableScope::new(request, answer, site, ctx);
    scope.expand(&rule.path, &mut path);
    let path_len = path.len();
    let args = match &rule.args {
        Some(template) => {
            let groups =
                if is_encoded(request) { CaptureGroups::Encoded } else { CaptureGroups::Plain };
            scope.expand_as(template, groups, &mut path);
            let old = request.args();
            if rule.keeps_args && !old.is_empty() {
                path.push(b'&');
                path.extend_from_slice(old);
            }
            Some(&path[path_len..])
        }
        // As in nginx, an absent query does not become an empty one.
        None if rule.keeps_args || request.args.is_none() => None,
        None => Some(&b""[..]),
    };
    if let Some(args) = args {
        request.set_args(args);
    }
    request.uri.clear();
    request.uri.extend_from_slice(&path[..path_len]);
    request.mark_dots();
    answer.scratch = path;
    (request.internal, request.is_rewritten) = (true, true);
    request.arrival.bend();
    request.uri_changed = rule.then != Then::Break;
    request.rewritten_here |= rule.then == Then::Break;
    if site.location(program).settings.rewrite_log {
        // As in nginx, messages of its variables come first.
        request.log_notes(b"", site, ctx);
        let request = &*request;
        log_lines::error(request, site, ctx, LogLevel::Notice, |out| {
            out.extend_from_slice(b"rewritten data: \"");
            out.extend_from_slice(&request.uri);
            out.extend_from_slice(b"\", args: \"");
            out.extend_from_slice(request.args());
            out.push(b'"');
        });
    }
    if !request.uri.is_empty() {
        return None;
    }
    // Messages of its variables come first.
    request.log_notes(b"", site, ctx);
    request.log_error(site, ctx, |out| {
        out.extend_from_slice(b"the rewritten URI has a zero length");
    });
    Some(NextStep::Fail(500))
}

/// Decodes escapes that are unnecessary in a URL, up to its `?`, as nginx does.
fn decode_redirect(text: &mut Vec<u8>) {
    let Some(first) = memchr::memchr2(b'%', b'?', text) else { return };
    let (mut read, mut write) = (first, first);
    while let Some(&byte) = text.get(read) {
        if byte == b'?' {
            break;
        }
        if byte != b'%' {
            text[write] = byte;
            (read, write) = (read + 1, write + 1);
            continue;
        }
        debug_assert!(write <= read, "decoding makes no text longer");
        let digit = |at: usize| text.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match (digit(read + 1), digit(read + 2)) {
            (Some(high), Some(low)) => {
                let decoded = (high << 4 | low) as u8;
                if decoded == b'?' || decoded > b'%' && decoded < 0x7f {
                    text[write] = decoded;
                    write += 1;
                } else {
                    text.copy_within(read..read + 3, write);
                    write += 3;
                }
                read += 3;
                if decoded == b'?' {
                    break;
                }
            }
            // An invalid escape loses its `%`, or all of it.
            (None, _) => {
                if let Some(&next) = text.get(read + 1) {
                    text[write] = next;
                    write += 1;
                }
                read += 2;
            }
            (Some(_), None) => read += 3,
        }
    }
    text.drain(write..read.min(text.len()));
}

/// Whether the client's path has escapes.
pub(super) fn is_encoded(request: &Request) -> bool {
    let target = request.address();
    let end = memchr::memchr(b'?', target).unwrap_or(target.len());
    memchr::memchr2(b'%', b'+', &target[..end]).is_some()
}

#[cfg(test)]
mod tests {
    use super::decode_redirect;

    #[test]
    fn addresses_are_decoded_where_that_is_harmless() {
        let rows: [(&str, &str); 10] = [
            ("/a%20b", "/a%20b"),
            ("/%41%2f%7e", "/A/~"),
            ("/a%25%7f%c3%a9", "/a%25%7f%c3%a9"),
            ("/a?%41", "/a?%41"),
            ("/a%3f%41", "/a?%41"),
            ("/plain", "/plain"),
            ("/a%zzb", "/azzb"),
            ("/a%4", "/a"),
            ("/a%", "/a"),
            ("http://a.test/%41", "http://a.test/A"),
        ];
        for (text, expected) in rows {
            let mut out = text.as_bytes().to_vec();
            decode_redirect(&mut out);
            assert_eq!(String::from_utf8_lossy(&out), expected, "{text}");
        }
    }
}
