//! The text that is made: lines in nginx's language, each with the line of Apache's that it stands
//! for, and comments.

use std::fmt::Write as _;
use std::rc::Rc;

use crate::import::{ConfPlace, Imported};
use crate::words::in_quotes;

/// One line.
#[derive(Clone, Debug)]
enum OutLine {
    Text {
        depth: usize,
        text: String,
        place: Option<ConfPlace>,
    },
    /// What became of lines that have no counterpart.
    Note {
        depth: usize,
        file: Rc<str>,
        first: u32,
        last: u32,
        text: String,
    },
}

/// What has been written so far.
#[derive(Debug, Default)]
pub(crate) struct ConfText {
    lines: Vec<OutLine>,
    depth: usize,
    pub(crate) closed: Vec<ConfPlace>,
    unverified: Vec<ConfPlace>,
}

impl ConfText {
    /// A line that stands for `place`.
    pub(crate) fn put(&mut self, place: &ConfPlace, text: impl Into<String>) {
        let (depth, text, place) = (self.depth, text.into(), Some(place.clone()));
        self.lines.push(OutLine::Text { depth, text, place });
    }

    /// A line of our own.
    pub(crate) fn own(&mut self, text: impl Into<String>) {
        self.lines.push(OutLine::Text { depth: self.depth, text: text.into(), place: None });
    }

    pub(crate) fn open(&mut self, place: &ConfPlace, text: impl Into<String>) {
        self.put(place, format!("{} {{", text.into()));
        self.depth += 1;
    }

    pub(crate) fn close(&mut self) {
        debug_assert!(self.depth > 0, "a block that is closed was opened");
        self.depth = self.depth.saturating_sub(1);
        self.own("}");
    }

    /// A comment. Lines that follow one another with the same words share one.
    pub(crate) fn note(&mut self, place: &ConfPlace, text: impl Into<String>) {
        let text = text.into().replace('\n', " ");
        if let Some(OutLine::Note { file, last, text: before, .. }) = self.lines.last_mut()
            && *file == place.file
            && *before == text
            && place.line > *last
        {
            *last = place.line;
            return;
        }
        let (file, line) = (Rc::clone(&place.file), place.line);
        self.lines.push(OutLine::Note { depth: self.depth, file, first: line, last: line, text });
    }

    /// A comment about a place that is closed.
    pub(crate) fn comment_closed(&mut self, place: &ConfPlace, text: impl std::fmt::Display) {
        add_once(&mut self.closed, place);
        self.note(place, format!("CLOSED: {text}"));
    }

    /// A comment about a backend whose certificate is not verified; `what` Apache checks alone.
    pub(crate) fn unverified(&mut self, place: &ConfPlace, what: &str) {
        add_once(&mut self.unverified, place);
        self.note(place, format!("UNVERIFIED: {what} of the backend's certificate"));
    }

    /// `apache_directory`, with each line of Apache's on a line of its own.
    pub(crate) fn directory(
        &mut self,
        place: &ConfPlace,
        head: &[String],
        body: &[(ConfPlace, String)],
    ) {
        let head: Vec<String> = head.iter().map(|word| crate::words::quoted(word)).collect();
        self.put(place, format!("apache_directory {}", head.join(" ")));
        self.depth += 1;
        for (at, (own, line)) in body.iter().enumerate() {
            let end = if at + 1 == body.len() { ";" } else { "" };
            self.put(own, format!("{}{end}", in_quotes(line)));
        }
        self.depth -= 1;
    }

    /// Adds the lines of `inner`.
    pub(crate) fn append(&mut self, inner: Self) {
        self.add(inner, self.depth);
    }

    /// Puts the lines of `inner` one step deeper.
    pub(crate) fn nest(&mut self, inner: Self) {
        self.add(inner, self.depth + 1);
    }

    fn add(&mut self, inner: Self, deeper: usize) {
        inner.closed.iter().for_each(|place| add_once(&mut self.closed, place));
        inner.unverified.iter().for_each(|place| add_once(&mut self.unverified, place));
        for mut line in inner.lines {
            match &mut line {
                OutLine::Text { depth, .. } | OutLine::Note { depth, .. } => *depth += deeper,
            }
            self.lines.push(line);
        }
    }

    /// The places that lines stand for.
    pub(crate) fn places(&self) -> impl Iterator<Item = &ConfPlace> {
        self.lines.iter().filter_map(|line| match line {
            OutLine::Text { place, .. } => place.as_ref(),
            OutLine::Note { .. } => None,
        })
    }

    /// Whether a comment is about a place.
    pub(crate) fn covers(&self, place: &ConfPlace) -> bool {
        self.lines.iter().any(|line| match line {
            OutLine::Text { .. } => false,
            OutLine::Note { file, first, last, .. } => {
                *file == place.file && (*first..=*last).contains(&place.line)
            }
        })
    }

    /// The whole text.
    pub(crate) fn finish(self) -> Imported {
        let (closed, unverified) = (self.closed, self.unverified);
        let mut all = Imported { closed, unverified, ..Imported::default() };
        for line in self.lines {
            let (depth, text, place) = match line {
                OutLine::Text { depth, text, place } => (depth, text, place),
                OutLine::Note { depth, file, first, last, text } => {
                    let lines =
                        if first == last { first.to_string() } else { format!("{first}-{last}") };
                    let place = ConfPlace { file: Rc::clone(&file), line: first };
                    (depth, format!("# {file}:{lines}: {text}"), Some(place))
                }
            };
            for part in text.lines() {
                let blanks = if part.is_empty() { 0 } else { depth * 4 };
                let _ = writeln!(all.text, "{:blanks$}{part}", "");
                all.places.push(place.clone());
            }
            if text.is_empty() {
                all.text.push('\n');
                all.places.push(None);
            }
        }
        all
    }
}

fn add_once(all: &mut Vec<ConfPlace>, place: &ConfPlace) {
    if !all.contains(place) {
        all.push(place.clone());
    }
}
