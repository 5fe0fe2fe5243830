//! The configuration's parsers with arbitrary bytes, and their invariants.

use std::ffi::OsString;
use std::io;
use std::net::IpAddr;
use std::path::Path;

use bolide_conf::lex::{Lexeme, Lexer, TextOrigin, quote};
use bolide_conf::model::{Handler, Pass, PassTo};
use bolide_conf::source::{ConfSource, LoadOptions};

/// A source in which every file has the same bytes.
#[derive(Debug)]
struct Same<'a>(&'a [u8]);

impl ConfSource for Same<'_> {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        // Otherwise a text that includes itself would be parsed up to the limit each time.
        if path == Path::new("/fuzz/main.conf") {
            return Ok(self.0.to_vec());
        }
        Err(io::Error::from(io::ErrorKind::NotFound))
    }

    fn list(&self, _: &Path) -> io::Result<Vec<OsString>> {
        Ok(vec![OsString::from("main.conf"), OsString::from("other.conf")])
    }

    fn resolve(&self, _: &str) -> Vec<IpAddr> {
        Vec::new()
    }
}

/// Parses `data` as a whole configuration.
///
/// # Panics
///
/// There is neither a configuration nor an error, or both.
pub fn config(data: &[u8]) {
    let options = LoadOptions::default();
    let outcome = bolide_conf::parse(&Same(data), Path::new("/fuzz/main.conf"), &options);
    let fatal = outcome.diagnostics.iter().filter(|message| message.is_fatal()).count();
    assert_eq!(outcome.config.is_none(), fatal > 0, "a refusal has its reason");
    let path = Path::new("/fuzz/main.conf");
    let changes = bolide_conf::changes(&Same(data), path, &options, &outcome.outline);
    assert!(changes.is_empty(), "a configuration is like itself");
    if let Some(config) = outcome.config
        && let Some(http) = config.http
    {
        for listen in &http.listens {
            assert!(listen.servers.contains(&listen.default_server));
        }
        for server in &http.servers {
            assert!(!server.names.is_empty());
            assert!(server.root.index() < http.locations.len());
        }
        for group in &http.upstreams {
            assert!(group.servers.iter().any(|server| !server.backup));
            assert!(group.servers.iter().all(|server| !server.addresses.is_empty()));
        }
        for location in &http.locations {
            if let Handler::Pass(Pass { to: PassTo::Group(id), .. }) = &location.handler {
                assert!(id.index() < http.upstreams.len());
            }
            assert!(location.nested.iter().all(|id| id.index() < http.locations.len()));
        }
    }
}

/// Splits `data` into words; words written again split the same way.
///
/// # Panics
///
/// The lexer does not end, or the words differ.
pub fn lexer(data: &[u8]) {
    let mut lexer = Lexer::new(data, TextOrigin::Parameter);
    for _ in 0..=data.len() {
        let words = match lexer.next_lexeme() {
            Err(error) => {
                assert!(error.line >= 1 && !error.message.is_empty());
                return;
            }
            Ok(Lexeme::End) => return,
            Ok(Lexeme::Close) => continue,
            Ok(Lexeme::Directive(words, _)) => words,
        };
        let mut text = Vec::new();
        for word in &words {
            quote(&word.text, &mut text);
            text.push(b' ');
        }
        text.push(b';');
        let again = Lexer::new(&text, TextOrigin::Parameter).next_lexeme();
        let Ok(Lexeme::Directive(again, _)) = again else { unreachable!("quoted words are words") };
        assert!(words.iter().map(|word| &word.text).eq(again.iter().map(|word| &word.text)));
    }
    unreachable!("every lexeme takes a byte");
}
