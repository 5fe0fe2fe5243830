//! `Redirect` and its kin, and `ErrorDocument`.

use crate::effort::Effort;
use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;
use crate::pattern::{Groups, Letters, Pattern};
use crate::rewrite::status;
use crate::world::Stop;

/// LIMIT: bytes of a target with captures, before it is escaped; as in Apache.
const TARGET_MAX: usize = 64 * 1024;

/// What a `Redirect` matches.
#[derive(Clone, Debug)]
enum RedirectFrom {
    /// A path and all below it.
    Path(Box<[u8]>),
    Matching(Pattern),
}

/// One line of `Redirect`.
#[derive(Clone, Debug)]
pub(crate) struct Redirection {
    from: RedirectFrom,
    status: u16,
    to: Option<Box<[u8]>>,
}

/// The result of a redirect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedirectTo {
    /// The status.
    pub status: u16,
    /// A path or URL, with a query if it has one of its own; none without a target.
    pub to: Option<Vec<u8>>,
}

/// Parses `Redirect` (without a status word), `RedirectMatch`, `RedirectPermanent`, `RedirectTemp`.
pub(crate) fn parse(
    directive: &str,
    arguments: &[u8],
    fixed: Option<u16>,
) -> ParseResult<Redirection> {
    let mut words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
    let mut status = fixed.unwrap_or(302);
    if fixed.is_none()
        && let Some(first) = words.first()
        && let Some(named) = named_status(first)
        && words.len() > 1
    {
        status = named.ok_or_else(|| {
            format!("{directive}: invalid first argument (of three) '{}'", shown(first))
        })?;
        words.remove(0);
    }
    let is_away = matches!(status, 301..=303 | 307 | 308);
    if status < 400 && !is_away {
        return Err(format!("{directive}: status {status} is not available here"));
    }
    let (from, to) = match &words[..] {
        [from] if !is_away => (from, None),
        [from, to] if is_away => (from, Some(to.clone().into_boxed_slice())),
        [_] => return Err(format!("{directive}: URL to redirect to is missing")),
        _ if !is_away => return Err("Redirect URL not valid for this status".to_owned()),
        _ => return Err(format!("{directive} takes two or three arguments")),
    };
    if let Some(to) = &to {
        let is_address = to.first() == Some(&b'/') || to.windows(3).any(|three| three == b"://");
        if !is_address && directive != "RedirectMatch" {
            return Err(format!("{directive} to non-URL"));
        }
    }
    let from = match directive {
        "RedirectMatch" => {
            let pattern = Pattern::new(from, Letters::Exact);
            RedirectFrom::Matching(pattern.ok_or("Regular expression could not be compiled.")?)
        }
        _ => RedirectFrom::Path(from.clone().into()),
    };
    Ok(Redirection { from, status, to })
}

/// The status of a word; the inner none for an invalid number.
fn named_status(word: &[u8]) -> Option<Option<u16>> {
    Some(match &word.to_ascii_lowercase()[..] {
        b"permanent" => Some(301),
        b"temp" => Some(302),
        b"seeother" => Some(303),
        b"gone" => Some(410),
        digits if digits.first().is_some_and(u8::is_ascii_digit) => status(digits),
        _ => return None,
    })
}

impl Redirection {
    /// The target for a request of `path` (decoded) with `args`, if the line matches.
    pub(crate) fn of(
        &self,
        path: &[u8],
        args: Option<&[u8]>,
        effort: &Effort,
    ) -> Result<Option<RedirectTo>, Stop> {
        let to = match &self.from {
            RedirectFrom::Path(from) => {
                let Some(rest) = path.strip_prefix(&from[..]) else { return Ok(None) };
                let is_whole = rest.is_empty() || rest[0] == b'/' || from.last() == Some(&b'/');
                if from.first() != Some(&b'/') || !is_whole {
                    return Ok(None);
                }
                let mut tail = Vec::new();
                push_escaped(rest, &mut tail);
                self.to.as_ref().map(|to| [&to[..], &tail].concat())
            }
            RedirectFrom::Matching(pattern) => {
                let mut groups = Groups::default();
                if !pattern.find(path, &mut groups, effort)? {
                    return Ok(None);
                }
                match &self.to {
                    Some(to) => Some(substituted(to, &groups)?),
                    None => None,
                }
            }
        };
        // A query in the target replaces that of the request.
        let to = to.map(|mut to| {
            if let Some(args) = args.filter(|_| !to.contains(&b'?')) {
                to.push(b'?');
                to.extend(args.iter().filter(|byte| !byte.is_ascii_control()));
            }
            to
        });
        Ok(Some(RedirectTo { status: self.status, to }))
    }
}

