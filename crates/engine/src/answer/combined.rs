//! Fragments of a cached page that one request returns (`combine`).
//!
//! ```text
//!            all fragments looked up       the response is complete
//!   Looking ────────────────────────▶ Asking ────────────────▶ Over
//!      └── none is missing ───────────────────────────────────▶
//! ```
//!
//! Owns which of them are missing, and which part of the combined response each gets. Easiest to
//! break: a part for a URL that was not requested is dropped, and no part is stored for a wider
//! audience than the include in the page permits.

use std::collections::VecDeque;
use std::rc::Rc;

use bolide_cache::FillMoment;
use bolide_esi::{Combine, EsiInclude, EsiLimits, Inline};
use bolide_http::lscache::CacheScope;
use bytes::Bytes;

use super::fragment::{Fragment, FragmentStanding};
use crate::subrequest::{CombinedHead, FragmentSource, GivenFragment};

/// LIMIT: bytes of a combined response; a larger one is dropped.
const COMBINED_MAX: usize = 2 * 1024 * 1024;

/// The state of a combined request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CombineStage {
    /// Each fragment is looked up in the cache.
    Looking,
    /// The missing ones are requested.
    Asking,
    /// The response is complete.
    Over,
}

/// The fragments of a page that are requested together.
#[derive(Debug)]
pub(super) struct Combination {
    /// The include whose URL is requested.
    main: u32,
    stage: CombineStage,
    head: Rc<CombinedHead>,
    text: Vec<u8>,
    /// When it was requested.
    moment: Option<Rc<FillMoment>>,
    /// The parts of the response, by `src`.
    given: Vec<(Bytes, Rc<GivenFragment>)>,
}

impl Combination {
    /// Those of a cached page, all of whose includes are known; none if it has none.
    pub(super) fn of(fragments: &mut VecDeque<Fragment>) -> Option<Box<Self>> {
        let mut rest = fragments.iter_mut();
        let main = rest.find(|fragment| fragment.include.combine == Combine::Main)?;
        let combination = Self {
            main: main.number,
            stage: CombineStage::Looking,
            head: Rc::default(),
            text: Vec::new(),
            moment: None,
            given: Vec::new(),
        };
        if !rest.any(|fragment| combination.has(fragment)) {
            return None;
        }
        main.standing = FragmentStanding::Held;
        Some(Box::new(combination))
    }

    /// Whether a fragment is part of the response.
    fn has(&self, fragment: &Fragment) -> bool {
        let include = &fragment.include;
        fragment.number > self.main && include.combine == Combine::Sub && include.same_as.is_none()
    }

    /// Whether a fragment is being looked up and belongs to the combined request.
    pub(super) fn looks_for(&self, fragment: &Fragment) -> bool {
        self.stage == CombineStage::Looking && self.has(fragment)
    }

    /// Whether the include with this number is the combined request.
    pub(super) const fn is_main(&self, number: u32) -> bool {
        self.main == number
    }

    /// The possible sources of one of these fragments.
    pub(super) fn source_of(
        &self,
        fragment: &Fragment,
        fragments: &VecDeque<Fragment>,
    ) -> FragmentSource {
        if self.main == fragment.number {
            return FragmentSource::Combined(form(fragments));
        }
        if self.looks_for(fragment) {
            return FragmentSource::Kept;
        }
        let given = self.given.iter().find(|(src, _)| *src == fragment.include.src);
        match given.filter(|_| self.has(fragment)) {
            Some((_, given)) => FragmentSource::Given(given.clone()),
            None => FragmentSource::Anywhere,
        }
    }

