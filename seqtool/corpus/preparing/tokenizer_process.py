"""Trains a tokenizer in a process of its own: the memory that this takes is free again afterwards, and Ctrl-C works."""

import signal
import sys
from collections.abc import Iterable
from dataclasses import asdict
from itertools import islice

import numpy as np

from seqtool.config.sections import TokenizerConfig
from seqtool.corpus.preparing.messages import Message, read_message, write_message
from seqtool.corpus.preparing.worker_pool import start_program
from seqtool.corpus.tokenizer.registry import train_model
from seqtool.errors import SeqtoolError

_LINES_AT_ONCE = 10_000


def train_apart(texts: Iterable[str], config: TokenizerConfig) -> bytes:
    """Do the same as train_model, in another process; a text must be a single line."""
    process = start_program(__name__)
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        write_message(process.stdin, Message(asdict(config)))
        lines = (text.encode() + b"\n" for text in texts)
        while block := b"".join(islice(lines, _LINES_AT_ONCE)):
            process.stdin.write(block)
        process.stdin.close()
        answer = read_message(process.stdout)
    except BrokenPipeError:
        answer = None
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    if answer is None:
        raise SeqtoolError(
            "the process that trained the tokenizer ended unexpectedly; if the machine is short of memory, "
            "train on fewer pairs with tokenizer.sample_pairs = 100000"
        )
    if "problem" in answer.facts:
        raise SeqtoolError(answer.facts["problem"])
    return answer.arrays["model"].tobytes()


def main() -> None:
    """Read settings and lines, answer with the model or with what is wrong."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches the whole group; the first process decides
    settings = read_message(sys.stdin.buffer)
    if settings is None:
        return
    texts = (line.removesuffix(b"\n").decode("utf-8") for line in sys.stdin.buffer)
    try:
        model = train_model(texts, TokenizerConfig(**settings.facts))
        answer = Message(arrays={"model": np.frombuffer(model, np.uint8)})
    except SeqtoolError as error:
        answer = Message({"problem": str(error)})
    write_message(sys.stdout.buffer, answer)


if __name__ == "__main__":
    main()
