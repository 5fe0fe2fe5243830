//! A simulated Valkey: what it keeps, and what each command does to it. It answers as Valkey does;
//! scripts are known by their words, and one that is not known ends the test.

use std::collections::BTreeMap;

use bolide_cluster::EntryId;
use bolide_valkey::stamp_of;

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    Okay,
    None,
    Number(i64),
    Text(Vec<u8>),
    Items(Vec<Self>),
    Error(&'static str),
}

const WRONG_TYPE: Reply =
    Reply::Error("WRONGTYPE Operation against a key holding the wrong kind of value");
const FULL: Reply = Reply::Error("OOM command not allowed when used memory > 'maxmemory'.");
const NO_SCRIPTS: Reply = Reply::Error("NOPERM this user has no permissions to run 'eval'");

/// An entry of a stream.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) id: EntryId,
    pub(super) field: Vec<u8>,
    pub(super) bytes: Vec<u8>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Stream {
    pub(super) entries: Vec<Entry>,
    last: EntryId,
}

#[derive(Clone, Debug)]
pub(super) enum Value {
    Text(Vec<u8>),
    Table(BTreeMap<Vec<u8>, Vec<u8>>),
    Stream(Stream),
}

#[derive(Clone, Debug)]
struct Item {
    value: Value,
    until_ms: u64,
}

/// What it keeps. A copy of it is what a restart without the last writes goes back to.
#[derive(Clone, Debug, Default)]
pub(super) struct Keeper {
    items: BTreeMap<Vec<u8>, Item>,
    pub(super) is_full: bool,
    pub(super) refuses_scripts: bool,
}

type Words<'a> = &'a [Vec<u8>];

fn number(word: &[u8]) -> u64 {
    std::str::from_utf8(word).ok().and_then(|text| text.parse().ok()).expect("a number")
}

fn id(word: &[u8]) -> EntryId {
    let text = std::str::from_utf8(word).expect("an id");
    let parsed = text.parse().ok().or_else(|| {
        let ms = text.parse().ok()?;
        Some(EntryId { ms, number: 0 })
    });
    parsed.expect("an id")
}

fn text(word: impl std::fmt::Display + Copy) -> Reply {
    Reply::Text(format!("{word}").into_bytes())
}

fn row(entry: &Entry) -> Reply {
    let fields = [&entry.field, &entry.bytes].map(|part| Reply::Text(part.clone()));
    Reply::Items(vec![text(entry.id), Reply::Items(fields.to_vec())])
}

impl Keeper {
    fn value(&mut self, key: &[u8], now_ms: u64) -> Option<&mut Value> {
        if self.items.get(key).is_some_and(|item| item.until_ms <= now_ms) {
            self.items.remove(key);
        }
        self.items.get_mut(key).map(|item| &mut item.value)
    }

    /// The text of a key; an error if it is something else.
    fn text(&mut self, key: &[u8], now_ms: u64) -> Result<Option<Vec<u8>>, Reply> {
        match self.value(key, now_ms) {
            None => Ok(None),
            Some(Value::Text(bytes)) => Ok(Some(bytes.clone())),
            Some(_) => Err(WRONG_TYPE),
        }
    }

    fn set(&mut self, key: &[u8], bytes: &[u8], keep: (u64, u64)) {
        let (now_ms, ms) = keep;
        let item = Item { value: Value::Text(bytes.to_vec()), until_ms: now_ms + ms };
        self.items.insert(key.to_vec(), item);
    }

    /// Puts a value there, whatever was there.
    pub(super) fn put(&mut self, key: &[u8], value: Value) {
        self.items.insert(key.to_vec(), Item { value, until_ms: u64::MAX });
    }

    pub(super) fn drop_key(&mut self, key: &[u8]) {
        self.items.remove(key);
    }

    pub(super) fn drop_all(&mut self) {
        self.items.clear();
    }

