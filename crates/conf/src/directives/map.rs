//! `map`: a variable that depends on another text.

use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveForm, DirectiveSpec, Inheritance, accepted, leaf};
use crate::drafts::MapKeys;
use crate::model::{Definition, MapConf, MapKey};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};
use crate::regex::LetterCase;
use crate::vars::Template;

pub(super) const TABLE: &[DirectiveSpec] = &[
    leaf("map", Contexts::HTTP, Args::TWO, Inheritance::Own, map)
        .doc(
            "A variable that depends on another one.",
            "map $http_upgrade $connection_upgrade { default upgrade; '' close; }",
        )
        .takes("TEXT VARIABLE")
        .without("none"),
    accepted("map_hash_max_size", Contexts::HTTP, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "map_hash_max_size 2048;"),
    accepted("map_hash_bucket_size", Contexts::HTTP, Args::ONE, DirectiveForm::Number)
        .doc("Without effect: the table sizes itself.", "map_hash_bucket_size 64;"),
];

fn map(r: &mut ConfReader, node: &Node) -> ReadResult {
    let source = r.template(node.arg(0))?;
    let name = ConfReader::defined_name(node.arg(1))?;
    // The name is checked before the rows are.
    r.define_as(&name, Definition::Assigned)?;
    let mut map = MapConf {
        source,
        hostnames: false,
        volatile: false,
        default: Template::default(),
        rows: Vec::new(),
    };
    let mut rows = Rows::default();
    for entry in node.block.as_ref().map_or(&[][..], |block| &block.nodes) {
        let parsed = row(r, &mut map, &mut rows, entry);
        r.judge(entry, parsed);
    }
    r.define_as(&name, Definition::Map(Box::new(map)))?;
    Ok(())
}

/// The rows read so far in one block.
#[derive(Default)]
struct Rows {
    keys: MapKeys,
    has_default: bool,
}

fn row(r: &mut ConfReader, map: &mut MapConf, rows: &mut Rows, entry: &Node) -> ReadResult {
    if entry.block.is_some() {
        return Err(ReadFault::Text("unexpected \"{\"".to_owned()));
    }
    match (entry.name(), entry.args_count()) {
        (b"hostnames", 0) => {
            map.hostnames = true;
            return Ok(());
        }
        (b"volatile", 0) => {
            map.volatile = true;
            return Ok(());
        }
        (_, 1) => {}
        _ => return Err(ReadFault::Text("invalid number of the map parameters".to_owned())),
    }
    let value = r.template(entry.arg(0))?;
    let key = match entry.name() {
        b"default" if rows.has_default => {
            return Err(ReadFault::Text("duplicate default map parameter".to_owned()));
        }
        b"default" => {
            rows.has_default = true;
            map.default = value;
            return Ok(());
        }
        [b'~', b'*', regex @ ..] => MapKey::Regex(r.regex(regex, LetterCase::Insensitive)?),
        [b'~', regex @ ..] => MapKey::Regex(r.regex(regex, LetterCase::Sensitive)?),
        [b'\\', text @ ..] | text => rows.keys.read(text, map.hostnames)?,
    };
    map.rows.push((key, value));
    Ok(())
}

impl MapKeys {
    /// Reads a key, with wildcards if it is a host name.
    pub(super) fn read(&mut self, text: &[u8], is_host: bool) -> Result<MapKey, ReadFault> {
        let text = text.to_ascii_lowercase();
        let key = if is_host { wildcard(&text)? } else { MapKey::Exact(text.as_slice().into()) };
        let is_new = match &key {
            MapKey::Exact(name) => self.exact.insert(name.clone()),
            MapKey::Suffix(name) => self.suffixes.insert(name.clone()),
            MapKey::SuffixOrSelf(name) => {
                self.exact.insert(name[1..].into()) && self.suffixes.insert(name.clone())
            }
            MapKey::Prefix(name) => self.prefixes.insert(name.clone()),
            MapKey::Regex(_) => true,
        };
        if is_new {
            return Ok(key);
        }
        Err(ReadFault::Text(format!("conflicting parameter \"{}\"", show(&text))))
    }
}

fn wildcard(text: &[u8]) -> Result<MapKey, ReadFault> {
    let stars = text.iter().filter(|byte| **byte == b'*').count();
    let has_gap = text.windows(2).any(|pair| pair == b"..");
    let key = match text {
        _ if stars > 1 || has_gap || text.contains(&0) => None,
        [b'.', _, ..] if stars == 0 => Some(MapKey::SuffixOrSelf(text.into())),
        [b'*', b'.', _, ..] => Some(MapKey::Suffix(text[1..].into())),
        [rest @ .., b'*'] if rest.len() > 1 && rest.ends_with(b".") => {
            Some(MapKey::Prefix(rest.into()))
        }
        _ if stars == 0 => Some(MapKey::Exact(text.into())),
        _ => None,
    };
    let shown = show(text);
    key.ok_or_else(|| ReadFault::Text(format!("invalid hostname or wildcard \"{shown}\"")))
}
