"""Owns: the pages with commands that sites/ssi.py serves, each on its own."""

PAGES = [
    "plain",
    "a<!b<!-c<!--d<!-->e<<!<<!-<!--<!---#x",
    '<!--#echo var="uri"-->',
    '<!--# echo var="uri" -->',
    '<!--#  echo  var = "uri"  -->x',
    "<!--#echo var='uri'-->",
    '<!--#ECHO var="uri"-->',
    '<!--#echo VAR="uri"-->',
    '<!--#echo var="URI"-->',
    '<!--#echo var="uri"default="x"-->',
    '<!--#echo var="uri"-x->-->y',
    '<!--#echo var="uri" --->y-->',
    '<!--#echo var="uri" -- >y-->z',
    "<!--#echo-->",
    "<!--#-->x",
    "<!--# -->x",
    "<!--#foo-->x",
    '<!--#foo a="b"-->x',
    '<!--#echo foo="b"-->',
    '<!--#echo var="uri" var="args"-->',
    '<!--#echo var="nope"-->',
    '<!--#echo var="nope" default="d<>"-->',
    '<!--#echo var="nope" default=""-->',
    '<!--#echo var=""-->',
    '<!--#echo var="arg_a"-->',
    '<!--#echo var="uri" encoding="none"-->',
    '<!--#echo var="uri" encoding="foo"-->',
    "<!--#echo var-->x",
    "<!--#echo var=uri-->x",
    '<!--#echo va-r="uri"-->x',
    '<!--#echo var "uri"-->x',
    '<!--#echo var="u\\ri"-->x',
    "<!--#abcdefghijklmnopqrstuvwxyzabcdefghijklmnop-->x",
    '<!--#echo abcdefghijklmnopqrstuvwxyzabcdefghijklmnop="x"-->x',
    '<!--#ec-ho var="x"-->x',
    '<!--#set var="a" value="b"--><!--#echo var="a"-->',
    '<!--#set var="A" value="b"--><!--#echo var="a"--><!--#echo var="A"-->',
    '<!--#set var="a"-->',
    '<!--#set value="a"-->',
    '<!--#set var="a" value=""-->[<!--#echo var="a"-->][<!--#echo var="a" default="D"-->]',
    '<!--#set var="a" value="$uri x${uri}y\\$z\\"w\\\\v\\q"--><!--#echo var="a"-->',
    '<!--#set var="a" value="x$"--><!--#echo var="a"-->',
    '<!--#set var="a" value="${uri"--><!--#echo var="a"-->',
    '<!--#set var="a" value="$nope|"--><!--#echo var="a"-->',
    '<!--#set var="a" value="$-x"--><!--#echo var="a"-->',
    '<!--#set var="a" value="${}x"--><!--#echo var="a"-->',
    '<!--#set var="uri" value="own"--><!--#echo var="uri"-->',
    (
        '<!--#set var="a" value="<b> & &quot; '
        'é \'q\' \\"d\\""--><!--#echo var="a"--> <!--#echo var="a" encoding="url"--> <!--#echo '
        'var="a"--> <!--#echo var="a" encoding="none"--> <!--#echo var="a"--> <!--#echo var="a" '
        'encoding="entity"-->'
    ),
    "<!--#set var='a' value='it \"is\" \\'q\\''--><!--#echo var=\"a\" encoding=\"none\"-->",
    '<!--#if expr="$uri"-->yes<!--#endif-->end',
    '<!--#if expr="$nope"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="x"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr=""-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="0"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="a = a"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="a=a"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="a=b"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="a != b"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="a != a"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="a ! a"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="a b = a b"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="a == a"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="  a = a  "-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="a = "-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr=" = a"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="$nope = "-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="a > a"-->yes<!--#else-->no<!--#endif-->end',
    "<!--#if expr=\"'a' = 'a'\"-->yes<!--#else-->no<!--#endif-->end",
    (
        '<!--#if expr="$uri = /p.(h)tml/"-->yes <!--#echo var="1"--> <!--#echo var="0"--> '
        '<!--#echo var="2"--><!--#else-->no<!--#endif-->end'
    ),
    (
        '<!--#if expr="$uri = /P.(?<nm>h)tml/"-->yes <!--#echo var="1"--> <!--#echo '
        'var="nm"-->$<!--#else-->no<!--#endif-->end'
    ),
    (
        '<!--#if expr="$uri = /(?P<nm>h)(t)/"-->yes <!--#set var="q" '
        'value="$nm-$1-$2-${1}x"--><!--#echo var="q"--><!--#else-->no<!--#endif-->end <!--#echo '
        'var="1"-->'
    ),
    '<!--#if expr="$uri != /p.(h)tml/"-->yes<!--#else-->no<!--#echo var="1"--><!--#endif-->end',
    '<!--#if expr="$uri = /p"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="$uri = /"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="$uri = //"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="$uri = /(/"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="$uri = /zz/"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="$uri = /p.html"-->yes<!--#else-->no<!--#endif-->end',
    '<!--#if expr="a"-->A<!--#elif expr="b"-->B<!--#else-->C<!--#endif-->end',
    (
        '<!--#if expr="$nope"-->A<!--#elif expr="b"-->B<!--#elif '
        'expr="c"-->BB<!--#else-->C<!--#endif-->end'
    ),
    '<!--#if expr="$nope"-->A<!--#elif expr="$nope"-->B<!--#else-->C<!--#endif-->end',
    '<!--#if expr="$nope"-->A<!--#else-->C<!--#elif expr="x"-->B<!--#endif-->end',
    '<!--#if expr="$nope"-->A<!--#else-->C<!--#else-->D<!--#endif-->end',
    '<!--#if expr="x"-->A<!--#else-->C<!--#else-->D<!--#endif-->end',
    '<!--#if expr="x"-->A<!--#if expr="x"-->B<!--#endif-->C<!--#endif-->D',
    '<!--#if expr="$nope"-->A<!--#if expr="x"-->B<!--#endif-->C<!--#endif-->D',
    '<!--#else-->x<!--#endif-->y<!--#elif expr="x"-->z',
    '<!--#if expr="x"-->A',
    (
        '<!--#if expr="$nope"-->A<!--#echo var="uri"--><!--#set var="k" '
        'value="v"--><!--#foo--><!--#endif--><!--#echo var="k"-->'
    ),
    "<!--#if-->A<!--#endif-->B",
    '<!--#if expr="$-"-->A<!--#else-->no<!--#endif-->B',
    '<!--#if expr="$nope"-->A<!--#elif expr="$-"-->B<!--#else-->no<!--#endif-->C',
    '<!--#config errmsg="ERR"--><!--#foo-->|',
    "<!--#config-->x",
    '<!--#config foo="x"-->x',
    '<!--#block name="one"-->B1 <!--#echo var="uri"--><!--#endblock-->after',
    '<!--#block name="one"-->B1<!--#block name="two"-->B2<!--#endblock-->B3<!--#endblock-->after',
    "<!--#endblock-->after",
    "<!--#block-->after",
    '<!--#block name="one"-->after',
    (
        '<!--#block name="one"-->B1<!--#if expr="x"-->if<!--#endif--><!--#endblock-->after<!--#if'
        ' expr="x"-->X<!--#endif-->'
    ),
    '<!--#if expr="x"--><!--#block name="one"-->B1<!--#endif-->Y<!--#endblock-->after',
    (
        '<!--#include virtual="/empty" stub="none"-->|<!--#block '
        'name="one"-->x<!--#endblock--><!--#include virtual="/empty" stub="none"-->|<!--#include '
        'virtual="/empty" stub=""-->|'
    ),
    '<!--#include virtual="/hello.html"-->',
    '<!--#include file="hello.html"-->',
    '<!--#include file="/hello.html"-->',
    '<!--#include virtual="hello.html"-->',
    '<!--#include virtual="/t200?a=b&amp;c=d"-->',
    '<!--#include virtual="/t200?a=b&c=$arg_zz"-->',
    '<!--#include virtual="/t200"-->',
    '<!--#include virtual="/t20%30?a=%41"-->',
    '<!--#include virtual="/t200#frag"-->',
    '<!--#include virtual="/t200/a b"-->',
    '<!--#include virtual="/t200/%2541%20x"-->',
    '<!--#include virtual="/t200//a/./b"-->',
    '<!--#include virtual="/../hello.html"-->',
    '<!--#include virtual="/a/../hello.html"-->',
    '<!--#include virtual="../hello.html"-->',
    '<!--#include virtual="/%2e%2e/hello.html"-->',
    '<!--#include virtual="/a/..hello.html"-->',
    '<!--#include virtual="/hello.html/.."-->',
    '<!--#include virtual="/t200%00"-->',
    '<!--#include virtual="/t200%3fa=b"-->',
    '<!--#include virtual="?a"-->',
    '<!--#include virtual="@foo"-->',
    '<!--#include virtual="/nowhere"-->',
    '<!--#include virtual="/r301"-->',
    '<!--#include virtual="/r404"-->',
    '<!--#include virtual="/deny"-->',
    '<!--#include virtual="/int"-->',
    '<!--#include virtual="http://a/hello.html"-->',
    '<!--#include virtual="/hello.html" file="hello.html"-->',
    "<!--#include-->",
    '<!--#include file="hello.html" wait="yes"-->',
    (
        '<!--#include virtual="/hello.html" wait="yes"-->|<!--#include virtual="/hello.html" '
        'wait="no"-->'
    ),
    '<!--#include virtual="/hello.html" wait="on"-->',
    '<!--#include virtual="/hello.html" wait=""-->',
    '<!--#include virtual="/hello.html" set="x" stub="one"-->',
    '<!--#include virtual="/hello.html" set="x"-->[<!--#echo var="x"-->]',
    (
        '<!--#include virtual="/t200" set="x"-->[<!--#echo var="x"-->]<!--#include '
        'virtual="/v.html" wait="yes"--><!--#echo var="y"-->'
    ),
    '<!--#include virtual="/nowhere" set="x"-->[<!--#echo var="x"-->]',
    '<!--#include virtual="/empty" set="x"-->[<!--#echo var="x"-->]',
    '<!--#include virtual="/r204" set="x"-->[<!--#echo var="x"-->]',
    '<!--#include virtual="/e.html" set="x"-->[<!--#echo var="x"-->]',
    (
        '<!--#set var="x" value="old"--><!--#include virtual="/nowhere" set="X"-->[<!--#echo '
        'var="x"-->]'
    ),
    (
        '<!--#include virtual="/e.html"--><!--#include virtual="/t200"-->|<!--#include '
        'virtual="/hello.html"-->'
    ),
    '<!--#include virtual="/hello.html" set=""-->[]',
    '<!--#include virtual="/p.html"-->x',
    (
        '<!--#set var="d" value="/hello"--><!--#include virtual="$d.html"-->|<!--#include '
        'virtual="${d}.html"-->|<!--#set var="d" value="hello"--><!--#include '
        'virtual="$d.html"-->'
    ),
    'x<!--#echo var="uri"',
    "x<!--",
    "x<!-",
    "x<!--#",
    "x<",
    '<!--#echo var="uri" --!>',
    '<!--#echo\tvar="uri"\t-->tab',
    '<!--#include virtual="/e.html" virtual="/hello.html"-->',
    '<!--#include virtual="/r404" set="x"-->[<!--#echo var="x"-->]',
    '<!--#include virtual="/r404" set="x"--><!--#set var="x" value="n"-->[<!--#echo var="x"-->]',
    '<!--#if expr="$uri = p.html"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri = /p.html"-->yes',
    '<!--#if expr="$uri = \\/p.html"-->yes<!--#endif-->|',
    "<!--#if expr=\"'a b' = 'a b'\"-->yes<!--#else-->no<!--#endif-->",
    '<!--#if expr="${uri} = $uri"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri$uri = /p.html\\/p/"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="ab = abc"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a=$-"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a\t= a"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a= a "-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a!=b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="!a"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a!"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="="-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a ="-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri = /^\\/p/"-->yes<!--#else-->no<!--#endif-->',
    (
        '<!--#set var="v" value="p"--><!--#if expr="$uri = /^.${v}.h/"-->yes<!--#else-->no'
        "<!--#endif-->"
    ),
    '<!--#if expr="$uri = /html\\$/"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri = /html$/"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri != /$none/"-->yes<!--#else-->no<!--#endif-->',
    '<!--#set var="v" value=""--><!--#include virtual="$v"-->|',
    '<!--#set var="v" value="e.html"--><!--#include virtual="$v"-->|',
    (
        '<!--#if expr="$uri = /(p).h|(z)/"--><!--#echo var="2" default="D"-->[<!--#echo '
        'var="3"-->][<!--#echo var="10"-->]<!--#endif-->'
    ),
    (
        '<!--#if expr="$uri = /(p)/"-->yes<!--#endif--><!--#if expr="$uri = '
        '/z/"-->y<!--#endif-->[<!--#echo var="1"-->]<!--#if expr="$uri = '
        '/h/"-->y<!--#endif-->[<!--#echo var="1"-->]'
    ),
    '<!--#echo var="uri" a="" b=""-->',
    '<!--#set var="a b" value="x"--><!--#echo var="a b"-->',
    '<!--#set var="" value="x"-->[<!--#echo var=""-->]',
    '<!--#set var="$uri" value="x"-->[<!--#echo var="$uri"-->]',
    (
        '<!--#set var="a" value="1"--><!--#set var="b" value="$a$a"--><!--#set var="a" '
        'value="2"--><!--#echo var="b"-->'
    ),
    '<!--#echo var="é"-->',
    "<!--#éa-->x",
    '<!--#echo é="x"-->',
    "<!--#-a-->x-->y",
    "<!--#--->x-->y",
    "<!--# - -->x-->y",
    '<!--#echo var="uri"\n-->x',
    '<!--#echo\r\nvar="uri"-->x',
    '<!--#echo var="a--b"-->x',
    '<!--#echo var="a-->b"-->x',
    "<!--#echo var='a\"b'-->x",
    (
        '<!--#echo var="vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv'
        "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
        "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
        'vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"-->x'
    ),
    (
        '<!--#echo var="vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv'
        "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
        "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
        'vvvvvvv">-->x'
    ),
    (
        '<!--#set var="a" value="vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv'
        "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
        "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
        'vvvvvvvvvvvvvvv"-->x<!--#echo var="a"-->'
    ),
    (
        '<!--#set var="a" value="vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv'
        "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
        "vvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvvv"
        'vvvvvvvvvvvvvvvv"-->x<!--#echo var="a"-->'
    ),
    '<!--#config errmsg="<b>"--><!--#foo-->|',
    (
        '<!--#block name="x"-->1<!--#endblock--><!--#block name="x"-->2<!--#endblock-->[<!--#incl'
        'ude virtual="/empty" stub="x"-->]'
    ),
    '<!--#block name="X"-->1<!--#endblock-->[<!--#include virtual="/empty" stub="x"-->]',
    '<!--#block name="x"--><!--#endblock-->[<!--#include virtual="/empty" stub="x"-->]',
    (
        '<!--#block name="x"-->1<!--#echo bad-->2<!--#endblock-->[<!--#include virtual="/empty" '
        'stub="x"-->]'
    ),
    (
        '<!--#block name="x"-->1<!--#set var="z" value="zz"--><!--#endblock-->[<!--#include '
        'virtual="/empty" stub="x"-->]<!--#echo var="z"-->'
    ),
    (
        '<!--#block name="x"-->1<!--#nonsense a="b" c=\'d"\'--><!--#endblock-->[<!--#include '
        'virtual="/empty" stub="x"-->]'
    ),
    (
        '<!--#if expr="$nope"--><!--#block name="x"-->1<!--#endblock--><!--#endif-->[<!--#include'
        ' virtual="/empty" stub="x"-->]'
    ),
    '<!--#if expr="x"--><!--#foo--><!--#else--><!--#foo--><!--#echo bad--><!--#endif-->|',
    '<!--#if expr="$nope"-->a<!--#foo-->b<!--#echo bad-->c<!--#else-->d<!--#endif-->',
    (
        '<!--#block name="x"-->1<!--#nonsense a="b" c=\'d"\'-->2<!--#block '
        'name="y"-->3<!--#endblock-->4'
    ),
    (
        '<!--#block name="x"-->1<!--#echo var="uri" default=\'a"b\'-->2<!--#set var="a" '
        'value="b\\"c"-->3<!--#endblock-->[<!--#include virtual="/empty" stub="x"-->]'
    ),
    (
        '<!--#block name="x"-->1<!--#if expr="$nope"-->2<!--#else-->3<!--#endif-->4<!--#endblock-'
        '->5[<!--#include virtual="/nono.html" stub="x"-->]'
    ),
    (
        '<!--#include virtual="/t200" set="a"--><!--#include virtual="/t200" '
        'set="b"-->[<!--#echo var="a"-->|<!--#echo var="b"-->]'
    ),
    (
        '<!--#include virtual="/hello.html" wait="yes"--><!--#include virtual="/hello.html" '
        'wait="yes"-->|<!--#include file="hello.html"-->'
    ),
    '<!--#config timefmt="%Y" errmsg="E"--><!--#include virtual="/d.html"--><!--#foo-->',
    (
        '<!--#echo var="a" encoding="none"--><!--#set var="a" value="<"--><!--#include '
        'virtual="/a.html"--><!--#echo var="a"-->'
    ),
    (
        '<!--#if expr="$uri = /(h)/"--><!--#endif--><!--#include virtual="/c.html"-->[<!--#echo '
        'var="1"-->]'
    ),
    '<!--#block name="x"-->1<!--#endblock--><!--#include virtual="/s.html"-->',
    '<!--#include virtual="/sil.html"-->',
    '<!--#include virtual="/e.html?q=1" --><!--#include virtual="p.html/../x"-->',
    '<!--#include virtual="\\$uri"-->',
    '<!--#include virtual="/t200?$args&x=\\"q\\""-->',
    "<!--#include virtual=/hello.html-->",
    '<!--#include virtual="/r403" --><!--#include virtual="/r204" -->',
    '<!--#include virtual="/q404.html" -->',
    '<!--#include virtual="/fwd" -->|',
    '<!--#include virtual="/rewr/x?a=1" -->',
    '<!--#include virtual="/dir" -->',
    '<!--#include virtual="/dir/" -->',
    '<!--#include virtual="/r404" stub=""-->',
    '<!--#if expr="$nope"-->a<!--#block name="x"-->1<!--#endblock-->b<!--#endif-->c',
    '<!--#if expr="$nope"-->a<!--#endblock-->b<!--#endif-->c',
    (
        '<!--#block name="x"-->1<!--#if expr="$nope"-->2<!--#else-->3<!--#endif-->4<!--#endblock-'
        '->5[<!--#include virtual="/empty" stub="x"-->]'
    ),
    (
        '<!--#block name="x"-->1<!--#else-->3<!--#endblock-->5[<!--#include virtual="/empty" '
        'stub="x"-->]'
    ),
    (
        '<!--#block name="x"-->1<!--#block name="y"-->2<!--#endblock-->3<!--#endblock-->[<!--#inc'
        'lude virtual="/empty" stub="x"-->][<!--#include virtual="/empty" stub="y"-->]'
    ),
    (
        '<!--#block-->1<!--#block name="x"-->2<!--#block-->3<!--#endblock-->[<!--#include '
        'virtual="/empty" stub="x"-->]'
    ),
    (
        '<!--#block name="x"-->2<!--#block n="y"-->3<!--#endblock-->[<!--#include '
        'virtual="/empty" stub="x"-->]'
    ),
    "<!--#echo bad--->x-->y",
    '<!--#echo var="uri" ---->y-->z',
    "<!--#echo bad---->x-->y",
    (
        '<!--#echo a0="b" a1="b" a2="b" a3="b" a4="b" a5="b" a6="b" a7="b" a8="b" a9="b" a10="b" '
        'a11="b" a12="b" a13="b" a14="b" a15="b" a16="b"-->'
    ),
    (
        '<!--#nope a0="b" a1="b" a2="b" a3="b" a4="b" a5="b" a6="b" a7="b" a8="b" a9="b" a10="b" '
        'a11="b" a12="b" a13="b" a14="b" a15="b" a16="b"-->'
    ),
    (
        '<!--#echo a0="b" a1="b" a2="b" a3="b" a4="b" a5="b" a6="b" a7="b" a8="b" a9="b" a10="b" '
        'a11="b" a12="b" a13="b" a14="b" a15="b"-->'
    ),
    '<!--#endif a="b"-->',
    '<!--#endblock a="b"-->x',
    '<!--#if expr="x"-->a<!--#endif a="b"-->b',
    '<!--#if expr="x"-->a<!--#else a="b"-->b<!--#endif-->c',
    '<!--#if expr="$nope"-->a<!--#else a="b"-->b<!--#endif-->c',
    '<!--#if expr="$nope"-->a<!--#elif-->b<!--#endif-->c',
    (
        '<!--#if expr="$uri = /P.(?<nm>h)/"--><!--#if expr="$uri = /.(?<nm>h)/"-->[<!--#echo '
        'var="nm"-->][<!--#echo var="NM"-->]'
    ),
    (
        '<!--#if expr="$uri = /(?<nm>h)/"--><!--#endif--><!--#if expr="$uri = '
        '/(?<nm>t)/"--><!--#endif-->[<!--#echo var="nm"-->][<!--#echo var="1"-->]'
    ),
    '<!--#echo var="uri" default-->',
    '<!--#include virtual="/e.html"-->A<!--#include virtual="/s2.html"-->B<!--#echo var="k"-->',
    '<!--#include virtual="/s2.html" wait="yes"-->B<!--#echo var="k"-->',
    '<!--#set var="a" value="a\\',
    '<!--#set var="a" value="\\-->"-->[<!--#echo var="a"-->]',
    "<!--#set var='a' value='\\'x\\\"y\\n\\\\'-->[<!--#echo var=\"a\" encoding=\"none\"-->]",
    '<!--#set var="a" value="x\\-->y',
    '<!--#set var="a" value="a${uri}b$uri-c${uri"-->',
    '<!--#set var="a" value="${uri}${u-i}"-->',
    '<!--#set var="a" value="$"-->',
    '<!--#set var="a" value="\\\\$uri"-->[<!--#echo var="a"-->]',
    '<!--#set var="a" value="$URI $Uri"-->[<!--#echo var="a"-->]',
    '<!--#include virtual="\\/e.html"-->',
    '<!--#include virtual="/a\\..\\/b"-->',
    '<!--#include virtual="/./e.html"-->',
    '<!--#include virtual="/e.html/."-->',
    '<!--#include virtual="//e.html"-->',
    '<!--#include file="$uri/../x"-->',
    '<!--#include virtual="/e.html?a/../b"-->',
    '<!--#include virtual="/e.html%3f/../b"-->',
    '<!--#include virtual="%2fe.html"-->',
    '<!--#include virtual="/e%2ehtml%"-->',
    '<!--#include virtual="/e.html%zz"-->',
    '<!--#include virtual="/..."-->',
    '<!--#include virtual="/..;/x"-->',
    '<!--#include virtual="..\\x"-->',
    '<!--#if expr="a-b = a-b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a.b = a.b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a,b = a,b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a:b = a:b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a;b = a;b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a/b = a/b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a\\b = a\\b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a#b = a#b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a%b = a%b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a&b = a&b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a*b = a*b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a+b = a+b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a?b = a?b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a@b = a@b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a^b = a^b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a~b = a~b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a|b = a|b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a(b = a(b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a)b = a)b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a[b = a[b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a]b = a]b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a{b = a{b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a}b = a}b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a<b = a<b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a>b = a>b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a0b = a0b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a_b = a_b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="aAb = aAb"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a`b = a`b"-->yes<!--#else-->no<!--#endif-->',
    (
        '<!--#set var="a" value="!#\\$%&()*+,-./:;<=>?@[\\\\]^_`{|}~ x\'\\""--><!--#echo var="a" '
        'encoding="url"--> <!--#echo var="nn" default="<("--> <!--#echo var="nn" -->'
    ),
    (
        '<!--#set var="a" value="\x01\n\r\x7f\x80ÿ"--><!--#echo var="a" encoding="url"--> '
        '<!--#echo var="a" encoding="none"--> '
    ),
    '<!--#if expr="$uri-x = y"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$-"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a-"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri $x"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri.x = /p/"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="x$uri = /p/"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$arg_a-b"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$nope"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$nope-"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="\\$uri = \\$uri"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a\\=b = c"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri=/html/"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri!=/html/"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri !=/html/"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri != "x""-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a = a=a"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a=a=a"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri = /p/i"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri = /p/ "-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri = $uri"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="${uri}x = /x/"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="a  =  a"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="=a"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="!=a"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="!="-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri = //x"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="/x/ = x"-->yes<!--#else-->no<!--#endif-->',
    '<!--#if expr="$uri = ///"-->yes<!--#else-->no<!--#endif-->',
    (
        '<!--#config timefmt="%Y%%"--><!--#echo var="date_gmt"-->|<!--#echo '
        'var="DATE_LOCAL"-->|<!--#config timefmt=""--><!--#echo var="date_gmt"-->'
    ),
]
