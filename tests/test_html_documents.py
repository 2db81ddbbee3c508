"""HTML keeps its tags, and inline tags stay around the words that they were around."""

import html
import re
from collections import Counter
from collections.abc import Callable

import pytest
from html5lib._tokenizer import HTMLTokenizer
from html5lib.constants import tokenTypes
from hypothesis import given
from hypothesis import strategies as st
from made_translations import reverse, translate

from seqtool.translation.documents.formats import open_document
from seqtool.translation.documents.html import VOID, HtmlDocument
from seqtool.translation.documents.html_tokens import RAW_TEXT, cut_html, read_attributes
from seqtool.translation.results import Hypothesis, Translation

PIECES = """< > </ <! <!-- --> --!> <!-> <? /> = " ' a b Ab &amp; &lt &#65; &nbsp; word More. é 語 <b> </b> <I\tclass=x>
</i> <p> </p> <div\ttitle='a>b'> </div> <br> <br/> <img\tsrc=x> <code> </code> <a\thref="?a=1&amp;b=2"> </a>
<![CDATA[ ]]>
<pre> </pre> <b\ttranslate=no> <li> <svg/> <svg> </svg>"""
GARBAGE = st.lists(st.sampled_from([" ", "\n", "\0", *re.split("[ \n]", PIECES)]), max_size=30).map("".join)
WITH_RAW_TEXT = st.lists(
    st.sampled_from(
        ["<script>", "</script>", "<title>", "</TITLE >", "<style a=b>", "</style", "<textarea>", "a<b", ">"]
    )
    | GARBAGE,
    max_size=8,
).map("".join)
WORDS = st.sampled_from(
    ["one", "two.", "Three", "a-b", " ", "x &amp; y", "&lt;i>", "zu\u00a0Hause", "語", "3.14", "\n"]
)
OBJECTS = st.sampled_from(
    ["<br>", "<img alt='a b'>", "<kbd>Ctrl</kbd>", "<!-- note -->", '<i translate="no">as is</i>']
)


