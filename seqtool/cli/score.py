"""seqtool score: the log-probability of given translations, one per line."""

import json
from pathlib import Path
from typing import Annotated

import typer

from seqtool.cli.options import EngineGroup, JsonOption, ModelOption
from seqtool.cli.streams import notify, quiet_if_closed
from seqtool.errors import OptionError


def score(
    source: Annotated[Path, typer.Argument(metavar="SRC", help="The source lines, or one file with pairs.")],
    model: ModelOption,
    target: Annotated[
        Path | None, typer.Argument(metavar="[TGT]", help="Their translations, as many lines.", show_default=False)
    ] = None,
    normalize: Annotated[
        bool, typer.Option("--normalize", help="Divide by the number of tokens, the end included.")
    ] = False,
    json_: JsonOption = False,
    *,
    engine: EngineGroup,
) -> None:
    """Print the log-probability of each translation, one number per line.

    It is the sum over its tokens and its end, in nats; an empty translation has the score of its end. With --json,
    each line is an object with log_prob, tokens and token_scores (the end's last); --normalize adds log_prob_per_token.

    Example: seqtool score -m run source.en translation.de
    """
    from seqtool.corpus.reading.blocks import count_pairs
    from seqtool.corpus.reading.corpus import names_pairs, parse_corpus, require_files

    settings = engine.settings()
    if target is None and not names_pairs(source):
        raise OptionError(
            f"{source}: no translations to score; give SRC and TGT, or one file with pairs, such as a TSV"
        )
    corpus = parse_corpus([source] if target is None else [source, target])
    require_files([corpus])
    count_pairs(corpus)  # files that do not match are refused before a model is loaded
    from seqtool.translation.scoring import score_corpus
    from seqtool.translation.translator import Translator

    translator = Translator.with_engine(model, settings, notify=notify)
    with quiet_if_closed():
        for pair in score_corpus(translator, corpus, notify):
            print(json.dumps(pair.to_dict(normalize), ensure_ascii=False) if json_ else f"{pair.score(normalize):.6f}")
