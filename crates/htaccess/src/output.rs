//! mod_filter and mod_deflate: which content codings files ask for and which they forbid.
//!
//! Only the filters that code a body are known; making the codings is the caller's.

use crate::env_table::EnvTable;
use crate::fault::{Told, shown};
use crate::lines::ArgumentWords;

/// LIMIT: types of one place.
const TYPES_MAX: usize = 2_000;

/// A filter that makes a content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFilter {
    /// `DEFLATE`, which makes gzip.
    Deflate,
    /// `BROTLI_COMPRESS`
    Brotli,
}

/// What a place says about filters.
#[derive(Clone, Debug, Default)]
pub(crate) struct OutputFilters {
    /// `SetOutputFilter`; empty for `None`.
    pub(crate) set: Option<Vec<OutputFilter>>,
    /// `AddOutputFilterByType`
    pub(crate) by_type: Vec<(Box<[u8]>, OutputFilter)>,
}

/// Which codings variables forbid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CodingsForbidden {
    /// `no-gzip`
    gzip: bool,
    /// `no-brotli`
    brotli: bool,
    /// `gzip-only-text/html`: gzip for other types.
    gzip_of_others: bool,
}

impl CodingsForbidden {
    /// What the variables of a request forbid.
    #[must_use]
    pub fn of(env: &EnvTable) -> Self {
        Self {
            gzip: env.of(b"no-gzip").is_some(),
            brotli: env.of(b"no-brotli").is_some(),
            gzip_of_others: env.of(b"gzip-only-text/html").is_some(),
        }
    }

    /// Whether a filter does nothing to an answer of this type.
    #[must_use]
    pub fn forbids(self, filter: OutputFilter, media_type: &[u8]) -> bool {
        let is_html =
            media_type.get(..9).is_some_and(|start| start.eq_ignore_ascii_case(b"text/html"));
        match filter {
            OutputFilter::Deflate => self.gzip || self.gzip_of_others && !is_html,
            OutputFilter::Brotli => self.brotli,
        }
    }

    /// Whether anything is forbidden.
    #[must_use]
    pub const fn is_some(self) -> bool {
        self.gzip || self.brotli || self.gzip_of_others
    }
}

fn filters(name: &str, word: &[u8]) -> Told<Vec<OutputFilter>> {
    let one = |word: &[u8]| match &word.trim_ascii().to_ascii_lowercase()[..] {
        b"deflate" => Ok(OutputFilter::Deflate),
        b"brotli_compress" => Ok(OutputFilter::Brotli),
        _ => Err(format!("{name}: filter '{}' is not available here", shown(word))),
    };
    word.split(|byte| *byte == b';').map(one).collect()
}

/// `SetOutputFilter FILTER[;FILTER…] | None`
pub(crate) fn set(own: &mut OutputFilters, arguments: &[u8]) -> Told<()> {
    let words: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
    let [word] = &words[..] else { return Err("SetOutputFilter takes one argument".to_owned()) };
    own.set = Some(match word.eq_ignore_ascii_case(b"none") {
        true => Vec::new(),
        false => filters("SetOutputFilter", word)?,
    });
    Ok(())
}

/// `AddOutputFilterByType FILTER[;FILTER…] TYPE…`
pub(crate) fn add_by_type(own: &mut OutputFilters, arguments: &[u8]) -> Told<()> {
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
            // As in Apache, letters have to be those of the type.
            own.by_type.push((media_type.clone().into(), *filter));
        }
    }
    Ok(())
}