def element(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    name = st.sampled_from(["b", "i", "span", "a", "EM"])
    return st.tuples(name, st.lists(inner, max_size=4)).map(lambda made: f"<{made[0]}>{''.join(made[1])}</{made[0]}>")


WELL_FORMED = st.lists(st.recursive(WORDS | OBJECTS, element, max_leaves=12), max_size=8).map("".join)


def markup(data: str) -> list[str]:
    return [token.raw for token in cut_html(data) if token.kind != "text" and token[::2] != ("content", "title")]


def visible(data: str) -> str:
    text = "".join(html.unescape(token.raw) for token in cut_html(data) if token.kind == "text")
    return "".join(text.replace("\0", " ").split())


def is_well_formed(data: str) -> bool:
    open_names: list[str] = []
    for token in cut_html(data):
        if token.kind == "start" and token.name not in VOID:
            open_names.append(token.name)
        elif token.kind == "end" and (not open_names or open_names.pop() != token.name):
            return False
    return not open_names


def rebuild(data: str, translator: Callable[[str], Translation] = translate) -> str:
    document = open_document("html", data)
    return document.rebuild([translator(text) for text in document.texts])


@pytest.mark.parametrize(
    ("source", "result"),
    [
        ("A <b>red car</b> is <i>here</i>.", "<i>HERE</i>. IS <b>CAR RED</b> A"),
        ('<p>See <a href="x">the <b>new</b> page</a> now</p>', '<p>NOW <a href="x">PAGE <b>NEW</b> THE</a> SEE</p>'),
        ("<b><i>all of it</i></b>", "<b><i>IT OF ALL</i></b>"),
        ("<p> One two. <em>Three four</em> five. </p>", "<p> TWO. ONE FIVE. <em>FOUR THREE</em> </p>"),
        ("a<sup>2</sup> b", "B A<sup>2</sup>"),
        ("<i class=icon></i> Two words", "<i class=icon></i> WORDS TWO"),
        ("un<b>believ</b>able story", "STORY <b>UNBELIEVABLE</b>"),
        ("x &amp; y &lt; z", "Z &lt; Y &amp; X"),
    ],
)
def test_inline_tags_follow_their_words(source: str, result: str) -> None:
    assert rebuild(source, reverse) == result


@pytest.mark.parametrize(
    "source",
    [
        "Press <kbd>Ctrl</kbd> to copy",
        "Use <code>ls -l</code>, then go",
        "hello <b>big</b> world",
        "<b>Name:</b> <i></i> Peter",
        "<p>\n  <img src=x> Text here\n</p>",
        "one<br>two, <br>\nthree <wbr>four",
        "<b>hello <i>my</b> world</i> again <u>and",
        "<ul><li>one<li>two <b>three</ul></b>&nbsp; four <span><a id=x></a></span>&nbsp; five",
        "<b>one<br>Two</b>",
    ],
)
def test_words_in_the_same_order_leave_the_markup_where_it_was(source: str) -> None:
    lowered = rebuild(source).lower()
    assert re.sub(r"\s+", " ", lowered) == re.sub(r"\s+", " ", source.lower())


@pytest.mark.parametrize(
    "source",
    [
        "<script>if (a < b) say('<b>words</b>')</script>",
        "<style>p { color: red }</style>",
        "<pre>some words</pre>",
        "<textarea>some words</textarea>",
        "<code>some <b>words</b></code>",
        "<p translate=no>some <i>words</i></p>",
        '<div class="x notranslate">some <div>more</div> words</div>',
        "<!-- some words --><!DOCTYPE html><?php words ?>",
        "<svg><text>words</text></svg>",
        "<p title='some words'>42</p>",
        "<p>&nbsp; &mdash; 3.14</p>",
        "some <span translate='no'>words</span".replace("some ", ""),
        "<ul translate=no><li>some<li>words</ul>",
        "<a href='words",
    ],
)
def test_what_is_not_to_be_translated_stays_byte_for_byte(source: str) -> None:
    document = HtmlDocument(source)
    assert document.texts == []
    assert document.rebuild([]) == source


def test_what_is_not_translated_ends_where_a_browser_ends_it() -> None:
    assert HtmlDocument("<ul><li translate=no>kept <li>one</ul> two").texts == ["one", "two"]
    assert HtmlDocument("<ul><li translate=no>kept</ul> two").texts == ["two"]
    assert HtmlDocument("<p translate=no>kept <b>kept</b> <p>one").texts == ["one"]
    assert HtmlDocument("<div class=notranslate>kept<div>kept</div></b></div>one").texts == ["one"]
    assert HtmlDocument("<svg/>one<b translate=no><svg/></b>").texts == ["one"]


def test_a_text_is_what_stands_between_block_tags_cut_into_sentences() -> None:
    source = (
        "<title>A &amp; b</title><h1>The\n  <b>head</b>line</h1><p>Dr. Who came. He <i>left. It</i> rained.<td>cell"
    )
    assert HtmlDocument(source).texts == ["A & b", "The headline", "Dr. Who came.", "He left.", "It rained.", "cell"]


def test_a_line_break_ends_a_text_unless_a_small_letter_follows() -> None:
    assert HtmlDocument("Main Road 5<br>12345 Town<br>some<br><b>more</b>").texts == [
        "Main Road 5",
        "12345 Town some more",
    ]


def test_an_element_without_a_word_of_its_own_takes_the_nearest() -> None:
    document = HtmlDocument("the <a>very</a> red car")
    assert document.rebuild([translate(document.texts[0], [0, 3, 2])]) == "THE CAR <a>RED</a>"


def test_without_an_alignment_places_are_in_proportion() -> None:
    document = HtmlDocument("one two <b>three</b> four")
    assert document.rebuild([reverse(document.texts[0], aligned=False)]) == "FOUR THREE <b>TWO</b> ONE"


def test_no_tag_is_lost_if_a_translation_is_empty() -> None:
    nothing = Hypothesis(text="", score=0.0, log_prob=0.0, tokens=[])
    document = HtmlDocument("<p>one <b>two <img></b> <i>three</i></p>")
    made = Translation(source=document.texts[0], source_tokens=[], hypotheses=[nothing])
    assert markup(document.rebuild([made])) == ["<p>", "<b>", "<img>", "</b>", "<i>", "</i>", "</p>"]


def test_a_translation_cannot_become_markup() -> None:
    hostile = Hypothesis(text="<script>x</script> & &lt;", score=0.0, log_prob=0.0, tokens=[])
    made = Translation(source="word", source_tokens=["▁word"], hypotheses=[hostile])
    assert HtmlDocument("<p>word</p>").rebuild([made]) == "<p>&lt;script&gt;x&lt;/script&gt; &amp; &amp;lt;</p>"


@given(GARBAGE | WITH_RAW_TEXT)
def test_any_html_keeps_every_tag(data: str) -> None:
    assert "".join(token.raw for token in cut_html(data)) == data
    changed = rebuild(data)
    assert markup(changed) == markup(data)
    assert visible(changed).upper() == visible(data).upper()


@given(GARBAGE | WITH_RAW_TEXT | WELL_FORMED, st.randoms(use_true_random=False), st.booleans())
def test_words_in_any_order_keep_every_tag_and_its_nesting(data: str, draw: object, aligned: bool) -> None:
    def shuffle(text: str) -> Translation:
        n_words = len(text.split(" "))
        return translate(text, draw.choices(range(n_words), k=draw.randint(0, n_words + 1)), aligned=aligned)  # type: ignore[attr-defined]

    changed = rebuild(data, shuffle)
    assert Counter(markup(changed)) == Counter(markup(data))
    assert [tag for tag in markup(changed) if is_block(tag)] == [tag for tag in markup(data) if is_block(tag)]
    if is_well_formed(data):
        assert is_well_formed(changed)


def is_block(raw: str) -> bool:
    name = re.match(r"</?([a-z]+)", raw.lower())
    return bool(name) and name[1] in {"p", "div", "pre", "li", "title"}


@given(st.text("<>ab \"'=/!-", max_size=40) | GARBAGE)
def test_tags_are_cut_as_the_standard_says(data: str) -> None:
    data = data.replace("\0", "")
    expected = []
    stream = HTMLTokenizer(data)
    for token in stream:
        kind = token["type"]
        if kind in (tokenTypes["StartTag"], tokenTypes["EndTag"], tokenTypes["EmptyTag"]):
            expected.append((kind == tokenTypes["EndTag"], token["name"]))
    found = [(token.kind == "end", token.name) for token in cut_html(data) if token.kind in ("start", "end")]
    assert found == expected


@given(st.text("ab=\"'/ >x&;", max_size=30))
def test_attributes_are_read_as_the_standard_says(inside: str) -> None:
    tokens = list(cut_html(f"<a {inside}>"))
    if tokens[0].kind != "start":
        return
    first = next(token for token in HTMLTokenizer(tokens[0].raw) if token["type"] == tokenTypes["StartTag"])
    found = {name: html.unescape(value) for name, value in read_attributes(tokens[0].raw).items()}
    assert found == dict(first["data"])


def test_a_page_of_raw_text_elements_is_read_as_the_standard_says() -> None:
    for name in RAW_TEXT - {"plaintext"}:
        tokens = list(cut_html(f"<{name}><b>a</{name}s> </B></{name.upper()} >c"))
        assert [token.kind for token in tokens] == ["start", "content", "end", "text"]


@pytest.mark.parametrize(
    "unit", ["<", "<a ", "<!--", "</", "<![CDATA[", "<a href='", "&#", "<b>", "<b>a", "a</b>", "<br>a"]
)
def test_long_and_deep_html_is_read_in_one_pass(unit: str) -> None:
    source = unit * 20_000
    changed = rebuild(source)
    assert Counter(markup(changed)) == Counter(markup(source))
