"""The sections of a configuration, one frozen dataclass per concern; each value is checked when a section is made."""

from dataclasses import dataclass

from seqtool.config.setting import check_section, setting

TOKENIZER_KINDS: dict[str, None] = {"bpe": None, "marian": None}  # in the order in which they were registered


@dataclass(frozen=True, kw_only=True)
class TokenizerConfig:
    """The tokenizer."""

    kind: str = setting("bpe", "kind of tokenizer", choices_of=lambda: tuple(TOKENIZER_KINDS))
    vocab_size: int = setting(8000, "tokens in the vocabulary; fewer if the corpus is too small", low=300, high=1000000)
    joint: bool = setting(True, "one vocabulary for both languages")
    character_coverage: float = setting(0.9999, "share of characters with a token of their own", low=0.9, high=1.0)
    user_symbols: tuple[str, ...] = setting((), "texts that are always one token, such as language tags")
    sample_pairs: int = setting(500000, "pairs that the tokenizer is trained on, at most", low=100)
    bpe_dropout: float = setting(
        0.0, "chance of skipping a merge in training, for varied segmentations", low=0.0, high=0.9
    )

    def __post_init__(self) -> None:
        check_section(self)


@dataclass(frozen=True, kw_only=True)
class CleanConfig:
    """What cleaning drops; each rule can be turned off by itself."""

    enabled: bool = setting(True, "false turns all rules off but those for empty, undecodable and missing text")
    empty: bool = setting(True, "drop pairs with an empty or blank side")
    max_words: int = setting(250, "drop pairs with more words on a side (0: no limit)", low=0)
    max_chars: int = setting(2000, "drop pairs with more characters on a side (0: no limit)", low=0)
    max_ratio: float = setting(
        9.0, "drop pairs whose sides differ in characters by more than this factor (0: any)", low=0.0
    )
    ratio_from: int = setting(20, "characters that the longer side must exceed for max_ratio to count", low=0)
    identical: bool = setting(True, "drop pairs with identical sides")
    duplicate: bool = setting(True, "drop repeated pairs")
    control: bool = setting(True, "drop pairs with control characters, or U+2028 and U+2029")
    damaged: bool = setting(False, "drop pairs with traces of a wrong decoding, such as Ã¼")
    entities: bool = setting(False, "drop pairs with entities of HTML, such as &amp;")
    urls: bool = setting(False, "drop pairs whose sides have other web or mail addresses")
    tags: bool = setting(False, "drop pairs whose sides have other tags of HTML or XML")
    placeholders: bool = setting(False, "drop pairs whose sides have other placeholders, such as %s or {0}")
    numbers: bool = setting(False, "drop pairs whose sides have other numbers")
    language: bool = setting(False, "drop pairs with swapped sides, or a side that reads like another language")
    max_targets: int = setting(0, "drop pairs whose source came with this many other targets before (0: any)", low=0)
    shifted: bool = setting(False, "train even on a corpus whose sides seem shifted against each other")
    overlap: bool = setting(True, "drop pairs whose source or target is in the validation set or a test set")
    max_undecodable: float = setting(
        0.01, "share of pairs with invalid UTF-8 above which training refuses", low=0.0, high=1.0
    )

    def __post_init__(self) -> None:
        check_section(self)


@dataclass(frozen=True, kw_only=True)
class DataConfig:
    """How the corpus is split and limited."""

    held_out: int = setting(1000, "validation pairs to hold out if no validation set is given; at most a tenth", low=1)
    max_tokens: int = setting(256, "drop training pairs with more tokens on a side", low=8, high=1000000)
    workers: int = setting(
        0, "processes that prepare the corpus (0: one for each core, one for a small corpus)", low=0, high=1024
    )

    def __post_init__(self) -> None:
        check_section(self)


