"""seqtool train: the whole pipeline from a corpus to a model."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from seqtool.cli.options import (
    AgainstOption,
    ConfigOption,
    CorpusArgument,
    MoreCorporaOption,
    PresetOption,
    SetOption,
    ValidOption,
)
from seqtool.config import ConfigRequest, config_to_toml, resolve_config
from seqtool.demo import demo_folder
from seqtool.errors import OptionError
from seqtool.process import choose_device, rank
from seqtool.run_directory import RunDir
from seqtool.training.parent import describe_parent
from seqtool.visible import make_visible

if TYPE_CHECKING:
    from seqtool.training.request import TrainRequest


def train(
    corpus: CorpusArgument = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="DIR", help="The run directory.", show_default="checkpoints/demo"),
    ] = None,
    more: MoreCorporaOption = None,
    valid: ValidOption = None,
    against: AgainstOption = None,
    config: ConfigOption = None,
    preset: PresetOption = "auto",
    set_: SetOption = None,
    seed: Annotated[int | None, typer.Option(help="Random seed.")] = None,
    device: Annotated[str | None, typer.Option(metavar="NAME", help="auto, cpu, cuda or mps.")] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after this many steps of the whole run.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Fit the training to this time (instead of --steps).")] = None,
    compile_: Annotated[bool, typer.Option("--compile", help="torch.compile the model.")] = False,
    start_from: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="Fine-tune: start from this trained model.")
    ] = None,
    languages: Annotated[
        str | None,
        typer.Option("--languages", metavar="SRC-TGT", help="Codes of the languages, as en-de, for export and serve."),
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over, removing what an earlier run left in DIR.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show only warnings and errors.")] = False,
    log_file: Annotated[
        Path | None,
        typer.Option("--log-file", metavar="FILE", help="Append messages and reports, with the time, to this file."),
    ] = None,
    print_config: Annotated[bool, typer.Option("--print-config", help="Print the settings as TOML and exit.")] = False,
) -> None:
    """Train a translation model on a parallel corpus.

    Checks and cleans the corpus, trains the tokenizer, trains and validates the model, and exports it. The same
    command again continues where it stopped. Without CORPUS it trains on the demo corpus that ships with seqtool.

    Example: seqtool train train.en train.de --valid valid.en --valid valid.de -o run --minutes 60
    """
    given = {"seed": seed, "device": device, "steps": steps, "minutes": minutes}
    flags = [f"train.{name}={value}" for name, value in given.items() if value is not None]
    flags += ["train.compile=true"] if compile_ else []
    is_demo = not corpus and not more
    has_demo_settings = is_demo and config is None and preset == "auto"
    if has_demo_settings:
        preset = "demo"
    asked = ConfigRequest(
        preset=preset,
        file=config,
        flags=tuple(flags),
        overrides=tuple(set_ or ()),
        parent=describe_parent(start_from) if start_from else None,
    )
    resolve_config(asked)  # a bad value fails here, before torch is loaded
    if out is None and not is_demo and not print_config:
        raise OptionError("where should the model go? Name a folder with -o DIR")
    from seqtool.translation.export.languages import split_pair

    pair = split_pair(languages, "`languages`", "en-de") if languages else None
    from seqtool.corpus.reading.corpus import parse_against, parse_corpus, parse_corpus_option, parse_sets
    from seqtool.training.checks import check_request
    from seqtool.training.request import TrainRequest

    if is_demo:
        folder = demo_folder()
        corpus, valid = (
            [folder / "train.en", folder / "train.de"],
            valid or [str(folder / f"valid.{side}") for side in ("en", "de")],
        )
    sets = parse_sets(valid or (), "valid")
    request = TrainRequest(
        corpora=(*([parse_corpus(corpus)] if corpus else []), *map(parse_corpus_option, more or [])),
        valid=sets[0] if sets else None,
        also_valid=tuple(sets[1:]),
        against=tuple(parse_against(against or ())),
        out=out or Path("checkpoints/demo"),
        settings=asked,
        start_from=start_from,
        languages=pair,
        quiet=quiet,
        log_file=log_file,
        fresh=fresh or (out is None and not is_demo),  # without a folder, --print-config is about a new run
    )
    if print_config:
        if has_demo_settings:
            print("# the settings of the demo; name a corpus to see those that auto chooses for it\n")
        print_settings(request)
        return
    if rank() == 0:
        check_request(request)
    from seqtool.training.pipeline import train as run  # torch is loaded here

    if interrupted_by := run(request):
        raise SystemExit(128 + interrupted_by)  # it has said so


def print_settings(request: "TrainRequest") -> None:
    """Print the settings that a training would use here and now, and where each came from."""
    from seqtool.training.resolution import resolve_machine, resolve_training

    device = choose_device(resolve_config(request.settings).config.train.device).type
    resolved = resolve_training(request, RunDir(request.out), device).resolved
    here = resolve_machine(resolved.config, device).remarks(resolved.config)
    names = {*resolved.origins, *here}
    remarks = {name: "; ".join(filter(None, (resolved.origins.get(name), here.get(name)))) for name in names}
    if resolved.preset:
        print(f"# {make_visible(resolved.preset)}\n")
    print(config_to_toml(resolved.config, remarks), end="")
