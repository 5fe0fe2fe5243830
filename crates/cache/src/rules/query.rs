//! The query in keys, without the parameters that `CacheKeyModify` excludes.
//!
//! It changes keys only, never the request. The parameters keep their order.

/// A rule.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Rule {
    /// The parameter with this name.
    Name(Box<[u8]>),
    /// Parameters with this name prefix.
    Prefix(Box<[u8]>),
}

/// LIMIT: rules of one list; more are ignored.
const RULES_MAX: usize = 512;

/// The parameters that keys exclude.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueryRules {
    rules: Vec<Rule>,
    /// Whether `clear` removed the rules before these, wherever they were set.
    clears: bool,
}

impl QueryRules {
    /// Adds a word: `-qs:name`, `-qs:prefix*`, or `clear`, which removes the rules before it.
    /// Returns whether it is valid.
    pub fn add(&mut self, word: &[u8]) -> bool {
        let word = word.trim_ascii();
        if word.eq_ignore_ascii_case(b"clear") {
            self.rules.clear();
            self.clears = true;
            return true;
        }
        let Some((start, name)) = word.split_at_checked(4) else { return false };
        if !start.eq_ignore_ascii_case(b"-qs:") || name.is_empty() {
            return false;
        }
        if self.rules.len() < RULES_MAX {
            self.rules.push(match name {
                [prefix @ .., b'*'] => Rule::Prefix(prefix.into()),
                _ => Rule::Name(name.into()),
            });
        }
        debug_assert!(self.rules.len() <= RULES_MAX, "a list has few rules");
        true
    }

    /// Adds the words of a list that spaces or commas separate.
    pub fn add_all(&mut self, words: &[u8]) {
        for word in words.split(|byte| matches!(byte, b' ' | b'\t' | b',')) {
            self.add(word);
        }
    }

    /// Whether keys exclude the parameter `name`.
    #[must_use]
    pub fn drops(&self, name: &[u8]) -> bool {
        self.rules.iter().any(|rule| match rule {
            Rule::Name(known) => **known == *name,
            Rule::Prefix(prefix) => name.starts_with(prefix),
        })
    }

    /// Whether there is no rule.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }
}

/// Appends `?` and the rest of `query` after `rules`, of which the second may clear the first;
/// nothing if there is none, or the rules drop all of it.
pub(crate) fn push(out: &mut Vec<u8>, query: Option<&[u8]>, rules: [&QueryRules; 2]) {
    let Some(query) = query else { return };
    let rules = match rules[1].clears {
        true => &rules[1..],
        false => &rules[..],
    };
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