@dataclass(frozen=True, kw_only=True)
class TrainConfig:
    """How the model is trained."""

    seed: int = setting(1, "random seed", low=0, high=2**31 - 1)
    device: str = setting("auto", "where to train", choices=("auto", "cpu", "cuda", "mps"))
    precision: str = setting(
        "auto", "arithmetic of the forward and backward pass", choices=("auto", "float32", "bf16", "fp16")
    )
    compile: bool = setting(False, "torch.compile the model")
    deterministic: bool = setting(
        True, "on a GPU, use kernels that repeat their results bit for bit, which an exact resume needs; slower"
    )
    activation_checkpointing: bool = setting(
        False, "keep only the input of each layer, and compute the rest again in the backward pass, to save memory"
    )
    threads: int = setting(0, "CPU threads (0: all cores)", low=0, high=1024)
    steps: int = setting(100000, "stop after this many steps", low=1)
    epochs: int = setting(0, "stop after this many epochs (0: no limit)", low=0)
    minutes: float = setting(
        0.0, "fit the schedule to this training time, whatever steps says (0: no limit)", low=0.0, high=1e7
    )
    patience: int = setting(0, "stop after this many validations without a better score (0: never)", low=0)
    batch_tokens: int | str = setting(
        25000, "target tokens in one step over all workers, or 'auto' to fit the memory", low=1, words=("auto",)
    )
    micro_tokens: int = setting(
        4096, "target tokens in one forward pass; a larger batch is accumulated from several", low=1
    )
    optimizer: str = setting(
        "adamw", "AdamW, or Muon for the matrices and AdamW for the rest", choices=("adamw", "muon")
    )
    lr: float = setting(7e-4, "highest learning rate", low=0.0, high=100.0)
    warmup: int = setting(4000, "steps of linear warm-up", low=0)
    schedule: str = setting(
        "inverse_sqrt",
        "learning rate after warm-up; 'paper' is the formula of the paper times lr",
        choices=("inverse_sqrt", "paper", "cosine", "linear", "constant"),
    )
    label_smoothing: float = setting(0.1, "probability spread over the whole vocabulary", low=0.0, high=0.9)
    weight_decay: float = setting(0.0, "weight decay, apart from the gradient as in AdamW", low=0.0, high=10.0)
    beta1: float = setting(0.9, "AdamW first moment decay", low=0.0, high=0.99999)
    beta2: float = setting(0.98, "AdamW second moment decay", low=0.0, high=0.99999)
    clip_norm: float = setting(1.0, "largest gradient norm (0: no clipping)", low=0.0)
    both_ways: float = setting(
        0.0,
        "share of the steps, at the start, in which every other batch is translated back (one vocabulary only)",
        low=0.0,
        high=1.0,
    )
    word_dropout_after: int = setting(0, "epochs before model.word_dropout begins", low=0)
    r_drop: float = setting(0.0, "weight of R-Drop's consistency loss (0: off)", low=0.0, high=100.0)
    ema: float = setting(
        0.999, "decay of the exponential moving average of the weights (0: off)", low=0.0, high=0.999999
    )
    validate_every: int = setting(1000, "steps between validations", low=1)
    metric: str = setting(
        "bleu", "metric for early stopping and for the best checkpoint", choices=("bleu", "chrf", "loss")
    )
    bleu_tokenize: str = setting(
        "auto",
        "sacreBLEU's tokenizer for BLEU; 'auto' chooses it by the script of the target",
        choices=("auto", "13a", "intl", "zh", "ja-mecab", "ko-mecab", "char", "flores101", "flores200", "spm", "none"),
    )
    valid_beam: int = setting(1, "beam width of the translations made in validation", low=1, high=1000)
    save_every: int = setting(1000, "steps between checkpoints", low=1)
    keep: int = setting(5, "newest checkpoints to keep, beside the best", low=1)
    average: int = setting(5, "checkpoints to average as a candidate for the final model (1: none)", low=1)
    parent_share: float = setting(
        0.0,
        "share of the parent's weights in a fine-tuned model, which keeps more of what the parent could (0: none)",
        low=0.0,
        high=1.0,
    )
    report_every: int = setting(50, "steps between progress reports", low=1)
    shard: str = setting(
        "auto",
        "what several workers share out: nothing (each has the whole model: DDP), or the model with its gradients and "
        "optimizer state (FSDP); 'auto' shares out a model that is too large for a GPU",
        choices=("auto", "none", "model"),
    )
    tensorboard: bool = setting(False, "write TensorBoard files too")
    max_bad_steps: int = setting(20, "non-finite steps in a row that end the run", low=1)

    def __post_init__(self) -> None:
        check_section(self)


@dataclass(frozen=True, kw_only=True)
class DecodeConfig:
    """How translations are searched for."""

    beam: int = setting(5, "beam width (1: greedy)", low=1, high=1000)
    length_penalty: float | str = setting(
        "auto",
        "exponent of the GNMT length penalty (0: none), or 'auto' to choose it by validation at the end of training",
        low=0.0,
        high=10.0,
        words=("auto",),
    )
    coverage_penalty: float = setting(0.0, "weight of the GNMT coverage penalty (0: none)", low=0.0, high=100.0)
    max_length_ratio: float = setting(
        2.0, "target tokens at most, as a multiple of the source tokens (plus 16)", low=0.1
    )
    split: str = setting(
        "auto",
        "translate each sentence of a line by itself; 'auto': if the training corpus had hardly a line with several",
        choices=("auto", "always", "never"),
    )
    batch_tokens: int = setting(8192, "source tokens translated at once", low=1)
    threads: int = setting(0, "CPU threads (0: all cores)", low=0, high=1024)

    def __post_init__(self) -> None:
        check_section(self)
