//! Pages and their programs, row by row; chunk boundaries do not matter.

use super::{Combine, EsiInclude, EsiLimits, EsiNode, OnError, ProblemKind, Program, parse};
use bolide_http::lscache::{CacheScope, LsCacheControl};
use bytes::Bytes;

/// Literals as they are, includes as `{src}`.
fn shown(program: &Program) -> String {
    let text = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    program
        .pieces
        .iter()
        .map(|piece| match piece {
            EsiNode::Literal(bytes) => text(bytes),
            EsiNode::Include(include) => format!("{{{}}}", text(&include.src)),
        })
        .collect()
}

fn read(page: &str) -> Program {
    parse(Bytes::copy_from_slice(page.as_bytes()), EsiLimits::default())
}

fn only(page: &str) -> EsiInclude {
    let program = read(page);
    assert_eq!(program.problems, []);
    program.includes().next().expect("an include").clone()
}

#[test]
fn pages_become_programs() {
    let rows = [
        ("", ""),
        (
            "<p>design of a besieged <es>desire</es></p>",
            "<p>design of a besieged <es>desire</es></p>",
        ),
        ("a<esi:include src=\"/x\"/>b", "a{/x}b"),
        ("a<esi_include src='/x' />b", "a{/x}b"),
        ("a<esi:include src=/x />b", "a{/x}b"),
        ("a<esi:include src=/x/>b", "a{/x}b"),
        ("a<esi:include src=\"/x\">b", "a{/x}b"),
        ("a<esi:include src=\"/x\"></esi:include>b", "a{/x}b"),
        ("<esi:include\n\tsrc = \"/x\"\n/>", "{/x}"),
        ("<esi:include src=\"/a>b\"/>", "{/a>b}"),
        ("<esi:include src='/?a=1&amp;b=2&#038;c=3&#x26;d'/>", "{/?a=1&b=2&c=3&d}"),
        ("<esi:include src=' /x '/>", "{/x}"),
        ("<esi:include src='/é'/>", "{/%C3%A9}"),
        ("<div data-nonce='<esi:include src=\"/n\" as-var=1 />'>", "<div data-nonce='{/n}'>"),
        ("<script>var n=\"<esi:include src='/n'/>\";</script>", "<script>var n=\"{/n}\";</script>"),
        ("{\"h\":\"<esi:include src=\\\"\\/n\\\" \\/>\"}", "{\"h\":\"{/n}\"}"),
        ("{\"h\":\"<esi:include src='\\/n' \\/>\"}", "{\"h\":\"{/n}\"}"),
        ("<esi:include src='/1'/><esi:include src='/2'/>", "{/1}{/2}"),
        ("a<esi:remove>b<esi:include src='/x'/>c</esi:remove>d", "ad"),
        ("a<esi:remove>b<esi:remove>c</esi:remove>d</esi:remove>e", "ae"),
        ("a<esi:remove/>b", "ab"),
        ("a<esi:comment text='x'/>b", "ab"),
        ("a<!--esi b<esi:include src='/x'/>c -->d", "a b{/x}c d"),
        ("a<!--esi-->b", "ab"),
        ("a<!--esi <!--esi b --> c -->d", "a  b  c -->d"),
        ("a<!--esi b ---->d", "a b --d"),
        ("a<!--esix-->b<!-- esi -->", "a<!--esix-->b<!-- esi -->"),
        ("<!-- <esi:include src='/x'/> -->", "<!-- {/x} -->"),
        ("<![CDATA[<esi:include src='/x'/>]]>", "<![CDATA[{/x}]]>"),
        ("a<esi:inline name='/x'>b</esi:inline>c", "ac"),
        ("a<esi:inline name='/x'/>c", "ac"),
        ("a</esi:remove>b</esi:inline>c", "abc"),
        ("<esi:unknown x='1'/><esi:try>", "<esi:unknown x='1'/><esi:try>"),
        (
            "<esi:includes src='/x'/><esi include><esi-include>",
            "<esi:includes src='/x'/><esi include><esi-include>",
        ),
        ("<ESI:include src='/x'/>", "<ESI:include src='/x'/>"),
        ("<esi:inc", "<esi:inc"),
        ("<esi:include src='/x'", "<esi:include src='/x'"),
        ("<esi:include <esi:include src='/x'/>", "<esi:include {/x}"),
        (
            "<esi:include src='/x <esi:include src='/y'/>",
            "<esi:include src='/x <esi:include src='/y'/>",
        ),
        ("<<esi:include src='/x'/>", "<{/x}"),
        ("a<esi:include/>b<esi:include src=''/>c", "abc"),
        ("a<esi:include src='/a b'/>b<esi:include src='\n/x\n'/>c", "ab{/x}c"),
        ("a<esi:include src='/a\tb'/>b", "ab"),
        ("a<esi:remove>b", "a"),
        ("a<esi:inline name='/x'>b", "a"),
    ];
    for (page, expected) in rows {
        assert_eq!(shown(&read(page)), expected, "{page}");
    }
}

#[test]
fn a_page_without_esi_is_plain_and_shares_its_bytes() {
    let page = Bytes::from_static(b"<p>no such thing</p>");
    let program = parse(page.clone(), EsiLimits::default());
    assert!(program.is_plain());
    let [EsiNode::Literal(literal)] = &program.pieces[..] else { panic!("{program:?}") };
    assert_eq!(literal.as_ptr(), page.as_ptr());
    assert!(!read("a<esi:comment/>").is_plain() && !read("<esi:include src=a>").is_plain());
}

