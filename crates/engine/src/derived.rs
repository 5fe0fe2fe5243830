//! Variables that the configuration defines: `map`, `geo`, `geoip2`, `split_clients`, and the
//! results of `set` and captures.
//!
//! A value is computed when it is read, and cached until the request ends unless the map is
//! `volatile`.

use bolide_conf::vars::{Template, TemplatePart, Var};
use bolide_http::Name;

use crate::keys::VariableKeys;
use crate::request::RequestNote;
use crate::vars::{VariableScope, VariableValue};
use bolide_patterns::CapturePattern;

mod addressed;
mod countries;
mod databases;
mod definition;

pub(crate) use definition::{CompiledMap, Derived};

/// LIMIT: buffers for intermediate values that a request keeps.
const SPARE_MAX: usize = 4;

impl VariableScope<'_> {
    /// Appends the value of a variable of the configuration.
    pub(crate) fn write_named(&self, slot: u16, out: &mut Vec<u8>) -> VariableValue {
        if let Some(value) = self.request.captures.borrow().named(slot) {
            out.extend_from_slice(value);
            return VariableValue::Yes;
        }
        match self.site.derived(slot) {
            None | Some(Derived::Captured) => VariableValue::No,
            Some(Derived::Assigned) => {
                if self.location().settings.uninitialized_variable_warn {
                    self.request.notes.borrow_mut().push(RequestNote::Uninitialized(slot));
                }
                self.request.captures.borrow_mut().assign(slot, b"");
                VariableValue::Yes
            }
            Some(derived) => self.derive(slot, derived, out),
        }
    }

    /// Appends the value of a built-in variable, if the configuration redefines it.
    pub(crate) fn write_redefined(&self, var: &Var, out: &mut Vec<u8>) -> Option<VariableValue> {
        let (_, slot) = self.site.redefined().iter().find(|(known, _)| known == var)?;
        if let Some(value) = self.request.captures.borrow().named(*slot) {
            out.extend_from_slice(value);
            return Some(VariableValue::Yes);
        }
        match self.site.derived(*slot)? {
            Derived::Assigned => None,
            // As in nginx, the request's own value is out of reach.
            Derived::Captured => Some(VariableValue::No),
            derived => Some(self.derive(*slot, derived, out)),
        }
    }

    /// Evaluates the variables of a text before any of it is written: as in nginx, `$1` refers to
    /// the last expression that matched, even if a later variable in the text matched it.
    pub(crate) fn evaluate_first(&self, template: &Template) {
        let mut parts = template.parts().iter();
        if !parts.any(|part| matches!(part, TemplatePart::Var(Var::Capture(_)))) {
            return;
        }
        let mut unread = self.spare();
        for var in template.vars() {
            if let Var::Named(slot) = var
                && self.site.derived(*slot).is_some_and(Derived::captures)
            {
                unread.clear();
                self.write_named(*slot, &mut unread);
            }
        }
        self.give_back(unread);
    }

    fn derive(&self, slot: u16, derived: &Derived, out: &mut Vec<u8>) -> VariableValue {
        let depth = self.request.depth.get();
        if depth >= bolide_base::limits::VARIABLE_DEPTH_MAX {
            let mut notes = self.request.notes.borrow_mut();
            if notes.is_empty() {
                notes.push(RequestNote::Cycle(slot));
            }
            return VariableValue::No;
        }
        self.request.depth.set(depth + 1);
        let start = out.len();
        let mut value = VariableValue::Yes;
        let keeps = match derived {
            Derived::Captured | Derived::Assigned => false,
            Derived::Map(map) => {
                self.look_up(map, out);
                !map.volatile
            }
            Derived::Geo(geo) => {
                self.locate(geo, out);
                !geo.volatile
            }
            Derived::Split(split) => {
                self.split(split, out);
                true
            }
            Derived::GeoIp(geo) => {
                value = geo.write(self, out);
                value == VariableValue::Yes
            }
        };
        debug_assert_eq!(self.request.depth.get(), depth + 1, "what is evaluated inside is over");
        self.request.depth.set(depth);
        if keeps {
            self.request.captures.borrow_mut().assign(slot, &out[start..]);
        }
        value
    }

    fn look_up(&self, map: &CompiledMap, out: &mut Vec<u8>) {
        if let Some(text) = self.borrowed(&map.source) {
            return self.pick(map, text, out);
        }
        let mut text = self.spare();
        self.expand(&map.source, &mut text);
        self.pick(map, &text, out);
        self.give_back(text);
    }

    /// Appends the value of `map` for `text`.
    fn pick(&self, map: &CompiledMap, text: &[u8], out: &mut Vec<u8>) {
        let text = if map.hostnames { text.strip_suffix(b".").unwrap_or(text) } else { text };
        let found = self.find_key(&map.keys, text).or_else(|| {
            // As in nginx, an empty text matches its own key or the default, but no expression.
            if text.is_empty() {
                return None;
            }
            let matches = |pattern: &CapturePattern| {
                let mut captures = self.request.captures.borrow_mut();
                let matched = captures.capture(pattern, text);
                if let Some(failure) = captures.take_failure() {
                    self.request.is_undecided.set(true);
                    self.request.notes.borrow_mut().push(RequestNote::Match(failure));
                }
                matched
            };
            map.regexes.find(text, matches).copied()
        });
        let value = found.and_then(|index| map.values.get(index as usize));
        let value = value.unwrap_or(&map.default);
        match value.parts() {
            [] => {}
            [TemplatePart::Text(text)] => out.extend_from_slice(text),
            _ => self.expand(value, out),
        }
    }

    fn find_key(&self, keys: &VariableKeys, text: &[u8]) -> Option<u32> {
        if !keys.may_have(text.len()) {
            return None;
        }
        // PERF: a fold looks at many bytes at once, a search that ends early at one byte at a time.
        if !text.iter().fold(false, |any, byte| any | byte.is_ascii_uppercase()) {
            return keys.find(text);
        }
        let mut lower = self.spare();
        lower.extend_from_slice(text);
        lower.make_ascii_lowercase();
        let found = keys.find(&lower);
        self.give_back(lower);
        found
    }

    /// The value of a text that is exactly one part of the request, without a copy.
    fn borrowed(&self, template: &Template) -> Option<&[u8]> {
        let [TemplatePart::Var(var)] = template.parts() else { return None };
        if !self.site.redefined().is_empty() {
            return None;
        }
        let request = self.request;
        let head = request.head();
        match var {
            Var::Uri => Some(&request.uri),
            Var::RequestUri => Some(&head.target),
            Var::Args => Some(request.args()),
            Var::Host if !request.host.is_empty() => Some(&request.host),
            Var::RequestField(field) if field.name != Name::Other => {
                let mut values = head.fields.all(field.name);
                let value = values.next().unwrap_or_default();
                values.next().is_none().then_some(value)
            }
            _ => None,
        }
    }

    /// An empty buffer for an intermediate value.
    fn spare(&self) -> Vec<u8> {
        self.request.spare.borrow_mut().pop().unwrap_or_default()
    }

    /// Takes such a buffer back.
    fn give_back(&self, mut memory: Vec<u8>) {
        memory.clear();
        let mut spare = self.request.spare.borrow_mut();
        if spare.len() < SPARE_MAX {
            spare.push(memory);
        }
    }
}
