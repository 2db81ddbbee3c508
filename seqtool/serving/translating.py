"""What /translate does: which texts, from which language into which, in which form."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqtool.serving.errors import ApiError, bad_request
from seqtool.serving.fields import Fields
from seqtool.serving.models import ServedModel, ServedModels, language_name
from seqtool.serving.settings import ServeSettings
from seqtool.translation.results import Translation

FORMATS = ("text", "html")


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What a client wants translated."""

    texts: list[str]
    is_list: bool
    source: str
    target: str
    format: str
    n_alternatives: int


def read_wish(fields: Fields, settings: ServeSettings) -> Wish:
    """Check the fields of a request in the order, and with the words, of LibreTranslate."""
    q = fields.values.get("q")
    for name in ("q", "source", "target"):
        if not fields.values.get(name):
            raise bad_request(f"missing {name} parameter")
    if not (isinstance(q, str) or (isinstance(q, list) and all(isinstance(text, str) for text in q))):
        raise bad_request("q parameter is neither a text nor a list of texts")
    texts = [clean_surrogates(text) for text in (q if isinstance(q, list) else [q])]
    if not fields.is_json:
        texts = ["\n".join(text.splitlines()) for text in texts]
    n_alternatives = read_alternatives(fields, settings)
    check_size(texts, isinstance(q, list), settings)
    return Wish(
        texts=texts,
        is_list=isinstance(q, list),
        source=fields.text("source"),
        target=fields.text("target"),
        format=fields.text("format") or "text",
        n_alternatives=n_alternatives,
    )


def read_alternatives(fields: Fields, settings: ServeSettings) -> int:
    """Return how many alternatives are wanted."""
    given = fields.values.get("alternatives") or 0
    try:
        if not isinstance(given, int | str) or isinstance(given, bool):
            raise ValueError
        number = max(0, int(given))
    except ValueError:
        raise bad_request("alternatives parameter is not a number") from None
    if number > settings.max_alternatives:
        raise bad_request(f"alternatives parameter must be <= {settings.max_alternatives}")
    return number


def check_size(texts: Sequence[str], is_list: bool, settings: ServeSettings) -> None:
    """Refuse too many texts, and texts that are too long."""
    if is_list and len(texts) > settings.max_texts:
        raise bad_request(f"request ({len(texts)}) exceeds text limit ({settings.max_texts})")
    longest = max(map(len, texts))
    if settings.max_chars and longest > settings.max_chars:
        raise bad_request(f"request ({longest}) exceeds text limit ({settings.max_chars})")


def find_model(models: ServedModels, source: str, target: str) -> ServedModel | None:
    """Return the model for a direction, None where the languages are the same; raise if there is no such model."""
    for code in (source, target):
        if code not in models.codes:
            raise ApiError(400, f"{code} is not supported")
    if source == target:
        return None
    model = models.find(source, target)
    if model is None:
        raise ApiError(
            400,
            f"{language_name(target)} ({target}) is not available as a target language "
            f"from {language_name(source)} ({source})",
        )
    return model


def check_format(format: str) -> None:
    """Refuse a format that is neither text nor HTML."""
    if format not in FORMATS:
        raise ApiError(400, f"{format} format is not supported")


async def translate_texts(
    model: ServedModel, texts: Sequence[str], format: str, n_alternatives: int, client: str
) -> list[list[str]]:
    """Return for each text its translation and the alternatives to it."""
    is_html = format == "html"
    n_best = n_alternatives + 1
    options = model.translator.make_options(n_best=n_best, alignment=is_html or None, beam=wide_enough(model, n_best))
    with model.in_use():
        lines = [text.split("\n") for text in texts]
        flat = [line for of_text in lines for line in of_text]
        done = iter(await model.batcher.translate(flat, options, client))
        return [join_lines([next(done) for _ in of_text], n_best) for of_text in lines]


def wide_enough(model: ServedModel, n_best: int) -> int | None:
    """Return a beam for that many hypotheses if the model's own is too narrow."""
    return n_best if n_best > model.translator.make_options().beam else None


def join_lines(lines: Sequence[Translation], n_best: int) -> list[str]:
    """Return the texts of lines, the best of each line with the best of the others; equal texts only once."""
    ranked = ["\n".join(nth_best(line, rank) for line in lines) for rank in range(n_best)]
    return list(dict.fromkeys(ranked))


def nth_best(line: Translation, rank: int) -> str:
    """Return the hypothesis of a rank, or the last if there are fewer."""
    return line.hypotheses[min(rank, len(line.hypotheses) - 1)].text


def clean_surrogates(text: str) -> str:
    r"""Return a text in which half of a surrogate pair, which JSON may have as "\ud800", is U+FFFD."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace") if not text.isascii() else text


def answer(wish: Wish, found: Sequence[Sequence[str]], detected: Sequence[dict[str, Any]] | None) -> dict[str, Any]:
    """Return the body of an answer."""
    body: dict[str, Any] = {}
    if wish.n_alternatives:
        body["alternatives"] = [list(texts[1:]) for texts in found]
    if detected is not None:
        body["detectedLanguage"] = list(detected)
    body["translatedText"] = [texts[0] for texts in found]
    return body if wish.is_list else {name: values[0] for name, values in body.items()}
