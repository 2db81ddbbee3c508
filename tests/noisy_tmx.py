"""An English-Japanese translation memory as companies have them: TMX, with several sentences in some units, units in
other languages, swapped sides, entities, tags and repetitions. All sentences are put together from the words below.

Run as a program it writes one: python tests/noisy_tmx.py OUT.tmx [UNITS]
"""

import random
import sys
from pathlib import Path
from xml.sax.saxutils import escape

SUBJECTS = {
    "The engineer": "技術者",
    "My colleague": "同僚",
    "The customer": "お客様",
    "The manager": "部長",
    "The old doctor": "老医師",
    "A student": "学生",
    "The new driver": "新しい運転手",
    "The girl": "女の子",
}
OBJECTS = {
    "the red cable": "赤いケーブル",
    "the printer": "プリンター",
    "an English book": "英語の本",
    "the letter": "手紙",
    "two keys": "鍵を二つ",
    "the USB drive": "USBメモリ",
    "a cup of coffee": "コーヒー",
    "the report": "報告書",
    "the black bag": "黒い鞄",
}
VERBS = {
    "bought": "買いました",
    "found": "見つけました",
    "lost": "失くしました",
    "brought": "持って来ました",
    "needs": "必要とします",
    "forgot": "忘れました",
}
PLACES = {
    "": "",
    " in the office": "事務所で",
    " at the station": "駅で",
    " behind the warehouse": "倉庫の裏で",
    " in front of the hotel": "ホテルの前で",
}
TIMES = {"": "", "Yesterday ": "昨日、", "This morning ": "今朝、", "In 2019 ": "2019年に"}
FRENCH = (
    ("L'ingénieur", "Ma collègue", "Le client", "La directrice", "Le vieux médecin", "Une étudiante", "La jeune fille"),
    ("a acheté", "a trouvé", "a perdu", "a apporté", "a oublié", "cherche", "voudrait"),
    ("le câble rouge", "l'imprimante", "un livre anglais", "la lettre", "deux clés", "le rapport", "le sac noir"),
    ("au bureau", "à la gare", "derrière l'entrepôt", "devant l'hôtel", "depuis hier", "pendant la réunion"),
)


def make_sentence(draw: random.Random) -> tuple[str, str]:
    """Return a sentence in English and in Japanese."""
    time, subject, thing, verb, place = (
        draw.choice(list(part.items())) for part in (TIMES, SUBJECTS, OBJECTS, VERBS, PLACES)
    )
    name = subject[0] if not time[0] else subject[0][0].lower() + subject[0][1:]
    thing_ja = thing[1] if "を" in thing[1] else thing[1] + "を"
    return f"{time[0]}{name} {verb[0]} {thing[0]}{place[0]}.", f"{time[1]}{subject[1]}は{place[1]}{thing_ja}{verb[1]}。"


def make_unit(draw: random.Random, several: float = 0.1) -> tuple[str, str]:
    """Return a unit with nothing wrong: a sentence, or two or three."""
    n = draw.choice((2, 3)) if draw.random() < several else 1
    english, japanese = zip(*(make_sentence(draw) for _ in range(n)), strict=True)
    return " ".join(english), "".join(japanese)


def make_french(draw: random.Random) -> str:
    """Return a sentence in a third language."""
    return " ".join(draw.choice(part) for part in FRENCH) + "."


def make_units(n: int, seed: int = 1, noise: float = 0.1, several: float = 0.1) -> list[tuple[str, str]]:
    """Return units of which about the share `noise` has a defect."""
    draw = random.Random(seed)
    units = []
    for _ in range(n):
        english, japanese = make_unit(draw, several)
        if draw.random() < noise:
            defects = [
                (japanese, english),
                (make_french(draw), japanese),
                (english, english),
                (english, ""),
                (english.replace(" the ", " &amp; the "), japanese),
                (f"<b>{english}</b>", japanese),
                (english, make_unit(draw)[1]),
            ]
            english, japanese = draw.choice(defects)
        units.append((english, japanese))
        if draw.random() < noise / 5:
            units.append(units[-1])
    return units


def write_tmx(path: Path, units: list[tuple[str, str]]) -> None:
    """Write units as TMX 1.4."""
    rows = "".join(
        f'<tu><tuv xml:lang="en-US"><seg>{escape(english)}</seg></tuv>'
        f'<tuv xml:lang="ja-JP"><seg>{escape(japanese)}</seg></tuv></tu>\n'
        for english, japanese in units
    )
    header = '<header srclang="en-US" segtype="paragraph" datatype="plaintext" adminlang="en" o-tmf="tm"/>'
    path.write_text(
        f'<?xml version="1.0"?>\n<tmx version="1.4">{header}<body>\n{rows}</body></tmx>\n', encoding="utf-8"
    )


if __name__ == "__main__":
    write_tmx(Path(sys.argv[1]), make_units(int(sys.argv[2]) if len(sys.argv) > 2 else 20_000))
