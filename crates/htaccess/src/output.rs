//! mod_filter and mod_deflate: the output filters of files, and forbidden content codings.
//!
//! Only filters for compression and substitution are supported; the caller applies them.
//! Substitution comes before compression, in whatever order they are named.

use crate::env_table::EnvTable;
use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;

/// LIMIT: types of one place.
const TYPES_MAX: usize = 2_000;

/// A filter of bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFilter {
    /// `DEFLATE`, which makes gzip.
    Deflate,
    /// `BROTLI_COMPRESS`
    Brotli,
    /// `INFLATE`, which decompresses gzip.
    Inflate,
    /// `SUBSTITUTE`
    Substitute,
}

impl OutputFilter {
    /// Whether it applies a content coding.
    #[must_use]
    pub const fn codes(self) -> bool {
        matches!(self, Self::Deflate | Self::Brotli)
    }
}

/// An extension with its filters; an empty list removes inherited ones.
type FilterEntry = (Box<[u8]>, Vec<OutputFilter>);

/// The filters of a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputFilters {
    /// `SetOutputFilter`; empty for `None`.
    pub(crate) set: Option<Vec<OutputFilter>>,
    /// `AddOutputFilterByType`
    pub(crate) by_type: Vec<(Box<[u8]>, OutputFilter)>,
    /// `AddOutputFilter` and `RemoveOutputFilter`
    pub(crate) by_extension: Vec<FilterEntry>,
}

impl OutputFilters {
    /// Whether there are any.
    pub(crate) fn is_some(&self) -> bool {
        self.set.is_some() || !self.by_type.is_empty() || !self.by_extension.is_empty()
    }

    /// Whether the place has a filter that changes a body other than by compression.
    pub(crate) fn reworks(&self) -> bool {
        let set = self.set.iter().flatten();
        let by_extension = self.by_extension.iter().flat_map(|(_, filters)| filters);
        let by_type = self.by_type.iter().map(|(_, filter)| filter);
        set.chain(by_extension).chain(by_type).any(|filter| !filter.codes())
    }

    /// The filters for an extension in this place.
    pub(crate) fn of_extension(&self, extension: &[u8]) -> Option<&[OutputFilter]> {
        let is_it = |(known, _): &&FilterEntry| known.eq_ignore_ascii_case(extension);
        self.by_extension.iter().rfind(is_it).map(|(_, filters)| &filters[..])
    }
}

/// The codings that variables forbid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodingsForbidden {
    /// `no-gzip`
    gzip: bool,
    /// `no-brotli`
    brotli: bool,
    /// `gzip-only-text/html`: forbids gzip for other types.
    gzip_of_others: bool,
}

impl CodingsForbidden {
    /// The codings that the variables of a request forbid.
    #[must_use]
    pub fn of(env: &EnvTable) -> Self {
        Self {
            gzip: env.of(b"no-gzip").is_some(),
            brotli: env.of(b"no-brotli").is_some(),
            gzip_of_others: env.of(b"gzip-only-text/html").is_some(),
        }
    }

    /// Whether a filter is forbidden for a response of this type.
    #[must_use]
    pub fn forbids(self, filter: OutputFilter, media_type: &[u8]) -> bool {
        let is_html =
            media_type.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"text/html"));
        match filter {
            OutputFilter::Deflate => self.gzip || self.gzip_of_others && !is_html,
            OutputFilter::Brotli => self.brotli,
            OutputFilter::Inflate | OutputFilter::Substitute => false,
        }
    }

    /// Whether anything is forbidden.
    #[must_use]
    pub const fn is_some(self) -> bool {
        self.gzip || self.brotli || self.gzip_of_others
    }
}

fn filters(name: &str, word: &[u8]) -> ParseResult<Vec<OutputFilter>> {
    let one = |word: &[u8]| match &word.trim_ascii().to_ascii_lowercase()[..] {
        b"deflate" => Ok(OutputFilter::Deflate),
        b"brotli_compress" => Ok(OutputFilter::Brotli),
        b"inflate" => Ok(OutputFilter::Inflate),
        b"substitute" => Ok(OutputFilter::Substitute),
        _ => Err(format!("{name}: filter '{}' is not available here", shown(word))),
    };
    word.split(|byte| *byte == b';').map(one).collect()
}

/// `SetOutputFilter FILTER[;FILTER…] | None`
pub(crate) fn set(own: &mut OutputFilters, arguments: &[u8]) -> ParseResult<()> {
    let words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
    let [word] = &words[..] else { return Err("SetOutputFilter takes one argument".to_owned()) };
    own.set = Some(match word.eq_ignore_ascii_case(b"none") {
        true => Vec::new(),
        false => filters("SetOutputFilter", word)?,
    });
    Ok(())
}

/// `AddOutputFilterByType FILTER[;FILTER…] TYPE…`
pub(crate) fn add_by_type(own: &mut OutputFilters, arguments: &[u8]) -> ParseResult<()> {
    let mut words = ArgumentWords::new(arguments);
    let (Some(first), [_, ..]) = (words.next_word(), words.rest()) else {
        return Err("AddOutputFilterByType requires at least two arguments".to_owned());
    };
    let filters = filters("AddOutputFilterByType", &first)?;
    for media_type in words {
        for filter in &filters {
            if own.by_type.len() >= TYPES_MAX {
                return Err(format!("more than {TYPES_MAX} types with filters"));
            }
            // As in Apache, case matters.
            own.by_type.push((media_type.clone().into(), *filter));
        }
    }
    Ok(())
}

fn extension(word: &[u8]) -> Box<[u8]> {
    word.strip_prefix(b".").unwrap_or(word).into()
}

/// `AddOutputFilter FILTER[;FILTER…] EXTENSION…`
pub(crate) fn add(own: &mut OutputFilters, arguments: &[u8]) -> ParseResult<()> {
    let mut words = ArgumentWords::new(arguments);
    let (Some(first), [_, ..]) = (words.next_word(), words.rest()) else {
        return Err("AddOutputFilter requires at least two arguments".to_owned());
    };
    let filters = filters("AddOutputFilter", &first)?;
    own.by_extension.extend(words.map(|word| (extension(&word), filters.clone())));
    bounded(own)
}

/// `RemoveOutputFilter EXTENSION…`
pub(crate) fn remove(own: &mut OutputFilters, arguments: &[u8]) -> ParseResult<()> {
    let words = ArgumentWords::new(arguments);
    if words.rest().is_empty() {
        return Err("RemoveOutputFilter requires at least one argument".to_owned());
    }
    own.by_extension.extend(words.map(|word| (extension(&word), Vec::new())));
    bounded(own)
}

fn bounded(own: &OutputFilters) -> ParseResult<()> {
    match own.by_extension.len() > TYPES_MAX {
        true => Err(format!("more than {TYPES_MAX} extensions with filters")),
        false => Ok(()),
    }
}
