//! The environment variables of a request: values and order.
//!
//! Files determine their number, so a name is found in constant time once there are many.

use std::collections::HashMap;

use crate::cache::{CacheOrders, CacheVariable};

/// Up to this many names are compared one by one, which is faster and needs no memory.
const COMPARED_MAX: usize = 32;

#[derive(Clone, Debug, PartialEq, Eq)]
struct EnvEntry {
    name: Box<[u8]>,
    /// None once it was removed; the entry stays, so that other indices stay valid.
    value: Option<Vec<u8>>,
}

/// Environment variables of a request, in the order of their first assignment.
#[derive(Clone, Debug, Default)]
pub struct EnvTable {
    all: Vec<EnvEntry>,
    /// The indices of existing variables, if there are more than [`COMPARED_MAX`] entries.
    places: HashMap<Box<[u8]>, usize>,
    /// The orders for the page cache in some of them.
    cache: CacheOrders,
}

impl PartialEq for EnvTable {
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter()) && self.cache == other.cache
    }
}

impl Eq for EnvTable {}

impl EnvTable {
    fn place(&self, name: &[u8]) -> Option<usize> {
        if self.all.len() > COMPARED_MAX {
            return self.places.get(name).copied();
        }
        self.all.iter().position(|entry| *entry.name == *name && entry.value.is_some())
    }

    /// The value of `name`.
    #[must_use]
    pub fn of(&self, name: &[u8]) -> Option<&[u8]> {
        let own = self.place(name).and_then(|place| self.all[place].value.as_deref());
        own.or_else(|| self.cache.variable(name))
    }

    /// The orders for the page cache.
    #[must_use]
    pub const fn cache(&self) -> &CacheOrders {
        &self.cache
    }

    /// The same, for directives.
    pub(crate) const fn cache_mut(&mut self) -> &mut CacheOrders {
        &mut self.cache
    }

    /// Begins another round, for the path that the client sent or for another one.
    pub fn enter_round(&mut self, is_sent_path: bool) {
        self.cache.enter_round(is_sent_path);
    }

    /// The round is over, and all rules were evaluated.
    pub fn conclude(&mut self) {
        self.cache.conclude();
    }

    /// Takes the orders for the page cache of a round for the next one.
    pub fn keep_orders(&mut self, round: &Self) {
        self.cache.clone_from(&round.cache);
    }

    /// Whether there are variables, besides orders for the page cache.
    #[must_use]
    pub fn has_variables(&self) -> bool {
        self.iter().next().is_some()
    }

    /// Sets `name`. Orders for the page cache accumulate.
    pub fn set(&mut self, name: &[u8], value: &[u8]) {
        self.set_by(name, value, false);
    }

    /// The same by a rule with a condition about the path that the client sent.
    pub(crate) fn set_for_sent_path(&mut self, name: &[u8], value: &[u8]) {
        self.set_by(name, value, true);
    }

    fn set_by(&mut self, name: &[u8], value: &[u8], is_for_sent_path: bool) {
        if let Some(variable) = CacheVariable::parse(name) {
            self.cache.hear(variable, value, is_for_sent_path);
            if matches!(variable, CacheVariable::Value | CacheVariable::CookieList) {
                return;
            }
        }
        match self.place(name).and_then(|place| self.all[place].value.as_mut()) {
            Some(old) => {
                old.clear();
                old.extend_from_slice(value);
            }
            None => self.add(name.into(), value.to_vec()),
        }
    }

    /// Appends a new variable.
    fn add(&mut self, name: Box<[u8]>, value: Vec<u8>) {
        self.all.push(EnvEntry { name, value: Some(value) });
        let unplaced = match self.all.len() {
            0..=COMPARED_MAX => return,
            len if len == COMPARED_MAX + 1 => 0,
            len => len - 1,
        };
        for (place, entry) in self.all.iter().enumerate().skip(unplaced) {
            if entry.value.is_some() {
                let other = self.places.insert(entry.name.clone(), place);
                debug_assert!(other.is_none(), "a name has one value");
            }
        }
    }

    /// Removes `name`.
    pub fn unset(&mut self, name: &[u8]) {
        if CacheVariable::parse(name) == Some(CacheVariable::Value) {
            self.cache.hear(CacheVariable::Value, b"", false);
        }
        if let Some(place) = self.place(name) {
            self.all[place].value = None;
            self.places.remove(name);
        }
    }

    /// All of them except those for the page cache.
    pub fn exported(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.iter().filter(|(name, _)| CacheVariable::parse(name).is_none())
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.all.iter().filter_map(|entry| Some((&*entry.name, entry.value.as_deref()?)))
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        !self.has_variables() && self.cache.is_empty()
    }

    /// The approximate memory in bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let each = |one: &EnvEntry| {
            one.name.len() + one.value.as_ref().map_or(0, Vec::capacity) + size_of_val(one)
        };
        let place = size_of::<(Box<[u8]>, usize)>();
        self.all.iter().map(each).sum::<usize>()
            + self.places.keys().map(|name| name.len() + place).sum::<usize>()
            + self.cache.bytes()
    }

    /// Clears all.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The variables after an internal redirect: `REDIRECT_` is put before each name.
    #[must_use]
    pub fn redirected(&self) -> Self {
        let mut made = Self { cache: self.cache.clone(), ..Self::default() };
        for (name, value) in self.exported() {
            made.add([b"REDIRECT_", name].concat().into(), value.to_vec());
        }
        made
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn variables_are_those_of_a_list(
            changes in proptest::collection::vec((0_u8..60, any::<bool>(), 0_u8..3), 0..400),
        ) {
            let (mut table, mut list) = (EnvTable::default(), Vec::<(Vec<u8>, Vec<u8>)>::new());
            for (name, is_set, value) in changes {
                let (name, value) = (format!("n{name}").into_bytes(), vec![b'v'; value.into()]);
                let place = list.iter().position(|(known, _)| *known == name);
                match (place, is_set) {
                    (Some(place), true) => list[place].1.clone_from(&value),
                    (Some(place), false) => _ = list.remove(place),
                    (None, true) => list.push((name.clone(), value.clone())),
                    (None, false) => {}
                }
                match is_set {
                    true => table.set(&name, &value),
                    false => table.unset(&name),
                }
            }
            prop_assert!(table.iter().eq(list.iter().map(|(name, value)| (&name[..], &value[..]))));
            for (name, value) in &list {
                prop_assert_eq!(table.of(name), Some(&value[..]));
            }
            prop_assert_eq!(table.of(b"n60"), None);
            prop_assert_eq!(table.is_empty(), list.is_empty());
        }
    }
}
