//! `AllowOverride`: which classes of directives and options a file may use, and which it does use.
//! `Nonfatal=` permits nothing.

use crate::fault::{HtaccessFault, ParseResult, shown};
use crate::lines::ArgumentWords;

/// A class of directives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverrideClass {
    AuthConfig,
    FileInfo,
    Indexes,
    Limit,
    Options,
    // Single options.
    ListsDirectories,
    FollowsLinks,
    FollowsOwnLinks,
    OtherOption,
}

/// The number of classes that `AllowOverride` names by a word of their own.
const NAMED: usize = 5;

const CLASSES: [(&str, OverrideClass); 9] = [
    ("AuthConfig", OverrideClass::AuthConfig),
    ("FileInfo", OverrideClass::FileInfo),
    ("Indexes", OverrideClass::Indexes),
    ("Limit", OverrideClass::Limit),
    ("Options", OverrideClass::Options),
    ("Options=Indexes", OverrideClass::ListsDirectories),
    ("Options=FollowSymLinks", OverrideClass::FollowsLinks),
    ("Options=SymLinksIfOwnerMatch", OverrideClass::FollowsOwnLinks),
    ("Options=", OverrideClass::OtherOption),
];

/// The class of an option in `Options`; none if it needs none.
pub(crate) fn class_of_option(word: &[u8]) -> Option<OverrideClass> {
    let bare = word.strip_prefix(b"+").or_else(|| word.strip_prefix(b"-")).unwrap_or(word);
    match &bare.to_ascii_lowercase()[..] {
        b"none" => None,
        b"indexes" => Some(OverrideClass::ListsDirectories),
        b"followsymlinks" | b"all" => Some(OverrideClass::FollowsLinks),
        b"symlinksifownermatch" => Some(OverrideClass::FollowsOwnLinks),
        _ => Some(OverrideClass::OtherOption),
    }
}

/// What the files of a directory may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AllowedOverrides(u16);

impl AllowedOverrides {
    /// No file is read.
    pub const NONE: Self = Self(0);
    /// Everything that is supported.
    pub const ALL: Self = Self(0x1ff);
    /// Every option.
    const OPTIONS: Self = Self(0x1f0);

    /// Whether files are read at all.
    #[must_use]
    pub const fn reads(self) -> bool {
        self.0 != 0
    }

    const fn has(self, class: OverrideClass) -> bool {
        self.0 & 1 << class as u8 != 0
    }

    /// Parses the arguments of `AllowOverride`.
    pub(crate) fn parse(arguments: &[u8]) -> ParseResult<Self> {
        let (mut allowed, mut is_one_there) = (Self::NONE, false);
        for word in ArgumentWords::new(arguments) {
            is_one_there = true;
            let lower = word.to_ascii_lowercase();
            let named = CLASSES[..NAMED].iter();
            let class = named.copied().find(|(name, _)| word.eq_ignore_ascii_case(name.as_bytes()));
            match (&lower[..], class) {
                (_, Some((_, OverrideClass::Options))) => allowed.0 |= Self::OPTIONS.0,
                (_, Some((_, class))) => allowed.0 |= 1 << class as u8,
                (b"all", None) => allowed = Self::ALL,
                (b"none", None) => allowed = Self::NONE,
                (lower, None) if lower.starts_with(b"options=") => {
                    allowed.0 |= 1 << OverrideClass::Options as u8;
                    let options = lower[b"options=".len()..].split(|byte| *byte == b',');
                    for class in options.filter_map(class_of_option) {
                        allowed.0 |= 1 << class as u8;
                    }
                }
                // Files with such directives are refused, which is never more permissive.
                (lower, None) if lower.starts_with(b"nonfatal=") => {}
                _ => return Err(format!("Illegal override option {}", shown(&word))),
            }
        }
        if is_one_there { Ok(allowed) } else { Err("AllowOverride needs an argument".to_owned()) }
    }
}

/// The first line of each class in a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NeededOverrides([Option<u32>; CLASSES.len()]);

impl NeededOverrides {
    /// Records a directive of a class.
    pub(crate) fn note(&mut self, class: OverrideClass, line: u32) {
        self.0[class as usize].get_or_insert(line);
    }

    /// The first line that is not permitted.
    pub(crate) fn beyond(&self, allowed: AllowedOverrides) -> Option<HtaccessFault> {
        let needed = CLASSES.iter().zip(self.0);
        let lines = needed.filter(|((_, class), _)| !allowed.has(*class));
        let (line, name) = lines.filter_map(|((name, _), line)| Some((line?, name))).min()?;
        let message = format!("a directive of class {name} is not allowed here (AllowOverride)");
        Some(HtaccessFault { line, message })
    }
}

#[cfg(test)]
mod tests {
    use super::AllowedOverrides;
    use crate::parse;

    #[test]
    fn a_file_has_what_is_allowed() {
        let rows = [
            ("Options -Indexes", "All", true),
            ("Options -Indexes", "AuthConfig FileInfo", false),
            ("Require all granted", "FileInfo", false),
            ("<RequireAny>\nRequire all granted\n</RequireAny>", "FileInfo", false),
            ("<Files a>\nRewriteEngine on\n</Files>", "fileinfo", true),
            ("Deny from all", "limit", true),
            ("php_value a b", "FileInfo", false),
            ("php_value a b", "Options=Indexes FileInfo", true),
            ("Options -Indexes", "Options=Indexes,MultiViews", true),
            ("Options +FollowSymLinks", "Options=Indexes,MultiViews", false),
            ("Options All", "Options=Indexes", false),
            ("DirectoryIndex a", "Indexes", true),
        ];
        for (file, allowed, wanted) in rows {
            let allowed = AllowedOverrides::parse(allowed.as_bytes()).unwrap();
            let file_read = parse(file.as_bytes()).unwrap();
            assert_eq!(file_read.beyond(allowed).is_none(), wanted, "{file}");
        }
        assert!(!AllowedOverrides::parse(b"None").unwrap().reads());
        assert!(AllowedOverrides::parse(b"Sometimes").is_err());
        assert!(AllowedOverrides::parse(b"").is_err());
    }
}
