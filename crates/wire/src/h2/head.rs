//! Assembles decoded fields to a request head, or rejects them (RFC 9113 §8.2, §8.3).
//!
//! Connects HPACK to the rules in `pseudo`. It never stops the decoder: an incomplete block would
//! leave the dynamic tables of the two peers different.

use bolide_http::{HttpVersion, Name, RequestHead};

use super::H2Settings;
use crate::Traits;
use crate::hpack::{FieldToken, Sink};
use crate::pseudo::{self, Flaw, Following, Label, PseudoRules};
use crate::sched::Priority;

/// The properties of a finished head that the connection needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct FinishedHead {
    /// Why it is no request that can be served, if so.
    pub(super) flaw: Option<Flaw>,
    pub(super) priority: Option<Priority>,
}

/// The rules for a connection with these settings.
pub(super) const fn rules(settings: &H2Settings) -> PseudoRules {
    PseudoRules {
        version: HttpVersion::Http2,
        head_size_max: settings.head_size_max,
        fields_max: settings.fields_max,
        underscores_in_headers: settings.underscores_in_headers,
        ignore_invalid_headers: settings.ignore_invalid_headers,
    }
}

/// A request head under construction.
#[derive(Debug)]
pub(super) struct HeadAssembly<'a>(pseudo::PseudoAssembly<'a>);

impl<'a> HeadAssembly<'a> {
    /// Starts a head; `head` must be empty.
    pub(super) fn new(rules: &'a PseudoRules, head: &'a mut RequestHead) -> Self {
        Self(pseudo::PseudoAssembly::new(rules, head))
    }

    /// Checks the required fields and completes the head.
    pub(super) fn finish(self, ends_stream: bool) -> Option<Flaw> {
        let following = if ends_stream { Following::Nothing } else { Following::Perhaps };
        self.0.finish(following).err()
    }
}

/// RFC 9218 §5: the priority of a request, if it states one.
pub(super) fn priority(head: &RequestHead) -> Option<Priority> {
    head.fields.get(Name::Priority).map(Priority::parse)
}

#[inline]
const fn label(token: FieldToken, traits: Traits, name: &[u8]) -> Label<'_> {
    match token {
        FieldToken::Method => Label::Method,
        FieldToken::Scheme => Label::Scheme,
        FieldToken::Authority => Label::Authority,
        FieldToken::Path => Label::Path,
        FieldToken::Status => Label::WrongPseudo,
        FieldToken::Field(Name::Other) => Label::Text(name),
        FieldToken::Field(_) if traits.has(Traits::BAD_NAME) => Label::Text(name),
        FieldToken::Field(known) => Label::Known(known),
    }
}

impl Sink for HeadAssembly<'_> {
    #[inline]
    fn field(&mut self, token: FieldToken, traits: Traits, name: &[u8], value: &[u8]) {
        self.0.checked(label(token, traits, name), name.len() + value.len(), traits, value);
    }
}

/// Decodes a block and drops its fields.
pub(super) struct Swallow;

impl Sink for Swallow {
    fn field(&mut self, _: FieldToken, _: Traits, _: &[u8], _: &[u8]) {}
}

/// Decodes trailers and drops them.
#[derive(Default)]
pub(super) struct Trailers {
    /// Whether a field is malformed or a pseudo-header field.
    pub(super) are_malformed: bool,
}

impl Sink for Trailers {
    fn field(&mut self, token: FieldToken, traits: Traits, name: &[u8], _: &[u8]) {
        self.are_malformed |= pseudo::check_trailer(label(token, traits, name), traits).is_err();
    }
}
