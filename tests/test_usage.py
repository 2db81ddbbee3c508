"""Messages name parameters as in Python, the command line writes its options in their place, and wrong usage exits with
2."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from command_line import run_text
from fake_engine import ReversingEngine, make_tokenizers

import seqtool
from seqtool.cli.commands import register
from seqtool.cli.option_names import OTHER_NAMES, with_options
from seqtool.errors import PARAMETER, OptionError, SeqtoolError
from seqtool.translation.engines.settings import EngineSettings
from seqtool.translation.translator import Translator

PACKAGE = Path(seqtool.__file__).parent


def test_a_python_caller_reads_the_names_of_parameters(tmp_path: Path) -> None:
    translator = Translator(make_tokenizers(tmp_path), ReversingEngine())
    with pytest.raises(OptionError, match=r"^beam must be from 1 to 1000, not 0$"):
        translator.translate(["a"], beam=0)
    with pytest.raises(OptionError, match=r"^beam must be a whole number from 1 to 1000, not 2.5$"):
        translator.translate(["a"], beam=2.5)
    with pytest.raises(OptionError, match=r"^length_penalty must be from 0 to 10, not nan$"):
        translator.translate(["a"], length_penalty=float("nan"))
    with pytest.raises(OptionError, match=r"^top_k must be from 0 to \d+, not '9'$"):
        translator.translate(["a"], sample=True, top_k="9")
    with pytest.raises(OptionError, match=r"^n_best=9 needs a beam as wide; give beam=9, or sample=True$"):
        translator.translate(["a"], n_best=9)
    with pytest.raises(OptionError, match=r"^threads must be from 0 \(all cores\) to 1024, not -1$"):
        EngineSettings(threads=-1)


def test_options_are_made_once_and_passed_on(tmp_path: Path) -> None:
    translator = Translator(make_tokenizers(tmp_path), ReversingEngine())
    options = translator.make_options(beam=7)
    assert translator.translate(["she"], options) == translator.translate(["she"], beam=7)
    assert translator.describe(options)["beam"] == 7
    with pytest.raises(OptionError, match="there are options already, and beam too"):
        translator.translate(["she"], options, beam=7)


def test_the_command_line_writes_options_in_the_place_of_parameters() -> None:
    error = SeqtoolError(
        "`beam` and `top_k=3`: use `engine='torch'`, `sample=True`, `banned` or `out`; `Not` one, `a b`"
    )
    assert str(error) == "beam and top_k=3: use engine='torch', sample=True, banned or out; `Not` one, `a b`"
    assert with_options(error.marked) == (
        "--beam and --top-k 3: use --engine torch, --sample, --ban or -o; `Not` one, `a b`"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("train a.tsv", "where should the model go?"),
        ("train a.tsv --resume", "No such option: --resume; the same command again continues where it stopped"),
        ("train a.tsv --batch-size 64", "No such option: --batch-size; did you mean --set train.batch_tokens=...?"),
        ("translate -m {here} --num-beams 4", "No such option: --num-beams; did you mean --beam?"),
        ("train a.tsv --sede 1", "No such option: --sede (Possible options: --se"),
        ("train a b c -o run", "not 3 files: a, b, c; give further ones to train on with --corpus"),
        ("train a.tsv --corpus a.tsv@x -o run", "a.tsv@x: the weight after '@' must be a number"),
        ("train a.tsv --against a --against b --against c -o run", "--against: give one file with pairs, or two"),
        ("prepare -o run", "which corpus?"),
        ("prepare a.tsv", "where should the prepared corpus go?"),
        ("check a b c", "not 3 files"),
        ("translate", "Missing option '-m'"),
        ("translate -m {here} --token-scores", "add --json"),
        ("translate -m {here} --engine tensorflow", "there is no engine 'tensorflow'"),
        ("translate -m {here} --compile --engine ctranslate2", "--compile is for the torch engine"),
        ("translate -m {here} --resume --show-attention a.svg", "--resume continues a file"),
        ("translate -m {here} --show-attention a.png", "a name that ends in .svg"),
        ("score a b -m {here} --device tpu", "there is no device 'tpu'"),
        ("score a b -m {here} --compute-type int9", "did you mean 'int8'?"),
        ("eval a b", "give either -m DIR (translate, then score) or --hyp FILE (score), not both or none"),
        ("eval --hyp a b --metrics blue", "unknown metric 'blue'; did you mean 'bleu'?"),
        ("eval --hyp a b --engine tensorflow", "there is no engine 'tensorflow'"),
        ("export -m {here} --to onnx", "cannot export to 'onnx'"),
        ("export -m {here} --to huggingface --quantization int8", "--quantization is for ctranslate2 and argos"),
        ("average a b", "Missing option '-o'"),
        ("info", "Missing argument 'DIR'"),
    ],
)
def test_wrong_usage_exits_with_2_and_names_the_help(arguments: str, message: str, tmp_path: Path) -> None:
    command = arguments.format(here=tmp_path).split()
    done = run_text(*command)
    assert done.stderr.startswith("seqtool: error: ")
    assert message in done.stderr
    assert re.search(rf"\nTry '(python -m )?seqtool {command[0]} --help'.\n$", done.stderr)
    assert done.returncode == 2


@pytest.mark.parametrize(
    "arguments",
    [
        "train {here}/none.tsv -o {here}/run",
        "prepare {here}/none.tsv -o {here}/run",
        "check {here}/none.tsv",
        "translate -m {here}/none -i {here}/none",
        "score {here}/none {here}/none -m {here}/none",
        "eval --hyp {here}/none {here}/none",
        "export -m {here}/none",
        "average {here}/none -o {here}/run",
        "report {here}/none",
        "info {here}/none",
        "tokenizer encode -m {here}/none",
    ],
)
def test_a_problem_with_a_file_exits_with_1_and_names_it(arguments: str, tmp_path: Path) -> None:
    done = run_text(*arguments.format(here=tmp_path).split())
    assert done.returncode == 1
    assert f"{tmp_path}/none" in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_output_has_one_spelling(tmp_path: Path) -> None:
    for command in ("train", "prepare", "translate", "eval", "average", "export", "tokenizer train"):
        assert re.search(r"--output\b.*-o\b|-o\b.*--output\b", run_text(*command.split(), "--help").stdout), command
    for name in ("-o", "--output", "--out"):  # the last is an earlier name
        done = run_text("average", tmp_path, name, tmp_path / "run")
        assert (done.returncode, "no model.safetensors" in done.stderr) == (1, True)


def strings_of(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings of a module but for its docstrings, each with its line."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docs = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
        and node.body
        and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docs:
            yield node.lineno, node.value


def test_the_library_names_no_options_of_the_command_line() -> None:
    options = re.compile(r"(?<![\w(;{.-])--?[a-z][a-z-]+\b|(?<![\w(;{.-])-[a-z]\b")
    commands = re.compile(
        r"'?(seqtool|torchrun|pip|iconv|sacrebleu|jq|msgconv|msgfmt)\b.*|\(or -f UTF-16\)|-inf\b|part-|-of-|^-m$"
        r"|^ -o DIR$|^ --local-dir $|--to ctranslate2'|argos-translate --from-lang |^ --to-lang "
    )
    found = [
        f"{path.relative_to(PACKAGE)}:{line}: {text}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if path.relative_to(PACKAGE).parts[0] not in ("cli", "config")
        for line, text in strings_of(path)
        if options.search(commands.sub("", text))
    ]
    assert not found, "\n".join(found)


def test_every_parameter_that_a_message_names_has_an_option() -> None:
    app = typer.Typer()
    register(app, None)
    commands = typer.main.get_command(app).commands.values()  # type: ignore[attr-defined]
    options = {option for command in commands for parameter in command.params for option in parameter.opts}
    named = {
        match[1]
        for path in PACKAGE.rglob("*.py")
        for _, text in strings_of(path)
        for match in PARAMETER.finditer(re.sub(r"\{[^}]*\}", "", text))
    }
    assert {"beam", "engine", "out", "resume"} <= named
    for name in named:
        assert OTHER_NAMES.get(name, "--" + name.replace("_", "-")) in options, name