    /// All keys and texts.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = (&[u8], &mut Vec<u8>)> {
        self.items.iter_mut().filter_map(|(key, item)| match &mut item.value {
            Value::Text(bytes) => Some((&key[..], bytes)),
            _ => None,
        })
    }

    /// The stream, if there is one.
    pub(super) fn stream(&mut self, key: &[u8]) -> Option<&mut Stream> {
        match &mut self.items.get_mut(key)?.value {
            Value::Stream(stream) => Some(stream),
            _ => None,
        }
    }

    /// Whether a command adds something, which one without memory refuses.
    fn is_growing(words: Words<'_>) -> bool {
        let script = words.get(1).map(Vec::as_slice).unwrap_or_default();
        match &words[0][..] {
            b"XADD" | b"SET" | b"HSET" => true,
            b"EVAL" => has(script, "'SET'"),
            _ => false,
        }
    }

    /// Carries out a command, by this clock.
    pub(super) fn run(&mut self, words: Words<'_>, now_ms: u64) -> Reply {
        let name = words[0].to_ascii_uppercase();
        if self.is_full && Self::is_growing(words) {
            return FULL;
        }
        let done = match &name[..] {
            b"CLIENT" | b"PING" | b"SELECT" => Ok(Reply::Okay),
            b"TIME" => Ok(Reply::Items(vec![text(now_ms / 1000), text(now_ms % 1000 * 1000)])),
            b"EXISTS" => Ok(Reply::Number(self.value(&words[1], now_ms).is_some().into())),
            b"SET" => self.run_set(words, now_ms),
            b"HGET" | b"HSET" | b"HDEL" | b"HGETALL" => self.run_table(&name, words),
            b"XADD" => self.add(words, now_ms),
            b"XTRIM" => self.trim(words),
            b"XRANGE" => self.range(&words[1..], false),
            b"XREVRANGE" => self.range(&words[1..], true),
            b"XINFO" => self.stream_info(&words[2]),
            b"EVAL" if self.refuses_scripts => Ok(NO_SCRIPTS),
            b"EVAL" => {
                let (keys, rest) = words[3..].split_at(number(&words[2]) as usize);
                self.run_script(&words[1], keys, rest, now_ms)
            }
            _ => panic!("no command {}", String::from_utf8_lossy(&name)),
        };
        done.unwrap_or_else(|refused| refused)
    }

    fn run_set(&mut self, words: Words<'_>, now_ms: u64) -> Result<Reply, Reply> {
        let is_first = words[3] == b"NX";
        let ms = number(words.last().expect("a time"));
        if is_first && self.value(&words[1], now_ms).is_some() {
            return Ok(Reply::None);
        }
        self.set(&words[1], &words[2], (now_ms, ms));
        Ok(Reply::Okay)
    }

    fn run_table(&mut self, name: &[u8], words: Words<'_>) -> Result<Reply, Reply> {
        if name == b"HSET" && !self.items.contains_key(&words[1]) {
            self.put(&words[1], Value::Table(BTreeMap::new()));
        }
        let table = match self.items.get_mut(&words[1]).map(|item| &mut item.value) {
            Some(Value::Table(table)) => table,
            Some(_) => return Err(WRONG_TYPE),
            None if name == b"HGETALL" => return Ok(Reply::Items(Vec::new())),
            None if name == b"HGET" => return Ok(Reply::None),
            None => return Ok(Reply::Number(0)),
        };
        Ok(match name {
            b"HGET" => table.get(&words[2]).cloned().map_or(Reply::None, Reply::Text),
            b"HSET" => {
                let is_new = table.insert(words[2].clone(), words[3].clone()).is_none();
                Reply::Number(is_new.into())
            }
            b"HDEL" => Reply::Number(table.remove(&words[2]).is_some().into()),
            _ => {
                let pairs = table.iter().flat_map(|(field, bytes)| [field, bytes]);
                Reply::Items(pairs.map(|part| Reply::Text(part.clone())).collect())
            }
        })
    }

    fn stream_at(&mut self, key: &[u8]) -> Result<Option<&mut Stream>, Reply> {
        match self.items.get_mut(key).map(|item| &mut item.value) {
            Some(Value::Stream(stream)) => Ok(Some(stream)),
            Some(_) => Err(WRONG_TYPE),
            None => Ok(None),
        }
    }

    /// `XADD KEY MAXLEN = COUNT * FIELD BYTES`
    fn add(&mut self, words: Words<'_>, now_ms: u64) -> Result<Reply, Reply> {
        if self.stream_at(&words[1])?.is_none() {
            self.put(&words[1], Value::Stream(Stream::default()));
        }
        let most = number(&words[4]) as usize;
        let Some(stream) = self.stream_at(&words[1])? else { return Ok(Reply::None) };
        let given = EntryId { ms: now_ms, number: 0 };
        let id = given.max(stream.last.next());
        stream.last = id;
        stream.entries.push(Entry { id, field: words[6].clone(), bytes: words[7].clone() });
        let too_many = stream.entries.len().saturating_sub(most);
        stream.entries.drain(..too_many);
        Ok(text(id))
    }

    /// `XTRIM KEY MINID = MS`
    fn trim(&mut self, words: Words<'_>) -> Result<Reply, Reply> {
        let least = id(&words[4]);
        let Some(stream) = self.stream_at(&words[1])? else { return Ok(Reply::Number(0)) };
        let before = stream.entries.len();
        stream.entries.retain(|entry| entry.id >= least);
        Ok(Reply::Number((before - stream.entries.len()) as i64))
    }

    /// `KEY START END COUNT N`, with the end first if it is the newest that is asked for.
    fn range(&mut self, words: Words<'_>, is_newest: bool) -> Result<Reply, Reply> {
        let count = number(&words[4]) as usize;
        let Some(stream) = self.stream_at(&words[0])? else {
            return Ok(Reply::Items(Vec::new()));
        };
        if is_newest {
            return Ok(Reply::Items(stream.entries.iter().rev().take(count).map(row).collect()));
        }
        let from = match words[1].strip_prefix(b"(") {
            Some(before) => id(before).next(),
            None => id(&words[1]),
        };
        let found = stream.entries.iter().filter(|entry| entry.id >= from);
        Ok(Reply::Items(found.take(count).map(row).collect()))
    }

    /// Whether there is an entry behind this one.
    pub(super) fn is_behind(&mut self, key: &[u8], position: &[u8]) -> Result<bool, Reply> {
        let position = id(position);
        let stream = self.stream_at(key)?;
        Ok(stream.is_some_and(|it| it.entries.last().is_some_and(|last| last.id > position)))
    }

    fn stream_info(&mut self, key: &[u8]) -> Result<Reply, Reply> {
        let Some(stream) = self.stream_at(key)? else {
            return Err(Reply::Error("ERR no such key"));
        };
        let of_entry = |entry: Option<&Entry>| entry.map_or(Reply::None, row);
        let replies = [
            ("length", Reply::Number(stream.entries.len() as i64)),
            ("last-generated-id", text(stream.last)),
            ("first-entry", of_entry(stream.entries.first())),
            ("last-entry", of_entry(stream.entries.last())),
        ];
        Ok(Reply::Items(replies.into_iter().flat_map(|(name, it)| [text(name), it]).collect()))
    }

    fn run_script(
        &mut self,
        script: &[u8],
        keys: Words<'_>,
        rest: Words<'_>,
        now_ms: u64,
    ) -> Result<Reply, Reply> {
        let is = |words: &str| script.starts_with(words.as_bytes());
        if script == b"return 1" {
            Ok(Reply::Number(1))
        } else if is("local all = redis.call(ARGV[1], KEYS[1], ARGV[2], ARGV[3], 'COUNT'") {
            let words: Vec<_> = keys.iter().chain(&rest[1..]).cloned().collect();
            let words = [&words[..3], &[b"COUNT".to_vec()], &words[3..4]].concat();
            self.range(&words, rest[0] == b"XREVRANGE")
        } else if is("if redis.call('EXISTS', KEYS[1]) == 0") {
            match self.stream_at(&keys[0])? {
                None => Ok(Reply::None),
                Some(_) => self.stream_info(&keys[0]),
            }
        } else if is("local n = redis.pcall('STRLEN', KEYS[2])") {
            self.ask(keys, rest, now_ms)
        } else if is("local lease = redis.pcall('GET', KEYS[2])") {
            self.offer(keys, rest, now_ms)
        } else if is(
            "if redis.pcall('GET', KEYS[1]) == ARGV[1] then redis.call('SET', KEYS[1], '-'",
        ) {
            if self.text(&keys[0], now_ms) == Ok(Some(rest[0].clone())) {
                self.set(&keys[0], b"-", (now_ms, number(&rest[1])));
            }
            Ok(Reply::Number(1))
        } else {
            self.run_secrets(script, keys, rest, now_ms)
        }
    }

    /// The scripts of secrets and leases.
    fn run_secrets(
        &mut self,
        script: &[u8],
        keys: Words<'_>,
        rest: Words<'_>,
        now_ms: u64,
    ) -> Result<Reply, Reply> {
        let is = |words: &str| script.starts_with(words.as_bytes());
        let each = "for at, key in ipairs(KEYS) do\n  if redis.pcall('GET', key) == ARGV[at] then";
        if is("local out, most = {}, tonumber(ARGV[#ARGV])") {
            Ok(Reply::Items(self.look(keys, rest, now_ms)))
        } else if is("local now = redis.call('GET', KEYS[1])\nif (now or '') ~= ARGV[1]") {
            let is_so = self.text(&keys[0], now_ms)?.unwrap_or_default() == rest[0];
            if is_so {
                self.set(&keys[0], &rest[1], (now_ms, number(&rest[2])));
            }
            Ok(Reply::Number(is_so.into()))
        } else if is("local all, out = redis.call('HGETALL', KEYS[1])") {
            self.run_table(b"HGETALL", &[b"HGETALL".to_vec(), keys[0].clone()])
        } else if is("local out = {}\nfor at, key in ipairs(KEYS) do\n  local now, left") {
            self.take_leases(keys, rest, now_ms)
        } else if is(&format!("{each}\n    redis.call('SET'")) {
            let ms = number(rest.last().expect("a time"));
            for (key, token) in keys.iter().zip(rest) {
                if self.text(key, now_ms).as_ref() == Ok(&Some(token.clone())) {
                    self.set(key, token, (now_ms, ms));
                }
            }
            Ok(Reply::Number(1))
        } else if is(&format!("{each} redis.call('DEL'")) {
            for (key, token) in keys.iter().zip(rest) {
                if self.text(key, now_ms).as_ref() == Ok(&Some(token.clone())) {
                    self.drop_key(key);
                }
            }
            Ok(Reply::Number(1))
        } else {
            panic!("no script {}", String::from_utf8_lossy(script))
        }
    }

    /// Values that differ from the known ones.
    fn look(&mut self, keys: Words<'_>, rest: Words<'_>, now_ms: u64) -> Vec<Reply> {
        let most = number(rest.last().expect("a limit")) as usize;
        let mut replies = Vec::new();
        for (key, known) in keys.iter().zip(rest) {
            replies.push(match self.text(key, now_ms) {
                Ok(None) => Reply::None,
                Ok(Some(bytes)) if bytes.len() <= most => match stamp_of(&bytes) == *known {
                    true => Reply::Number(0),
                    false => Reply::Text(bytes),
                },
                _ => Reply::Number(1),
            });
        }
        replies
    }

    /// Takes leases, unless they have other tokens and no more time than leases get.
    fn take_leases(
        &mut self,
        keys: Words<'_>,
        rest: Words<'_>,
        now_ms: u64,
    ) -> Result<Reply, Reply> {
        let ms = number(rest.last().expect("a time"));
        let mut replies = Vec::new();
        for (key, token) in keys.iter().zip(rest) {
            let now = self.text(key, now_ms)?;
            let until_ms = self.items.get(key).map_or(0, |item| item.until_ms);
            let is_over = until_ms != u64::MAX && until_ms.saturating_sub(now_ms) > ms;
            let may = is_over || now.is_none_or(|now| now == *token);
            if may {
                self.set(key, token, (now_ms, ms));
            }
            replies.push(Reply::Number(may.into()));
        }
        Ok(Reply::Items(replies))
    }

    /// Finds an object, or takes its lease.
    fn ask(&mut self, keys: Words<'_>, rest: Words<'_>, now_ms: u64) -> Result<Reply, Reply> {
        let answer = |number| Ok(Reply::Items(vec![Reply::Number(number)]));
        let (token, lease_ms, mark, most) = (&rest[0], &rest[1], &rest[2], number(&rest[3]));
        let (uses, keys, least) = (&keys[0], &keys[1..], number(&rest[4]));
        if let Ok(Some(found)) = self.text(&keys[0], now_ms)
            && !found.is_empty()
            && found.len() as u64 <= most
            && (mark.is_empty() || !found.starts_with(mark))
        {
            return Ok(Reply::Items(vec![Reply::Number(1), Reply::Text(found)]));
        }
        for (at, key) in keys.iter().enumerate().skip(1) {
            let until_ms = self.items.get(key).map_or(0, |item| item.until_ms);
            let is_over = until_ms.saturating_sub(now_ms) > number(lease_ms).max(1000);
            match self.text(key, now_ms) {
                Ok(_) if is_over => {}
                Err(_) => return answer(4),
                Ok(Some(lease)) if lease == b"-" && at == 1 => return answer(4),
                Ok(Some(lease)) if lease != b"-" => return answer(2),
                Ok(_) => {}
            }
        }
        if least > 1 && self.count_use(uses, (now_ms, number(&rest[5]))) < least {
            return answer(4);
        }
        self.set(&keys[1], token, (now_ms, number(lease_ms)));
        answer(3)
    }

    /// The misses of an object, this one included.
    fn count_use(&mut self, key: &[u8], keep: (u64, u64)) -> u64 {
        let uses = self.uses(key, keep.0) + 1;
        self.set(key, uses.to_string().as_bytes(), keep);
        uses
    }

    /// None where the count is no number.
    fn uses(&mut self, key: &[u8], now_ms: u64) -> u64 {
        let text = self.text(key, now_ms).ok().flatten().unwrap_or_default();
        std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok()).unwrap_or(0)
    }

    /// Stores an object, if the lease says so.
    fn offer(&mut self, keys: Words<'_>, rest: Words<'_>, now_ms: u64) -> Result<Reply, Reply> {
        let lease = self.text(&keys[1], now_ms);
        let (bytes, ms, token) = (&rest[0], number(&rest[1]), &rest[2]);
        let may = match token.is_empty() {
            false => lease == Ok(Some(token.clone())),
            true => {
                let least = number(&rest[3]);
                let is_popular = least <= 1 || self.uses(&keys[2], now_ms) >= least;
                !matches!(lease, Ok(Some(lease)) if lease != b"-") && is_popular
            }
        };
        if !may {
            return Ok(Reply::Number(0));
        }
        self.set(&keys[0], bytes, (now_ms, ms));
        if number(&rest[3]) > 1
            && let Ok(Some(uses)) = self.text(&keys[2], now_ms)
        {
            self.set(&keys[2], &uses, (now_ms, ms.max(number(&rest[4]))));
        }
        if !token.is_empty() {
            self.drop_key(&keys[1]);
        }
        Ok(Reply::Number(1))
    }
}

/// The leases that this takes or renews, of orders and accounts.
pub(super) fn leases_in(words: Words<'_>) -> Words<'_> {
    let script = words.get(1).map(Vec::as_slice).unwrap_or_default();
    let is_of_leases = has(script, "ipairs(KEYS)") && has(script, "'SET', key, ARGV[at]");
    match words[0] == b"EVAL" && is_of_leases {
        true => &words[3..3 + number(&words[2]) as usize],
        false => &[],
    }
}

fn has(script: &[u8], words: &str) -> bool {
    script.windows(words.len()).any(|part| part == words.as_bytes())
}
