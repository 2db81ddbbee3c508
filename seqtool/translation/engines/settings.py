"""What a user chooses of an engine: which one, where it computes, and in what batches."""

from dataclasses import dataclass

from seqtool.errors import OptionError, suggest
from seqtool.process import parse_device

MAX_THREADS = 1024
ENGINES = ("auto", "torch", "ctranslate2")
FLOATS = ("float32", "bfloat16", "float16")
COMPUTE_TYPES = ("default", "auto", *FLOATS, "int8", *(f"int8_{name}" for name in FLOATS), "int16")


@dataclass(frozen=True, kw_only=True)
class EngineSettings:
    """Which engine translates, and how it computes."""

    engine: str = "auto"  # ctranslate2 if it is installed, exported and able, else torch
    device: str = "auto"
    threads: int = 0  # on a CPU; 0: all cores
    compute_type: str = "default"  # as it was exported, or float32 with torch; "auto" is the quickest of the device
    batch_tokens: int | None = (
        None  # source tokens translated at once, at most; None: as the model's configuration says
    )
    compile: bool = False  # torch.compile the model

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise OptionError(f"there is no engine '{self.engine}'{suggest(self.engine, ENGINES)}")
        parse_device(self.device)
        if self.compute_type not in COMPUTE_TYPES:
            raise OptionError(
                f"there is no compute type '{self.compute_type}'{suggest(self.compute_type, COMPUTE_TYPES)}"
            )
        if self.compile and self.engine == "ctranslate2":
            raise OptionError("`compile=True` is for the torch engine; leave it out, or use `engine='torch'`")
        if not 0 <= self.threads <= MAX_THREADS:
            raise OptionError(f"`threads` must be from 0 (all cores) to {MAX_THREADS}, not {self.threads}")
        if self.batch_tokens is not None and self.batch_tokens < 1:
            raise OptionError(f"`batch_tokens` must be 1 or more, not {self.batch_tokens}")
