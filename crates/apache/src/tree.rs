//! From lines to directives and sections in one another.

use crate::import::{ConfPlace, ImportFault};
use crate::read::SourceLine;
use crate::words::words;

/// LIMIT: sections in one another.
const DEPTH_MAX: usize = 64;

/// A directive, or a section with what is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ApacheNode {
    pub(crate) place: ConfPlace,
    /// As written.
    pub(crate) name: String,
    /// In lower case; a section's begins with `<`.
    pub(crate) lower: String,
    /// What follows the name, as written.
    pub(crate) rest: String,
    pub(crate) children: Vec<Self>,
}

impl ApacheNode {
    /// The arguments.
    pub(crate) fn words(&self) -> Vec<String> {
        words(&self.rest)
    }

    /// The first argument.
    pub(crate) fn first(&self) -> String {
        self.words().into_iter().next().unwrap_or_default()
    }

    /// The first argument where it is a keyword, which counts in any case: in lower case.
    pub(crate) fn keyword(&self) -> String {
        self.first().to_ascii_lowercase()
    }

    pub(crate) fn is_section(&self) -> bool {
        self.lower.starts_with('<')
    }

    /// It and all that is in it.
    pub(crate) fn each<'a>(&'a self, visit: &mut dyn FnMut(&'a Self)) {
        visit(self);
        self.children.iter().for_each(|child| child.each(visit));
    }
}

/// Puts lines into sections.
pub(crate) fn build(lines: Vec<SourceLine>) -> Result<Vec<ApacheNode>, ImportFault> {
    let mut stack: Vec<ApacheNode> = Vec::new();
    let mut top = Vec::new();
    for SourceLine { place, text } in lines {
        let node = match text.strip_prefix("</") {
            Some(rest) => {
                let name = rest.trim_end().trim_end_matches('>').trim();
                let lower = format!("<{}", name.to_ascii_lowercase());
                match stack.pop() {
                    Some(node) if node.lower == lower => node,
                    Some(node) => {
                        let message = format!("Expected </{}> but saw </{name}>", &node.name[1..]);
                        return Err(ImportFault { place, message });
                    }
                    None => {
                        let message = format!("</{name}> without matching <{name}> section");
                        return Err(ImportFault { place, message });
                    }
                }
            }
            None => {
                let node = node(place, &text)?;
                if node.is_section() {
                    if stack.len() >= DEPTH_MAX {
                        let message = "too many sections in one another".to_owned();
                        return Err(ImportFault { place: node.place, message });
                    }
                    stack.push(node);
                    continue;
                }
                node
            }
        };
        match stack.last_mut() {
            Some(section) => section.children.push(node),
            None => top.push(node),
        }
    }
    match stack.pop() {
        None => Ok(top),
        Some(node) => {
            let message = format!("{}> was not closed.", node.name);
            Err(ImportFault { place: node.place, message })
        }
    }
}

fn node(place: ConfPlace, text: &str) -> Result<ApacheNode, ImportFault> {
    let end = text.find(|one: char| one.is_ascii_whitespace() || one == '>').unwrap_or(text.len());
    let end = if text.starts_with('<') {
        end
    } else {
        text.find(|one: char| one.is_ascii_whitespace()).unwrap_or(text.len())
    };
    let (name, mut rest) = text.split_at(end);
    if text.starts_with('<') {
        let Some(close) = rest.rfind('>') else {
            let message = format!("{name}> directive missing closing '>'");
            return Err(ImportFault { place, message });
        };
        rest = &rest[..close];
    }
    Ok(ApacheNode {
        place,
        name: name.to_owned(),
        lower: name.to_ascii_lowercase(),
        rest: rest.trim().to_owned(),
        children: Vec::new(),
    })
}
