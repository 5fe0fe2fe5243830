//! The lexer against nginx's observed behaviour, and against itself.

use proptest::collection::vec;
use proptest::prelude::{any, prop_assert_eq, proptest};

use super::{Lexeme, Lexer, Terminator, TextOrigin, quote};

fn lexed(text: &str) -> String {
    let mut lexer = Lexer::new(text.as_bytes(), TextOrigin::File);
    let mut out = String::new();
    loop {
        match lexer.next_lexeme() {
            Ok(Lexeme::End) => return out,
            Ok(Lexeme::Close) => out.push_str("}@"),
            Ok(Lexeme::Directive(words, end)) => {
                for word in &words {
                    out.push_str(&format!("<{}>", word.text.escape_ascii()));
                }
                out.push_str(if end == Terminator::Open { "{@" } else { ";@" });
            }
            Err(error) => return format!("{out}!{}:{}", error.message, error.line),
        }
        out.push_str(&format!("{} ", lexer.line()));
    }
}

#[test]
fn words_are_cut_as_nginx_cuts_them() {
    let rows = [
        ("a b;c\n{ d; }", "<a><b>;@1 <c>{@2 <d>;@2 }@2 "),
        ("root /a#b; # c ;\nx;", "<root></a#b>;@1 <x>;@2 "),
        ("a \"b c\" 'd;{'\n;", "<a><b c><d;{>;@2 "),
        ("a \"\" '';", "<a><><>;@1 "),
        ("a x\"y\"z;", "<a><x\\\"y\\\"z>;@1 "),
        ("a ${b}c$d{e;}", "<a><${b}c$d>{@1 <e>;@1 }@1 "),
        ("a ${{b;", "<a><${{b>;@1 "),
        ("a $${b};", "<a><$${b}>;@1 "),
        ("a b{c;}", "<a><b>{@1 <c>;@1 }@1 "),
        ("a \\;b;", "<a><\\\\;b>;@1 "),
        ("a \"\\\"\\'\\\\\\t\\r\\n\\.\\d\";", "<a><\\\"\\'\\\\\\t\\r\\n\\\\.\\\\d>;@1 "),
        ("a \\.php$ b\\\\c;", "<a><\\\\.php$><b\\\\c>;@1 "),
        (
            "if (\"a\" ~ \"b\") {",
            "<if><(\"a\"><~><b><)>{@1 ".replace("(\"a\"", "(\\\"a\\\"").as_str(),
        ),
        ("a \"x\";b 'y'{", "<a><x>;@1 <b><y>{@1 "),
        ("\\#a;", "<\\\\#a>;@1 "),
    ]
    .map(|(input, expected)| (input.to_owned(), expected.to_owned()));
    for (input, expected) in rows {
        assert_eq!(lexed(&input), expected, "{input}");
    }
}

#[test]
fn errors_have_the_text_and_the_line_of_nginx() {
    let long = "x".repeat(5000);
    let rows = [
        ("a\n;;", "<a>;@2 !unexpected \";\":2"),
        ("{", "!unexpected \"{\":1"),
        ("a }", "!unexpected \"}\":1"),
        ("a \"b\"c;", "!unexpected \"c\":1"),
        ("a \"b\n\n", "!unexpected end of file, expecting \";\" or \"}\":3"),
        ("a b", "!unexpected end of file, expecting \";\" or \"}\":1"),
        ("a b \\", "!unexpected end of file, expecting \";\" or \"}\":1"),
        ("a \"b\"", "!unexpected end of file, expecting \";\" or \"}\":1"),
    ];
    for (input, expected) in rows {
        assert_eq!(lexed(input), expected, "{input}");
    }
    assert_eq!(
        lexed(&format!("\na \"{long}")),
        "!too long parameter, probably missing terminating \"\"\" character:2"
    );
    assert_eq!(lexed(&format!("a {long};")), "!too long parameter \"xxxxxxxxxx...\" started:1");
    assert_eq!(lexed(&format!("# {long}\na;")), "!too long parameter \"# xxxxxxxx...\" started:1");
    // The terminator of a word counts too, unless it ends the directive.
    let long = "x".repeat(4095);
    let shown = "!too long parameter \"xxxxxxxxxx...\" started:1";
    assert_eq!(lexed(&format!("{long} ;")), shown);
    assert_eq!(lexed(&format!("\"{long}\";")), shown);
    assert_eq!(lexed(&format!("#{}\na;", &long[1..])), "<a>;@2 ");
}

#[test]
fn a_parameter_that_ends_early_is_called_a_parameter() {
    let error = Lexer::new(b"daemon off", TextOrigin::Parameter).next_lexeme().unwrap_err();
    assert_eq!(error.message, "unexpected end of parameter, expecting \";\"");
}

proptest! {
    #[test]
    fn a_quoted_word_reads_back_as_itself(words in vec(vec(any::<u8>(), 0..40), 1..6)) {
        let mut text = Vec::new();
        for word in &words {
            quote(word, &mut text);
            text.push(b' ');
        }
        text.push(b';');
        let Ok(Lexeme::Directive(read, Terminator::Semicolon)) =
            Lexer::new(&text, TextOrigin::File).next_lexeme() else { panic!("not a directive") };
        let read: Vec<Vec<u8>> = read.into_iter().map(|word| word.text.into_vec()).collect();
        prop_assert_eq!(read, words);
    }
}
