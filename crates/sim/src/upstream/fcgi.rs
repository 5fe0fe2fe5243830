//! The same applications behind FastCGI: records of requests and responses.

use super::{After, Conn, SimUpstream};
use crate::fault_record::AppReaction;

/// Record types.
const BEGIN: u8 = 1;
const ABORT: u8 = 2;
const END: u8 = 3;
const PARAMS: u8 = 4;
const STDIN: u8 = 5;
const STDOUT: u8 = 6;
const STDERR: u8 = 7;
/// Protocol statuses of END_REQUEST: complete, CANT_MPX_CONN, OVERLOADED, UNKNOWN_ROLE.
const PROTOCOL_STATUSES: usize = 4;
/// Records of one byte before the longer ones, at most: each counts against the size of a head.
const SMALL_RECORDS: usize = 60;

/// How a response in records ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum RecordsEnd {
    /// As the specification says.
    Complete,
    /// By the close of the connection, after the end of STDOUT.
    Closed,
}

impl SimUpstream {
    /// The response in records of unusual sizes, with long STDERR records anywhere. Returns whether
    /// the connection may be kept, too.
    pub(super) fn odd_records(&mut self, answer: &[u8], reaction: AppReaction) -> (Vec<u8>, bool) {
        let mut records = Vec::new();
        let mut rest = answer;
        if reaction == AppReaction::EndEarly {
            rest = match self.chance.one_in(2) {
                true => &[],
                false => &answer[..self.chance.index(answer.len())],
            };
        }
        let small = if self.chance.one_in(4) { self.chance.index(SMALL_RECORDS) } else { 0 };
        for at in 0.. {
            if self.chance.one_in(8) {
                let size = self.chance.size(65_535);
                self.push(&mut records, STDERR, &vec![b'e'; size]);
            }
            if rest.is_empty() {
                break;
            }
            let n = if at < small { 1 } else { self.chance.size(rest.len().min(65_535)) };
            self.push(&mut records, STDOUT, &rest[..n]);
            rest = &rest[n..];
        }
        if reaction == AppReaction::Malformed {
            let all: [&[u8]; 4] = [
                b"\x09\x06\x00\x01\xff\xff\xff\x00 no record",
                b"\x01\x06\x00\x02\x00\x01\x00\x00x",
                b"\x01\x06\x01\x01\x00\x01\x00\x00x",
                b"\x01\x0b\x00\x01\x00\x08\x00\x00 unknown",
            ];
            records.extend_from_slice(all[self.chance.index(all.len())]);
        }
        let ends = match reaction == AppReaction::Respond && self.chance.one_in(8) {
            true => RecordsEnd::Closed,
            false => RecordsEnd::Complete,
        };
        if reaction != AppReaction::EndEarly
            && (ends == RecordsEnd::Closed || self.chance.one_in(2))
        {
            self.push(&mut records, STDOUT, b"");
        }
        if ends == RecordsEnd::Closed {
            return (records, false);
        }
        let mut end = [0; 8];
        end[3] = if self.chance.one_in(4) { self.chance.below(256) as u8 } else { 0 };
        if reaction == AppReaction::EndEarly {
            end[4] = self.chance.index(PROTOCOL_STATUSES) as u8;
        }
        self.push(&mut records, END, &end);
        (records, true)
    }

    /// The response in records of random size and padding, with STDERR records in between.
    pub(super) fn records(&mut self, answer: &[u8], reaction: AppReaction) -> Vec<u8> {
        let mut records = Vec::new();
        let mut rest = answer;
        while !rest.is_empty() {
            let n = self.chance.size(rest.len().min(65_535));
            self.push(&mut records, STDOUT, &rest[..n]);
            rest = &rest[n..];
            if self.chance.one_in(8) {
                self.push(&mut records, STDERR, b"PHP message: a notice");
            }
        }
        if reaction == AppReaction::Malformed {
            records.extend_from_slice(b"\x09\x06\x00\x01\xff\xff\xff\x00 no record");
        }
        self.push(&mut records, STDOUT, b"");
        self.push(&mut records, END, &[0; 8]);
        records
    }

    fn push(&mut self, out: &mut Vec<u8>, kind: u8, content: &[u8]) {
        let padding = if self.chance.one_in(2) { 0 } else { self.chance.below(256) as u8 };
        out.extend_from_slice(&[1, kind, 0, 1]);
        out.extend_from_slice(&(content.len() as u16).to_be_bytes());
        out.extend_from_slice(&[padding, 0]);
        out.extend_from_slice(content);
        out.resize(out.len() + usize::from(padding), 0);
    }
}

impl Conn {
    /// Takes complete records.
    pub(super) fn parse(&mut self) {
        while let Some(header) = self.input.first_chunk::<8>() {
            let [_, kind, _, _, high, low, padding, _] = *header;
            let len = usize::from(u16::from_be_bytes([high, low]));
            let end = 8 + len + usize::from(padding);
            if self.input.len() < end || self.after == After::Next {
                return;
            }
            let content: Vec<u8> = self.input[8..8 + len].to_vec();
            self.input.drain(..end);
            match kind {
                BEGIN => self.keeps = content.get(2).is_some_and(|flags| flags & 1 == 1),
                PARAMS if content.is_empty() => self.has_params = true,
                PARAMS => self.params.extend_from_slice(&content),
                STDIN if content.is_empty() => self.has_body = true,
                STDIN => self.body.extend_from_slice(&content),
                // PHP looks for no such record.
                ABORT if self.seat.is_some() => {}
                ABORT => {
                    self.output.clear();
                    self.written = 0;
                    self.after = After::Close { rude: false };
                }
                _ => {}
            }
        }
    }
}
