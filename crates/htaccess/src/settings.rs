//! The directives of one place (a file, or a section of it), and its sections.

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
    /// The memory of its expressions in bytes, without those compiled later to count matches.
    pub(crate) weight: usize,
    /// Lines that mean less than they say.
    pub(crate) notes: Vec<HtaccessFault>,
}

impl HtaccessFile {
    /// The memory of its expressions in bytes, before matches are counted.
    #[must_use]
    pub const fn weight(&self) -> usize {
        self.weight
    }

    /// Lines that do not have the effect that they have elsewhere; only the first ones.
    #[must_use]
    pub fn notes(&self) -> &[HtaccessFault] {
        &self.notes
    }

    /// The first line with a directive that is not permitted.
    #[must_use]
    pub fn beyond(&self, allowed: AllowedOverrides) -> Option<HtaccessFault> {
        self.needs.beyond(allowed)
    }
}

/// The directives of one place.
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
    pub(crate) redirects_to_slash: Option<bool>,
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
    /// `LimitRequestBody`; 0 for no limit.
    pub(crate) body_max: Option<u64>,
    /// LiteSpeed's directives.
    pub(crate) cache: Vec<CacheLine>,
    pub(crate) sections: Vec<FileSection>,
}

/// How `Require` of a place is combined with that of the place above.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthMerging {
    Off,
    And,
    Or,
}

/// The authentication scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AuthScheme {
    /// Not at all.
    None,
    /// Name and password.
    Basic,
}

/// The handling of a path that continues after a file (`PATH_INFO`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PathInfoRule {
    /// A script gets the rest; a static file is not found.
    #[default]
    Default,
    /// The file is served.
    Accept,
    /// The file is not found.
    Refuse,
}

/// The parts of an `ETag`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EtagParts {
    /// There is none.
    None,
    /// Time and size, as the server always uses.
    Usual,
}

/// A setting of PHP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PhpSetting {
    /// Its name.
    pub name: Box<[u8]>,
    /// Its value; `1` or `0` for a flag. As in mod_php, it is empty for `none`.
    pub value: Box<[u8]>,
}

impl PhpSetting {
    /// Appends it as a line of `PHP_VALUE`, which php-fpm reads like a line of `php.ini`: nothing
    /// in single quotes has a meaning there, but they may not be empty.
    pub fn push_ini_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.name);
        out.extend_from_slice(b"=\"\"");
        for (index, piece) in self.value.split(|byte| *byte == b'\'').enumerate() {
            if index > 0 {
                out.extend_from_slice(b"\"'\"");
            }
            if !piece.is_empty() {
                out.push(b'\'');
                out.extend_from_slice(piece);
                out.push(b'\'');
            }
        }
        out.push(b'\n');
    }

    /// Whether it names code to be run with each script.
    #[must_use]
    pub fn names_code(&self) -> bool {
        [&b"auto_prepend_file"[..], b"auto_append_file"]
            .iter()
            .any(|name| self.name.eq_ignore_ascii_case(name) && !self.value.is_empty())
    }
}

/// A section with its directives.
#[derive(Clone, Debug)]
pub(crate) enum FileSection {
    /// `<Files>` with wildcards.
    Named(Box<[u8]>, Box<Settings>),
    /// `<FilesMatch>`
    Matching(Pattern, Box<Settings>),
    /// `<If>` with its `<ElseIf>` and `<Else>`, which has no condition. The first that holds
    /// applies.
    Branches(Vec<SectionBranch>),
}

/// `<If>`, `<ElseIf>` or `<Else>`.
#[derive(Clone, Debug)]
pub(crate) struct SectionBranch {
    pub(crate) condition: Option<Expr>,
    pub(crate) settings: Settings,
    /// Its line.
    pub(crate) line: u32,
}
