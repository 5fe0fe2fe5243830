//! Pages that are put together, as an exchange does it: whatever the sizes of pieces and pulls, and
//! whichever fragments fail, the parts stand in their order and nothing else is sent.

use bolide_http::Method;
use bolide_world::fragments::FragmentReply;
use bolide_world::{FuzzWorld, Say, WorldReply, request};
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

const CONFIG: &str = "events {} http { server { listen 80; error_log logs/error.log;
    location / { fastcgi_pass 127.0.0.1:9000; page_cache auto; } } }";

/// What a client without or with a session gets of a page that comes in pieces of `step` bytes.
fn assemble(
    world: &mut FuzzWorld,
    page: &str,
    step: usize,
    pull: usize,
    fields: &[(&str, &str)],
) -> WorldReply {
    let head = ["X-LiteSpeed-Cache-Control: no-cache,esi=on", "Content-Type: text/html"];
    let mut says = vec![Say::head(200, &head)];
    let pieces = page.as_bytes().chunks(step);
    says.extend(pieces.map(|piece| Say::body(&String::from_utf8_lossy(piece))));
    says.push(Say::End);
    world.origin.answers = vec![says];
    world.pull_max = pull;
    world.ask(request(Method::Get, "a.test", "/dir/page?x", fields))
}

fn world(answers: &[(&str, FragmentReply)]) -> FuzzWorld {
    let mut world = FuzzWorld::of(CONFIG);
    let owned = answers.iter().map(|(target, answer)| ((*target).to_owned(), answer.clone()));
    world.fragments.answers = owned.collect();
    world
}

fn whole(text: &str) -> FragmentReply {
    FragmentReply::Whole(text.as_bytes().to_vec())
}

const SESSION: [(&str, &str); 1] = [("Cookie", "PHPSESSID=0123456789abcdef")];

#[test]
fn fragments_are_asked_for_by_their_own_addresses() {
    let mut world = world(&[]);
    let page = "<esi:include src='a'/><esi:include src='../b'/><esi:include src='?c'/>\
        <esi:include src='http://A.test/d'/><esi:include src='//a.test:80/e#f'/>\
        <esi:include src='https://b.test/no'/><esi:include src='/dir/page?x'/>\
        <esi:include src='javascript:no'/>";
    let reply = assemble(&mut world, page, 7, 100, &[]);
    assert_eq!((reply.status, reply.text()), (200, String::new()));
    let asked = ["/dir/a", "/dir/../b", "/dir/page?c", "/d", "/e"];
    assert_eq!(world.fragments.asked, asked);
    assert!(world.fragments.is_idle());
}

#[test]
fn at_most_eight_are_asked_for_at_once() {
    let mut world = world(&[]);
    let mut page = String::new();
    for n in 0..30 {
        page.push_str(&format!("{n}<esi:include src='/f{n}'/>"));
        world.fragments.answers.insert(format!("/f{n}"), whole("."));
    }
    let reply = assemble(&mut world, &page, 1000, 100, &SESSION);
    let expected: String = (0..30).map(|n| format!("{n}.")).collect();
    assert_eq!(reply.text(), expected);
    assert_eq!((world.fragments.asked.len(), world.fragments.most_at_once), (30, 8));
}

#[test]
fn what_is_used_twice_is_bounded() {
    let large = "x".repeat(300_000);
    let mut world = world(&[("/v", whole(&large)), ("/w", whole("small"))]);
    let page = "a<esi:include src='/v' as-var='1'/>b<esi:include src='/v' as-var='1'/>\
        <esi:include src='/w' as-var='1'/><esi:include src='/w' as-var='1'/>";
    let reply = assemble(&mut world, page, 1000, 16_384, &SESSION);
    assert_eq!(reply.text(), "absmallsmall");
    assert_eq!(world.fragments.asked, ["/v", "/w"]);
}

#[test]
fn a_page_that_breaks_off_is_cut() {
    let mut world = world(&[("/f", whole("f"))]);
    let head = ["X-LiteSpeed-Cache-Control: no-cache,esi=on", "Content-Length: 1000"];
    let text = Say::body("a<esi:include src='/f'/>b");
    for fields in [&[][..], &SESSION] {
        world.origin.answers = vec![vec![Say::head(200, &head), text.clone(), Say::End]];
        let reply = world.ask(request(Method::Get, "a.test", "/", fields));
        assert!(reply.is_broken && "afb".starts_with(&reply.text()), "{}", reply.text());
    }
}

#[derive(Clone, Debug)]
enum Part {
    Text(String),
    Whole(String),
    Broken { text: String, goes_on: bool },
    Failed { alt: Option<String> },
}

fn part() -> impl Strategy<Value = Part> {
    let text = "[a-z<>]{0,40}";
    prop_oneof![
        "[a-z]{1,40}".prop_map(Part::Text),
        text.prop_map(Part::Whole),
        (text, any::<bool>()).prop_map(|(text, goes_on)| Part::Broken { text, goes_on }),
        prop_oneof![Just(None), text.prop_map(Some)].prop_map(|alt| Part::Failed { alt }),
    ]
}

proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]
    #[test]
    fn parts_stand_in_their_order(
        parts in proptest::collection::vec(part(), 0..30),
        step in 1..200_usize,
        pull in 1..200_usize,
        has_session in any::<bool>(),
    ) {
        let mut world = world(&[]);
        let (mut page, mut expected, mut breaks) = (String::new(), String::new(), false);
        for (n, part) in parts.iter().enumerate() {
            let mut include = |answer: Option<FragmentReply>, more: &str| {
                page.push_str(&format!("<esi:include src='/f{n}' {more}/>"));
                answer.map(|answer| world.fragments.answers.insert(format!("/f{n}"), answer));
            };
            let mut expect = |text: &str| if !breaks { expected.push_str(text) };
            match part {
                Part::Text(text) => {
                    expect(text);
                    page.push_str(text);
                }
                Part::Whole(text) => {
                    expect(text);
                    include(Some(whole(text)), "");
                }
                Part::Broken { text, goes_on } => {
                    expect(text);
                    let answer = FragmentReply::Broken(text.as_bytes().to_vec());
                    include(Some(answer), if *goes_on { "onerror=\"continue\"" } else { "" });
                    // Before its first byte, it only failed.
                    breaks |= !*goes_on && !text.is_empty();
                }
                Part::Failed { alt } => {
                    expect(alt.as_deref().unwrap_or_default());
                    let more = alt.as_ref().map(|_| format!("alt='/alt{n}'"));
                    include(None, &more.unwrap_or_default());
                    if let Some(text) = alt {
                        world.fragments.answers.insert(format!("/alt{n}"), whole(text));
                    }
                }
            }
        }
        let fields = if has_session { &SESSION[..] } else { &[] };
        let reply = assemble(&mut world, &page, step, pull, fields);
        assert_eq!(reply.is_broken, breaks, "{page}");
        assert_eq!(reply.text(), expected, "{page}");
    }
}
