//! The properties of a page: its audience, and the fields that declare it.

use crate::audiences::Dice;

/// The audience of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Audience {
    Public,
    Session,
    Role,
    Origin,
    Language,
    Device,
    User,
}

/// The properties of a page for all clients.
#[derive(Clone, Debug)]
pub(super) struct Policy {
    pub(super) audience: Audience,
    /// Whether it sends LSCache fields where a page cache is configured.
    pub(super) sends_lscache: bool,
    /// Whether it depends on the vary cookie that always counts.
    pub(super) has_variant: bool,
    pub(super) word: usize,
    pub(super) has_parts: bool,
    pub(super) sets_cookie: bool,
    pub(super) status: u16,
}

impl Policy {
    pub(super) fn of(nature: u64, way: &str, name: &str) -> Self {
        let mut dice = Dice::about(nature, &format!("{way} {name}"));
        let audience = *dice.pick(&[
            Audience::Public,
            Audience::Public,
            Audience::Public,
            Audience::Public,
            Audience::Session,
            Audience::Session,
            Audience::Session,
            Audience::Session,
            Audience::Role,
            Audience::Origin,
            Audience::Language,
            Audience::Device,
            Audience::User,
        ]);
        // LSCache has no fields for these dependencies.
        let is_lscache = !matches!(audience, Audience::Language | Audience::Device);
        let is_fragment = name.starts_with('f');
        let is_whole = is_fragment || !name.starts_with('p');
        let word = dice.below(60) as usize;
        let status = match dice.below(12) {
            0 => 404,
            1 => 403,
            2 => 301,
            _ => 200,
        };
        Self {
            audience,
            sends_lscache: is_lscache && (!dice.one_in(3) || is_fragment),
            has_variant: audience == Audience::Public && dice.one_in(3),
            word,
            has_parts: !is_whole && dice.one_in(4),
            sets_cookie: audience == Audience::Public && dice.one_in(8),
            status: if is_whole { 200 } else { status },
        }
    }
}

pub(super) fn lscache_fields(
    policy: &Policy,
    is_assembled: bool,
    fields: &mut Vec<(&'static str, String)>,
) {
    let mut words: &[&str] = &["public,max-age=120", "public,max-age=2", "public,s-maxage=90"];
    match policy.audience {
        Audience::Public if !policy.has_variant => {
            words = &["public,max-age=120", "public,max-age=2", "public,max-age=90,no-vary"];
        }
        Audience::Session => words = &["private,max-age=120", "private,max-age=60", "no-cache"],
        Audience::User => words = &["no-cache", "no-store"],
        Audience::Role => fields.push(("X-LiteSpeed-Vary", "cookie=role".to_owned())),
        _ => {}
    }
    let mut text = words[policy.word % words.len()].to_owned();
    if is_assembled {
        text.push_str(",esi=on");
    }
    fields.push(("X-LiteSpeed-Cache-Control", text));
}

pub(super) fn http_fields(policy: &Policy, cache: &str, fields: &mut Vec<(&'static str, String)>) {
    let public = ["public, max-age=120", "s-maxage=60", "max-age=2, stale-while-revalidate=60"];
    let private = ["private, max-age=60", "private, no-store", "no-store", "private, no-cache"];
    let vary = match policy.audience {
        Audience::Public => {
            match policy.word % 5 {
                0 => {}
                1 if cache == "zone" => fields.push(("X-Accel-Expires", "60".to_owned())),
                word => fields.push(("Cache-Control", public[word % 3].to_owned())),
            }
            return;
        }
        Audience::Session | Audience::Role if policy.word.is_multiple_of(3) => "Cookie",
        Audience::Session | Audience::Role | Audience::User => {
            fields.push(("Cache-Control", private[policy.word % 4].to_owned()));
            return;
        }
        Audience::Origin => "",
        Audience::Language => "Accept-Language",
        Audience::Device => "X-Dev",
    };
    if !vary.is_empty() {
        fields.push(("Vary", vary.to_owned()));
    }
    fields.push(("Cache-Control", public[policy.word % 3].to_owned()));
}
