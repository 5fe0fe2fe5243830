//! A list of header fields in one arena, in order of arrival, reused between messages.

use crate::Name;

/// One field, borrowed from its list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Which name it is.
    pub name: Name,
    /// The name as it was spelled.
    pub text: &'a [u8],
    /// The value, without surrounding white space.
    pub value: &'a [u8],
}

// PERF: in this order a comparison of all members is one of twelve bytes.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
struct Entry {
    start: u32,
    value_len: u32,
    /// Zero for known names, whose text is static.
    text_len: u16,
    name: Name,
    removed: bool,
}

impl Entry {
    #[inline]
    const fn members(&self) -> (u64, u32) {
        let Self { start, value_len, text_len, name, removed } = *self;
        let place = start as u64 | (value_len as u64) << 32;
        (place, text_len as u32 | (name as u32) << 16 | (removed as u32) << 24)
    }
}

/// Header fields. Pushing copies into an arena; clearing keeps its memory.
#[derive(Clone, Debug, Default)]
pub struct FieldMap {
    arena: Vec<u8>,
    entries: Vec<Entry>,
    // PERF: most lookups are for absent fields; a lookup of one need not walk the list.
    /// The bits of all names that were pushed since the list was empty. Some names share a bit.
    pushed: u64,
}

/// The bit of a name in `FieldMap::pushed`.
#[inline]
const fn bit(name: Name) -> u64 {
    1 << (name as u8 % 64)
}

/// The names of one [`FieldMap::lacks`].
#[derive(Clone, Copy, Debug)]
pub struct NameSet(u64);

impl NameSet {
    /// The set of these names.
    #[must_use]
    pub const fn of(names: &[Name]) -> Self {
        let (mut bits, mut at) = (0, 0);
        while at < names.len() {
            bits |= bit(names[at]);
            at += 1;
        }
        Self(bits)
    }
}

impl FieldMap {
    /// An empty list.
    #[must_use]
    pub const fn new() -> Self {
        Self { arena: Vec::new(), entries: Vec::new(), pushed: 0 }
    }

