"""What /translate does: which texts, from which language into which, in which form."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from seqtool.errors import SeqtoolError
from seqtool.serving.detection import Candidate
from seqtool.serving.errors import ApiError, bad_request
from seqtool.serving.fields import Fields
from seqtool.serving.models import ServedModel, ServedModels, language_name
from seqtool.serving.settings import ServeSettings
from seqtool.translation.documents.formats import open_document
from seqtool.translation.documents.interface import Document
from seqtool.translation.results import Translation

T = TypeVar("T")
FORMATS = ("text", "html")
AUTO = "auto"
IN_THREAD = 10_000  # characters from which a text is taken apart outside of the event loop


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
    texts = read_texts(fields)
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


def read_texts(fields: Fields) -> list[str]:
    """Return the texts of a request, which has some."""
    q = fields.values.get("q")
    if not q:
        raise bad_request("missing q parameter")
    if not (isinstance(q, str) or (isinstance(q, list) and all(isinstance(text, str) for text in q))):
        raise bad_request("q parameter is neither a text nor a list of texts")
    texts = [clean_surrogates(text) for text in (q if isinstance(q, list) else [q])]
    return texts if fields.is_json else ["\n".join(text.splitlines()) for text in texts]


def read_alternatives(fields: Fields, settings: ServeSettings) -> int:
    """Return how many alternatives are wanted."""
    number = read_number(fields, "alternatives", 0)
    if number > settings.max_alternatives:
        raise bad_request(f"alternatives parameter must be <= {settings.max_alternatives}")
    return max(0, number)


def read_number(fields: Fields, name: str, default: int) -> int:
    """Return a field that has to be a whole number."""
    given = fields.values.get(name) or default
    try:
        if not isinstance(given, int | str) or isinstance(given, bool):
            raise ValueError
        return int(given)
    except ValueError:
        raise bad_request(f"{name} parameter is not a number") from None


def check_size(texts: Sequence[str], is_list: bool, settings: ServeSettings) -> None:
    """Refuse too many texts, and texts that are too long."""
    if is_list and len(texts) > settings.max_texts:
        raise bad_request(f"request ({len(texts)}) exceeds text limit ({settings.max_texts})")
    n_chars = sum(map(len, texts))
    if settings.max_chars and n_chars > settings.max_chars:
        raise bad_request(f"request ({n_chars}) exceeds text limit ({settings.max_chars})")


def check_languages(models: ServedModels, sources: Sequence[str], target: str) -> None:
    """Raise if a language, or a direction, is not served."""
    for code in (*sources, target):
        if code not in models.codes:
            raise ApiError(400, f"{code} is not supported")
    for source in sources:
        if source != target and models.find(source, target) is None:
            raise ApiError(
                400,
                f"{language_name(target)} ({target}) is not available as a target language "
                f"from {language_name(source)} ({source})",
            )


def check_format(format: str) -> None:
    """Refuse a format that is neither text nor HTML."""
    if format not in FORMATS:
        raise ApiError(400, f"{format} format is not supported")


def open_text(format: str, text: str) -> Document:
    """Return a text's parts to translate."""
    try:
        return open_document(format, text)
    except SeqtoolError as error:
        raise bad_request(str(error)) from None


async def translate_texts(
    model: ServedModel, format: str, texts: Sequence[str], n_best: int, client: str
) -> list[list[str]]:
    """Return the translation of each text, which is in a format, and the alternatives to it."""
    with model.in_use():
        documents = await _aside(format, texts, lambda: [open_text(format, text) for text in texts])
        return await translate_documents(model, format, documents, n_best, client)


async def translate_documents(
    model: ServedModel, format: str, documents: Sequence[Document], n_best: int, client: str
) -> list[list[str]]:
    """Return each document's translation and the alternatives to it."""
    options = model.options(n_best, alignment=True if format == "html" else None)
    with model.in_use():
        texts = [text for document in documents for text in document.texts]
        done = iter(await model.batcher.translate(texts, options, client))
    parts = [[next(done) for _ in document.texts] for document in documents]
    return await _aside(
        format,
        texts,
        lambda: [rebuild(document, lines, n_best) for document, lines in zip(documents, parts, strict=True)],
    )


async def _aside(format: str, texts: Sequence[str], work: Callable[[], T]) -> T:
    """Do some work, outside of the event loop if it may take long: markup can be made to take a second or two."""
    return await asyncio.to_thread(work) if format != "text" or sum(map(len, texts)) > IN_THREAD else work()


def rebuild(document: Document, lines: Sequence[Translation], n_best: int) -> list[str]:
    """Return a document made of the best of each line, of the second best, and so on; equal ones only once."""
    ranked = [document.rebuild([nth_best(line, rank) for line in lines]) for rank in range(n_best)]
    return list(dict.fromkeys(ranked))


def nth_best(line: Translation, rank: int) -> Translation:
    """Return a translation with the hypothesis of a rank as its best, or the last if there are fewer."""
    return replace(line, hypotheses=line.hypotheses[min(rank, len(line.hypotheses) - 1) :]) if rank else line


def has_words(text: str) -> bool:
    """Return whether there is anything to translate; LibreTranslate gives numbers, signs and emoji back as they are."""
    return any(char.isalpha() for char in text)


def clean_surrogates(text: str) -> str:
    r"""Return a text in which half of a surrogate pair, which JSON may have as "\ud800", is U+FFFD."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def answer(wish: Wish, found: Sequence[Sequence[str]], detected: Sequence[Candidate] | None) -> dict[str, Any]:
    """Return the body of an answer."""
    body: dict[str, list[Any]] = {}
    if wish.n_alternatives:
        body["alternatives"] = [list(texts[1:]) for texts in found]
    if detected is not None:
        body["detectedLanguage"] = [candidate.to_dict() for candidate in detected]
    body["translatedText"] = [texts[0] for texts in found]
    return body if wish.is_list else {name: values[0] for name, values in body.items()}
