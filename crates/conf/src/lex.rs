//! Tokens of the configuration language, with nginx's rules for quotes, escapes and comments.
//!
//! It knows no directive; it stops at the first error, with nginx's text and line.
//!
//! ```text
//!            blank, ;, {              " or '                 quote
//!   Blank ----------------> (done)   -------> Quoted(c) --------------> AfterQuote
//!     |  other                          ^                                | blank, ;, {, )
//!     v                                 |                                v
//!    Word -- blank, ;, { --> (done)   `\` skips one char              (done), else error
//! ```
//!
//! Easiest to break: a quote opens only at the start of a word, a `#` begins a comment only there,
//! and a `{` right after `$` belongs to the word.

/// The longest word or comment, in bytes as written. As in nginx, a blank or a quote that ends a
/// word counts when more text follows.
const WORD_SIZE_MAX: usize = 4096;

/// A word of a directive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Word {
    /// Its bytes, quotes gone and escapes translated.
    pub text: Box<[u8]>,
    /// The line on which it starts.
    pub line: u32,
}

/// The end of a directive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Terminator {
    /// `;`
    Semicolon,
    /// `{`
    Open,
}

/// The next item of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lexeme {
    /// Words up to a terminator; there is at least one.
    Directive(Vec<Word>, Terminator),
    /// `}`
    Close,
    /// The end of the text.
    End,
}

/// The source of the text, which changes the name of its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextOrigin {
    /// A file.
    File,
    /// A command line parameter.
    Parameter,
}

/// Why the text is not a configuration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LexError {
    /// nginx's words.
    pub message: String,
    /// The line of the error.
    pub line: u32,
}

/// Cuts a text into [`Lexeme`]s.
#[derive(Clone, Debug)]
pub struct Lexer<'a> {
    input: &'a [u8],
    position: usize,
    line: u32,
    origin: TextOrigin,
    /// The start of the last word, comment or blank.
    start: usize,
    start_line: u32,
}

/// The end of a word.
enum WordEnd {
    Blank,
    Ends(Terminator),
    Quote,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of `input`.
    #[must_use]
    pub const fn new(input: &'a [u8], origin: TextOrigin) -> Self {
        Self { input, position: 0, line: 1, origin, start: 0, start_line: 1 }
    }

    /// The line of the last byte read; the first is 1.
    #[must_use]
    pub const fn line(&self) -> u32 {
        self.line
    }

    /// Reads up to the next terminator.
    ///
    /// # Errors
    ///
    /// Where nginx's parser would stop; the lexer cannot continue after that.
    pub fn next_lexeme(&mut self) -> Result<Lexeme, LexError> {
        let mut words = Vec::new();
        self.begin();
        loop {
            let Some(byte) = self.skip_blanks()? else {
                return if words.is_empty() { Ok(Lexeme::End) } else { Err(self.ended()) };
            };
            match byte {
                b';' | b'{' | b'}' => return self.punctuation(byte, words),
                b'"' | b'\'' => {
                    self.bump();
                    self.begin();
                    let word = self.quoted(byte)?;
                    words.push(word);
                    if let Some(end) = self.after_quote()? {
                        return Ok(Lexeme::Directive(words, end));
                    }
                }
                _ => {
                    let (word, end) = self.bare()?;
                    words.push(word);
                    if let WordEnd::Ends(end) = end {
                        return Ok(Lexeme::Directive(words, end));
                    }
                }
            }
        }
    }

    /// Marks the beginning of an item whose length is limited.
    const fn begin(&mut self) {
        self.start = self.position;
        self.start_line = self.line;
    }

    /// The next byte, which is not consumed; `None` at the end. `quote` is the open quote, if any.
    fn peek(&self, quote: Option<u8>) -> Result<Option<u8>, LexError> {
        let Some(byte) = self.input.get(self.position) else { return Ok(None) };
        if self.position - self.start < WORD_SIZE_MAX || self.origin == TextOrigin::Parameter {
            return Ok(Some(*byte));
        }
        let message = match quote {
            Some(quote) => format!(
                "too long parameter, probably missing terminating \"{}\" character",
                char::from(quote)
            ),
            None => {
                let head = String::from_utf8_lossy(&self.input[self.start..self.start + 10]);
                format!("too long parameter \"{head}...\" started")
            }
        };
        Err(LexError { message, line: self.start_line })
    }

    fn bump(&mut self) {
        if self.input.get(self.position) == Some(&b'\n') {
            self.line += 1;
        }
        self.position += 1;
    }

    /// Skips blanks and comments; returns the next byte, not yet consumed.
    fn skip_blanks(&mut self) -> Result<Option<u8>, LexError> {
        let mut in_comment = false;
        while let Some(byte) = self.peek(None)? {
            if byte == b'\n' {
                in_comment = false;
            }
            if !in_comment {
                self.begin();
                match byte {
                    b'#' => in_comment = true,
                    b' ' | b'\t' | b'\r' | b'\n' => {}
                    _ => return Ok(Some(byte)),
                }
            }
            self.bump();
        }
        Ok(None)
    }