    /// Empties the list and keeps its memory.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.entries.clear();
        self.pushed = 0;
    }

    /// Becomes a copy of `other` and keeps its own memory.
    pub fn copy_from(&mut self, other: &Self) {
        self.clear();
        self.arena.extend_from_slice(&other.arena);
        self.entries.extend_from_slice(&other.entries);
        self.pushed = other.pushed;
    }

    /// Whether `other` was built by the same pushes and removals; cheaper than comparing fields.
    #[must_use]
    pub fn is_identical(&self, other: &Self) -> bool {
        // All entries are compared, because they rarely differ if the bytes are the same.
        let differ = |sum, (one, two): (&Entry, &Entry)| {
            let ((a, b), (c, d)) = (one.members(), two.members());
            sum | (a ^ c) | u64::from(b ^ d)
        };
        self.entries.len() == other.entries.len()
            && self.arena == other.arena
            && self.entries.iter().zip(&other.entries).fold(0, differ) == 0
    }

    /// Appends a field by known name.
    #[inline]
    pub fn push(&mut self, name: Name, value: &[u8]) {
        debug_assert!(name != Name::Other, "an unknown name needs its text");
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(value);
        let value_len = value.len() as u32;
        self.append(Entry { name, removed: false, text_len: 0, start, value_len });
    }

    /// Appends a field whose name is text; a known name is recognised and gets its canonical
    /// spelling.
    pub fn push_text(&mut self, text: &[u8], value: &[u8]) {
        self.push_parsed(Name::parse(text), text, value);
    }

    /// Appends a field whose name is already parsed; `text` is ignored for known names.
    #[inline]
    pub fn push_parsed(&mut self, name: Name, text: &[u8], value: &[u8]) {
        if name != Name::Other {
            return self.push(name, value);
        }
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(text);
        self.arena.extend_from_slice(value);
        let (text_len, value_len) = (text.len() as u16, value.len() as u32);
        self.append(Entry { name, removed: false, text_len, start, value_len });
    }

    /// Appends a field whose value is written in place; `write` may only append.
    pub fn push_writing(&mut self, name: Name, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.arena.len() as u32;
        write(&mut self.arena);
        let value_len = self.arena.len() as u32 - start;
        self.append(Entry { name, removed: false, text_len: 0, start, value_len });
    }

    /// The same for an unknown name.
    pub fn push_text_writing(&mut self, text: &[u8], write: impl FnOnce(&mut Vec<u8>)) {
        debug_assert!(Name::parse(text) == Name::Other, "a known name has its own way");
        let start = self.arena.len() as u32;
        self.arena.extend_from_slice(text);
        let value_at = self.arena.len();
        write(&mut self.arena);
        let (text_len, value_len) = (text.len() as u16, (self.arena.len() - value_at) as u32);
        self.append(Entry { name: Name::Other, removed: false, text_len, start, value_len });
    }

    #[inline]
    fn append(&mut self, entry: Entry) {
        self.pushed |= bit(entry.name);
        self.entries.push(entry);
    }

    /// Whether no field has one of these names. False means that one may have.
    #[must_use]
    #[inline]
    pub const fn lacks(&self, names: NameSet) -> bool {
        self.pushed & names.0 == 0
    }

    /// The entries that may have `name`, if there are any.
    #[inline]
    fn among(&self, name: Name) -> &[Entry] {
        if self.pushed & bit(name) == 0 { &[] } else { &self.entries }
    }

    /// The first value of a known name.
    #[must_use]
    #[inline]
    pub fn get(&self, name: Name) -> Option<&[u8]> {
        if self.pushed & bit(name) == 0 {
            return None;
        }
        let found = self.entries.iter().find(|entry| entry.name == name && !entry.removed)?;
        Some(self.value(found))
    }

    /// The first value of a name given as text, in any case.
    #[must_use]
    pub fn get_text<'a>(&'a self, text: &[u8]) -> Option<&'a [u8]> {
        self.all_text(text).next()
    }

    /// All values of a known name, in order.
    pub fn all(&self, name: Name) -> impl DoubleEndedIterator<Item = &[u8]> {
        let of_it = move |entry: &&Entry| entry.name == name && !entry.removed;
        self.among(name).iter().filter(of_it).map(|entry| self.value(entry))
    }

    /// All values of a name given as text, in order.
    pub fn all_text<'a, 'b>(
        &'a self,
        text: &'b [u8],
    ) -> impl DoubleEndedIterator<Item = &'a [u8]> + use<'a, 'b> {
        let name = Name::parse(text);
        self.among(name)
            .iter()
            .filter(|entry| !entry.removed)
            .map(|entry| self.field(entry))
            .filter(move |field| {
                field.name == name && (name != Name::Other || field.text.eq_ignore_ascii_case(text))
            })
            .map(|field| field.value)
    }

    /// Removes every field of a known name.
    pub fn remove(&mut self, name: Name) {
        if self.pushed & bit(name) == 0 {
            return;
        }
        for entry in &mut self.entries {
            entry.removed |= entry.name == name;
        }
    }

    /// Removes every field whose name is `text`, in any case.
    pub fn remove_text(&mut self, text: &[u8]) {
        let name = Name::parse(text);
        if name != Name::Other {
            return self.remove(name);
        }
        let Self { arena, entries, .. } = self;
        for entry in entries.iter_mut().filter(|entry| entry.name == Name::Other) {
            let start = entry.start as usize;
            let spelled = &arena[start..start + usize::from(entry.text_len)];
            entry.removed |= spelled.eq_ignore_ascii_case(text);
        }
    }

    /// Removes every field for which `is_meant` returns true, in one pass.
    pub fn remove_where(&mut self, is_meant: impl Fn(Field<'_>) -> bool) {
        for at in 0..self.entries.len() {
            let entry = self.entries[at];
            self.entries[at].removed |= !entry.removed && is_meant(self.field(&entry));
        }
    }

    /// Removes every field whose name begins with `prefix`, in any case, unless `spares` returns
    /// true for it.
    pub fn remove_prefix(&mut self, prefix: &[u8], spares: impl Fn(Name) -> bool) {
        let Self { arena, entries, .. } = self;
        for entry in entries.iter_mut().filter(|entry| !entry.removed && !spares(entry.name)) {
            let spelled = match entry.name {
                Name::Other => &arena[entry.start as usize..][..usize::from(entry.text_len)],
                known => known.text().as_bytes(),
            };
            let start = spelled.get(..prefix.len());
            entry.removed = start.is_some_and(|start| start.eq_ignore_ascii_case(prefix));
        }
    }

    /// Replaces the value of the first field of this name, or appends the field if it is absent;
    /// the name is already parsed, `text` is ignored for known names.
    pub fn replace(&mut self, name: Name, text: &[u8], value: &[u8]) {
        let is_it = |field: Field<'_>| {
            field.name == name && (name != Name::Other || field.text.eq_ignore_ascii_case(text))
        };
        let found = |map: &Self, entry: &Entry| !entry.removed && is_it(map.field(entry));
        let Some(first) = self.entries.iter().position(|entry| found(self, entry)) else {
            return self.push_parsed(name, text, value);
        };
        for at in first + 1..self.entries.len() {
            let is_another = found(self, &self.entries[at]);
            self.entries[at].removed |= is_another;
        }
        self.push_parsed(name, text, value);
        self.entries.swap_remove(first);
    }

    /// Overwrites the first value of a known name with one of the same length; false if the field
    /// is absent or its length differs.
    pub fn overwrite(&mut self, name: Name, value: &[u8]) -> bool {
        let Self { arena, entries, .. } = self;
        let mut all = entries.iter().filter(|entry| entry.name == name && !entry.removed);
        let Some(entry) = all.next().filter(|entry| entry.value_len as usize == value.len()) else {
            return false;
        };
        let start = entry.start as usize + usize::from(entry.text_len);
        arena[start..start + value.len()].copy_from_slice(value);
        true
    }

    /// Sets a known name to one value, in place of all earlier ones.
    pub fn set(&mut self, name: Name, value: &[u8]) {
        self.remove(name);
        self.push(name, value);
    }

    /// All fields, in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = Field<'_>> {
        self.entries.iter().filter(|entry| !entry.removed).map(|entry| self.field(entry))
    }

    /// How many fields there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.entries.iter().filter(|entry| !entry.removed).count()
    }

    /// The length of a walk over all fields, removed ones included.
    #[must_use]
    pub const fn places(&self) -> usize {
        self.entries.len()
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of names and values held.
    #[must_use]
    pub const fn size(&self) -> usize {
        self.arena.len()
    }

    #[inline]
    fn value(&self, entry: &Entry) -> &[u8] {
        let start = entry.start as usize + usize::from(entry.text_len);
        &self.arena[start..start + entry.value_len as usize]
    }

    #[inline]
    fn field(&self, entry: &Entry) -> Field<'_> {
        let start = entry.start as usize;
        let text = match entry.name {
            Name::Other => &self.arena[start..start + usize::from(entry.text_len)],
            known => known.text().as_bytes(),
        };
        Field { name: entry.name, text, value: self.value(entry) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};

    use super::FieldMap;
    use crate::Name;

    /// A change of a list of fields.
    #[derive(Clone, Debug)]
    enum Change {
        Push(String, String),
        Replace(String, String),
        Remove(String),
        Clear,
    }

    fn changes() -> impl Strategy<Value = Vec<Change>> {
        // All known names, so that names with the same bit are tested together, and two others.
        let known = any::<prop::sample::Index>().prop_map(|at| at.get(crate::names::ALL).text());
        let name = prop_oneof![4 => known, 1 => prop::sample::select(vec!["X-One", "x-TWO"])];
        let name = name.prop_map(str::to_owned);
        let value = "[ab]{0,2}";
        let one = prop_oneof![
            8 => (name.clone(), value).prop_map(|(name, value)| Change::Push(name, value)),
            2 => (name.clone(), value).prop_map(|(name, value)| Change::Replace(name, value)),
            2 => name.prop_map(Change::Remove),
            1 => prop::strategy::Just(Change::Clear),
        ];
        prop::collection::vec(one, 0..24)
    }

    fn apply(fields: &mut FieldMap, plain: &mut Vec<(String, String)>, change: &Change) {
        match change {
            Change::Push(name, value) => {
                fields.push_text(name.as_bytes(), value.as_bytes());
                plain.push((name.clone(), value.clone()));
            }
            Change::Replace(name, value) => {
                fields.replace(Name::parse(name.as_bytes()), name.as_bytes(), value.as_bytes());
                let first = plain.iter().position(|(other, _)| other == name);
                let new = (name.clone(), value.clone());
                match first {
                    Some(at) => plain[at] = new,
                    None => plain.push(new),
                }
                let mut seen = false;
                plain.retain(|(other, _)| other != name || !std::mem::replace(&mut seen, true));
            }
            Change::Remove(name) => {
                fields.remove_text(name.as_bytes());
                plain.retain(|(other, _)| other != name);
            }
            Change::Clear => {
                fields.clear();
                plain.clear();
            }
        }
    }

    proptest! {
        #[test]
        fn a_list_of_fields_is_a_list(all in changes(), others in changes()) {
            let (mut fields, mut plain) = (FieldMap::new(), Vec::new());
            let mut same = FieldMap::new();
            for change in &all {
                apply(&mut fields, &mut plain, change);
                apply(&mut same, &mut Vec::new(), change);
            }
            let (mut other, mut other_plain) = (FieldMap::new(), Vec::new());
            others.iter().for_each(|change| apply(&mut other, &mut other_plain, change));
            assert!(fields.is_identical(&same));
            assert!(plain == other_plain || !fields.is_identical(&other));
            other.copy_from(&fields);
            assert!(other.is_identical(&fields));
            for fields in [&fields, &other] {
                assert_eq!(fields.len(), plain.len());
                let known = crate::names::ALL.iter().map(|name| name.text());
                for name in known.chain(["x-one", "X-Two"]) {
                    let is_it = |(other, _): &&(String, String)| other.eq_ignore_ascii_case(name);
                    let meant = plain.iter().filter(is_it).map(|(_, value)| value.as_bytes());
                    let meant: Vec<_> = meant.collect();
                    assert_eq!(fields.all_text(name.as_bytes()).collect::<Vec<_>>(), meant);
                    let known = Name::parse(name.as_bytes());
                    assert!(meant.is_empty() || !fields.lacks(super::NameSet::of(&[known])));
                    if known != Name::Other {
                        assert_eq!(fields.all(known).collect::<Vec<_>>(), meant);
                        assert_eq!(fields.get(known), meant.first().copied());
                    }
                }
            }
        }
    }

    #[test]
    fn a_replaced_field_keeps_its_place_and_is_there_once() {
        let mut fields = FieldMap::new();
        for (name, value) in [("Vary", "a"), ("X-One", "1"), ("ETag", "e"), ("x-one", "2")] {
            fields.push_text(name.as_bytes(), value.as_bytes());
        }
        fields.replace(Name::Other, b"X-ONE", b"changed");
        fields.replace(Name::Vary, b"vary", b"b");
        fields.replace(Name::Age, b"Age", b"5");
        let shown = |fields: &FieldMap| {
            let all = fields.iter().map(|field| [field.text, field.value].concat());
            all.map(|text| String::from_utf8(text).unwrap()).collect::<Vec<_>>()
        };
        assert_eq!(shown(&fields), ["Varyb", "X-ONEchanged", "ETage", "Age5"]);
        fields.remove_prefix(b"x-O", |_| false);
        fields.remove_prefix(b"", |name| name == Name::Etag);
        assert_eq!(shown(&fields), ["ETage"]);
    }

    #[test]
    fn fields_are_found_by_name_and_by_text_and_go_when_removed() {
        let mut fields = FieldMap::new();
        fields.push(Name::Host, b"a");
        fields.push_text(b"x-one", b"1");
        fields.push_text(b"X-One", b"2");
        fields.push_text(b"content-type", b"text/html");
        assert_eq!(fields.get(Name::ContentType), Some(&b"text/html"[..]));
        assert_eq!(fields.all_text(b"X-ONE").collect::<Vec<_>>(), [b"1", b"2"]);
        fields.remove_text(b"x-One");
        fields.set(Name::Host, b"b");
        let left: Vec<_> = fields.iter().map(|field| (field.text, field.value)).collect();
        assert_eq!(left, [(&b"Content-Type"[..], &b"text/html"[..]), (b"Host", b"b")]);
        assert_eq!(fields.len(), 2);
        assert!(fields.overwrite(Name::Host, b"c") && !fields.overwrite(Name::Host, b"long"));
        assert!(!fields.overwrite(Name::Date, b"c"));
        assert_eq!(fields.all(Name::Host).collect::<Vec<_>>(), [b"c"]);
    }
}
