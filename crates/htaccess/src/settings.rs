//! All that one place (a file, or a section of it) says, and its sections.

use crate::access::{HostAccess, Requirement};
use crate::cache::CacheLine;
use crate::expires::Expiry;
use crate::expr::Expr;
use crate::fault::HtaccessFault;
use crate::headers::HeaderLine;
use crate::mime::MimeRules;
use crate::options::OptionsChange;
use crate::output::OutputFilters;
use crate::overrides::{AllowedOverrides, NeededOverrides};
use crate::pattern::Pattern;
use crate::redirect::{ErrorAnswer, Redirection};
use crate::rewrite::Rewriting;
use crate::setenv::{EnvCondition, EnvRule};
use crate::substitute::SubstituteSettings;
use crate::tls::TlsSettings;

/// A parsed file.
#[derive(Clone, Debug, Default)]
pub struct HtaccessFile {
    pub(crate) settings: Settings,
    pub(crate) needs: NeededOverrides,
    /// Bytes of memory that its expressions take, but for those forms of them that are compiled
    /// where a match has to be counted.
    pub(crate) weight: usize,
}

impl HtaccessFile {
    /// Bytes of memory that its expressions take before matches are counted.
    #[must_use]
    pub const fn weight(&self) -> usize {
        self.weight
    }

    /// The first line that has what is not allowed.
    #[must_use]
    pub fn beyond(&self, allowed: AllowedOverrides) -> Option<HtaccessFault> {
        self.needs.beyond(allowed)
    }
}

/// What one place says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// Lines of `Require`; empty for none.
    pub(crate) rules: Vec<Requirement>,
    pub(crate) merging: Option<AuthMerging>,
    pub(crate) hosts: HostAccess,
    pub(crate) tls: TlsSettings,
    pub(crate) auth_type: Option<AuthScheme>,
    pub(crate) auth_name: Option<Box<[u8]>>,
    pub(crate) user_file: Option<Box<[u8]>>,
    pub(crate) group_file: Option<Box<[u8]>>,
    pub(crate) rewriting: Rewriting,
    pub(crate) options: Option<OptionsChange>,
    pub(crate) index: Option<Vec<Box<[u8]>>>,
    /// The inner none is `disabled`.
    pub(crate) fallback: Option<Option<Box<[u8]>>>,
    /// `DirectorySlash`
    pub(crate) closes_directories: Option<bool>,
    /// `AcceptPathInfo`
    pub(crate) path_info: Option<PathInfoRule>,
    pub(crate) hidden: Vec<Box<[u8]>>,
    pub(crate) headers: Vec<HeaderLine>,
    pub(crate) request_headers: Vec<HeaderLine>,
    pub(crate) expiry: Expiry,
    pub(crate) errors: Vec<(u16, ErrorAnswer)>,
    pub(crate) redirects: Vec<Redirection>,
    pub(crate) mime: MimeRules,
    pub(crate) env: Vec<EnvRule>,
    pub(crate) env_if: Vec<EnvCondition>,
    pub(crate) etag: Option<EtagParts>,
    pub(crate) php: Vec<PhpSetting>,
    pub(crate) output: OutputFilters,
    pub(crate) substitute: SubstituteSettings,
    /// `LimitRequestBody`; 0 is none.
    pub(crate) body_max: Option<u64>,
    /// LiteSpeed's directives.
    pub(crate) cache: Vec<CacheLine>,
    pub(crate) sections: Vec<FileSection>,
}

/// How `Require` of a place and of that above are put together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthMerging {
    Off,
    And,
    Or,
}

/// How a client shows who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthScheme {
    /// Not at all.
    None,
    /// Name and password.
    Basic,
}

/// What becomes of a path that goes on behind a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathInfoRule {
    /// A script gets the rest, a file is not found.
    #[default]
    Default,
    /// The file is answered.
    Accept,
    /// Nothing is found.
    Refuse,
}

/// What an `ETag` is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtagParts {
    /// There is none.
    None,
    /// Time and size, as the server always makes it.
    Usual,
}

/// A setting of PHP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhpSetting {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its value; `1` or `0` of a flag. None for `none`, which takes it back.
    pub value: Option<Box<[u8]>>,
}

/// A section, and what it says.
#[derive(Clone, Debug)]
pub(crate) enum FileSection {
    /// `<Files>` with wildcards.
    Named(Box<[u8]>, Box<Settings>),
    /// `<FilesMatch>`
    Matching(Pattern, Box<Settings>),
    /// `<If>` and what belongs to it; `<Else>` has no condition. The first that holds applies.
    Branches(Vec<SectionBranch>),
}

/// `<If>`, `<ElseIf>` or `<Else>`.
#[derive(Clone, Debug)]
pub(crate) struct SectionBranch {
    pub(crate) condition: Option<Expr>,
    pub(crate) settings: Settings,
    /// Where it stands.
    pub(crate) line: u32,
}
