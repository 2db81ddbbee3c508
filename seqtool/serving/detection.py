"""Which of the served languages a text is in, by py3langid's statistics; nothing is downloaded."""

import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

ENOUGH = 20_000  # characters that tell the language of a text of any length
LONG_ENOUGH = 40  # characters from which a text of several is judged by itself
FOREIGN = 0.01  # below this share of the probability of the most probable language, none of those served is detected
LEAST_CONFIDENCE = 10.0  # percent
OTHER_CODES = {"nb": "no", "zt": "zh"}  # where the statistics use another code


class Candidate(NamedTuple):
    """A language that a text may be in, and how probable that is among those served, in percent."""

    code: str
    confidence: float

    def to_dict(self) -> dict[str, Any]:
        """Return it as in an answer."""
        return {"confidence": self.confidence, "language": self.code}


class Detector:
    """Detects languages among some; the statistics are loaded when they are first needed."""

    def __init__(self, codes: Sequence[str]) -> None:
        self.codes = list(codes)
        self._identifier: Any = None
        self._loading = threading.Lock()

    def load(self) -> None:
        """Load the statistics, which takes a second."""
        with self._loading:
            if self._identifier is None:
                from py3langid.langid import MODEL_FILE, LanguageIdentifier

                self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)

    def find(self, text: str) -> list[Candidate]:
        """Return the candidates for a text, most probable first; none if it seems to be in no served language."""
        self.load()
        probabilities = dict(self._identifier.rank(text[:ENOUGH]))
        own = {code: probabilities.get(self._known_code(code), 0.0) for code in self.codes}
        total = sum(own.values())
        if total <= FOREIGN * max(probabilities.values()):
            return []
        found = [Candidate(code, float(round(100 * share / total))) for code, share in own.items()]
        found = [candidate for candidate in found if candidate.confidence >= LEAST_CONFIDENCE]
        return sorted(found, key=lambda candidate: -candidate.confidence)

    def detect(self, texts: Sequence[str]) -> list[Candidate]:
        """Return the candidates for texts together; at least one, whose confidence is 0 if nothing was detected."""
        found: dict[str, list[tuple[float, int]]] = {}
        for text in texts:
            for code, confidence in self.find(text):
                found.setdefault(code, []).append((confidence, len(text)))
        mean = {code: sum(share for share, _ in several) / len(several) for code, several in found.items()}
        weight = {code: mean[code] * sum(length for _, length in several) for code, several in found.items()}
        candidates = [Candidate(code, mean[code]) for code in sorted(found, key=lambda code: -weight[code])]
        return candidates or [Candidate(self.codes[0], 0.0)]

    def detect_each(self, texts: Sequence[str]) -> list[Candidate]:
        """Return the best candidate for each text; texts too short to tell have that of all of them together."""
        together = self.detect(texts)[0]
        return [self.detect([text])[0] if len(text) > LONG_ENOUGH else together for text in texts]

    @staticmethod
    def _known_code(code: str) -> str:
        base = code.partition("-")[0].partition("_")[0].lower()
        return OTHER_CODES.get(base, base)
