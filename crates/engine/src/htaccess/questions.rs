//! What an evaluation asked of its request, and what was kept by the replies.
//!
//! An evaluation is settled by its path, by files and by what it asks, so what is asked next
//! follows from the replies before: what is kept of one path is a tree of questions. Easiest to
//! break: two requests with the same replies have to be told the same.

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

    /// The name of the field that it is of.
    pub(super) const fn name(&self) -> Name {
        match self {
            Self::Variable(_) => Name::Other,
            Self::Field(name, _) => *name,
        }
    }
}

/// Who knows the texts of a request.
pub(super) trait RequestTexts {
    /// A text of the request, made in `spare` where it is not there in one piece; `name` is that of
    /// the field that is asked for.
    fn text<'s>(&'s self, asked: Asked<'_>, name: Name, spare: &'s mut Vec<u8>)
    -> Option<&'s [u8]>;
}

/// What is asked about a text.
#[derive(Clone, Debug)]
pub(super) enum Question {
    /// All of it.
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
    /// None where there is no such text.
    Text(Option<Box<[u8]>>),
    Matches(bool),
}

/// About how many bytes of memory questions take with their replies.
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

/// What is kept by the replies to questions.
#[derive(Debug)]
pub(super) enum Kept<T> {
    Nothing,
    Ruling(Box<T>),
    Asks(Box<Fork<T>>),
}

/// A question with what is kept by each reply.
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
                // What gives up is evaluated, which says so.
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
    /// What is kept for a request.
    // PERF: within all steps it would push others out of line.
    #[inline(never)]
    pub(super) fn find(
        &mut self,
        texts: &impl RequestTexts,
        spare: &mut Vec<u8>,
        jit_taken: &Cell<usize>,
    ) -> Option<&mut T> {
        // All questions share what one evaluation may do: a request's text may be dear in each.
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

    /// Keeps a ruling by the replies that it was made of.
    pub(super) fn insert(&mut self, replies: Vec<(Question, Reply)>, ruling: T) {
        let mut here = self;
        for (question, reply) in replies {
            // Another question comes of other files: what was kept does not hold any more.
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

    /// Shows each ruling.
    pub(super) fn each(&self, visit: &mut dyn FnMut(&T)) {
        match self {
            Self::Nothing => {}
            Self::Ruling(ruling) => visit(ruling),
            Self::Asks(fork) => fork.branches.iter().for_each(|(_, kept)| kept.each(visit)),
        }
    }

    /// Leaves the rulings that are to stay, and the questions that lead there.
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