#[test]
fn includes_say_all_that_was_asked() {
    let include = only(
        "<esi:include src='/?lsesi=a&amp;_hash=b' cache-control='private,no-vary' \
         cache-tag=\"t1,t2\" as-var='1' test='$(x)==1' combine='sub' alt='/b' \
         onerror='continue' unknown />",
    );
    let expected = EsiInclude {
        src: Bytes::from_static(b"/?lsesi=a&_hash=b"),
        alt: Some(Bytes::from_static(b"/b")),
        onerror: OnError::Continue,
        control: LsCacheControl { private: true, no_vary: true, ..LsCacheControl::default() },
        tags: Some(Bytes::from_static(b"t1,t2")),
        as_var: true,
        same_as: None,
        test: Some(Bytes::from_static(b"$(x)==1")),
        combine: Combine::Sub,
    };
    assert_eq!(include, expected);
    assert_eq!(only("<esi:include src='/a' combine=main/>").combine, Combine::Main);
    assert!(!only("<esi:include src='/a' as-var='0'/>").as_var);
    assert_eq!(only("<esi:include src='/a' src='/b'/>").src, "/a");
}

#[test]
fn variables_of_one_address_name_the_first() {
    let program = read(
        "<esi:include src=/a /><esi:include src=/a as-var=1 /><esi:include src=/b as-var=1 />\
         <esi:include src=/a as-var=1 /><esi:include src=/a />",
    );
    let same: Vec<_> = program.includes().map(|include| include.same_as).collect();
    assert_eq!(same, [None, None, None, Some(1), None]);
}

#[test]
fn inlines_keep_their_bodies_unread() {
    let program = read(
        "<esi:inline name='/?a&amp;b' cache-control='private,no-vary,max-age=1800' \
         cache-tag='public:X_PRIV,X_signin'>\n<b>x</b><!--esi y --><esi:include src='/z'/>\
         <esi:inline name='/n'>n</esi:inline></esi:inline><html>",
    );
    assert_eq!(program.problems, []);
    assert_eq!(shown(&program), "<html>");
    let [inline] = &program.inlines[..] else { panic!("{program:?}") };
    assert_eq!(inline.name, "/?a&b");
    assert_eq!(
        (inline.control.scope(), inline.control.lifetime()),
        (Some(CacheScope::Private), Some(1800))
    );
    assert!(inline.control.no_vary);
    assert_eq!(inline.tags.as_deref(), Some(&b"public:X_PRIV,X_signin"[..]));
    assert_eq!(
        inline.body,
        "\n<b>x</b><!--esi y --><esi:include src='/z'/><esi:inline name='/n'>n</esi:inline>"
    );
}

#[test]
fn excess_and_mistakes_are_reported() {
    let kinds = |page: &str, limits: EsiLimits| -> Vec<ProblemKind> {
        let program = parse(Bytes::copy_from_slice(page.as_bytes()), limits);
        program.problems.iter().map(|problem| problem.kind).collect()
    };
    let small =
        EsiLimits { includes: 4, elements: 12, attribute: 24, tag: 96, inlined: 64, depth: 2 };
    let include = "<esi:include src=a>";
    let rows = [
        (include.repeat(5), ProblemKind::TooManyIncludes),
        ("<esi:comment/>".repeat(13), ProblemKind::TooManyElements),
        (format!("<esi:include src='{}'/>", "a".repeat(25)), ProblemKind::AttributeTooLong),
        (format!("<esi:include src='{}'/>", "a".repeat(99)), ProblemKind::TagTooLong),
        ("<esi:include src='".to_owned(), ProblemKind::TagTooLong),
        ("<esi:include <".to_owned(), ProblemKind::BrokenTag),
        ("<esi:include/>".to_owned(), ProblemKind::NoAddress),
        ("<esi:inline>secret</esi:inline>".to_owned(), ProblemKind::NoAddress),
        (
            "<esi:include src='/\r\n'/><esi:include src='/a\r\nX: y'/>".to_owned(),
            ProblemKind::BadAddress,
        ),
        (
            format!("<esi:inline name=a>{}</esi:inline>", "b".repeat(65)),
            ProblemKind::InlinesTooLarge,
        ),
        ("<esi:remove>".to_owned(), ProblemKind::Unclosed),
        ("<esi:inline name=a>".to_owned(), ProblemKind::Unclosed),
        (
            format!("{}{}", "<esi:remove>".repeat(3), "</esi:remove>".repeat(3)),
            ProblemKind::TooDeep,
        ),
    ];
    for (page, expected) in rows {
        assert_eq!(kinds(&page, small), [expected], "{page}");
        assert!(!expected.reason().is_empty());
    }
    let program = parse(Bytes::from("<esi:comment/>".repeat(20)), small);
    assert_eq!(program.problems[0].at, 12 * 14);
    let many = kinds(&"<esi:include/>".repeat(4000), EsiLimits::default());
    assert_eq!(many.len(), super::PROBLEMS_MAX);
    let secret = read("<esi:inline>secret</esi:inline>");
    assert_eq!((shown(&secret), secret.inlines.len()), (String::new(), 0));
}

#[test]
fn an_include_bomb_costs_no_more_than_its_bytes() {
    let bomb = "<esi:include src='/self'/>".repeat(100_000);
    let program = read(&bomb);
    assert_eq!(program.includes().count(), 256);
    let quotes = "<esi:include src=\"".repeat(100_000);
    assert!(read(&quotes).is_plain());
}
