//! SSI pages of arbitrary bytes, and their invariants.
//!
//! A fuzz target and a replay test call this; it panics if an invariant is violated.

use bolide_ssi::{
    Flow, Matched, Moment, SharedText, SsiAct, SsiEvent, SsiFault, SsiInclude, SsiScanner, SsiWorld,
};

/// The result of a page.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SsiOutcome {
    /// The output without includes.
    pub shown: Vec<u8>,
    /// The includes requested.
    pub includes: Vec<SsiInclude>,
    /// The messages logged.
    pub faults: Vec<SsiFault>,
}

/// A page that arrives in `pieces`, with a server whose variables are called `v…`, and whose only
/// expressions are plain texts.
#[must_use]
pub fn play<'a>(pieces: impl Iterator<Item = &'a [u8]>, value_max: usize) -> SsiOutcome {
    let (mut scanner, mut flow) = (SsiScanner::new(value_max), Flow::default());
    let (mut shared, mut outcome) = (SharedText::default(), SsiOutcome::default());
    let mut text = Vec::new();
    for piece in pieces {
        let mut rest = piece;
        while !rest.is_empty() {
            let (used, event) = scanner.read(rest, &mut text);
            assert!(used > 0 && used <= rest.len(), "something is read of what there is");
            rest = &rest[used..];
            if flow.shows() {
                outcome.shown.append(&mut text);
            } else {
                flow.hide(&text, &mut shared);
                text.clear();
            }
            match event {
                None => assert!(rest.is_empty(), "all is read unless something was found"),
                Some(SsiEvent::Fault(fault)) => outcome.faults.push(fault),
                Some(SsiEvent::Broken) => outcome.shown.extend_from_slice(flow.error()),
                Some(SsiEvent::Command(command)) => {
                    let mut faults = Vec::new();
                    let mut world = SsiWorld {
                        shared: &mut shared,
                        uri: b"/dir/page",
                        moment: Moment { unix: 0, offset: 0, zone: "UTC" },
                        look_up: |name: &[u8], out: &mut Vec<u8>| {
                            let is_known = name.starts_with(b"v");
                            out.extend_from_slice(if is_known { name } else { b"" });
                            is_known
                        },
                        find,
                        warn: |fault| faults.push(fault),
                    };
                    let done = flow.run(&command, &mut world);
                    outcome.faults.append(&mut faults);
                    match done {
                        Ok(SsiAct::Nothing) => {}
                        Ok(SsiAct::Show(bytes)) => outcome.shown.extend_from_slice(&bytes),
                        Ok(SsiAct::Include(include)) => outcome.includes.push(include),
                        Err(fault) => {
                            outcome.faults.push(fault);
                            outcome.shown.extend_from_slice(flow.error());
                        }
                    }
                }
            }
        }
    }
    outcome
}

fn find(pattern: &[u8], subject: &[u8]) -> Result<Option<Matched>, SsiFault> {
    if pattern.starts_with(b"(") {
        return Err(b"no expression".to_vec());
    }
    let is_found = memchr::memmem::find(subject, pattern).is_some();
    Ok(is_found.then(|| Matched { groups: vec![pattern.to_vec()], named: Vec::new() }))
}

