//! Queries in keys: what `CacheKeyModify` leaves out of them.
//!
//! Changes keys only, never what an application sees. The order of parameters is the client's.

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// The parameter of this name.
    Name(Box<[u8]>),
    /// Parameters whose names begin so.
    Prefix(Box<[u8]>),
}

/// LIMIT: rules of one list; further ones are not taken.
const RULES_MAX: usize = 512;

/// Parameters that do not matter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryRules(Vec<Rule>);

impl QueryRules {
    /// Takes one word: `-qs:name`, `-qs:prefix*`, or `clear`, which forgets what was said before.
    /// Whether it was one of these.
    pub fn add(&mut self, word: &[u8]) -> bool {
        let word = word.trim_ascii();
        if word.eq_ignore_ascii_case(b"clear") {
            self.0.clear();
            return true;
        }
        let Some((start, name)) = word.split_at_checked(4) else { return false };
        if !start.eq_ignore_ascii_case(b"-qs:") || name.is_empty() {
            return false;
        }
        if self.0.len() < RULES_MAX {
            self.0.push(match name {
                [prefix @ .., b'*'] => Rule::Prefix(prefix.into()),
                _ => Rule::Name(name.into()),
            });
        }
        true
    }

    /// Takes the words of a list between blanks or commas.
    pub fn add_all(&mut self, words: &[u8]) {
        for word in words.split(|byte| matches!(byte, b' ' | b'\t' | b',')) {
            self.add(word);
        }
    }

    /// Whether the parameter `name` does not matter.
    #[must_use]
    pub fn drops(&self, name: &[u8]) -> bool {
        self.0.iter().any(|rule| match rule {
            Rule::Name(known) => **known == *name,
            Rule::Prefix(prefix) => name.starts_with(prefix),
        })
    }

    /// Whether there is no rule.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Appends `?` and what `rules` leave of `query`; nothing if nothing is left.
pub(crate) fn push(out: &mut Vec<u8>, query: &[u8], rules: [&QueryRules; 2]) {
    if query.is_empty() {
        return;
    }
    if rules.iter().all(|rules| rules.is_empty()) {
        out.push(b'?');
        return out.extend_from_slice(query);
    }
    let mut separator = b'?';
    for piece in query.split(|&byte| byte == b'&') {
        let name = piece.split(|&byte| byte == b'=').next().unwrap_or_default();
        if !rules.iter().any(|rules| rules.drops(name)) {
            out.push(separator);
            out.extend_from_slice(piece);
            separator = b'&';
        }
    }
}
