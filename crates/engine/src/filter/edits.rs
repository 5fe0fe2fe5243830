//! `more_set_headers`, `more_set_input_headers` and their kin.
//!
//! Owns the order of edits and the fields that they cannot change: framing, and the coding of a
//! body. Response fields are edited before `expires` and `add_header`, request fields at the end of
//! the rewrite phase, before a cache key is built.

use bolide_conf::model::edits::is_framing;
use bolide_conf::model::{CharsetOf, HeaderEdit, HeaderEditMode, HeaderEdits};
use bolide_http::{FieldMap, Name, RequestHead};

use crate::answer::Answer;
use crate::ctx::StepCtx;
use crate::filter::headers::push_absolute;
use crate::request::Request;
use crate::site::Site;
use crate::vars::VariableScope;

/// Edits the fields of a response; they are not yet part of the scope's answer.
#[cold]
pub(super) fn edit_answer(
    fields: &mut FieldMap,
    scope: &VariableScope<'_>,
    status: u16,
    scratch: &mut Vec<u8>,
) {
    for edits in scope.location().settings.edits.iter() {
        let is_meant = edits.statuses.is_empty() || edits.statuses.contains(&u32::from(status));
        let content_type = fields.get(Name::ContentType).unwrap_or_default();
        if !is_meant || !is_of_type(edits, media_type(content_type)) {
            continue;
        }
        for edit in &edits.edits {
            scratch.clear();
            if let HeaderEdit::Set { value, .. } = edit {
                VariableScope { sent: Some(fields), ..*scope }.expand(value, scratch);
                blank(scratch);
            }
            match edit {
                HeaderEdit::Set { name, text, .. } if !scratch.is_empty() => {
                    set(fields, (*name, text), edits.mode, scratch, (status, scope));
                }
                edit => clear(fields, edit),
            }
        }
    }
}

/// Sets a response field to the value in `scratch`.
fn set(
    fields: &mut FieldMap,
    (name, text): (Name, &[u8]),
    mode: HeaderEditMode,
    scratch: &mut Vec<u8>,
    (status, scope): (u16, &VariableScope<'_>),
) {
    match name {
        // RFC 9110 §8.3: without content there is no type.
        Name::ContentType if status == 204 => {}
        Name::ContentType => {
            push_charset(fields, scope, scratch);
            fields.replace(name, text, scratch);
        }
        // The coding of the body is fixed.
        Name::ContentEncoding if fields.get(name).is_some() => {}
        Name::Location if scratch.first() == Some(&b'/') => {
            let path = std::mem::take(scratch);
            push_absolute(scope, &path, scratch);
            fields.replace(name, text, scratch);
        }
        Name::Server | Name::Date | Name::LastModified => fields.set(name, scratch),
        _ if mode == HeaderEditMode::Append && !stands_alone(name) => {
            fields.push_parsed(name, text, scratch);
        }
        _ => fields.replace(name, text, scratch),
    }
}

/// Fields with at most one value, so that `-a` replaces them.
const fn stands_alone(name: Name) -> bool {
    matches!(
        name,
        Name::AcceptRanges
            | Name::ContentRange
            | Name::Etag
            | Name::Expires
            | Name::Location
            | Name::Refresh
            | Name::RetryAfter
    )
}

/// Adds a charset to a new content type that has none: the upstream's, or that of the configuration
/// if the type is one of `charset_types`.
fn push_charset(fields: &FieldMap, scope: &VariableScope<'_>, value: &mut Vec<u8>) {
    if memchr::memchr(b';', value).is_some() {
        return;
    }
    let charset = &scope.location().settings.charset;
    let mut own = Vec::new();
    if let CharsetOf::Name(name) = &charset.charset {
        scope.expand(name, &mut own);
    }
    let before = fields.get(Name::ContentType).and_then(charset_of).unwrap_or_default();
    let chosen = match before {
        b"" if charset.types.contains(value) => &own,
        before if before == own && !charset.types.contains(value) => return,
        before => before,
    };
    if !chosen.is_empty() {
        value.extend_from_slice(b"; charset=");
        value.extend_from_slice(chosen);
    }
}

/// The charset among the parameters of a content type.
fn charset_of(value: &[u8]) -> Option<&[u8]> {
    value.split(|byte| *byte == b';').skip(1).find_map(|parameter| {
        let (name, charset) = parameter.trim_ascii().split_at_checked(b"charset=".len())?;
        name.eq_ignore_ascii_case(b"charset=").then_some(charset)
    })
}

/// Removes the fields that an edit names.
fn clear(fields: &mut FieldMap, edit: &HeaderEdit) {
    match edit {
        HeaderEdit::Set { name, text, .. } | HeaderEdit::Clear { name, text } => match name {
            Name::ContentEncoding => {}
            Name::Other => fields.remove_text(text),
            known => fields.remove(*known),
        },
        HeaderEdit::ClearPrefix(prefix) => {
            fields.remove_prefix(prefix, |name| is_framing(name) || name == Name::ContentEncoding);
        }
    }
}

fn media_type(value: &[u8]) -> &[u8] {
    value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

fn is_of_type(edits: &HeaderEdits, value: &[u8]) -> bool {
    edits.types.is_empty() || edits.types.iter().any(|one| **one == *value)
}

/// RFC 9110 §5.5: bytes that would end a field line become blanks.
fn blank(value: &mut [u8]) {
    for byte in value.iter_mut().filter(|byte| matches!(byte, 0 | b'\r' | b'\n')) {
        *byte = b' ';
    }
}

/// Edits the fields of a request, at the end of the rewrite phase of its location.
#[cold]
pub(crate) fn edit_request(
    request: &mut Request,
    answer: &Answer,
    site: &Site,
    ctx: &mut StepCtx<'_>,
) {
    let location = site.location(request.location);
    // The next request for the same target may be edited differently.
    request.is_straight = false;
    let mut value = Vec::new();
    for edits in location.settings.input_edits.iter() {
        // As in nginx, a type with parameters is another type.
        let fields = &request.head().fields;
        if !is_of_type(edits, fields.get(Name::ContentType).unwrap_or_default()) {
            continue;
        }
        for edit in &edits.edits {
            value.clear();
            if let HeaderEdit::Set { value: template, .. } = edit {
                VariableScope::new(request, answer, site, ctx).expand(template, &mut value);
                blank(&mut value);
            }
            let before = request.head().fields.get(Name::Host).map(<[u8]>::to_vec);
            let Some(RequestHead { fields, .. }) = request.head_mut() else { return };
            match edit {
                HeaderEdit::Set { name, text, .. } if !value.is_empty() => {
                    let is_there = fields.all_text(text).next().is_some();
                    if is_there || edits.mode != HeaderEditMode::Replace {
                        fields.replace(*name, text, &value);
                    }
                }
                HeaderEdit::Set { text, .. } | HeaderEdit::Clear { text, .. } => {
                    fields.remove_text(text);
                }
                edit @ HeaderEdit::ClearPrefix(_) => clear(fields, edit),
            }
            let host = request.head().fields.get(Name::Host).map(<[u8]>::to_vec);
            if host != before {
                request.change_host(&host.unwrap_or_default());
            }
        }
    }
}
