//! The location of files: `root`, `alias`, `index`, the open file cache, symbolic links.

use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;
use std::time::Duration;

use crate::ast::Node;
use crate::directive::{
    Args, Contexts, DirectiveForm, DirectiveSpec, accepted, flag, list, own, value,
};
use crate::model::{DocumentRoot, Mapping, Matcher, SymlinksConf};
use crate::reader::{
    ConfReader, DUPLICATE, INVALID, ReadFault, ReadResult, RootWord, bounded, invalid_parameter,
    show,
};
use crate::value::{self as values, Unit};
use crate::vars::{Template, Var};

const HSL: Contexts = Contexts::HSL;

pub(super) const TABLE: &[DirectiveSpec] = &[
    flag("random_index", Contexts::LOCATION, |r| &mut r.settings().random_index).doc(
        "Whether a directory is answered with one of its files, by chance; before `index`.",
        "random_index on;",
    ),
    own("root", Contexts::HSLI, Args::ONE, root)
        .doc("The document root.", "root /srv/www;")
        .takes("DIRECTORY")
        .default("html"),
    own("alias", Contexts::LOCATION, Args::ONE, alias)
        .doc("The path that replaces the location's prefix.", "alias /srv/images/;")
        .takes("DIRECTORY")
        .without("none"),
    list("index", HSL, Args::at_least(1), index)
        .doc("The index files of a directory.", "index index.html index.htm;")
        .takes("FILE…")
        .default("index.html"),
    value("open_file_cache", HSL, Args::between(1, 2), open_file_cache)
        .doc("The cache of open files.", "open_file_cache max=1000 inactive=20s;")
        .takes("max=NUMBER [inactive=SECONDS] | off")
        .without("files stay open and are checked again after a second"),
    value("open_file_cache_valid", HSL, Args::ONE, |r, node| {
        let time = values::time(node.arg(0), Unit::Seconds).ok_or(INVALID)?;
        r.settings().open_file_cache.valid = Some(time);
        Ok(())
    })
    .doc("How long a cached file is valid before the next check.", "open_file_cache_valid 30s;")
    .takes("SECONDS")
    .without("60s with `open_file_cache max=…`, else 1s"),
    value("open_file_cache_min_uses", HSL, Args::ONE, |r, node| {
        r.settings().open_file_cache.min_uses = bounded(node.arg(0), 0, u32::MAX)?;
        Ok(())
    })
    .doc("The number of uses after which a file stays open.", "open_file_cache_min_uses 2;")
    .takes("NUMBER")
    .default("1"),
    flag("open_file_cache_errors", HSL, |r| &mut r.settings().open_file_cache.errors)
        .doc("Whether failed lookups are cached too.", "open_file_cache_errors on;"),
    accepted("open_file_cache_events", HSL, Args::ONE, DirectiveForm::Flag)
        .doc("Without effect: notification of changes.", "open_file_cache_events off;"),
    value("disable_symlinks", HSL, Args::between(1, 2), disable_symlinks)
        .doc("Which symbolic links are refused.", "disable_symlinks if_not_owner;")
        .takes("on | off | if_not_owner [from=TEXT]")
        .default("off"),
];

fn root(r: &mut ConfReader, node: &Node) -> ReadResult {
    take_slot(r, RootWord::Root)?;
    let mut path = path(r, node)?;
    if let [kept @ .., b'/'] = path.as_slice() {
        path.truncate(kept.len());
    }
    let path = r.template(&path)?;
    r.settings().root = DocumentRoot { path, mapping: Mapping::Whole };
    Ok(())
}

fn alias(r: &mut ConfReader, node: &Node) -> ReadResult {
    take_slot(r, RootWord::Alias)?;
    let mapping = match &r.scope.matcher {
        Matcher::Named(_) => {
            let message = "the \"alias\" directive cannot be used inside the named location";
            return Err(ReadFault::Text(message.to_owned()));
        }
        Matcher::Regex(_) => Mapping::Nothing,
        Matcher::Exact(path) | Matcher::Prefix { path, .. } => Mapping::Without(path.len()),
        Matcher::Root | Matcher::If => Mapping::Whole,
    };
    let path = path(r, node)?;
    let path = r.template(&path)?;
    r.settings().root = DocumentRoot { path, mapping };
    Ok(())
}

