"""Tests for corpus/scripts.py and evaluation/scores/tokenizers.py; the texts were written for them."""

import json

import pytest
from command_line import run_text
from sacrebleu import BLEU

from seqtool.corpus.scripts import lacks_spaces, name_writing, share_scripts
from seqtool.evaluation.report.parts import mark_differences
from seqtool.evaluation.scores import tokenizers
from seqtool.evaluation.scores.metrics import MetricOptions, score_corpus
from seqtool.evaluation.scores.tokenizers import choose_tokenizer, fit_options, is_at_hand

TEXTS = {
    "Japanese": ["昨日、駅前の店で新しい本を三冊買いました。", "USBケーブルをPCのポートに接続してください。"],
    "Chinese": ["昨天我在车站旁边的商店买了三本新书。", "请把USB线插入电脑的接口。"],
    "Korean": ["어제 역 앞 가게에서 새 책 세 권을 샀습니다.", "USB 케이블을 PC 포트에 연결하세요."],
    "Thai": ["เมื่อวานฉันซื้อหนังสือใหม่สามเล่มที่ร้านหน้าสถานี", "กรุณาเสียบสาย USB เข้ากับช่องของเครื่อง"],
    "Khmer": ["ម្សិលមិញខ្ញុំបានទិញសៀវភៅថ្មី"],
    "Lao": ["ມື້ວານນີ້ຂ້ອຍຊື້ປຶ້ມໃໝ່ສາມຫົວ"],
    "Burmese": ["မနေ့က ကျွန်တော် စာအုပ်အသစ် ဝယ်ခဲ့တယ်။"],
    "": ["Gestern kaufte ich drei neue Bücher.", "Вчера я купил три книги.", "हमने किताबें ख़रीदीं।", "123 (!)"],
}


@pytest.mark.parametrize("writing", TEXTS)
def test_a_text_is_named_by_its_letters(writing: str) -> None:
    assert name_writing(share_scripts(TEXTS[writing])) == writing
    assert lacks_spaces(TEXTS[writing]) == (writing not in ("", "Korean"))


def test_a_few_foreign_lines_do_not_change_what_a_text_is_written_in() -> None:
    latin = ["This line is in the wrong language."]
    assert name_writing(share_scripts(TEXTS["Japanese"] * 9 + latin)) == "Japanese"
    assert name_writing(share_scripts(latin * 9 + TEXTS["Chinese"])) == ""


@pytest.mark.parametrize(("writing", "tokenizer"), [("Chinese", "zh"), ("Thai", "char"), ("Lao", "char"), ("", "13a")])
def test_the_tokenizer_follows_the_script(writing: str, tokenizer: str) -> None:
    assert choose_tokenizer(writing)[0] == tokenizer
    options, note = fit_options(MetricOptions(metrics=("bleu",)), TEXTS[writing])
    assert bool(note) == bool(writing)
    score = score_corpus(TEXTS[writing], [TEXTS[writing]], options)[0]
    expected = BLEU(tokenize=tokenizer)
    expected.corpus_score(TEXTS[writing], [TEXTS[writing]])
    assert score.signature == expected.get_signature().format()


@pytest.mark.parametrize(("writing", "wanted"), [("Japanese", "ja-mecab"), ("Korean", "ko-mecab")])
def test_what_is_not_installed_is_replaced_by_characters_and_named(
    writing: str, wanted: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if is_at_hand(wanted):
        assert choose_tokenizer(writing)[0] == wanted
    monkeypatch.setattr(tokenizers, "is_at_hand", lambda name: False)
    chosen, note = choose_tokenizer(writing)
    assert chosen == "char"
    assert wanted in note
    assert "pip install 'seqtool[cjk]'" in note
    options, note = fit_options(MetricOptions(), TEXTS[writing], wanted)
    assert options.tokenize == "char"
    assert "not installed" in note


def test_a_model_configured_with_a_tokenizer_and_a_user_who_names_one_are_heard() -> None:
    assert fit_options(MetricOptions(), TEXTS["Chinese"], "char") == (
        MetricOptions(tokenize="char", ter_normalized=True, ter_asian_support=True),
        "",
    )
    assert fit_options(MetricOptions(tokenize="intl"), TEXTS["Thai"], "char")[0].tokenize == "intl"


def test_words_of_a_script_without_spaces_are_marked_by_characters() -> None:
    hypothesis, reference = mark_differences("我买了一本新书。", "我买了三本新书。")
    assert hypothesis == "我买了<mark>一</mark>本新书。"
    assert reference == "我买了<mark>三</mark>本新书。"
    assert mark_differences("a  small dog", "a big dog")[0] == "a <mark>small</mark> dog"
    assert mark_differences("a <b", "a")[0] == "a <mark>&lt;b</mark>"


def test_eval_of_files_chooses_the_tokenizer_by_the_reference_and_says_so(tmp_path) -> None:
    reference, other = tmp_path / "ref.zh", tmp_path / "hyp.zh"
    reference.write_text("\n".join(TEXTS["Chinese"]) + "\n", encoding="utf-8")
    other.write_text("昨天我在车站旁边的商店买了两本新书。\n请把USB线插入电脑。\n", encoding="utf-8")
    found = run_text("eval", "--hyp", other, reference, "--json")
    assert "the target is Chinese, so BLEU uses sacreBLEU's tokenizer zh" in found.stderr
    scores = json.loads(found.stdout)
    assert "tok:zh" in scores["bleu"]["signature"]
    assert "asian:yes" in scores["ter"]["signature"]
    assert scores["by_length"][0]["unit"] == "characters"
    chosen = run_text("eval", "--hyp", other, reference, "--json", "--tokenize", "13a")
    assert "tok:13a" in json.loads(chosen.stdout)["bleu"]["signature"]
