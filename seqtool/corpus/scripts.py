"""The writing systems that scoring and splitting depend on: those without spaces between words, and Korean."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

# Characters by script, marks included. Together Han and kana are Japanese, Han alone is Chinese.
RANGES = {
    "Han": "\u2e80-\u2fdf\u3005\u3007\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff",
    "Kana": "\u3041-\u3096\u309d-\u30fa\u30fc-\u30ff\u31f0-\u31ff\uff66-\uff9f",
    "Hangul": "\u1100-\u11ff\u3131-\u318e\uac00-\ud7a3",
    "Thai": "\u0e01-\u0e4e",
    "Lao": "\u0e81-\u0ece",
    "Khmer": "\u1780-\u17d3",
    "Burmese": "\u1000-\u109f",
}
OTHER = "other"
EAST_ASIAN = ("Han", "Kana")
SOUTH_EAST_ASIAN = ("Thai", "Lao", "Khmer", "Burmese")
SPACELESS = "".join(RANGES[script] for script in (*EAST_ASIAN, *SOUTH_EAST_ASIAN))  # for a class in a pattern
OWN_SHARE = 0.3  # of the letters; a text has this share of a script even with many names and terms in Latin letters
KANA_SHARE = 0.1  # of Han and kana together; Japanese has four times as much, Chinese next to none

_NO_LETTERS = re.compile(r"[\W\d_]+")
_ANY = re.compile(f"[{''.join(RANGES.values())}]")
_SCRIPTS = {script: re.compile(f"[{characters}]") for script, characters in RANGES.items()}


def share_scripts(lines: Iterable[str]) -> dict[str, float]:
    """Return the share of the letters that each script has, the largest first; scripts without a name here are one."""
    text = "".join(lines)
    counts: Counter[str] = Counter()
    for script, pattern in _SCRIPTS.items() if _ANY.search(text) else ():
        text, counts[script] = pattern.subn("", text)
    counts[OTHER] = len(_NO_LETTERS.sub("", text))
    return {script: round(number / counts.total(), 4) for script, number in counts.most_common() if number}


def name_writing(shares: Mapping[str, float]) -> str:
    """Return what a text is written in: Japanese, Chinese, Korean, Thai, Lao, Khmer or Burmese; else empty."""
    han, kana = (shares.get(script, 0.0) for script in EAST_ASIAN)
    if han + kana >= OWN_SHARE:
        return "Japanese" if kana >= KANA_SHARE * (han + kana) else "Chinese"
    if shares.get("Hangul", 0.0) >= OWN_SHARE:
        return "Korean"
    script = max(SOUTH_EAST_ASIAN, key=lambda script: shares.get(script, 0.0))
    return script if shares.get(script, 0.0) >= OWN_SHARE else ""


def lacks_spaces(lines: Iterable[str]) -> bool:
    """Return whether a text is written without spaces between words, so that its length is counted in characters."""
    return name_writing(share_scripts(lines)) not in ("", "Korean")