/// Processes `data` whole, byte by byte and in two halves at some places: the result is always the
/// same. The first byte sets the maximum length of values.
pub fn page(data: &[u8]) {
    let Some((&pick, page)) = data.split_first() else { return };
    let value_max = if pick & 1 == 0 { 256 } else { usize::from(pick) / 16 };
    let whole = play(std::iter::once(page), value_max);
    if memchr::memmem::find(page, b"<!--#").is_none() {
        assert!(page.starts_with(&whole.shown) && whole.faults.is_empty());
        assert!(page.len() - whole.shown.len() <= 4, "no more is held back than a mark has");
    }
    for include in &whole.includes {
        assert!(include.uri.is_empty() || include.uri.first() == Some(&b'/'));
    }
    assert_eq!(play(page.chunks(1), value_max), whole, "byte by byte");
    let step = (page.len() / 24).max(1);
    for cut in (0..page.len()).step_by(step) {
        let halves = [&page[..cut], &page[cut..]];
        assert_eq!(play(halves.into_iter(), value_max), whole, "cut at {cut}");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{page, play};

    fn shown(text: &str) -> (String, Vec<String>) {
        let outcome = play(std::iter::once(text.as_bytes()), 256);
        let words = |fault: &Vec<u8>| String::from_utf8_lossy(fault).into_owned();
        let faults = outcome.faults.iter().map(words).collect();
        (String::from_utf8_lossy(&outcome.shown).into_owned(), faults)
    }

    #[test]
    fn conditions_take_one_branch_and_blocks_show_nothing() {
        for (text, wanted) in [
            ("<!--#if expr=\"$v\"-->a<!--#else-->b<!--#endif-->c", "ac"),
            (
                "<!--#if expr=\"$x\"-->a<!--#elif expr=\"$v1 = v1\"-->b<!--#else-->c<!--#endif-->",
                "b",
            ),
            ("<!--#if expr=\"$v != /x/\"-->a<!--#endif-->b", "ab"),
            ("a<!--#block name=\"b\"-->x<!--#echo var=\"v\"--><!--#endblock-->b", "ab"),
            (
                "<!--#set var=\"A\" value=\"$v\\$\"--><!--#echo var=\"a\"--><!--#echo var=\"x\"-->",
                "v$(none)",
            ),
            ("<!--#if expr=\"$vq = /vq/\"--><!--#echo var=\"0\"--><!--#endif-->", "vq"),
        ] {
            assert_eq!(shown(text), (wanted.to_owned(), Vec::new()), "{text}");
        }
    }

    #[test]
    fn what_has_no_form_is_lost_up_to_its_end() {
        let error = "[an error occurred while processing the directive]";
        for (text, after, fault) in [
            (
                "<!--#echo var-->x",
                "x",
                "unexpected \"-\" symbol after \"var\" parameter in \"echo\" SSI command",
            ),
            (
                "<!--#echo var=v-->x",
                "x",
                "unexpected \"v\" symbol before value of \"var\" parameter in \"echo\" SSI command",
            ),
            (
                "<!--#echo var=\"v\"d-->x",
                "x",
                "unexpected \"d\" symbol after \"v\" value of \"var\" parameter in \"echo\" \
                 SSI command",
            ),
            (
                "<!--#echo var=\"v\" --->x-->y",
                "y",
                "unexpected \"-\" symbol in \"echo\" SSI command",
            ),
            ("<!--#echo-->x", "x", "mandatory \"var\" parameter is absent in \"echo\" SSI command"),
            ("<!--#nothing-->x", "x", "invalid SSI command: \"nothing\""),
            ("<!--#endif-->x", "x", "invalid context of SSI command: \"endif\""),
            ("<!--#set var=\"a\" value=\"$\"-->x", "x", "invalid variable name in \"$\""),
        ] {
            assert_eq!(shown(text), (format!("{error}{after}"), vec![fault.to_owned()]), "{text}");
        }
    }

    #[test]
    fn a_value_that_doubles_itself_ends_somewhere() {
        let double = "<!--#set var=\"a\" value=\"$a$a$a$a\"-->".repeat(100);
        let (text, faults) = shown(&format!("<!--#set var=\"a\" value=\"x\"-->{double}"));
        assert!(text.len() < 100 * 100 && faults.len() > 80, "{}", faults.len());
    }

    proptest! {
        #[test]
        fn pages_in_pieces_are_what_the_whole_is(
            pick in any::<u8>(),
            words in proptest::collection::vec(
                prop_oneof![
                    Just("<!--#"), Just("-->"), Just("<"), Just("-"), Just("!"), Just("echo "),
                    Just("if "), Just("else"), Just("endif"), Just("set "), Just("block "),
                    Just("endblock"), Just("include "), Just("var=\"v\""), Just("value='$v\\"),
                    Just("'"), Just("\""), Just("expr=\"$v = /v/\""), Just("name=\"b\""),
                    Just("virtual=\"x\""), Just("stub=\"b\""), Just(" "), Just("text"),
                ],
                0..40,
            ),
        ) {
            let mut data = vec![pick];
            data.extend_from_slice(words.concat().as_bytes());
            page(&data);
        }

        #[test]
        fn arbitrary_pages_break_nothing(data in any::<Vec<u8>>()) {
            page(&data);
        }
    }
}
