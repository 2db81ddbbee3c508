"""seqtool train: the whole pipeline from a corpus to a model."""

from pathlib import Path
from typing import Annotated

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
from seqtool.config import config_to_toml, resolve_config
from seqtool.errors import SeqtoolError
from seqtool.process import rank


def train(
    corpus: CorpusArgument = None,
    out: Annotated[
        Path | None,
        typer.Option("-o", "--out", metavar="DIR", help="The run directory.", show_default="checkpoints/demo"),
    ] = None,
    more: MoreCorporaOption = None,
    valid: ValidOption = None,
    against: AgainstOption = None,
    config: ConfigOption = None,
    preset: PresetOption = "auto",
    set_: SetOption = None,
    seed: Annotated[int | None, typer.Option(help="Everything random follows from it.")] = None,
    device: Annotated[str | None, typer.Option(metavar="NAME", help="auto, cpu, cuda or mps.")] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after this many steps of the whole run.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Fit the training to this time (instead of --steps).")] = None,
    compile_: Annotated[bool, typer.Option("--compile", help="torch.compile the model.")] = False,
    start_from: Annotated[
        Path | None, typer.Option("--from", metavar="DIR", help="Fine-tune: start from this trained model.")
    ] = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Start over, removing what an earlier run left in DIR.")
    ] = False,
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
    overrides = set_ or []
    is_demo = not corpus and not more
    uses_demo_settings = is_demo and config is None and preset == "auto"
    if uses_demo_settings:
        from seqtool.demo import demo_folder

        preset, config = "tiny", demo_folder() / "demo.toml"
    settings = resolve_config(preset, config, overrides, flags)  # a bad value fails here, before torch is loaded
    if out is None and not is_demo and not print_config:
        raise SeqtoolError("where should the model go? Name a folder with -o DIR")

    from seqtool.corpus.reading.blocks import count_pairs
    from seqtool.corpus.reading.corpus import parse_against, parse_corpus, parse_corpus_option

    if is_demo:
        from seqtool.demo import demo_folder

        folder = demo_folder()
        corpora = [parse_corpus([folder / "train.en", folder / "train.de"])]
        valid = valid or [folder / "valid.en", folder / "valid.de"]
    else:
        corpora = [parse_corpus(corpus)] if corpus else []
        corpora += [parse_corpus_option(text) for text in more or []]
    if print_config:
        if uses_demo_settings:
            print("# the settings of the demo; name a corpus to see those that auto chooses for it\n")
        elif preset == "auto":
            pairs = sum(map(count_pairs, corpora))
            print(f"# preset auto, for {pairs:,} pairs\n")
            settings = resolve_config(preset, config, overrides, flags, pairs=pairs)
        print(config_to_toml(settings), end="")
        return

    from seqtool.training.checks import check_request
    from seqtool.training.settling import TrainRequest

    request = TrainRequest(
        corpora=tuple(corpora),
        valid=parse_corpus(valid) if valid else None,
        against=tuple(parse_against(against or ())),
        out=out or Path("checkpoints/demo"),
        preset=preset,
        config_file=config,
        overrides=tuple(overrides),
        flags=tuple(flags),
        start_from=start_from,
        fresh=fresh,
    )
    if rank() == 0:
        check_request(request)
    from seqtool.training.pipeline import train as run  # torch is loaded here

    if not run(request):
        raise typer.Exit(130)
