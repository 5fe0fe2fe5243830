//! CGI parameters of a request (RFC 3875 §4.1): names with values, in order.
//!
//! Owns the pairs; `wire` owns their framing for an upstream.

/// The start of the name of a pair that is a setting of PHP for this request, over LSAPI.
pub const PHP_SETTING: &[u8] = b"\x01\x01";

/// Names with values, in one buffer. Names may repeat.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Params {
    arena: Vec<u8>,
    /// The start of each name, and the lengths of name and value.
    entries: Vec<(u32, u32, u32)>,
}

impl Params {
    /// No pairs.
    #[must_use]
    pub const fn new() -> Self {
        Self { arena: Vec::new(), entries: Vec::new() }
    }

    /// No pairs yet, with capacity for an ordinary request.
    #[must_use]
    pub fn with_room() -> Self {
        Self { arena: Vec::with_capacity(2048), entries: Vec::with_capacity(48) }
    }

    /// Removes all pairs and keeps the memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
    }

    /// Appends a pair.
    pub fn push(&mut self, name: &[u8], value: &[u8]) {
        self.push_writing(|out| out.extend_from_slice(name), |out| out.extend_from_slice(value));
    }

    /// Appends a pair whose name and value are written in place; both may only append.
    pub fn push_writing(
        &mut self,
        name: impl FnOnce(&mut Vec<u8>),
        value: impl FnOnce(&mut Vec<u8>),
    ) {
        let start = self.arena.len();
        name(&mut self.arena);
        let middle = self.arena.len();
        value(&mut self.arena);
        let end = self.arena.len();
        let entry = (start as u32, (middle - start) as u32, (end - middle) as u32);
        self.entries.push(entry);
    }

    /// Replaces the value of every pair of this name.
    pub fn replace(&mut self, name: &[u8], value: &[u8]) {
        for (start, name_len, value_len) in &mut self.entries {
            let at = *start as usize;
            if self.arena.get(at..at + *name_len as usize) == Some(name) {
                *start = self.arena.len() as u32;
                *value_len = value.len() as u32;
                self.arena.extend_from_slice(name);
                self.arena.extend_from_slice(value);
            }
        }
    }

    /// The pairs in order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.entries.iter().map(|&(start, name, value)| {
            let start = start as usize;
            let middle = start + name as usize;
            (&self.arena[start..middle], &self.arena[middle..middle + value as usize])
        })
    }

    /// The last value of a name.
    #[must_use]
    pub fn get(&self, name: &[u8]) -> Option<&[u8]> {
        self.iter().filter(|pair| pair.0 == name).last().map(|pair| pair.1)
    }

    /// How many pairs there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether there are no pairs.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes of all names and values.
    #[must_use]
    pub fn size(&self) -> usize {
        self.arena.len()
    }
}

#[cfg(test)]
mod tests {
    use super::Params;

    #[test]
    fn pairs_come_back_in_order_and_the_last_of_a_name_counts() {
        let mut params = Params::new();
        params.push(b"A", b"1");
        params.push(b"", b"x");
        params.push_writing(|out| out.extend_from_slice(b"A"), |_| {});
        let all: Vec<_> = params.iter().collect();
        assert_eq!(all, [(&b"A"[..], &b"1"[..]), (b"", b"x"), (b"A", b"")]);
        assert_eq!((params.get(b"A"), params.get(b"B")), (Some(&b""[..]), None));
        assert_eq!((params.len(), params.size()), (3, 4));
        params.replace(b"A", b"long");
        let all: Vec<_> = params.iter().map(|pair| pair.1).collect();
        assert_eq!(all, [&b"long"[..], b"x", b"long"]);
    }
}