    fn punctuation(&mut self, byte: u8, words: Vec<Word>) -> Result<Lexeme, LexError> {
        self.bump();
        match (byte, words.is_empty()) {
            (b';', false) => Ok(Lexeme::Directive(words, Terminator::Semicolon)),
            (b'{', false) => Ok(Lexeme::Directive(words, Terminator::Open)),
            (b'}', true) => Ok(Lexeme::Close),
            _ => Err(self.unexpected(byte)),
        }
    }

    /// Only a blank, a terminator or `)` may follow a closing quote.
    fn after_quote(&mut self) -> Result<Option<Terminator>, LexError> {
        match self.peek(None)? {
            None => Err(self.ended()),
            Some(b')') => Ok(None),
            Some(byte) => {
                self.bump();
                match byte {
                    b' ' | b'\t' | b'\r' | b'\n' => Ok(None),
                    b';' => Ok(Some(Terminator::Semicolon)),
                    b'{' => Ok(Some(Terminator::Open)),
                    _ => Err(self.unexpected(byte)),
                }
            }
        }
    }

    /// A word after its opening quote, with the closing one.
    fn quoted(&mut self, quote: u8) -> Result<Word, LexError> {
        let (start, line) = (self.position, self.line);
        while let Some(byte) = self.peek(Some(quote))? {
            self.bump();
            if byte == b'\\' {
                self.bump_escaped(Some(quote))?;
            } else if byte == quote {
                return Ok(self.word(start, line, &WordEnd::Quote));
            }
        }
        Err(self.ended())
    }

    /// A word without quotes, and its terminator, which is consumed.
    fn bare(&mut self) -> Result<(Word, WordEnd), LexError> {
        let (start, line) = (self.position, self.line);
        let mut after_dollar = false;
        while let Some(byte) = self.peek(None)? {
            self.bump();
            if byte == b'{' && after_dollar {
                // `$${` keeps its brace too, as in nginx.
                continue;
            }
            after_dollar = byte == b'$';
            let end = match byte {
                b'\\' => {
                    self.bump_escaped(None)?;
                    continue;
                }
                b' ' | b'\t' | b'\r' | b'\n' => WordEnd::Blank,
                // A first byte is never a terminator: `punctuation` takes those.
                b';' => WordEnd::Ends(Terminator::Semicolon),
                b'{' => WordEnd::Ends(Terminator::Open),
                _ => continue,
            };
            return Ok((self.word(start, line, &end), end));
        }
        Err(self.ended())
    }

    fn bump_escaped(&mut self, quote: Option<u8>) -> Result<(), LexError> {
        if self.peek(quote)?.is_none() {
            return Err(self.ended());
        }
        self.bump();
        Ok(())
    }

    fn word(&self, start: usize, line: u32, end: &WordEnd) -> Word {
        debug_assert!(self.position > start || matches!(end, WordEnd::Quote));
        Word { text: unescape(&self.input[start..self.position - 1]), line }
    }

    fn unexpected(&self, byte: u8) -> LexError {
        let shown = String::from_utf8_lossy(std::slice::from_ref(&byte)).into_owned();
        LexError { message: format!("unexpected \"{shown}\""), line: self.line }
    }

    fn ended(&self) -> LexError {
        let message = match self.origin {
            TextOrigin::File => "unexpected end of file, expecting \";\" or \"}\"",
            TextOrigin::Parameter => "unexpected end of parameter, expecting \";\"",
        };
        LexError { message: message.to_owned(), line: self.line }
    }
}

/// Translates escapes with a meaning; others keep their backslash, for regexes.
fn unescape(raw: &[u8]) -> Box<[u8]> {
    if !raw.contains(&b'\\') {
        return raw.into();
    }
    let mut text = Vec::with_capacity(raw.len());
    let mut bytes = raw.iter().copied().peekable();
    while let Some(byte) = bytes.next() {
        let translated = match (byte, bytes.peek()) {
            (b'\\', Some(&next @ (b'"' | b'\'' | b'\\'))) => Some(next),
            (b'\\', Some(b't')) => Some(b'\t'),
            (b'\\', Some(b'r')) => Some(b'\r'),
            (b'\\', Some(b'n')) => Some(b'\n'),
            _ => None,
        };
        if translated.is_some() {
            bytes.next();
        }
        text.push(translated.unwrap_or(byte));
    }
    text.into()
}

/// Writes `text` as one word that reads back as itself: always in double quotes.
pub fn quote(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            b'\t' => out.extend_from_slice(b"\\t"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\n' => out.extend_from_slice(b"\\n"),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests;
