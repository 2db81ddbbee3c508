"""A split follows from the seed, holds every pair at most once, and no source or target is in two of its sets."""

import gzip
import random
from pathlib import Path

import pytest
from command_line import run_text
from noisy_tmx import make_units
from planted_corpus import make_pairs, write_corpus

from seqtool.config import CleanConfig
from seqtool.corpus.preparing.survey import Candidates
from seqtool.corpus.reading import opening
from seqtool.corpus.reading.blocks import read_pairs
from seqtool.corpus.reading.corpus import Corpus, parse_corpus
from seqtool.corpus.splitting.split import SETS, Split, split_corpus
from seqtool.errors import SeqtoolError

Pairs = list[tuple[bytes, bytes]]


def sets_of(split: Split) -> dict[str, Pairs]:
    found = {}
    for name in SETS:
        pairs = [(pair.src, pair.tgt or b"") for pair in read_pairs(parse_corpus(split.files[name]))]
        found[name] = [pair for pair in pairs if any(text.strip() for text in pair)]
        assert split.pairs[name] == len(found[name])
    return found


def assert_apart(sets: dict[str, Pairs]) -> None:
    for side in (0, 1):
        lines = [{pair[side].strip() for pair in pairs} - {b""} for pairs in sets.values()]
        assert not lines[0] & lines[1]
        assert not lines[0] & lines[2]
        assert not lines[1] & lines[2]


def repeat_sides(pairs: Pairs) -> Pairs:
    """Add pairs that repeat a whole pair, a source, or a target of others."""
    rng = random.Random(4)
    more = [(src, b"Anders: " + tgt) for src, tgt in rng.sample(pairs, 200)]
    more += [(b"Other: " + src, tgt) for src, tgt in rng.sample(pairs, 200)]
    return [*pairs, *rng.sample(pairs, 200), *more]


@pytest.fixture(params=[1000, 1 << 19], ids=lambda size: f"{size} bytes at once")
def chunk_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "CHUNK_BYTES", request.param)


@pytest.mark.usefixtures("chunk_bytes")
def test_no_line_is_in_two_sets_and_no_pair_is_lost_without_being_counted(tmp_path: Path) -> None:
    pairs = repeat_sides(make_pairs(2000))
    split = split_corpus(write_corpus(tmp_path, pairs), tmp_path / "out", (150, 100), seed=3)
    sets = sets_of(split)
    assert [path.name for name in SETS for path in split.files[name]] == [
        "train.en", "train.de", "valid.en", "valid.de", "test.en", "test.de",
    ]  # fmt: skip
    assert (len(sets["valid"]), len(sets["test"])) == (150, 100)
    assert_apart(sets)
    assert len(pairs) == sum(map(len, sets.values())) + split.overlapping
    assert split.overlapping == 0  # there are enough pairs that share nothing
    train = iter(pairs)
    assert all(pair in train for pair in sets["train"])  # in their order


def test_the_choice_follows_from_the_seed_and_not_from_the_order(tmp_path: Path) -> None:
    pairs = make_pairs(500)

    def choose(name: str, pairs: Pairs, seed: int) -> tuple[set, set]:
        (tmp_path / name).mkdir()
        sets = sets_of(split_corpus(write_corpus(tmp_path / name, pairs), tmp_path / name / "out", (40, 30), seed))
        return set(sets["valid"]), set(sets["test"])

    first = choose("a", pairs, 1)
    assert choose("b", pairs[::-1], 1) == first
    assert choose("c", pairs, 2)[0] != first[0]


def test_pairs_that_repeat_are_chosen_if_there_are_no_others_and_then_left_out_elsewhere(tmp_path: Path) -> None:
    pairs = make_pairs(100)
    twice = [*pairs, *((src, b"Anders: " + tgt) for src, tgt in pairs)]
    split = split_corpus(write_corpus(tmp_path, twice), tmp_path / "out", (10, 10), seed=1)
    sets = sets_of(split)
    assert_apart(sets)
    assert (len(sets["train"]), split.overlapping) == (160, 20)


def test_held_apart_pairs_are_clean(tmp_path: Path) -> None:
    pairs = [(src, tgt if n % 2 else src) for n, (src, tgt) in enumerate(make_pairs(400))]  # every other one is copied
    sets = sets_of(split_corpus(write_corpus(tmp_path, pairs), tmp_path / "out", (30, 30), seed=1))
    assert not any(src == tgt for name in ("valid", "test") for src, tgt in sets[name])
    assert sum(src == tgt for src, tgt in sets["train"]) == 200


def test_pairs_with_swapped_sides_are_not_held_apart_if_cleaning_drops_them(tmp_path: Path) -> None:
    units = dict.fromkeys(make_units(2000, noise=0, several=0))
    lines = [(en.encode(), ja.encode()) for en, ja in units]
    pairs = [(tgt, src) if n % 5 == 0 else (src, tgt) for n, (src, tgt) in enumerate(lines)]
    corpus = write_corpus(tmp_path, pairs)
    found = {}
    for language in (False, True):
        out = tmp_path / str(language)
        sets = sets_of(split_corpus(corpus, out, (50, 50), seed=1, clean=CleanConfig(language=language)))
        found[language] = sum(not src.isascii() for name in ("valid", "test") for src, _ in sets[name])
    assert found[False] > 5
    assert found[True] == 0


