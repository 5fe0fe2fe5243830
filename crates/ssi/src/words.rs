//! The shared state of a page and its includes, and texts with variables.

use std::sync::Arc;

use crate::SsiFault;

/// LIMIT: bytes of one value. A page that doubles a value with each `set` gets no further.
pub(crate) const VALUE_MAX: usize = 1024 * 1024;
/// LIMIT: variables of a page and all its includes, and as many blocks.
pub(crate) const COUNT_MAX: usize = 4096;
/// LIMIT: bytes of all their values, and as many of all blocks.
pub(crate) const SIZE_MAX: usize = 4 * 1024 * 1024;

/// The groups that an expression matched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// `$0`, `$1` and so on, up to the last group that took part.
    pub groups: Vec<Vec<u8>>,
    /// Groups with names.
    pub named: Vec<(Vec<u8>, Vec<u8>)>,
}

/// The shared state of a page and its includes: variables, groups of the last expression, blocks.
#[derive(Clone, Debug, Default)]
pub struct SharedText {
    vars: Vec<(Vec<u8>, Vec<u8>)>,
    groups: Vec<Vec<u8>>,
    pub(crate) blocks: Vec<(Vec<u8>, Arc<Vec<u8>>)>,
    vars_size: usize,
    pub(crate) blocks_size: usize,
    /// See [`Self::take_work`].
    pub(crate) work: usize,
}

impl SharedText {
    /// The cost of the commands since the last call, about in bytes copied.
    pub const fn take_work(&mut self) -> usize {
        std::mem::replace(&mut self.work, 0)
    }

    /// The value of a page variable; its name in lower case.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        if let [digit @ b'0'..=b'9'] = name
            && let Some(group) = self.groups.get(usize::from(digit - b'0'))
        {
            return Some(group);
        }
        self.vars.iter().find(|(known, _)| known == name).map(|(_, value)| &value[..])
    }

    /// How many variables there are.
    pub(crate) const fn len(&self) -> usize {
        self.vars.len()
    }

    /// Sets a variable; false if the limit is reached.
    pub fn set(&mut self, name: &[u8], value: Vec<u8>) -> bool {
        let name = name.to_ascii_lowercase();
        let at = self.vars.iter().position(|(known, _)| *known == name);
        self.work += self.vars.len();
        let before = at.map_or(0, |at| self.vars[at].1.len());
        let size = self.vars_size - before + value.len();
        if size > SIZE_MAX || value.len() > VALUE_MAX {
            return false;
        }
        match at {
            Some(at) => self.vars[at].1 = value,
            None if self.vars.len() >= COUNT_MAX => return false,
            None => self.vars.push((name, value)),
        }
        self.vars_size = size;
        true
    }

    /// Stores the groups of a match.
    pub(crate) fn take(&mut self, matched: Matched) {
        self.groups = matched.groups;
        for (name, value) in matched.named {
            self.set(&name, value);
        }
    }

    /// The block of this name; the first one counts.
    #[must_use]
    pub fn block(&self, name: &[u8]) -> Option<&Arc<Vec<u8>>> {
        self.blocks.iter().find(|(known, _)| known == name).map(|(_, text)| text)
    }
}

/// Evaluates `text`: `look_up` supplies variables (a name in lower case; false if there is none),
/// and backslashes before `$`, quotes and backslashes are removed.
pub(crate) fn evaluate(
    text: &[u8],
    look_up: &mut impl FnMut(&[u8], &mut Vec<u8>) -> Result<bool, SsiFault>,
) -> Result<Vec<u8>, SsiFault> {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, after)) = rest.split_first() {
        match byte {
            b'$' => {
                let (name, after) = variable(after, text)?;
                look_up(&name.to_ascii_lowercase(), &mut out)?;
                rest = after;
            }
            b'\\' => {
                let Some((&next, after)) = after.split_first() else { break };
                if !matches!(next, b'\\' | b'\'' | b'"' | b'$') {
                    out.push(b'\\');
                }
                out.push(next);
                rest = after;
            }
            byte => {
                out.push(byte);
                rest = after;
            }
        }
        if out.len() > VALUE_MAX {
            return Err(b"too long value in SSI command".to_vec());
        }
    }
    Ok(out)
}

/// The name after a `$`, and the text after it.
fn variable<'a>(after: &'a [u8], whole: &[u8]) -> Result<(&'a [u8], &'a [u8]), SsiFault> {
    let invalid = || Err([b"invalid variable name in \"", whole, b"\""].concat());
    let in_braces = after.first() == Some(&b'{');
    let start = if in_braces { &after[1..] } else { after };
    if start.is_empty() {
        return invalid();
    }
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    let len = start.iter().position(|byte| !is_part(byte)).unwrap_or(start.len());
    let (name, rest) = start.split_at(len);
    let rest = match (in_braces, rest.split_first()) {
        (false, _) => rest,
        (true, Some((b'}', rest))) => rest,
        (true, _) => {
            let parts: [&[u8]; 3] = [b"the closing bracket in \"", name, b"\" variable is missing"];
            return Err(parts.concat());
        }
    };
    if name.is_empty() { invalid() } else { Ok((name, rest)) }
}