/// Refuses a second `root` or `alias` in the same block.
fn take_slot(r: &mut ConfReader, word: RootWord) -> ReadResult {
    match r.scope.root_word.replace(word) {
        None => Ok(()),
        Some(earlier) if earlier == word => Err(DUPLICATE),
        Some(earlier) => {
            let (name, earlier) = (word.text(), earlier.text());
            Err(ReadFault::Text(format!(
                "\"{name}\" directive is duplicate, \"{earlier}\" directive was specified earlier"
            )))
        }
    }
}

/// The path below the prefix, unless a variable comes first.
fn path(r: &mut ConfReader, node: &Node) -> Result<Vec<u8>, ReadFault> {
    let word = node.arg(0);
    let template = r.template(word)?;
    for (var, name) in [(Var::DocumentRoot, "document_root"), (Var::RealpathRoot, "realpath_root")]
    {
        if template.vars().any(|used| *used == var) {
            let directive = show(node.name());
            return Err(ReadFault::Text(format!(
                "the ${name} variable cannot be used in the \"{directive}\" directive"
            )));
        }
    }
    if word.first() == Some(&b'$') {
        return Ok(word.to_vec());
    }
    Ok(r.below_prefix(word).as_os_str().as_bytes().to_vec())
}

fn index(r: &mut ConfReader, node: &Node) -> ReadResult {
    let last = node.args_count() - 1;
    let mut names: Vec<Template> = if r.again { r.settings().index.to_vec() } else { Vec::new() };
    for (position, word) in node.args().enumerate() {
        if word.first() == Some(&b'/') && position != last {
            r.warn("only the last index in \"index\" directive should be absolute".to_owned());
        }
        if word.is_empty() {
            return Err(ReadFault::Text("index \"\" in \"index\" directive is invalid".to_owned()));
        }
        names.push(r.template(word)?);
    }
    r.settings().index = Arc::new(names);
    Ok(())
}

fn open_file_cache(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (mut max, mut inactive, mut is_off) = (None, Duration::from_secs(60), false);
    for word in node.args() {
        let invalid =
            || ReadFault::Text(format!("invalid \"open_file_cache\" parameter \"{}\"", show(word)));
        if let Some(digits) = word.strip_prefix(b"max=") {
            let number = values::number(digits).and_then(|number| u32::try_from(number).ok());
            max = Some(number.filter(|number| *number > 0).ok_or_else(invalid)?);
        } else if let Some(time) = word.strip_prefix(b"inactive=") {
            inactive = values::time(time, Unit::Seconds).ok_or_else(invalid)?;
        } else if word == b"off" {
            is_off = true;
        } else {
            return Err(invalid());
        }
    }
    if max.is_none() && !is_off {
        let message = "\"open_file_cache\" must have the \"max\" parameter";
        return Err(ReadFault::Text(message.to_owned()));
    }
    let cache = &mut r.settings().open_file_cache;
    cache.max = max.filter(|_| !is_off);
    (cache.inactive, cache.is_off) = (inactive, is_off);
    Ok(())
}

fn disable_symlinks(r: &mut ConfReader, node: &Node) -> ReadResult {
    let (mut mode, mut from) = (None, None);
    let twice = || {
        let (first, second) = (show(node.arg(0)), show(node.arg(1)));
        ReadFault::Text(format!("duplicate parameters \"{first} {second}\""))
    };
    for word in node.args() {
        match word {
            b"off" | b"on" | b"if_not_owner" if mode.is_some() => return Err(twice()),
            b"off" | b"on" | b"if_not_owner" => mode = Some(word),
            _ => match word.strip_prefix(b"from=") {
                Some(text) => from = Some(r.template(text)?),
                None => return Err(invalid_parameter(word)),
            },
        }
    }
    r.settings().disable_symlinks = match mode {
        Some(b"off") if from.is_some() => {
            let message = "\"from=\" cannot be used with \"off\" parameter";
            return Err(ReadFault::Text(message.to_owned()));
        }
        Some(b"off") => SymlinksConf::Follow,
        Some(b"on") => SymlinksConf::Refuse { from },
        Some(_) => SymlinksConf::IfNotOwner { from },
        None => {
            let message = "\"disable_symlinks\" must have \"off\", \"on\" or \"if_not_owner\" \
                           parameter";
            return Err(ReadFault::Text(message.to_owned()));
        }
    };
    Ok(())
}
