"""Text in, text out: blank, odd and over-long lines, duplicates, prefixes, the guard, and the choice of engine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from fake_engine import ListedEngine, ReversingEngine, make_tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from seqtool.config import DecodeConfig
from seqtool.corpus.tokenizer.interface import TokenizerPair
from seqtool.errors import OptionError, SeqtoolError
from seqtool.translation.engines.interface import Engine, SearchOptions
from seqtool.translation.translator import Translator


@pytest.fixture(scope="module")
def tokenizers(tmp_path_factory: pytest.TempPathFactory) -> TokenizerPair:
    return make_tokenizers(tmp_path_factory.mktemp("tokenizer"))


def make_translator(tokenizers: TokenizerPair, engine: Engine | None = None, **settings: Any) -> Translator:
    return Translator(tokenizers, engine or ReversingEngine(), **settings)


def backwards(tokenizers: TokenizerPair, text: str) -> str:
    return tokenizers.target.decode(list(reversed(tokenizers.source.encode(text)))).strip()


def test_each_line_gets_its_own_translation_in_order(tokenizers: TokenizerPair) -> None:
    sources = ["A man walks.", "", "Zwei Hunde", " \t ", "A man walks.", "in the park"]
    found = make_translator(tokenizers).translate(sources)
    assert [one.text for one in found] == [backwards(tokenizers, text) if text.strip() else "" for text in sources]
    assert found[1].score == 0.0
    assert found[1].tokens == []


def test_the_same_line_is_translated_once(tokenizers: TokenizerPair) -> None:
    engine = ReversingEngine()
    make_translator(tokenizers, engine).translate(["A man"] * 50 + ["she"] * 50)
    assert sum(engine.calls) == 2


def test_an_over_long_line_is_translated_in_parts_and_joined(tokenizers: TokenizerPair) -> None:
    text = "A man walks in the park. Who is she? Zwei Hunde spielen im Schnee!"
    limit = max(
        len(ids)
        for ids in tokenizers.source.encode_batch(["A man walks in the park.", "Zwei Hunde spielen im Schnee!"])
    )
    found = make_translator(tokenizers, max_tokens=limit).translate([text], alignment=True)[0]
    parts = ["A man walks in the park.", "Who is she?", "Zwei Hunde spielen im Schnee!"]
    assert found.text == " ".join(backwards(tokenizers, part) for part in parts)
    assert found.n_parts == 3
    assert found.source_tokens == [
        piece for part in parts for piece in tokenizers.source.pieces(tokenizers.source.encode(part))
    ]
    assert found.alignment is not None
    assert all(found.source_tokens[src] == found.tokens[tgt] for src, tgt in found.alignment)
    assert [tgt for _, tgt in found.alignment] == list(range(len(found.tokens)))


THREE = "She waves. Zwei Hunde spielen! A man walks."


def test_with_split_each_sentence_is_translated_by_itself(tokenizers: TokenizerPair) -> None:
    engine = ReversingEngine()
    translator = make_translator(tokenizers, engine)
    found = translator.translate([THREE], split="always", alignment=True)[0]
    parts = ["She waves.", "Zwei Hunde spielen!", "A man walks."]
    assert found.text == " ".join(backwards(tokenizers, part) for part in parts)
    assert (found.n_parts, found.n_sentences) == (3, 3)
    assert found.alignment is not None
    assert all(found.source_tokens[src] == found.tokens[tgt] for src, tgt in found.alignment)
    assert translator.describe(split="always")["split"] == "sentences"
    begun = translator.translate([THREE], split="always", prefixes=["Zwei"])[0]
    assert begun.text.startswith("Zwei")
    assert begun.text.count("Zwei") == found.text.count("Zwei") + 1


def test_lines_are_split_as_the_model_was_trained_unless_asked_otherwise(tokenizers: TokenizerPair) -> None:
    for is_single, split, parts in [(True, None, 3), (True, "never", 1), (False, None, 1), (False, "always", 3)]:
        translator = make_translator(tokenizers, single_sentences=is_single)
        assert translator.translate([THREE], split=split)[0].n_parts == parts
        assert ("split" in translator.describe(split=split)) == (parts == 3)
        one = translator.translate(["She waves.", ""], split=split)
        assert [line.text for line in one] == [backwards(tokenizers, "She waves."), ""]
    assert make_translator(tokenizers, config=DecodeConfig(split="always")).translate([THREE])[0].n_parts == 3
    with pytest.raises(OptionError, match="split must be one of auto, always, never"):
        make_translator(tokenizers).translate([THREE], split="sometimes")


def test_a_text_with_line_breaks_is_translated_line_by_line_and_keeps_them(tokenizers: TokenizerPair) -> None:
    found = make_translator(tokenizers).translate(["A man walks.\r\n\n She waves. \n", "she"])
    assert found[0].text == backwards(tokenizers, "A man walks.") + "\n\n" + backwards(tokenizers, "She waves.")
    assert found[0].source == "A man walks.\n\nShe waves."
    assert "\n" not in make_translator(tokenizers).translate(["A man\nwalks."], split="never")[0].text


def test_a_part_without_anything_to_see_is_left_out(tokenizers: TokenizerPair) -> None:
    text = "A man walks" + "\u200b" * 100 + " in the park."
    found = make_translator(tokenizers, max_tokens=30).translate([text])[0]
    assert found.n_parts < 5
    assert found.text.count("\u200b") < 100


@settings(max_examples=60, deadline=None)
@given(sources=st.lists(st.text(max_size=40), max_size=8))
def test_any_text_gives_one_line(tokenizers: TokenizerPair, sources: list[str]) -> None:
    found = make_translator(tokenizers, max_tokens=16).translate(sources)
    assert len(found) == len(sources)
    for source, one in zip(sources, found, strict=True):
        assert one.text.split("\n") == one.text.splitlines() or not one.text
        assert one.text.count("\n") <= source.strip().count("\n")
        assert "\0" not in one.text
        if not source.strip():
            assert one.text == ""


def test_a_prefix_begins_the_translation_of_its_line_only(tokenizers: TokenizerPair) -> None:
    found = make_translator(tokenizers).translate(["A man", "she", ""], prefixes=["Zwei", "", "Hunde"])
    assert found[0].text.startswith("Zwei")
    assert found[1].text == backwards(tokenizers, "she")
    assert found[2].text == ""
    with pytest.raises(SeqtoolError, match="2 sources but 1 prefixes"):
        make_translator(tokenizers).translate(["a", "b"], prefixes=["x"])


def test_an_empty_or_looping_hypothesis_gives_way_to_the_next_best(tokenizers: TokenizerPair) -> None:
    engine = ListedEngine(tokenizers.target, ["", "she she " * 20, "Zwei Hunde", "park"])
    found = make_translator(tokenizers, engine).translate(["A man walks.", ""], beam=4)
    assert [one.text for one in found] == ["Zwei Hunde", ""]
    assert [one.n_replaced for one in found] == [1, 0]
    listed = make_translator(tokenizers, engine).translate(["A man walks."], beam=4, n_best=2)[0]
    assert listed.text == "Zwei Hunde"


def test_a_line_without_any_good_hypothesis_is_told(tokenizers: TokenizerPair) -> None:
    engine = ListedEngine(tokenizers.target, ["", "she " * 40])
    found = make_translator(tokenizers, engine).translate(["A man walks."], beam=2)[0]
    assert (found.text, found.n_replaced, found.n_doubtful) == ("", 0, 1)


def test_unknown_options_and_a_bare_text_are_refused(tokenizers: TokenizerPair) -> None:
    translator = make_translator(tokenizers)
    with pytest.raises(SeqtoolError, match="no search option 'beem'; did you mean 'beam'"):
        translator.translate(["a"], beem=3)
    with pytest.raises(SeqtoolError, match=r"translate\(\[text\]\)"):
        translator.translate("a")
    with pytest.raises(SeqtoolError, match=r"prefixes=\[text\]"):
        translator.translate(["a"], prefixes="b")
    with pytest.raises(SeqtoolError, match=r"banned=\['Haus'\]"):
        translator.translate(["a"], banned="Haus")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"top_k": 3}, "add sample=True"),
        ({"seed": 1}, "seed are for random sampling; add sample=True"),
        ({"diversity": 0.5}, "add diverse_groups"),
        ({"sample": True, "beam": 5}, "beam is for beam search, not for sample"),
        ({"sample": True, "patience": 2.0}, "patience is for beam search"),
        ({"sample": True, "diverse_groups": 2, "diversity": 1.0}, "diverse_groups is for beam search"),
        ({"sample": True, "required": [9]}, "required is for beam search"),
        ({"diverse_groups": 2, "required": [9]}, "required cannot be combined with diverse_groups"),
        ({"beam": 1, "required": [9]}, "a beam of 1 is too narrow .* for 1 required tokens; give beam=2 or more"),
    ],
    ids=str,
)
def test_options_without_effect_are_refused(tokenizers: TokenizerPair, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SeqtoolError, match=message):
        Translator(tokenizers, ReversingEngine(), DecodeConfig(beam=4)).translate(["a"], **options)


def test_words_are_banned_in_every_form_they_have_as_one_token(tokenizers: TokenizerPair) -> None:
    translator = make_translator(tokenizers)
    pieces = [piece for piece in tokenizers.target.piece_list if piece.startswith("▁") and len(piece) > 2]
    word = pieces[0].removeprefix("▁")
    assert pieces[0] in tokenizers.target.pieces(translator.make_options(banned=[word]).banned)
    with pytest.raises(SeqtoolError, match="not one token"):
        translator.make_options(banned=["Unbekanntes"])


class LimitedEngine(ReversingEngine):
    name = "limited"

    def unsupported(self, options: SearchOptions, n_source: int) -> list[str]:
        return ["`sample`"] if options.sample else []


def test_an_engine_that_is_not_able_gives_way_and_says_so_once(tokenizers: TokenizerPair) -> None:
    notes: list[str] = []
    first, second = LimitedEngine(), ReversingEngine()
    translator = make_translator(tokenizers, first, fallback=lambda: second, notify=notes.append)
    for _ in range(2):
        translator.translate(["A man"], sample=True)
    translator.translate(["A man"])
    assert (len(first.calls), len(second.calls), len(notes)) == (1, 2, 1)
    assert "`sample`" in notes[0]


def test_an_engine_that_was_asked_for_says_what_it_cannot_do(tokenizers: TokenizerPair) -> None:
    with pytest.raises(SeqtoolError, match="limited engine does not offer sample; use engine='torch'"):
        make_translator(tokenizers, LimitedEngine()).translate(["A man"], sample=True)


def test_scoring_wants_a_target_for_each_source(tokenizers: TokenizerPair) -> None:
    translator = make_translator(tokenizers)
    with pytest.raises(SeqtoolError, match="there are 2 sources but 1 targets"):
        translator.score(["a", "b"], ["c"])
    with pytest.raises(SeqtoolError, match=r"score\(\[source\], \[target\]\)"):
        translator.score("ab", "cd")


class ShortEngine(ReversingEngine):
    """Takes few tokens, and scores each with -2 where the other engine scores -1."""

    name = "short"
    max_tokens = 6

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[list[float]]:
        assert all(len(ids) <= self.max_tokens for ids in (*sources, *targets))
        return [[-2.0] * (len(target) + 1) for target in targets]


def test_pairs_that_are_too_long_are_scored_by_the_other_engine(tokenizers: TokenizerPair) -> None:
    notes: list[str] = []
    translator = make_translator(tokenizers, ShortEngine(), fallback=ReversingEngine, notify=notes.append)
    long = "A man walks in the park. " * 3
    scores = translator.score(["she", long, "she", ""], ["she", "she", long, ""], first_line=5)
    assert [row[0] for row in scores] == [-2.0, -1.0, -1.0, -2.0]
    assert [len(row) for row in scores] == [
        len(tokenizers.target.encode(text.strip())) + 1 for text in ("she", "she", long, "")
    ]
    assert notes == [
        "lines 6-7: longer than the 6 tokens that the short engine takes, so the slower torch engine is used"
    ]


def test_pairs_that_no_engine_takes_are_named_by_their_line(tokenizers: TokenizerPair) -> None:
    long = "A man walks in the park. " * 3
    with pytest.raises(SeqtoolError, match=r"line 8: longer than the 6 tokens .* takes; .*, or use engine='torch'"):
        make_translator(tokenizers, ShortEngine()).score(["she", long], ["she", "she"], first_line=7)
    both = make_translator(tokenizers, ShortEngine(), fallback=ShortEngine)
    with pytest.raises(SeqtoolError, match=r"line 8: its \d+ tokens are more than the 6 that this model has"):
        both.score(["she", long], ["she", "she"], first_line=7)


def test_a_model_folder_is_asked_for_by_name(tmp_path: Path) -> None:
    with pytest.raises(SeqtoolError, match="no such model folder"):
        Translator.load(tmp_path / "none")
    with pytest.raises(SeqtoolError, match="no engine 'ctranslate'; did you mean 'ctranslate2'"):
        Translator.load(tmp_path, engine="ctranslate")
    with pytest.raises(SeqtoolError, match="no model is given"):
        Translator.load([])
    with pytest.raises(SeqtoolError, match="no compute type 'int9'; did you mean 'int8'"):
        Translator.load(tmp_path, compute_type="int9")
    for device in ("cuda:x", "cpu:1", "gpu"):
        with pytest.raises(SeqtoolError, match=f"there is no device '{device}'"):
            Translator.load(tmp_path, device=device)
