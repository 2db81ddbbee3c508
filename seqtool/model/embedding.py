"""Token embeddings, as every kind of model uses them.

Legend: B batch, T positions, D width of the model.
"""

import math
from typing import cast

from torch import Tensor, nn

from seqtool.config import ModelConfig
from seqtool.corpus.tokenizer.interface import Vocabularies
from seqtool.errors import SeqtoolError
from seqtool.model.dropout import Dropout, draw_uniform


class Embedding(nn.Module):
    """Token vectors, by default scaled by sqrt(D), with positions added and dropout on the sum."""

    def __init__(
        self,
        config: ModelConfig,
        tokens: nn.Embedding,
        positions: nn.Module | None = None,
        zero_id: int | None = None,
        scaled: bool = True,
    ) -> None:
        """Use a table of token vectors, and positions(x, start) if the model adds them to its input.

        The token `zero_id` counts as a zero vector, whatever the table holds for it.
        """
        super().__init__()
        self.tokens = tokens
        self.zero_id = zero_id
        self.scale = math.sqrt(config.d_model) if scaled else 1.0
        self.word_dropout = config.word_dropout
        self.drop = Dropout(config.dropout)
        self.positions = positions

    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """ids (B, T) at positions start, start + 1, ... -> (B, T, D)."""
        x = self.tokens(ids) * self.scale  # (B, T, D)
        if self.zero_id is not None:
            x = x * (ids != self.zero_id)[..., None]
        if self.training and self.word_dropout:
            x = x * (draw_uniform(ids.shape, ids.device) >= self.word_dropout)[..., None]
        if self.positions is not None:
            x = self.positions(x, start)
        return cast(Tensor, self.drop(x))


def token_tables(config: ModelConfig, vocabularies: Vocabularies) -> tuple[nn.Embedding, nn.Embedding]:
    """Return the tables of source and target token vectors, one and the same if embeddings are shared."""
    src_size, tgt_size = vocabularies.source.size, vocabularies.target.size
    if config.share_embeddings and src_size != tgt_size:
        raise SeqtoolError(
            f"vocabularies of {src_size} and {tgt_size} tokens cannot share embeddings; "
            "set model.share_embeddings = false, or use one joint vocabulary (tokenizer.joint = true)"
        )
    src_tokens = nn.Embedding(src_size, config.d_model)
    return src_tokens, src_tokens if config.share_embeddings else nn.Embedding(tgt_size, config.d_model)
