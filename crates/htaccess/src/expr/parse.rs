//! Parses expressions, with bounded recursion.

use super::{Expr, ExprPlace, ExprWord, GlobKind, TextFunction, TextOrder, WordTest};
use crate::access::AddressRange;
use crate::fault::{ParseResult, shown};
use crate::pattern::{Letters, Pattern};
use crate::variable::{Variable, split};
use crate::world::PathTest;

/// LIMIT: nesting of parentheses, functions and negations.
const DEPTH_MAX: u8 = 32;
/// LIMIT: parts of one expression.
const PARTS_MAX: usize = 1000;

/// Parses a condition.
pub(crate) fn condition(source: &[u8]) -> ParseResult<Expr> {
    condition_of(source, ExprPlace::Request)
}

/// Parses a condition that may ask about the response, if it is evaluated for one.
pub(crate) fn condition_of(source: &[u8], place: ExprPlace) -> ParseResult<Expr> {
    let read = whole(Reader { rest: source, depth: 0, parts: 0, is_of_tls: false, place });
    read.map_err(|why| format!("Cannot parse condition clause: {why}"))
}

/// Parses a condition of `SSLRequire`, which has words for operators, and compares lengths first.
pub(crate) fn tls_condition(source: &[u8]) -> ParseResult<Expr> {
    let place = ExprPlace::Request;
    let read = whole(Reader { rest: source, depth: 0, parts: 0, is_of_tls: true, place });
    read.map_err(|why| format!("Cannot parse expression: {why}"))
}

fn whole(mut reader: Reader<'_>) -> ParseResult<Expr> {
    let expr = reader.any()?;
    reader.blanks();
    match reader.rest {
        [] => Ok(expr),
        rest => Err(format!("syntax error at \"{}\"", shown(rest))),
    }
}

/// Parses a text with variables.
pub(crate) fn text_of(source: &[u8], place: ExprPlace) -> ParseResult<ExprWord> {
    let mut reader = Reader { rest: source, depth: 0, parts: 0, is_of_tls: false, place };
    let word = reader.text_until(None);
    word.map_err(|why| format!("Can't parse value expression : {why}"))
}

struct Reader<'a> {
    rest: &'a [u8],
    depth: u8,
    parts: usize,
    /// Whether it is in the language of `SSLRequire`.
    is_of_tls: bool,
    place: ExprPlace,
}

