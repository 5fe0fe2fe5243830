//! WebDAV's methods that change files, answered by the server itself.

use crate::ast::Node;
use crate::choice::{choice, say_once};
use crate::directive::{Args, Contexts, DirectiveSpec, flag, list, number, value};
use crate::model::{DavMethod, DavMethods, FileAccess};
use crate::reader::{ConfReader, ReadFault, ReadResult, invalid_value};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    list("dav_methods", HSL, Args::at_least(1), methods)
        .doc(
            "The methods that change files. As in nginx, `COPY` and `MOVE` are admitted by the \
             location of their source alone: the location that their destination lies in has no \
             say.",
            "dav_methods PUT DELETE MKCOL COPY MOVE;",
        )
        .takes("off | PUT | DELETE | MKCOL | COPY | MOVE…")
        .default("off"),
    flag("create_full_put_path", HSL, |r| &mut r.settings().dav.creates_directories).doc(
        "Whether `PUT` makes the directories that its path names and that are not there.",
        "create_full_put_path on;",
    ),
    number("min_delete_depth", HSL, |r| &mut r.settings().dav.delete_depth_min)
        .doc("The elements that a path has to have for `DELETE`.", "min_delete_depth 2;"),
    value("dav_access", HSL, Args::between(1, 3), |r, node| {
        r.settings().dav.access = access(node)?;
        Ok(())
    })
    .doc(
        "The permissions of files and directories that `PUT` and `MKCOL` make.",
        "dav_access user:rw group:rw all:r;",
    )
    .takes("user:r | user:rw | group:r | group:rw | all:r | all:rw…")
    .default("user:rw"),
];

fn methods(r: &mut ConfReader, node: &Node) -> ReadResult {
    if !r.again {
        r.settings().dav.methods = DavMethods::default();
    }
    let choices = DavMethod::ALL.map(|method| (method.name(), Some(method)));
    let choices = [&[("off", None)], &choices[..]].concat();
    for word in node.args() {
        let method = choice(word, &choices)?;
        say_once(r, node, word);
        if let Some(method) = method {
            r.settings().dav.methods.add(method);
        }
    }
    Ok(())
}

/// Reads permissions; the owner's are those to read and write where they are not written.
pub(super) fn access(node: &Node) -> Result<FileAccess, ReadFault> {
    let (mut bits, mut user) = (0, 0o600);
    for word in node.args() {
        let mut halves = word.splitn(2, |byte| *byte == b':');
        let shift = match halves.next() {
            Some(b"user") => 6,
            Some(b"group") => 3,
            Some(b"all") => 0,
            _ => return Err(invalid_value(word)),
        };
        let right = match halves.next() {
            Some(b"rw") => 6,
            Some(b"r") => 4,
            _ => return Err(invalid_value(word)),
        };
        if shift == 6 {
            user = 0;
        }
        bits |= right << shift;
    }
    Ok(FileAccess::new(bits | user))
}
