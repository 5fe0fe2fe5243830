//! `geo`: a variable that depends on an address.

use std::collections::HashMap;
use std::net::Ipv4Addr;

use super::access::network;
use super::geo_ranges::Ranges;
use crate::ast::Node;
use crate::directive::{Args, Contexts, DirectiveSpec, Inheritance, leaf};
use crate::model::{Definition, Geo, Network, Spans, Who};
use crate::reader::{ConfReader, ReadFault, ReadResult, show};
use crate::vars::{Template, TemplatePart};

pub(super) const TABLE: &[DirectiveSpec] =
    &[leaf("geo", Contexts::HTTP, Args::between(1, 2), Inheritance::Own, geo)
        .doc(
            "A variable that depends on the client's address, or on another one.",
            "geo $inside { default 0; 192.0.2.0/24 1; }",
        )
        .takes("[VARIABLE] VARIABLE")
        .without("none")];

/// The contents of the block so far.
#[derive(Debug, Default)]
struct Draft {
    /// Values by number; the first is the default.
    values: Vec<Box<[u8]>>,
    numbers: HashMap<Box<[u8]>, u32>,
    /// First address and bits, to the number of the text.
    v4: HashMap<(u32, u32), u32>,
    v6: HashMap<(u128, u32), u32>,
    /// `ranges`: address ranges instead of networks.
    by_range: bool,
    ranges: Ranges,
    default: Option<u32>,
    /// Whether the block has networks already.
    has_networks: bool,
    proxies: Vec<Who>,
    recursive: bool,
    volatile: bool,
}

/// Whether a network is added or taken away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    Add(u32),
    Delete,
}

fn geo(r: &mut ConfReader, node: &Node) -> ReadResult {
    let first = ConfReader::defined_name(node.arg(0))?;
    let (source, name) = match node.args_count() {
        1 => (None, first),
        _ => {
            let name = ConfReader::defined_name(node.arg(1))?;
            let var = r.variable(&first)?;
            (Some(Template::new(vec![TemplatePart::Var(var)])), name)
        }
    };
    // The name is checked before the rows are.
    r.define_as(&name, Definition::Assigned)?;
    let mut draft = Draft::default();
    draft.number(b"");
    for entry in node.block.as_ref().map_or(&[][..], |block| &block.nodes) {
        let parsed = row(r, &mut draft, entry);
        r.judge(entry, parsed);
    }
    let geo = draft.finish(source);
    r.define_as(&name, Definition::Geo(Box::new(geo)))?;
    Ok(())
}

fn row(r: &mut ConfReader, draft: &mut Draft, entry: &Node) -> ReadResult {
    if entry.block.is_some() {
        return Err(ReadFault::Text("unexpected \"{\"".to_owned()));
    }
    let word = entry.name();
    match (word, entry.args_count()) {
        (b"ranges", 0) if draft.has_networks => {
            let text = "the \"ranges\" directive must be the first directive inside \"geo\" block";
            return Err(ReadFault::Text(text.to_owned()));
        }
        (b"ranges", 0) => {
            draft.by_range = true;
            return Ok(());
        }
        (b"proxy_recursive", 0) => {
            draft.recursive = true;
            return Ok(());
        }
        (b"volatile", 0) => {
            draft.volatile = true;
            return Ok(());
        }
        (_, 1) => {}
        _ => return Err(ReadFault::Text("invalid number of the geo parameters".to_owned())),
    }
    let value = entry.arg(0);
    match word {
        b"proxy" => {
            let network = written(r, entry, value)?;
            draft.proxies.push(Who::Network(network));
            Ok(())
        }
        _ if draft.by_range => range_row(r, draft, entry),
        _ => network_row(r, draft, entry),
    }
}

/// A network, with a warning when it has bits outside the mask.
fn written(r: &mut ConfReader, entry: &Node, word: &[u8]) -> Result<Network, ReadFault> {
    let Some(read) = network(word) else {
        return Err(ReadFault::Text(format!("invalid network \"{}\"", show(word))));
    };
    if read.has_low_bits {
        r.warn_at(entry, format!("low address bits of {} are meaningless", show(word)));
    }
    Ok(read.network)
}

fn network_row(r: &mut ConfReader, draft: &mut Draft, entry: &Node) -> ReadResult {
    draft.has_networks = true;
    let (word, value) = (entry.name(), entry.arg(0));
    if word == b"default" {
        let change = Change::Add(draft.number(value));
        for network in [
            Network::V4(Ipv4Addr::UNSPECIFIED, Ipv4Addr::UNSPECIFIED),
            Network::V6(0.into(), 0.into()),
        ] {
            draft.change(r, entry, word, network, change);
        }
        return Ok(());
    }
    let (word, change) = match word {
        b"delete" => (value, Change::Delete),
        _ => (word, Change::Add(draft.number(value))),
    };
    let network = written(r, entry, word)?;
    draft.change(r, entry, word, network, change);
    Ok(())
}

