//! The line protocol of commands to the running server: one line of words, `name=value`,
//! percent-encoded.

/// The first word of such a line, which distinguishes it from commands for pools.
pub(crate) const ADMIN: &str = "admin";
/// LIMIT: bytes of a line.
pub(crate) const LINE_MAX: u64 = 256 * 1024;

/// The words of one command.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) command: String,
    all: Vec<(String, Vec<u8>)>,
}

impl Words {
    pub(crate) fn new(command: &str) -> Self {
        Self { command: command.to_owned(), all: Vec::new() }
    }

    /// Adds a word.
    pub(crate) fn push(&mut self, name: &str, value: impl AsRef<[u8]>) {
        self.all.push((name.to_owned(), value.as_ref().to_vec()));
    }

    /// Adds a word if it has a value.
    pub(crate) fn push_some(&mut self, name: &str, value: Option<impl AsRef<[u8]>>) {
        if let Some(value) = value {
            self.push(name, value);
        }
    }

    /// The first value called `name`.
    pub(crate) fn value(&self, name: &str) -> Option<&[u8]> {
        self.all(name).next()
    }

    /// The same as text.
    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.value(name).map(|value| String::from_utf8_lossy(value).into_owned())
    }

    /// Whether a word called `name` exists.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.value(name).is_some()
    }

    /// All values called `name`.
    pub(crate) fn all<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        self.all.iter().filter(move |one| one.0 == name).map(|one| &*one.1)
    }

    /// The line.
    pub(crate) fn line(&self) -> String {
        let mut line = format!("{ADMIN} {}", self.command);
        for (name, value) in &self.all {
            line.push(' ');
            line.push_str(name);
            line.push('=');
            for byte in value {
                match byte {
                    b'%' | 0..=b' ' | 0x7f.. => line.push_str(&format!("%{byte:02x}")),
                    byte => line.push(char::from(*byte)),
                }
            }
        }
        line.push('\n');
        line
    }

    /// Parses a line that [`Self::line`] wrote; `None` for any other.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace();
        (words.next()? == ADMIN).then_some(())?;
        let mut read = Self::new(words.next()?);
        for word in words {
            let (name, value) = word.split_once('=')?;
            read.all.push((name.to_owned(), decode(value.as_bytes())?));
        }
        Some(read)
    }
}

fn decode(text: &[u8]) -> Option<Vec<u8>> {
    let (mut rest, mut out) = (text, Vec::with_capacity(text.len()));
    while let Some((&byte, next)) = rest.split_first() {
        rest = next;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let (digits, next) = rest.split_first_chunk::<2>()?;
        out.push(u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?);
        rest = next;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::Words;

    #[test]
    fn a_line_says_what_was_put_into_it() {
        let mut words = Words::new("explain");
        words.push("url", "http://a.test/a b?x=1%20\n");
        words.push("cookie", b"\xff=1");
        words.push("cookie", "");
        words.push_some("none", None::<&str>);
        let line = words.line();
        assert_eq!(line.matches('\n').count(), 1);
        let read = Words::read(&line).unwrap();
        assert_eq!(read, words);
        assert_eq!(read.all("cookie").count(), 2);
        assert_eq!(read.value("url"), Some(&b"http://a.test/a b?x=1%20\n"[..]));
        assert!(!read.has("none") && read.text("other").is_none());
    }

    #[test]
    fn other_lines_are_none() {
        for line in ["", "status", "admin", "admin x y", "admin x y=%", "admin x y=%zz"] {
            assert_eq!(Words::read(line), None, "{line}");
        }
    }
}
