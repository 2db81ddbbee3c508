"""The languages of a model: from what the user gives, or from what the run knows."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from seqtool.corpus.reading.opening import without_compression
from seqtool.errors import SeqtoolError
from seqtool.run_directory import RunDir

_TABLE = """
af=Afrikaans am=Amharic ar=Arabic az=Azerbaijani be=Belarusian bg=Bulgarian bn=Bengali br=Breton bs=Bosnian
ca=Catalan ceb=Cebuano cs=Czech cy=Welsh da=Danish de=German el=Greek en=English eo=Esperanto es=Spanish et=Estonian
eu=Basque fa=Persian fi=Finnish fo=Faroese fr=French fy=Frisian ga=Irish gd=Gaelic gl=Galician gu=Gujarati ha=Hausa
he=Hebrew hi=Hindi hr=Croatian hsb=Sorbian ht=Haitian hu=Hungarian hy=Armenian id=Indonesian ig=Igbo is=Icelandic
it=Italian ja=Japanese jv=Javanese ka=Georgian kk=Kazakh km=Khmer kn=Kannada ko=Korean ku=Kurdish ky=Kyrgyz la=Latin
lb=Luxembourgish ln=Lingala lo=Lao lt=Lithuanian lv=Latvian mg=Malagasy mi=Maori mk=Macedonian ml=Malayalam
mn=Mongolian mr=Marathi ms=Malay mt=Maltese my=Burmese nb=Norwegian ne=Nepali nl=Dutch nn=Nynorsk no=Norwegian
oc=Occitan or=Odia pa=Punjabi pl=Polish ps=Pashto pt=Portuguese qu=Quechua rm=Romansh ro=Romanian ru=Russian
rw=Kinyarwanda sa=Sanskrit sd=Sindhi se=Sami si=Sinhala sk=Slovak sl=Slovenian sn=Shona so=Somali sq=Albanian
sr=Serbian st=Sotho su=Sundanese sv=Swedish sw=Swahili ta=Tamil te=Telugu tg=Tajik th=Thai ti=Tigrinya tk=Turkmen
tl=Tagalog tn=Tswana tr=Turkish tt=Tatar ug=Uyghur uk=Ukrainian ur=Urdu uz=Uzbek vi=Vietnamese wo=Wolof xh=Xhosa
yi=Yiddish yo=Yoruba zh=Chinese zu=Zulu
"""
_CODE = re.compile(r"[A-Za-z]{2,12}([-_][A-Za-z0-9]{1,8}){0,3}")
NAMES = dict(pair.split("=") for pair in _TABLE.split())


@dataclass(frozen=True)
class Languages:
    """Codes and names of source and target."""

    codes: tuple[str, str]
    names: tuple[str, str]


def choose_languages(run: RunDir, codes: str | None, names: str | None) -> Languages | None:
    """Return the languages given, as 'en-de' and 'English-German', or those that the run knows, if any."""
    found = split_pair(codes, "`languages`", "en-de") if codes else known_codes(run)
    if found is None:
        return None
    if names:
        return Languages(found, split_pair(names, "`names`", "English-German"))
    unnamed = [code for code in found if code not in NAMES]
    if unnamed and codes:
        raise SeqtoolError(f"the language '{unnamed[0]}' has no name here; give both with `names`, as SOURCE-TARGET")
    source, target = (NAMES.get(code, code) for code in found)  # a model from elsewhere may be of a family: 'zle'
    return Languages(found, (source, target))


def split_pair(text: str, option: str, example: str) -> tuple[str, str]:
    """Return the two parts of a text such as 'en-de'."""
    source, dash, target = (part.strip() for part in text.partition("-"))
    if not (source and dash and target) or any(not part.isprintable() or "/" in part for part in (source, target)):
        raise SeqtoolError(f"{option} {text}: write source and target with a hyphen between them, as in {example}")
    return source, target


def known_codes(run: RunDir) -> tuple[str, str] | None:
    """Return the languages that an import noted, or those that the names of the corpus files end with."""
    manifest = run.read_manifest()
    noted = manifest.others.get("languages", {})
    if isinstance(noted, dict) and all(_CODE.fullmatch(str(noted.get(side, ""))) for side in ("source", "target")):
        return str(noted["source"]), str(noted["target"])
    sources = list(corpus_files(list(manifest.data.sources or ())))
    suffixes = [suffix for name in sources if (suffix := last_suffix(name)) in NAMES]
    pair = tuple(dict.fromkeys(suffixes))
    return (pair[0], pair[1]) if len(pair) == 2 and len(suffixes) == len(sources) else None


def corpus_files(sources: Any) -> Iterator[str]:
    """Yield the paths in what a manifest says of its corpora."""
    for source in sources if isinstance(sources, list) else [sources]:
        if isinstance(source, list):
            yield from corpus_files(source)
        elif isinstance(source, dict):
            yield str(source.get("path", ""))
        else:
            yield str(source)


def last_suffix(name: str) -> str:
    """Return what a file name ends with, a compression left out: 'de' for 'train.de.gz'."""
    return without_compression(PurePath(name)).suffix.removeprefix(".")
