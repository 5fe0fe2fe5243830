//! `Options`: what is permitted in a directory.

use crate::fault::{ParseResult, shown};
use crate::lines::ArgumentWords;

/// What is permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirOptions {
    bits: u8,
}

impl DirOptions {
    const INDEXES: u8 = 1;
    const FOLLOW: u8 = 2;
    const OWNER: u8 = 4;
    /// Options without an effect here: there are no CGI programs, and no server-side includes in
    /// files.
    const IDLE: u8 = 8;
    const ALL: u8 = Self::INDEXES | Self::FOLLOW | Self::IDLE;

    /// The options of a location.
    #[must_use]
    pub const fn new(lists: bool) -> Self {
        Self { bits: Self::FOLLOW | if lists { Self::INDEXES } else { 0 } }
    }

    /// Whether directories may be listed.
    #[must_use]
    pub const fn lists(self) -> bool {
        self.bits & Self::INDEXES != 0
    }

    /// Whether links are followed.
    #[must_use]
    pub const fn follows(self) -> bool {
        self.bits & Self::FOLLOW != 0
    }

    /// Whether links are followed if their owner is that of the target.
    #[must_use]
    pub const fn follows_own(self) -> bool {
        self.bits & (Self::FOLLOW | Self::OWNER) != 0
    }

    /// The options after the changes of one place.
    pub(crate) const fn changed(self, by: OptionsChange) -> Self {
        match by {
            OptionsChange::To(options) => options,
            OptionsChange::By { add, remove } => Self { bits: self.bits & !remove | add },
        }
    }
}

/// The changes of options by one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionsChange {
    To(DirOptions),
    By { add: u8, remove: u8 },
}

/// Parses `Options …`, after earlier lines of the same place.
pub(crate) fn parse(arguments: &[u8], before: Option<OptionsChange>) -> ParseResult<OptionsChange> {
    let all: Vec<Vec<u8>> = ArgumentWords::new(arguments).collect();
    if all.is_empty() {
        return Err("Options requires at least one argument".to_owned());
    }
    // As in Apache, the two words for a whole set may be modified in the same line.
    let (whole, words) = match &all[0].to_ascii_lowercase()[..] {
        b"all" => (Some(DirOptions { bits: DirOptions::ALL }), &all[1..]),
        b"none" => (Some(DirOptions { bits: 0 }), &all[1..]),
        _ => (None, &all[..]),
    };
    let before = whole.map(OptionsChange::To).or(before);
    let signs = words.iter().filter(|word| matches!(word.first(), Some(b'+' | b'-'))).count();
    if signs != 0 && signs != words.len() {
        return Err("Either all Options must start with + or -, or no Option may.".to_owned());
    }
    if signs == 0 {
        let mut bits = whole.map_or(0, |options| options.bits);
        for word in words {
            bits = match bit(word, true)? {
                0 => 0,
                bit => bits | bit,
            };
        }
        return Ok(OptionsChange::To(DirOptions { bits }));
    }
    let (mut add, mut remove) = (0, 0);
    for word in words {
        let adds = word[0] == b'+';
        let bit = bit(&word[1..], adds)?;
        if adds {
            (add, remove) = (add | bit, remove & !bit);
        } else {
            (add, remove) = (add & !bit, remove | bit);
        }
    }
    Ok(match before {
        Some(OptionsChange::To(options)) => {
            OptionsChange::To(options.changed(OptionsChange::By { add, remove }))
        }
        Some(OptionsChange::By { add: old_add, remove: old_remove }) => {
            OptionsChange::By { add: old_add & !remove | add, remove: old_remove & !add | remove }
        }
        None => OptionsChange::By { add, remove },
    })
}

fn bit(word: &[u8], adds: bool) -> ParseResult<u8> {
    Ok(match &word.to_ascii_lowercase()[..] {
        b"none" => 0,
        b"all" => DirOptions::ALL,
        b"indexes" => DirOptions::INDEXES,
        b"followsymlinks" => DirOptions::FOLLOW,
        b"symlinksifownermatch" => DirOptions::OWNER,
        b"includes" | b"includesnoexec" | b"execcgi" | b"runscripts" => DirOptions::IDLE,
        b"multiviews" if !adds => DirOptions::IDLE,
        b"multiviews" => return Err("Option MultiViews is not available here".to_owned()),
        _ => return Err(format!("Illegal option {}", shown(word))),
    })
}

#[cfg(test)]
mod tests {
    use super::{DirOptions, parse};

    #[test]
    fn options_are_replaced_or_changed() {
        let of = |texts: &[&str]| {
            let before = texts
                .iter()
                .fold(None, |before, text| Some(parse(text.as_bytes(), before).unwrap()));
            let options =
                before.map_or(DirOptions::new(true), |c| DirOptions::new(true).changed(c));
            (options.lists(), options.follows(), options.follows_own())
        };
        assert_eq!(of(&[]), (true, true, true));
        assert_eq!(of(&["-Indexes"]), (false, true, true));
        assert_eq!(of(&["None"]), (false, false, false));
        assert_eq!(of(&["Indexes SymLinksIfOwnerMatch"]), (true, false, true));
        assert_eq!(of(&["None", "+FollowSymLinks"]), (false, true, true));
        assert_eq!(of(&["-FollowSymLinks", "+FollowSymLinks -Indexes"]), (false, true, true));
        assert_eq!(of(&["-MultiViews"]), (true, true, true));
        assert_eq!(of(&["All -Indexes"]), (false, true, true));
        assert!(parse(b"Indexes -FollowSymLinks", None).is_err());
        assert!(parse(b"+MultiViews", None).is_err());
        assert_eq!(parse(b"Foo", None).unwrap_err(), "Illegal option Foo");
    }
}
