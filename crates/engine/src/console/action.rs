//! An action of the console, as a value that the control thread executes.

/// An action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConsoleAction {
    /// Purge the page at this URL.
    PurgeUrl(Vec<u8>),
    /// Purge the objects with this tag.
    PurgeTag(Vec<u8>),
    /// Purge everything.
    PurgeAll,
    /// Reload the configuration.
    Reload,
    /// Restart this PHP pool.
    RestartPool(String),
}

/// The result: what was done, or why it was not.
pub type ConsoleOutcome = Result<String, String>;

impl ConsoleAction {
    /// The action called `name` with these arguments; none if the name is unknown.
    ///
    /// # Errors
    ///
    /// An argument is invalid.
    pub(crate) fn read(
        name: &[u8],
        words: &[(Vec<u8>, Vec<u8>)],
    ) -> Option<Result<Self, &'static str>> {
        let known = words.iter().map(|(word, value)| (&**word, &**value)).collect::<Vec<_>>();
        Some(match (name, &*known) {
            (b"purge", [(b"url", url)]) => Ok(Self::PurgeUrl(url.to_vec())),
            (b"purge", [(b"tag", tag)]) => Ok(Self::PurgeTag(tag.to_vec())),
            (b"purge", [(b"all", b"1")]) => Ok(Self::PurgeAll),
            (b"purge", _) => Err("a purge needs url=URL, tag=TAG or all=1"),
            (b"reload", []) => Ok(Self::Reload),
            (b"reload", _) => Err("a reload needs no words"),
            (b"pool", [(b"name", name), (b"order", b"restart")]) => {
                Ok(Self::RestartPool(String::from_utf8_lossy(name).into_owned()))
            }
            (b"pool", _) => Err("a pool needs name=NAME and order=restart"),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::ConsoleAction;

    #[test]
    fn an_action_has_its_words_and_no_others() {
        let read = |name: &str, words: &[(&str, &str)]| {
            let bytes = |text: &str| text.as_bytes().to_vec();
            let words: Vec<_> = words.iter().map(|(a, b)| (bytes(a), bytes(b))).collect();
            ConsoleAction::read(name.as_bytes(), &words)
        };
        for (name, words, action) in [
            ("purge", &[("url", "http://a/")][..], ConsoleAction::PurgeUrl(b"http://a/".to_vec())),
            ("purge", &[("tag", "a")], ConsoleAction::PurgeTag(b"a".to_vec())),
            ("purge", &[("all", "1")], ConsoleAction::PurgeAll),
            ("reload", &[], ConsoleAction::Reload),
            (
                "pool",
                &[("name", "a"), ("order", "restart")],
                ConsoleAction::RestartPool("a".to_owned()),
            ),
        ] {
            assert_eq!(read(name, words), Some(Ok(action)), "{name}");
            let more = [words, &[("more", "1")]].concat();
            assert!(matches!(read(name, &more), Some(Err(_))), "{name}");
        }
        assert!(matches!(read("purge", &[]), Some(Err(_))));
        assert!(read("", &[]).is_none() && read("status.json", &[]).is_none());
    }
}
