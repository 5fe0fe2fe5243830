//! `SUBSTITUTE` and `INFLATE` of `.htaccess` files: which bodies they change.

use bolide_htaccess::{BodySubstitution, OutputFilter};
use bolide_http::FieldMap;

use crate::answer::{Answer, weaken};
use crate::request::Request;
use crate::site::CompiledLocation;

/// Whether filters change a body of this type and coding.
#[inline]
pub(crate) fn is_searched(
    answer: &Answer,
    request: &Request,
    (media, encoding): (&[u8], &[u8]),
    location: &CompiledLocation,
) -> bool {
    answer.may_be_searched && SearchOrder::of(request, answer, location, media).changes(encoding)
}

/// Makes the tag of a 304 that of the corresponding 200 (RFC 9110 §15.4.5): weak if a filter
/// changes the body of that. A 304 need not state the type and the coding of the 200: if it does
/// not, the tag is weak if a filter may change it.
pub(crate) fn tag_like_searched(
    fields: &mut FieldMap,
    answer: &Answer,
    request: &Request,
    (media, encoding): (Option<&[u8]>, Option<&[u8]>),
    location: &CompiledLocation,
) {
    if !answer.may_be_searched || answer.is_own_page {
        return;
    }
    let order = SearchOrder::asked(request, location, media).unwrap_or_default();
    if encoding.map_or(order.is_searched || order.inflates, |encoding| order.changes(encoding)) {
        weaken(fields);
    }
}

/// The filters of a body, besides compression.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SearchOrder {
    /// Whether `SUBSTITUTE` applies.
    pub(crate) is_searched: bool,
    /// Whether gzip is decompressed first, for all clients.
    pub(crate) inflates: bool,
}

impl SearchOrder {
    /// The filters of a response of type `media`.
    pub(crate) fn of(
        request: &Request,
        answer: &Answer,
        location: &CompiledLocation,
        media: &[u8],
    ) -> Self {
        match answer.may_be_searched && !answer.is_own_page {
            true => Self::asked(request, location, Some(media)).unwrap_or_default(),
            false => Self::default(),
        }
    }

    /// As [`Self::of`]; without a type, the filters that may apply.
    #[cold]
    fn asked(request: &Request, location: &CompiledLocation, media: Option<&[u8]>) -> Option<Self> {
        location.htaccess?;
        let ruling = request.htaccess.as_deref()?;
        let places = ruling.places.as_deref()?;
        let applied = places.applied();
        let is_script = location.pass.is_some();
        let asked = ruling.media_type.as_deref().or(applied.nature(&places.name).media_type);
        let filters = match asked.filter(|_| !is_script).or(media) {
            Some(media) => applied.output_filters(&ruling.named_filters, media),
            None => applied.output_filters_of_any(&ruling.named_filters),
        };
        let (mut is_searched, mut inflates) = (false, false);
        for filter in filters {
            is_searched |= filter == OutputFilter::Substitute;
            // The coding of a stored file is part of it.
            inflates |= filter == OutputFilter::Inflate && is_script;
        }
        Some(Self { is_searched: is_searched && applied.substitutes(), inflates })
    }

    /// The substitutions of the body.
    pub(crate) fn substitution(self, request: &Request) -> Option<BodySubstitution> {
        debug_assert!(
            !self.is_searched || request.htaccess.is_some(),
            "files have bodies searched"
        );
        let places = request.htaccess.as_deref().and_then(|ruling| ruling.places.as_deref());
        places.filter(|_| self.is_searched)?.applied().substitution()
    }

    /// Whether it changes a body with this coding.
    pub(crate) const fn changes(self, encoding: &[u8]) -> bool {
        let is_gzip = encoding.eq_ignore_ascii_case(b"gzip");
        self.inflates && is_gzip || self.is_searched && encoding.is_empty()
    }
}