impl Reader<'_> {
    fn blanks(&mut self) {
        self.rest = self.rest.trim_ascii_start();
    }

    /// Takes `token` if it is next.
    fn take(&mut self, token: &[u8]) -> bool {
        self.blanks();
        match self.rest.strip_prefix(token) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Takes a name if it is next.
    fn name(&mut self) -> Option<Vec<u8>> {
        self.blanks();
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let len = self.rest.iter().take_while(|byte| is_part(byte)).count();
        if len == 0 || self.rest[0].is_ascii_digit() {
            return None;
        }
        let (name, rest) = self.rest.split_at(len);
        self.rest = rest;
        Some(name.to_vec())
    }

    /// Takes an operator, or the word for it in `SSLRequire`.
    fn take_sign(&mut self, sign: &[u8], word: &[u8]) -> bool {
        let before = self.rest;
        if self.take(sign) || self.is_of_tls && self.name().as_deref() == Some(word) {
            return true;
        }
        self.rest = before;
        false
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> ParseResult<T>) -> ParseResult<T> {
        self.parts += 1;
        if self.depth >= DEPTH_MAX || self.parts > PARTS_MAX {
            return Err("expression is too complex".to_owned());
        }
        self.depth += 1;
        let read = read(self);
        self.depth -= 1;
        read
    }

    fn any(&mut self) -> ParseResult<Expr> {
        let mut all = vec![self.all()?];
        while self.take_sign(b"||", b"or") {
            all.push(self.all()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expr::Or(all) })
    }

    fn all(&mut self) -> ParseResult<Expr> {
        let mut all = vec![self.one()?];
        while self.take_sign(b"&&", b"and") {
            all.push(self.one()?);
        }
        Ok(if all.len() == 1 { all.remove(0) } else { Expr::And(all) })
    }

    fn one(&mut self) -> ParseResult<Expr> {
        self.blanks();
        if self.take_sign(b"!", b"not") {
            return self.deeper(|own| Ok(Expr::Not(Box::new(own.one()?))));
        }
        if self.take(b"(") {
            let inner = self.deeper(Self::any)?;
            return match self.take(b")") {
                true => Ok(inner),
                false => Err("syntax error, missing ')'".to_owned()),
            };
        }
        self.parts += 1;
        if self.parts > PARTS_MAX {
            return Err("expression is too complex".to_owned());
        }
        if self.rest.first() == Some(&b'-') {
            return self.unary();
        }
        let before = self.rest;
        match self.name().as_deref().map(<[u8]>::to_ascii_lowercase).as_deref() {
            Some(b"true") => return Ok(Expr::True),
            Some(b"false") => return Ok(Expr::False),
            _ => self.rest = before,
        }
        let word = self.word()?;
        self.comparison(word)
    }

    fn unary(&mut self) -> ParseResult<Expr> {
        self.rest = &self.rest[1..];
        let name = self.name().unwrap_or_default();
        let test = match &name[..] {
            b"z" => WordTest::Empty,
            b"n" => WordTest::NotEmpty,
            b"T" => WordTest::Truth,
            b"d" => WordTest::File(PathTest::Directory),
            b"e" => WordTest::File(PathTest::Anything),
            b"f" => WordTest::File(PathTest::File),
            b"s" => WordTest::File(PathTest::FileWithContent),
            b"L" | b"h" => WordTest::File(PathTest::Link),
            b"x" => WordTest::File(PathTest::Executable),
            b"R" => return Ok(Expr::Client(self.network()?)),
            _ => return Err(format!("No such unary operator '-{}'", shown(&name))),
        };
        Ok(Expr::Is(test, self.word()?))
    }

    fn network(&mut self) -> ParseResult<AddressRange> {
        match self.word()? {
            ExprWord::Fixed(text) => {
                AddressRange::parse(&text).ok_or_else(|| "invalid IP network".to_owned())
            }
            _ => Err("an IP network must not have variables".to_owned()),
        }
    }

    fn comparison(&mut self, word: ExprWord) -> ParseResult<Expr> {
        use TextOrder as Is;
        let texts = [
            (&b"=="[..], Is::Equal),
            (b"!=", Is::Other),
            (b"<=", Is::LessOrEqual),
            (b">=", Is::GreaterOrEqual),
            (b"<", Is::Less),
            (b">", Is::Greater),
        ];
        if self.take(b"=~") {
            return Ok(Expr::Match { word, pattern: self.pattern()?, negated: false });
        }
        if self.take(b"!~") {
            return Ok(Expr::Match { word, pattern: self.pattern()?, negated: true });
        }
        if let Some((_, order)) = texts.iter().find(|(token, _)| self.take(token)) {
            return self.texts(word, *order);
        }
        if self.take(b"=") {
            return Ok(Expr::Text(word, Is::Equal, self.word()?));
        }
        self.blanks();
        let is_dashed = self.rest.first() == Some(&b'-');
        if is_dashed {
            self.rest = &self.rest[1..];
        }
        let name = self.name().unwrap_or_default();
        let order = match &name.to_ascii_lowercase()[..] {
            b"eq" => Some(Is::Equal),
            b"ne" => Some(Is::Other),
            b"lt" => Some(Is::Less),
            b"le" => Some(Is::LessOrEqual),
            b"gt" => Some(Is::Greater),
            b"ge" => Some(Is::GreaterOrEqual),
            _ => None,
        };
        match (order, &name[..]) {
            (Some(order), _) if self.is_of_tls && !is_dashed => self.texts(word, order),
            // As in Apache, the operators without a dash compare numbers, too.
            (Some(order), _) => Ok(Expr::Number(word, order, self.word()?)),
            (_, b"in") => self.list(word),
            (_, b"ipmatch") if is_dashed => Ok(Expr::Address(word, self.network()?)),
            (_, b"strmatch") if is_dashed => {
                Ok(Expr::Glob { word, glob: self.word()?, kind: GlobKind::Exact })
            }
            (_, b"fnmatch") if is_dashed => {
                Ok(Expr::Glob { word, glob: self.word()?, kind: GlobKind::Path })
            }
            (_, b"strcmatch") if is_dashed => {
                Ok(Expr::Glob { word, glob: self.word()?, kind: GlobKind::AnyCase })
            }
            _ => Err("syntax error, a comparison is missing".to_owned()),
        }
    }

    fn texts(&mut self, word: ExprWord, order: TextOrder) -> ParseResult<Expr> {
        Ok(match self.is_of_tls {
            true => Expr::Sized(word, order, self.word()?),
            false => Expr::Text(word, order, self.word()?),
        })
    }

    /// `{ word, word }`
    fn list(&mut self, word: ExprWord) -> ParseResult<Expr> {
        if !self.take(b"{") {
            return Err("syntax error, expecting '{'".to_owned());
        }
        let mut list = vec![self.word()?];
        while self.take(b",") {
            list.push(self.word()?);
        }
        match self.take(b"}") {
            true => Ok(Expr::In(word, list)),
            false => Err("syntax error, missing '}'".to_owned()),
        }
    }

    /// `/…/i` or `m#…#i`
    fn pattern(&mut self) -> ParseResult<Pattern> {
        self.blanks();
        let bad = || "syntax error, expecting a regular expression".to_owned();
        let (quote, inner) = match self.rest {
            [b'/', inner @ ..] => (b'/', inner),
            [b'm', quote, inner @ ..] if quote.is_ascii_punctuation() => (*quote, inner),
            _ => return Err(bad()),
        };
        let (source, rest) = split(inner, quote).ok_or_else(bad)?;
        let flags = rest.iter().take_while(|byte| byte.is_ascii_lowercase()).count();
        let (flags, rest) = rest.split_at(flags);
        self.rest = rest;
        let mut letters = Letters::Exact;
        let mut modifiers = String::new();
        for flag in flags {
            match flag {
                b'i' => letters = Letters::Any,
                b's' | b'm' => modifiers.push(char::from(*flag)),
                _ => return Err(bad()),
            }
        }
        let source = match modifiers.is_empty() {
            true => source.to_vec(),
            false => [format!("(?{modifiers})").as_bytes(), source].concat(),
        };
        Pattern::new(&source, letters)
            .ok_or_else(|| format!("Failed to compile regex \"{}\"", shown(&source)))
    }

    fn word(&mut self) -> ParseResult<ExprWord> {
        let mut parts = vec![self.part()?];
        // A dot concatenates words.
        while self.take(b".") {
            parts.push(self.part()?);
        }
        Ok(joined(parts))
    }

    fn part(&mut self) -> ParseResult<ExprWord> {
        self.blanks();
        match self.rest {
            [quote @ (b'"' | b'\''), rest @ ..] => {
                let quote = *quote;
                self.rest = rest;
                self.text_until(Some(quote))
            }
            [b'%', b'{', ..] => self.variable(),
            [b'$', digit @ b'0'..=b'9', rest @ ..] => {
                let group = ExprWord::Group(digit - b'0');
                self.rest = rest;
                Ok(group)
            }
            [b'0'..=b'9', ..] => {
                let len = self.rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let (digits, rest) = self.rest.split_at(len);
                self.rest = rest;
                Ok(ExprWord::Fixed(digits.into()))
            }
            _ => {
                let name =
                    self.name().ok_or_else(|| "syntax error, a word is missing".to_owned())?;
                if !self.take(b"(") {
                    return Err(format!("syntax error, unexpected '{}'", shown(&name)));
                }
                let function = self.function(&name)?;
                let word = self.deeper(Self::word)?;
                match self.take(b")") {
                    true => Ok(ExprWord::Call(function, Box::new(word))),
                    false => Err("syntax error, missing ')'".to_owned()),
                }
            }
        }
    }

    /// `%{NAME}` or `%{function:text}`
    fn variable(&mut self) -> ParseResult<ExprWord> {
        let Some((inner, rest)) = split(&self.rest[2..], b'}') else {
            return Err("syntax error, missing '}'".to_owned());
        };
        self.rest = rest;
        if let Some((name, argument)) = split(inner, b':')
            && !matches!(&name.to_ascii_uppercase()[..], b"HTTP" | b"ENV" | b"SSL")
        {
            return Ok(ExprWord::Call(
                self.function(name)?,
                Box::new(ExprWord::Fixed(argument.into())),
            ));
        }
        if self.place == ExprPlace::Response {
            match &inner.to_ascii_uppercase()[..] {
                b"CONTENT_TYPE" => return Ok(ExprWord::ContentType),
                b"REQUEST_STATUS" => return Ok(ExprWord::Status),
                _ => {}
            }
        }
        match Variable::parse_in_expression(inner)? {
            Some(variable) => Ok(ExprWord::Of(variable)),
            None => Err(format!("Variable '{}' does not exist", shown(inner))),
        }
    }

    fn function(&self, name: &[u8]) -> ParseResult<TextFunction> {
        match self.place == ExprPlace::Response && name.eq_ignore_ascii_case(b"resp") {
            true => Ok(TextFunction::ResponseField),
            false => function(name),
        }
    }

    /// The text up to `quote`, or the rest, with its variables.
    fn text_until(&mut self, quote: Option<u8>) -> ParseResult<ExprWord> {
        let mut parts = Vec::new();
        let mut fixed: Vec<u8> = Vec::new();
        loop {
            match self.rest {
                [] if quote.is_none() => break,
                [] => return Err("Unterminated string".to_owned()),
                [byte, rest @ ..] if Some(*byte) == quote => {
                    self.rest = rest;
                    break;
                }
                [b'\\', escaped, rest @ ..] => {
                    fixed.push(match escaped {
                        b'n' => b'\n',
                        b't' => b'\t',
                        b'r' => b'\r',
                        other => *other,
                    });
                    self.rest = rest;
                    continue;
                }
                [b'%', b'{', ..] => {}
                [b'$', b'0'..=b'9', ..] => {}
                [byte, rest @ ..] => {
                    fixed.push(*byte);
                    self.rest = rest;
                    continue;
                }
            }
            if !fixed.is_empty() {
                parts.push(ExprWord::Fixed(std::mem::take(&mut fixed).into()));
            }
            self.parts += 1;
            if self.parts > PARTS_MAX {
                return Err("expression is too complex".to_owned());
            }
            parts.push(match self.rest {
                [b'$', digit, rest @ ..] => {
                    let group = ExprWord::Group(digit - b'0');
                    self.rest = rest;
                    group
                }
                _ => self.variable()?,
            });
        }
        if !fixed.is_empty() || parts.is_empty() {
            parts.push(ExprWord::Fixed(fixed.into()));
        }
        Ok(joined(parts))
    }
}

fn joined(mut parts: Vec<ExprWord>) -> ExprWord {
    if parts.len() == 1 { parts.remove(0) } else { ExprWord::Join(parts) }
}

fn function(name: &[u8]) -> ParseResult<TextFunction> {
    Ok(match &name.to_ascii_lowercase()[..] {
        b"req" | b"http" => TextFunction::Header,
        b"req_novary" => TextFunction::HeaderUnvaried,
        b"reqenv" | b"env" => TextFunction::Env,
        b"tolower" => TextFunction::ToLower,
        b"toupper" => TextFunction::ToUpper,
        b"escape" => TextFunction::Escape,
        b"unescape" => TextFunction::Unescape,
        _ => return Err(format!("Function '{}' does not exist here", shown(name))),
    })
}
