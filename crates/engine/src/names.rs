//! The server of a host name: exact, `*.suffix`, `prefix.*`, regex, default.
//!
//! Takes names that `bolide_http::host` has normalised; knows servers only as indices.

use crate::keys::VariableKeys;
use bolide_patterns::{CapturePattern, Captures};
use bolide_patterns::{Patterns, Sieves};

/// The names of one listening address.
#[derive(Debug, Default)]
pub(crate) struct ServerNames {
    keys: VariableKeys,
    regexes: Patterns<u32>,
    /// The server for names that no `server_name` matches.
    pub(crate) default: u32,
    /// Whether the default server is the only one.
    sole: bool,
    /// Whether the last expression among the names captures.
    captures: bool,
}

/// A parsed argument of `server_name`.
#[derive(Debug)]
pub(crate) enum NameClaim {
    /// A whole name, in lower case; may be empty.
    Exact(Box<[u8]>),
    /// `*.example.com`, kept as `.example.com`.
    Suffix(Box<[u8]>),
    /// `www.*`, kept as `www.`.
    Prefix(Box<[u8]>),
    /// `~regex`.
    Regex(CapturePattern),
}

impl ServerNames {
    /// A table with only a default server.
    pub(crate) fn new(default: u32) -> Self {
        Self { default, sole: true, ..Self::default() }
    }

    /// Adds a name of `server`; the first server with a name keeps it.
    pub(crate) fn claim(&mut self, claim: NameClaim, server: u32) {
        self.sole &= server == self.default;
        match claim {
            NameClaim::Exact(name) => self.keys.exact(name, server),
            NameClaim::Suffix(name) => self.keys.suffix(name, server),
            NameClaim::Prefix(name) => self.keys.prefix(name, server),
            NameClaim::Regex(pattern) => {
                self.captures = pattern.has_groups();
                self.regexes.push(pattern, server);
            }
        }
    }

    /// Compiles the table; call it once, after the last name.
    pub(crate) fn seal(mut self, sieves: &mut Sieves) -> Self {
        self.regexes.seal(sieves);
        // As in nginx, the names of the only server are matched if the last expression captures.
        self.sole &= !self.captures;
        debug_assert!(!self.captures || !self.sole, "what captures is looked at");
        self
    }

    /// Adds `server`, which may have no name here.
    pub(crate) fn present(&mut self, server: u32) {
        self.sole &= server == self.default;
    }

    /// The server of `host`, lower-case, without port and final dot.
    pub(crate) fn find(&self, host: &[u8], captures: &mut Captures) -> u32 {
        self.find_named(host, captures).unwrap_or(self.default)
    }

    /// As [`Self::find`]; none if no server has the name or there is only one server.
    #[allow(clippy::inline_always, reason = "measured: 20 instructions of a hit")]
    #[inline(always)]
    pub(crate) fn find_named(&self, host: &[u8], captures: &mut Captures) -> Option<u32> {
        if self.sole {
            return None;
        }
        self.search(host, captures)
    }

    #[inline(never)]
    fn search(&self, host: &[u8], captures: &mut Captures) -> Option<u32> {
        debug_assert!(!host.iter().any(u8::is_ascii_uppercase), "hosts come in lower case");
        if let Some(server) = self.keys.find(host) {
            return Some(server);
        }
        if host.is_empty() {
            return None;
        }
        self.regexes.capture(host, captures).copied()
    }
}

#[cfg(test)]
mod tests {
    use bolide_conf::regex::{LetterCase, Regex};

    use super::{NameClaim, ServerNames};
    use bolide_patterns::{CapturePattern, Captures, Sieves};

    fn boxed(text: &str) -> Box<[u8]> {
        text.as_bytes().into()
    }

    #[test]
    fn exact_beats_the_longest_suffix_beats_the_longest_prefix_beats_regexes_in_order() {
        let mut names = ServerNames::new(0);
        names.claim(NameClaim::Exact(boxed("www.a.com")), 1);
        names.claim(NameClaim::Suffix(boxed(".a.com")), 2);
        names.claim(NameClaim::Suffix(boxed(".b.a.com")), 3);
        names.claim(NameClaim::Prefix(boxed("www.")), 4);
        names.claim(NameClaim::Prefix(boxed("www.a.")), 5);
        let regex = |text: &[u8]| {
            let regex = Regex::new(text, LetterCase::Sensitive).unwrap();
            NameClaim::Regex(CapturePattern::new(&regex, &[""; 0]))
        };
        names.claim(regex(b"^(x+)\\.net$"), 6);
        names.claim(regex(b"net"), 7);
        let mut captures = Captures::default();
        for (host, server) in [
            ("www.a.com", 1),
            ("x.a.com", 2),
            ("x.y.a.com", 2),
            ("x.b.a.com", 3),
            ("b.a.com", 2),
            ("a.com", 0),
            (".a.com", 0),
            ("www.a.org", 5),
            ("www.b.org", 4),
            ("www.", 0),
            ("xx.net", 6),
            ("y.net", 7),
            ("", 0),
        ] {
            assert_eq!(names.find(host.as_bytes(), &mut captures), server, "{host}");
        }
        names.find(b"xx.net", &mut captures);
        assert_eq!(captures.numbered(1), Some(&b"xx"[..]));
    }

    #[test]
    fn names_of_an_only_server_are_looked_at_if_the_last_expression_captures() {
        let mut sieves = Sieves::default();
        for (texts, is_looked_at) in [
            (&["(x)"][..], true),
            (&["(x)", "x"], false),
            (&["x", "(x)"], true),
            (&["x"], false),
            (&[], false),
        ] {
            let mut names = ServerNames::new(3);
            names.claim(NameClaim::Exact(boxed("a.com")), 3);
            for text in texts {
                let regex = Regex::new(text.as_bytes(), LetterCase::Sensitive).unwrap();
                names.claim(NameClaim::Regex(CapturePattern::new(&regex, &[""; 0])), 3);
            }
            names.claim(NameClaim::Exact(boxed("b.com")), 3);
            let names = names.seal(&mut sieves);
            let found = names.find_named(b"x.net", &mut Captures::default());
            assert_eq!(found.is_some(), is_looked_at, "{texts:?}");
        }
    }
}