def with_documents(pairs: Pairs, seed: int = 0) -> list[Pairs]:
    rng, documents = random.Random(seed), []
    while pairs:
        n = rng.randrange(3, 20)
        documents.append(pairs[:n])
        pairs = pairs[n:]
    return documents


@pytest.mark.usefixtures("chunk_bytes")
def test_documents_that_blank_lines_end_are_kept_whole(tmp_path: Path) -> None:
    documents = with_documents(make_pairs(1500))
    pairs = [pair for document in documents for pair in [*document, (b"", b" ")]]
    split = split_corpus(write_corpus(tmp_path, pairs), tmp_path / "out", (120, 90), seed=2)
    assert split.documents
    sets = sets_of(split)
    assert_apart(sets)
    assert 120 <= len(sets["valid"]) < 140
    assert 90 <= len(sets["test"]) < 110
    assert split.overlapping == 0
    members = {name: set(pairs) for name, pairs in sets.items()}
    for document in documents:
        assert sum(set(document) <= inside for inside in members.values()) == 1
    kept = (split.files["test"][0]).read_bytes().split(b"\n")
    assert kept.count(b"") > 4  # the ends of the documents are still marked
    single = split_corpus(write_corpus(tmp_path, pairs), tmp_path / "single", (120, 90), seed=2, documents="never")
    assert not single.documents
    assert single.pairs["valid"] == 120


def test_lines_that_documents_share_stay_in_one_set(tmp_path: Path) -> None:
    documents = [[*document, (b"Thank you.", b"Danke.")] for document in with_documents(make_pairs(600))]
    pairs = [pair for document in documents for pair in [*document, (b"", b"")]]
    split = split_corpus(write_corpus(tmp_path, pairs), tmp_path / "out", (60, 60), seed=2)
    sets = sets_of(split)
    assert_apart(sets)
    assert {name: (b"Thank you.", b"Danke.") in pairs for name, pairs in sets.items()}["test"]
    assert split.overlapping > 20


def test_one_file_with_pairs_becomes_tsv(tmp_path: Path) -> None:
    pairs = make_pairs(100)
    path = tmp_path / "a.tsv.gz"
    path.write_bytes(gzip.compress(b"".join(src + b"\t" + tgt + b"\tmore\n" for src, tgt in pairs) + b"no tab\n"))
    split = split_corpus(Corpus(path, None), tmp_path / "out", (10, 5), seed=1)
    assert [path.name for path in split.files["test"]] == ["test.tsv"]
    assert len(sets_of(split)["train"]) == 86
    assert (tmp_path / "out" / "train.tsv").read_bytes().endswith(b"\nno tab\n")


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((40, 40), "has 60 pairs; valid and test must be 1 to 30 together"),
        ((0, 0), "1 to 30"),
        ((20, 10), "only 25 "),
    ],
)
def test_what_cannot_be_split_is_named(sizes: tuple[int, int], message: str, tmp_path: Path) -> None:
    pairs = [*make_pairs(25), *[(b"same", b"same")] * 35]
    with pytest.raises(SeqtoolError, match=message):
        split_corpus(write_corpus(tmp_path, pairs), tmp_path / "out", sizes, seed=1)
    assert not (tmp_path / "out").exists()


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path, make_pairs(100))
    corpus.source.rename(tmp_path / "train.en")
    with pytest.raises(SeqtoolError, match=r"train\.en: is there already"):
        split_corpus(Corpus(tmp_path / "train.en", corpus.target), tmp_path, (5, 5), seed=1)


def test_memory_holds_candidates_and_not_the_corpus() -> None:
    from seqtool.corpus.reading.lines import PairBlock

    candidates = Candidates(50, 1)
    for n in range(40):
        candidates.add(PairBlock.from_pairs([(b"%d %d" % (n, i), b"x") for i in range(500)]))
    assert len(candidates._found) <= 100 + 500


def test_the_command_writes_what_train_and_eval_take(tmp_path: Path) -> None:
    write_corpus(tmp_path, make_pairs(300))
    found = run_text("split", "a.en", "a.de", "-o", "data", "--valid", "30", "--test", "20", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert found.stdout == ""
    assert "data/train.en data/train.de: 250 pairs" in found.stderr
    checked = run_text(
        "check", "data/train.en", "data/train.de", "--against", "data/test.en,data/test.de",
        "--against", "data/valid.en,data/valid.de", cwd=tmp_path,
    )  # fmt: skip
    assert checked.returncode == 0
    assert "also in a test set" not in checked.stdout
    assert run_text("split", "-o", "data", cwd=tmp_path).returncode == 2
    assert run_text("split", "a.en", "a.de", cwd=tmp_path).returncode == 2
    assert run_text("split", "a.en", "a.de", "-o", "x", "--documents", "maybe", cwd=tmp_path).returncode == 2