    /// Continues when each fragment was found or is known to be missing.
    pub(super) fn settle(&mut self, fragments: &mut VecDeque<Fragment>) {
        use FragmentStanding::{Alternative, Asked, Missing, New, Nothing};
        let is_open = |fragment: &Fragment| {
            self.has(fragment) && matches!(fragment.standing, New | Alternative | Asked(_))
        };
        if self.stage != CombineStage::Looking || fragments.iter().any(is_open) {
            return;
        }
        let lacks_some = fragments.iter().any(|fragment| fragment.standing == Missing);
        self.stage = if lacks_some { CombineStage::Asking } else { CombineStage::Over };
        if let Some(main) = fragments.iter_mut().find(|fragment| self.main == fragment.number) {
            debug_assert!(main.standing == FragmentStanding::Held, "it is asked once");
            main.standing = if lacks_some { New } else { Nothing };
        }
    }

    /// The combined request is sent.
    pub(super) fn set_moment(&mut self, moment: Option<Rc<FillMoment>>) {
        debug_assert!(self.given.is_empty(), "parts come after their request");
        self.moment = moment;
    }

    /// The combined response begins.
    pub(super) fn begin(&mut self, head: CombinedHead) {
        debug_assert!(self.text.is_empty(), "a head comes before its body");
        self.head = Rc::new(head);
    }

    /// Takes bytes of the combined response; false if it is too long.
    pub(super) fn take(&mut self, bytes: &[u8]) -> bool {
        self.text.extend_from_slice(bytes);
        self.text.len() <= COMBINED_MAX
    }

    /// The combined response is complete: assigns its parts to the fragments; the others are
    /// requested one by one.
    pub(super) fn end(&mut self, is_whole: bool, fragments: &mut VecDeque<Fragment>) {
        let text = Bytes::from(std::mem::take(&mut self.text));
        debug_assert!(self.given.is_empty(), "an answer ends once");
        self.stage = CombineStage::Over;
        let inlines = match is_whole {
            true => bolide_esi::program::parse(text, EsiLimits::default()).inlines,
            false => Vec::new(),
        };
        let is_missing = |one: &&mut Fragment| one.standing == FragmentStanding::Missing;
        for fragment in fragments.iter_mut().filter(is_missing) {
            fragment.standing = FragmentStanding::New;
            let include = &fragment.include;
            if let Some(inline) = inlines.iter().find(|inline| inline.name == include.src) {
                let mut given = given(inline, include, &self.head);
                given.moment.clone_from(&self.moment);
                self.given.push((include.src.clone(), Rc::new(given)));
            }
        }
    }
}

/// The form that requests the missing fragments.
fn form(fragments: &VecDeque<Fragment>) -> Bytes {
    let mut form = Vec::new();
    let is_missing = |one: &&Fragment| one.standing == FragmentStanding::Missing;
    for fragment in fragments.iter().filter(is_missing) {
        debug_assert!(fragment.include.combine == Combine::Sub, "no other may be missing");
        if !form.is_empty() {
            form.push(b'&');
        }
        form.extend_from_slice(b"esi_include%5B%5D=");
        push_form_value(&mut form, &fragment.include.src);
    }
    form.into()
}

/// The part of the response for an include, from its inline.
fn given(inline: &Inline, include: &EsiInclude, whole: &Rc<CombinedHead>) -> GivenFragment {
    GivenFragment {
        control: inline.control,
        is_private: include.control.scope() == Some(CacheScope::Private),
        tags: inline.tags.clone().unwrap_or_default(),
        whole: whole.clone(),
        body: inline.body.clone(),
        moment: None,
    }
}

/// Appends a value of `application/x-www-form-urlencoded`.
fn push_form_value(out: &mut Vec<u8>, value: &[u8]) {
    const HEX: &[u8; 16] = b"0123456789ABCDEF";
    for &byte in value {
        if byte.is_ascii_alphanumeric() || b"-._*".contains(&byte) {
            out.push(byte);
        } else {
            out.extend([b'%', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::push_form_value;

    #[test]
    fn values_of_forms_are_escaped() {
        let mut out = Vec::new();
        push_form_value(&mut out, b"/?lsesi=a&_control=private,no-vary&x=%20+\xc3");
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "%2F%3Flsesi%3Da%26_control%3Dprivate%2Cno-vary%26x%3D%2520%2B%C3"
        );
    }
}
