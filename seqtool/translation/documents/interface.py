"""What a document is: texts to translate, taken out of data in some format, and the same data with other texts.

document = open_document("html", data)
data = document.rebuild(translator.translate(document.texts, alignment=True))
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from seqtool.translation.results import Translation


class Document(ABC):
    """Data in which some texts are to be translated; all the rest stays as it is, character for character."""

    texts: list[str]  # none of them is blank, and none has a line break

    def rebuild(self, translations: Sequence[Translation]) -> str:
        """Return the data with the translations in place of the texts; with alignments, markup follows the words."""
        if len(translations) != len(self.texts):
            raise ValueError(f"{len(translations)} translations were given for {len(self.texts)} texts")
        return "".join(self._parts(translations))

    @abstractmethod
    def _parts(self, translations: Sequence[Translation]) -> list[str]:
        """Return the pieces of the new data."""
