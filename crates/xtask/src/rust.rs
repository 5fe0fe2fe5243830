//! Rust text taken apart as far as the counts need it: comments, tokens, code under `cfg(test)`.

/// One file: its code with comments and literals blanked, and its comments; both keep their lines.
pub(crate) struct Halves {
    pub(crate) code: String,
    pub(crate) comments: String,
}

/// Separates comments from code.
pub(crate) fn halves(text: &str) -> Halves {
    let mut halves = Halves { code: String::new(), comments: String::new() };
    let mut rest = text;
    while !rest.is_empty() {
        let (kind, length) = lexeme(rest);
        let (lexeme, after) = rest.split_at(length);
        let blank = || lexeme.chars().map(|char| if char == '\n' { '\n' } else { ' ' });
        match kind {
            Lexeme::Code => halves.code.push_str(lexeme),
            Lexeme::Comment | Lexeme::Literal => halves.code.extend(blank()),
        }
        match kind {
            Lexeme::Comment => halves.comments.push_str(lexeme),
            Lexeme::Code | Lexeme::Literal => halves.comments.extend(blank()),
        }
        rest = after;
    }
    halves
}

#[derive(Clone, Copy)]
enum Lexeme {
    Code,
    Comment,
    Literal,
}

/// What `text` begins with, and its length in bytes.
fn lexeme(text: &str) -> (Lexeme, usize) {
    let first = text.chars().next().unwrap_or(' ');
    if text.starts_with("//") {
        return (Lexeme::Comment, text.find('\n').unwrap_or(text.len()));
    }
    if text.starts_with("/*") {
        return (Lexeme::Comment, text.find("*/").map_or(text.len(), |end| end + 2));
    }
    if first == '"' {
        return (Lexeme::Literal, 1 + quoted(&text[1..], '"'));
    }
    if first == '\'' {
        let mut chars = text[1..].chars();
        let (second, third) = (chars.next(), chars.next());
        let is_char = second == Some('\\') || third == Some('\'');
        let length = if is_char { 1 + quoted(&text[1..], '\'') } else { 1 };
        return (if is_char { Lexeme::Literal } else { Lexeme::Code }, length);
    }
    if is_word(first) {
        let word = text.find(|char| !is_word(char)).unwrap_or(text.len());
        let raw = matches!(&text[..word], "r" | "br" | "cr").then(|| raw_string(&text[word..]));
        return match raw.flatten() {
            Some(length) => (Lexeme::Literal, word + length),
            None => (Lexeme::Code, word),
        };
    }
    (Lexeme::Code, first.len_utf8())
}

/// The length of a literal behind its opening quote, with its closing one.
fn quoted(text: &str, quote: char) -> usize {
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        if char == '\\' {
            chars.next();
        } else if char == quote {
            return at + 1;
        }
    }
    text.len()
}

/// The length of `#"…"#` behind its `r`, if it is one.
fn raw_string(text: &str) -> Option<usize> {
    let inner = text.trim_start_matches('#').strip_prefix('"')?;
    let hashes = text.len() - inner.len() - 1;
    let end = format!("\"{}", "#".repeat(hashes));
    let close = inner.find(&end).map_or(inner.len(), |at| at + end.len());
    Some(hashes + 1 + close)
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// A word, `::`, `->`, `=>` or one other character.
pub(crate) struct Token<'a> {
    pub(crate) line: usize,
    pub(crate) text: &'a str,
}

/// The tokens of code without comments and literals.
pub(crate) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    for (line, mut rest) in (1..).zip(code.lines()) {
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|char| !is_word(char)).unwrap_or(rest.len())
            } else if ["::", "->", "=>"].iter().any(|pair| rest.starts_with(pair)) {
                2
            } else {
                first.len_utf8()
            };
            let (text, after) = rest.split_at(length);
            if !first.is_whitespace() {
                tokens.push(Token { line, text });
            }
            rest = after;
        }
    }
    tokens
}

/// Takes items under `#[cfg(test)]` out of `code`; returns the names of modules among them that
/// have a file of their own.
pub(crate) fn remove_tests(code: &mut String) -> Vec<String> {
    const ATTRIBUTE: &str = "#[cfg(test)]";
    let mut modules = Vec::new();
    while let Some(start) = code.find(ATTRIBUTE) {
        let length = ATTRIBUTE.len() + item(&code[start + ATTRIBUTE.len()..]);
        let removed = &code[start..start + length];
        if let Some((_, name)) = removed.trim_end_matches(';').rsplit_once("mod ") {
            modules.extend((!name.contains('{')).then(|| name.trim().to_owned()));
        }
        let blank: String = removed.chars().filter(|char| *char == '\n').collect();
        code.replace_range(start..start + length, &blank);
    }
    modules
}

/// The length of an item: up to its `;`, or to the brace that closes it.
fn item(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, char) in code.char_indices() {
        match char {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => {
                depth = depth.saturating_sub(1);
                if char == '}' && depth == 0 {
                    return at + 1;
                }
            }
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[cfg(test)]
mod tests {
    use super::{halves, remove_tests, tokens};

    #[test]
    fn comments_and_literals_leave_the_code() {
        let text =
            "let a = '\"'; // who's \"x\nlet b = r#\"// \" no\"#; /* c\nd */ fn e<'f>() {}\n";
        let halves = halves(text);
        let words: Vec<_> = tokens(&halves.code).iter().map(|token| token.text).collect();
        assert_eq!(words.concat(), "leta=;letb=;fne<'f>(){}");
        assert_eq!(halves.comments.split_whitespace().collect::<String>(), "//who's\"x/*cd*/");
        assert_eq!(halves.code.lines().count(), halves.comments.lines().count());
        assert_eq!(tokens(&halves.code).last().map(|token| token.line), Some(3));
    }

    #[test]
    fn items_under_test_leave_the_code() {
        let mut code = "a;\n#[cfg(test)]\nmod own;\nb;\n#[cfg(test)]\n#[path]\nfn f(x: [u8; 4]) \
                        {\n{}\n}\nc;"
            .to_owned();
        assert_eq!(remove_tests(&mut code), ["own"]);
        assert_eq!(code, "a;\n\n\nb;\n\n\n\n\n\nc;");
    }
}
