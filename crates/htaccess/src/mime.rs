//! Types, handlers, codings, charsets and languages by extension; every extension of a name counts.

/// An extension and its value; none removes an inherited value.
type MimeEntry = (Box<[u8]>, Option<Box<[u8]>>);

/// The extensions of one place. A removal is an entry without a value.
#[derive(Clone, Debug, Default)]
pub(crate) struct MimeRules {
    pub(crate) types: Vec<MimeEntry>,
    pub(crate) handlers: Vec<MimeEntry>,
    pub(crate) charsets: Vec<MimeEntry>,
    pub(crate) encodings: Vec<MimeEntry>,
    pub(crate) languages: Vec<MimeEntry>,
    /// `ForceType`; the inner none is `None`.
    pub(crate) forced: Option<Option<Box<[u8]>>>,
    /// `SetHandler`; the inner none is `None`.
    pub(crate) handler: Option<Option<Box<[u8]>>>,
    /// `AddDefaultCharset`; the inner none is `Off`.
    pub(crate) default_charset: Option<Option<Box<[u8]>>>,
    /// `DefaultLanguage`
    pub(crate) default_language: Option<Box<[u8]>>,
}

/// The properties of a file by its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileNature<'a> {
    /// Its media type, if a rule sets it.
    pub media_type: Option<&'a [u8]>,
    /// Whether a rule removes the type of its extension.
    pub is_untyped: bool,
    /// Its handler, if a rule sets one.
    pub handler: Option<&'a [u8]>,
    /// Whether a rule removes the handler of its extension or a section says `SetHandler None`, and
    /// none sets one.
    pub is_unhandled: bool,
    /// The charset for its type.
    pub charset: Option<&'a [u8]>,
    /// Its content coding.
    pub encoding: Option<&'a [u8]>,
    /// The charset of types `text/plain` and `text/html` that have none.
    pub default_charset: Option<&'a [u8]>,
}

impl MimeRules {
    /// Whether a handler or a type for a file called `name` is one that `is_program` knows.
    pub(crate) fn names_program(&self, name: &[u8], is_program: impl Fn(&[u8]) -> bool) -> bool {
        let has = |(own, value): &MimeEntry| {
            let mut extensions = name.split(|byte| *byte == b'.').skip(1);
            extensions.any(|one| one.eq_ignore_ascii_case(own))
                && value.as_deref().is_some_and(&is_program)
        };
        let whole = [&self.handler, &self.forced].into_iter().flatten().flatten();
        self.types.iter().chain(&self.handlers).any(has)
            || whole.into_iter().any(|it| is_program(it))
    }
}

type Map = [MimeEntry];

fn of<'a>(map: &'a Map, extension: &[u8]) -> Option<Option<&'a [u8]>> {
    let found = map.iter().rfind(|(known, _)| known.eq_ignore_ascii_case(extension));
    found.map(|(_, value)| value.as_deref())
}

impl<'a> FileNature<'a> {
    /// The properties of a file called `name` by `places`, the deepest first.
    pub(crate) fn new(places: &[&'a MimeRules], name: &[u8]) -> Self {
        let mut own = Self::default();
        let first = |map: fn(&MimeRules) -> &Map, extension: &[u8]| -> Option<&'a [u8]> {
            places.iter().find_map(|place| of(map(place), extension)).flatten()
        };
        for extension in name.split(|byte| *byte == b'.').skip(1) {
            let take = |place: &mut Option<&'a [u8]>, found: Option<&'a [u8]>| {
                *place = found.or(*place);
            };
            let of_type = places.iter().find_map(|place| of(&place.types, extension));
            take(&mut own.media_type, of_type.flatten());
            own.is_untyped |= of_type == Some(None);
            let of_handler = places.iter().find_map(|place| of(&place.handlers, extension));
            take(&mut own.handler, of_handler.flatten());
            own.is_unhandled |= of_handler == Some(None);
            take(&mut own.charset, first(|place| &place.charsets, extension));
            take(&mut own.encoding, first(|place| &place.encodings, extension));
        }
        if let Some(Some(forced)) = places.iter().find_map(|place| place.forced.as_ref()) {
            own.media_type = Some(forced);
            own.charset = None;
        }
        own.is_untyped &= own.media_type.is_none();
        // `SetHandler` takes precedence over an extension's handler, which `None` leaves alone.
        if let Some(Some(handler)) = places.iter().find_map(|place| place.handler.as_ref()) {
            own.handler = Some(handler);
        }
        own.is_unhandled &= own.handler.is_none();
        let charset = places.iter().find_map(|place| place.default_charset.as_ref());
        own.default_charset = charset.and_then(Option::as_deref);
        own
    }
}

/// The languages of a file called `name` by `places`, the deepest first, in the form of
/// `Content-Language`; empty for none.
pub(crate) fn languages(places: &[&MimeRules], name: &[u8]) -> Vec<u8> {
    let mut all: Vec<u8> = Vec::new();
    let of_extension = |extension: &[u8]| {
        places.iter().find_map(|place| of(&place.languages, extension)).flatten()
    };
    let default = || places.iter().find_map(|place| place.default_language.as_deref());
    for language in name.split(|byte| *byte == b'.').skip(1).filter_map(of_extension) {
        if !all.is_empty() {
            all.push(b',');
        }
        all.extend_from_slice(language);
    }
    if all.is_empty() {
        all.extend_from_slice(default().unwrap_or_default());
    }
    all
}

#[cfg(test)]
mod tests {
    use super::{FileNature, MimeRules, languages};

    #[test]
    fn every_extension_counts_and_the_deepest_place_first() {
        let entry = |extension: &str, value: Option<&str>| {
            let value = value.map(|value| value.as_bytes().into());
            (extension.as_bytes().into(), value)
        };
        let upper = MimeRules {
            types: vec![entry("txt", Some("text/plain")), entry("txt", Some("text/x"))],
            handlers: vec![entry("php", Some("php"))],
            ..MimeRules::default()
        };
        let lower = MimeRules { handlers: vec![entry("php", None)], ..MimeRules::default() };
        let of = |places: &[&'static MimeRules], name: &[u8]| FileNature::new(places, name);
        let (upper, lower) = (&*Box::leak(Box::new(upper)), &*Box::leak(Box::new(lower)));
        assert_eq!(of(&[upper], b"a.PHP.jpg").handler, Some(&b"php"[..]));
        assert_eq!(of(&[lower, upper], b"a.php").handler, None);
        assert_eq!(of(&[upper], b"a.txt.unknown").media_type, Some(&b"text/x"[..]));
        assert_eq!(of(&[upper], b"php").handler, None);
    }

    #[test]
    fn languages_add_up_and_one_is_left_if_none_is_named() {
        let entry = |extension: &str, value: Option<&str>| {
            let value = value.map(|value| value.as_bytes().into());
            (extension.as_bytes().into(), value)
        };
        let upper = MimeRules {
            languages: vec![entry("en", Some("en")), entry("fr", Some("fr-CA"))],
            default_language: Some(b"de"[..].into()),
            ..MimeRules::default()
        };
        let lower = MimeRules { languages: vec![entry("fr", None)], ..MimeRules::default() };
        assert_eq!(languages(&[&upper], b"a.html.en.FR"), b"en,fr-CA");
        assert_eq!(languages(&[&lower, &upper], b"a.fr.en"), b"en");
        assert_eq!(languages(&[&lower, &upper], b"a.fr"), b"de");
        assert_eq!(languages(&[&lower], b"en"), b"");
    }
}