fn push_escaped(text: &[u8], out: &mut Vec<u8>) {
    crate::escape::push_hex(text, crate::escape::is_plain_in_uri, out);
}

/// A target with captures. As in Apache, `?` and `#` of the request's path keep their meaning, and
/// the whole path is escaped, including its escapes.
fn substituted(to: &[u8], groups: &Groups) -> Result<Vec<u8>, Stop> {
    let whole = with_groups(to, groups)?;
    let end = whole.iter().position(|byte| matches!(byte, b'?' | b'#')).unwrap_or(whole.len());
    let (path, rest) = whole.split_at(end);
    let mut out = Vec::new();
    push_escaped(path, &mut out);
    crate::escape::push_hex(rest, |byte| byte.is_ascii_graphic(), &mut out);
    Ok(out)
}

fn with_groups(to: &[u8], groups: &Groups) -> Result<Vec<u8>, Stop> {
    let (mut out, mut rest) = (Vec::new(), to);
    while let [first, after @ ..] = rest {
        rest = after;
        match (first, after) {
            (b'$', [digit @ b'0'..=b'9', behind @ ..]) => {
                let group = groups.of(usize::from(digit - b'0'));
                if out.len() + group.len() > TARGET_MAX {
                    return Err(Stop::Refused(
                        500,
                        "RedirectMatch made an address that is too long",
                    ));
                }
                out.extend_from_slice(group);
                rest = behind;
            }
            _ => out.push(*first),
        }
    }
    Ok(out)
}

/// An `ErrorDocument`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorAnswer {
    /// The response of this internal path.
    Inside(Box<[u8]>),
    /// A redirect to this address.
    Elsewhere(Box<[u8]>),
    /// This text.
    Text(Box<[u8]>),
    /// The built-in page.
    Default,
}

/// `ErrorDocument STATUS ANSWER`
pub(crate) fn error_document(arguments: &[u8]) -> ParseResult<(u16, ErrorAnswer)> {
    let mut words = ArgumentWords::new(arguments);
    let number = words.next_word().unwrap_or_default();
    let whole = words.rest();
    let text = words.next_word();
    let two = || "ErrorDocument takes two arguments, Change responses for HTTP errors".to_owned();
    let text = text.ok_or_else(two)?;
    // Apache has error documents for errors only. It accepts other statuses as well.
    let Some(status @ (100..=299 | 400..=599)) = status(&number) else {
        return Err(format!("Unsupported HTTP response code {}", shown(&number)));
    };
    let is_quoted = matches!(whole.first(), Some(b'"' | b'\''));
    if !words.rest().is_empty() && !is_quoted {
        return Err(two());
    }
    let is_address = text.starts_with(b"http://") || text.starts_with(b"https://");
    let answer = match &text[..] {
        b"default" => ErrorAnswer::Default,
        [b'/', ..] => ErrorAnswer::Inside(text.into()),
        // A client that has to authenticate would be redirected to a page that does not request it.
        _ if is_address && status == 401 => ErrorAnswer::Default,
        _ if is_address => ErrorAnswer::Elsewhere(text.into()),
        _ if text.windows(2).any(|two| two == b"%{") => {
            return Err("ErrorDocument: variables in a text are not available here".to_owned());
        }
        _ => ErrorAnswer::Text(text.into()),
    };
    Ok((status, answer))
}