fn range_row(r: &mut ConfReader, draft: &mut Draft, entry: &Node) -> ReadResult {
    let (word, value) = (entry.name(), entry.arg(0));
    if word == b"default" {
        let number = draft.number(value);
        if let Some(old) = draft.default.replace(number) {
            let (new, old) = (show(value), show(&draft.values[old as usize]));
            let text =
                format!("duplicate default geo range value: \"{new}\", old value: \"{old}\"");
            r.warn_at(entry, text);
        }
        return Ok(());
    }
    let deletes = word == b"delete";
    let word = if deletes { value } else { word };
    let Some((start, end)) = range(word) else {
        return Err(ReadFault::Text(format!("invalid range \"{}\"", show(word))));
    };
    if deletes {
        if !draft.ranges.delete(start, end) {
            r.warn_at(entry, format!("no address range \"{}\" to delete", show(word)));
        }
        return Ok(());
    }
    let number = draft.number(value);
    let mut replaced = Vec::new();
    let added = draft.ranges.add(start, end, number, &mut replaced);
    for old in replaced {
        let (range, new, old) = (show(word), show(value), show(&draft.values[old as usize]));
        let text = format!("duplicate range \"{range}\", value: \"{new}\", old value: \"{old}\"");
        r.warn_at(entry, text);
    }
    added.map_err(|(from, to)| {
        let (from, to) = (Ipv4Addr::from_bits(from), Ipv4Addr::from_bits(to));
        ReadFault::Text(format!("range \"{}\" overlaps \"{from}-{to}\"", show(word)))
    })
}

/// `192.0.2.0-192.0.2.255`
fn range(word: &[u8]) -> Option<(u32, u32)> {
    let dash = word.iter().position(|byte| *byte == b'-')?;
    let start = crate::value::ipv4(&word[..dash])?.to_bits();
    let end = crate::value::ipv4(&word[dash + 1..])?.to_bits();
    (start <= end).then_some((start, end))
}

impl Draft {
    /// The number of a text.
    fn number(&mut self, text: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.values.len() as u32;
        self.values.push(text.into());
        self.numbers.insert(text.into(), number);
        number
    }

    /// Adds or removes a network, with nginx's warnings; `word` is its written form.
    fn change(
        &mut self,
        r: &mut ConfReader,
        entry: &Node,
        word: &[u8],
        at: Network,
        change: Change,
    ) {
        let old = match (at, change) {
            (Network::V4(ip, mask), Change::Add(value)) => {
                self.v4.insert((ip.to_bits(), mask.to_bits().count_ones()), value)
            }
            (Network::V6(ip, mask), Change::Add(value)) => {
                self.v6.insert((ip.to_bits(), mask.to_bits().count_ones()), value)
            }
            (Network::V4(ip, mask), Change::Delete) => {
                self.v4.remove(&(ip.to_bits(), mask.to_bits().count_ones()))
            }
            (Network::V6(ip, mask), Change::Delete) => {
                self.v6.remove(&(ip.to_bits(), mask.to_bits().count_ones()))
            }
        };
        let text = |number: u32| show(&self.values[number as usize]);
        let shown = show(word);
        let warning = match (old, change) {
            (Some(old), Change::Add(new)) => {
                let (new, old) = (text(new), text(old));
                format!("duplicate network \"{shown}\", value: \"{new}\", old value: \"{old}\"")
            }
            (None, Change::Delete) => format!("no network \"{shown}\" to delete"),
            _ => return,
        };
        r.warn_at(entry, warning);
    }

    fn finish(self, source: Option<Template>) -> Geo {
        let (v4, v6) = if self.by_range {
            let default = self.default.unwrap_or(0);
            // Ranges contain no IPv6 addresses.
            (self.ranges.spans(default), Spans::new(default))
        } else {
            let v4 = self.v4.into_iter().map(|((start, bits), value)| {
                (start, start | u32::MAX.checked_shr(bits).unwrap_or(0), value)
            });
            let v6 = self.v6.into_iter().map(|((start, bits), value)| {
                (start, start | u128::MAX.checked_shr(bits).unwrap_or(0), value)
            });
            (Spans::nested(v4.collect()), Spans::nested(v6.collect()))
        };
        let Self { values, proxies, recursive, volatile, .. } = self;
        Geo { source, v4, v6, values, proxies, recursive, volatile }
    }
}
