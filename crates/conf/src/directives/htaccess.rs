//! Apache's directives for directories: `.htaccess` files, and what a server's configuration says
//! itself. What they may say is described in [htaccess.md](../htaccess.md).

use std::sync::Arc;

use bolide_htaccess::ServerPlace;

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, added, flag};
use crate::model::ApacheDirectory;
use crate::reader::{ConfReader, ReadFault, ReadResult};

pub(super) const TABLE: &[DirectiveSpec] = &[
    flag("apache_htaccess", Contexts::HSL, |r| &mut r.settings().apache_htaccess).doc(
        "Whether `.htaccess` files are read in the directories that lead to a file, from the \
         location's `root` on, and are obeyed as Apache obeys them. A change is noticed without a \
         reload. A file with a line that is not understood is answered with 500, one that cannot \
         be read with 403. Files whose names begin with `.ht` are not served.",
        "apache_htaccess on;",
    ),
    added("apache_directory", Contexts::HSL, Args::at_least(2), directory)
        .doc(
            "What Apache's configuration has in `<Directory>` (with wildcards), or with `~` \
             in `<DirectoryMatch>`, or with `-` outside of them: each argument is one line of it. \
             Lines are those of `.htaccess` files, and `AllowOverride`, which has them \
             read or not from that directory on. It holds for files and scripts, not for \
             `proxy_pass`.",
            "apache_directory /srv/www/private 'AllowOverride None' 'Require ip 192.0.2.0/24';",
        )
        .takes("DIRECTORY TEXT… | ~ REGEX TEXT… | - TEXT…")
        .without("none"),
];

fn directory(r: &mut ConfReader, node: &Node) -> ReadResult {
    let words: Vec<&[u8]> = node.args().collect();
    let place = ServerPlace::parse(&words).map_err(|fault| {
        let line = words.iter().rev().nth(words_behind(&words, fault.line)).copied();
        let line = line.map(String::from_utf8_lossy).unwrap_or_default();
        ReadFault::Text(format!("\"apache_directory\": {} (\"{line}\")", fault.message))
    })?;
    let words = words.into_iter().map(Box::from).collect();
    let one = ApacheDirectory { words, place: Arc::new(place) };
    Arc::make_mut(&mut r.settings().apache_directories).push(one);
    Ok(())
}

/// How many words stand behind a line of a section.
fn words_behind(words: &[&[u8]], line: u32) -> usize {
    let before = if words.first() == Some(&&b"~"[..]) { 2 } else { 1 };
    (words.len() - before).saturating_sub(line as usize)
}
