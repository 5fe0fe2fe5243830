//! The questions of an evaluation about its request, and rulings stored by the replies.
//!
//! An evaluation depends on its path, on files and on replies, so each next question follows from
//! the replies before it: the rulings of one path form a decision tree. Easiest to break: two
//! requests with the same replies must get the same ruling.

use std::cell::Cell;
use std::sync::Arc;

use bolide_htaccess::{Asked, Effort, Pattern, RequestVariable};
use bolide_http::Name;

/// A text of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum AskedText {
    Variable(RequestVariable),
    /// A field with its name in lower case.
    Field(Name, Box<[u8]>),
}

impl AskedText {
    pub(super) fn of(asked: Asked<'_>) -> Self {
        match asked {
            Asked::Variable(which) => Self::Variable(which),
            Asked::Field(name) => Self::Field(Name::parse(name), name.into()),
        }
    }

    const fn asked(&self) -> Asked<'_> {
        match self {
            Self::Variable(which) => Asked::Variable(*which),
            Self::Field(_, name) => Asked::Field(name),
        }
    }

    /// The name of its field.
    pub(super) const fn name(&self) -> Name {
        match self {
            Self::Variable(_) => Name::Other,
            Self::Field(name, _) => *name,
        }
    }
}

/// Provides the texts of a request.
pub(super) trait RequestTexts {
    /// A text of the request, built in `spare` if it is not contiguous; `name` is that of the
    /// requested field.
    fn text<'s>(&'s self, asked: Asked<'_>, name: Name, spare: &'s mut Vec<u8>)
    -> Option<&'s [u8]>;
}

/// A question about a text.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// Its value.
    Text(AskedText),
    /// Whether an expression matches it.
    Matches(AskedText, Arc<Pattern>),
}

impl PartialEq for Question {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Text(own), Self::Text(other)) => own == other,
            (Self::Matches(own, pattern), Self::Matches(other, another)) => {
                Arc::ptr_eq(pattern, another) && own == other
            }
            _ => false,
        }
    }
}

/// The reply to a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// None if there is no such text.
    Text(Option<Box<[u8]>>),
    Matches(bool),
}

/// The approximate memory of questions with their replies, in bytes.
pub(super) fn bytes_of(replies: &[(Question, Reply)]) -> usize {
    let each = |(question, reply): &(Question, Reply)| {
        let (Question::Text(of) | Question::Matches(of, _)) = question;
        let name = match of {
            AskedText::Variable(_) => 0,
            AskedText::Field(_, name) => name.len(),
        };
        let text = match reply {
            Reply::Text(text) => text.as_ref().map_or(0, |text| text.len()),
            Reply::Matches(_) => 0,
        };
        name + text + size_of::<(Fork<()>, Reply, Kept<()>)>()
    };
    replies.iter().map(each).sum()
}

/// A tree of rulings, by the replies to questions.
#[derive(Debug)]
pub(super) enum Kept<T> {
    Nothing,
    Ruling(Box<T>),
    Asks(Box<Fork<T>>),
}

/// A question, with a subtree for each reply.
#[derive(Debug)]
pub(super) struct Fork<T> {
    question: Question,
    branches: Vec<(Reply, Kept<T>)>,
}

impl<T> Fork<T> {
    /// The branch of a request's reply.
    fn branch(
        &self,
        texts: &impl RequestTexts,
        spare: &mut Vec<u8>,
        effort: &Effort,
    ) -> Option<usize> {
        let is_so = |holds: &dyn Fn(&Reply) -> bool| {
            self.branches.iter().position(|(reply, _)| holds(reply))
        };
        match &self.question {
            Question::Matches(of, pattern) => {
                let text = texts.text(of.asked(), of.name(), spare).unwrap_or_default();
                // A match that exceeds its limit is evaluated, which reports the error.
                let matches = pattern.is_match(text, effort).ok()?;
                is_so(&|reply| *reply == Reply::Matches(matches))
            }
            Question::Text(of) => {
                let text = texts.text(of.asked(), of.name(), spare);
                is_so(&|reply| matches!(reply, Reply::Text(known) if known.as_deref() == text))
            }
        }
    }
}

impl<T> Kept<T> {
    /// Finds the ruling for a request.
    // PERF: inlined into a step, it would move the hot ones out of line.
    #[inline(never)]
    pub(super) fn find(
        &mut self,
        texts: &impl RequestTexts,
        spare: &mut Vec<u8>,
        jit_taken: &Cell<usize>,
    ) -> Option<&mut T> {
        // All questions share one limit: each may be expensive for this request's text.
        let (mut here, effort) = (self, Effort::of_request(jit_taken.get()));
        loop {
            here = match here {
                Self::Nothing => return None,
                Self::Ruling(ruling) => return Some(ruling),
                Self::Asks(fork) => {
                    let at = fork.branch(texts, spare, &effort);
                    jit_taken.set(effort.jit_taken());
                    let at = at?;
                    &mut fork.branches[at].1
                }
            };
        }
    }

    /// Stores a ruling by the replies that it depends on.
    pub(super) fn insert(&mut self, replies: Vec<(Question, Reply)>, ruling: T) {
        let mut here = self;
        for (question, reply) in replies {
            // Another question means that files have changed: the stored rulings are invalid.
            let mut fork = match std::mem::replace(here, Self::Nothing) {
                Self::Asks(fork) if fork.question == question => fork,
                _ => Box::new(Fork { question, branches: Vec::new() }),
            };
            let at = fork.branches.iter().position(|(known, _)| *known == reply);
            let at = at.unwrap_or_else(|| {
                fork.branches.push((reply, Self::Nothing));
                fork.branches.len() - 1
            });
            *here = Self::Asks(fork);
            let Self::Asks(fork) = here else { return };
            here = &mut fork.branches[at].1;
        }
        *here = Self::Ruling(Box::new(ruling));
    }

    /// Visits each ruling.
    pub(super) fn each(&self, visit: &mut dyn FnMut(&T)) {
        match self {
            Self::Nothing => {}
            Self::Ruling(ruling) => visit(ruling),
            Self::Asks(fork) => fork.branches.iter().for_each(|(_, kept)| kept.each(visit)),
        }
    }

    /// Removes the rulings that `stays` rejects, and questions that lead to none.
    pub(super) fn retain(&mut self, stays: &mut dyn FnMut(&mut T) -> bool) {
        let is_empty = match self {
            Self::Nothing => return,
            Self::Ruling(ruling) => !stays(ruling),
            Self::Asks(fork) => {
                fork.branches.iter_mut().for_each(|(_, kept)| kept.retain(stays));
                fork.branches.retain(|(_, kept)| !matches!(kept, Self::Nothing));
                fork.branches.is_empty()
            }
        };
        if is_empty {
            *self = Self::Nothing;
        }
    }
}
