"""Finds how many tokens fit in one forward and backward pass on a device."""

import os

import torch

from seqtool.config import Config
from seqtool.model.interface import TranslationModel
from seqtool.model.oom import is_out_of_memory
from seqtool.training.loss import smoothed_cross_entropy
from seqtool.training.memory import bytes_per_parameter

SMALLEST, LARGEST = 512, 65536
SHARE = 0.6  # of the free memory that a trial may take, since other batches are shaped less kindly


def fit_batch_tokens(model: TranslationModel, config: Config, vocab: int, device: torch.device) -> int:
    """Return the largest power of two of tokens, within bounds, that fits the memory at hand."""
    if device.type != "cuda":
        return _fit_by_estimate(model.bytes_per_token(), free_memory())
    if next(model.parameters()).device.type != "cuda":  # it is shared out later, and a whole one may not fit
        return _fit_by_estimate(model.bytes_per_token(), torch.cuda.mem_get_info(device)[0])
    return _fit_by_trial(model, config, vocab, device)


def _fit_by_trial(model: TranslationModel, config: Config, vocab: int, device: torch.device) -> int:
    """Double the batch until it no longer fits a share of the device's memory."""
    tokens = SMALLEST
    room = SHARE * (memory_at_hand(device) - bytes_to_come(model, config))
    while tokens < LARGEST:
        try:
            torch.cuda.reset_peak_memory_stats(device)
            _try_batch(model, config, vocab, 2 * tokens, device)
            if torch.cuda.max_memory_allocated(device) > room:
                break
        except (torch.OutOfMemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            break
        finally:
            model.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
        tokens *= 2
    return tokens


def memory_at_hand(device: torch.device) -> int:
    """Return the bytes of a GPU that this process has or can still get; other programs may have the rest."""
    free, _ = torch.cuda.mem_get_info(device)
    return int(free) + torch.cuda.memory_reserved(device)


def bytes_to_come(model: TranslationModel, config: Config) -> int:
    """Count what training will hold beside the trial's weights and gradients.

    That is the optimizer's state and the moving average, the sum of several parts' gradients, and validation's own
    model: as much as all that is kept of a model in training, since the last two stand for its weights and gradients.
    """
    return bytes_per_parameter(config.train) * sum(weight.numel() for weight in model.parameters())


def _try_batch(model: TranslationModel, config: Config, vocab: int, tokens: int, device: torch.device) -> None:
    length = min(config.data.max_tokens, 64)
    ordinary = next(index for index in range(vocab) if index not in model.vocabularies.source.special)
    ids = torch.full((max(1, tokens // length), length), ordinary, device=device)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=config.train.precision != "float32"):
        states = model(ids, ids).flatten(0, 1)
        smoothing = config.train.label_smoothing
        loss, _ = smoothed_cross_entropy(states, model.output_weight, model.output_bias, ids.flatten(), smoothing)
    loss.backward()


def _fit_by_estimate(per_token: int, free: int) -> int:
    """Estimate from the bytes that the model keeps per token for the backward pass."""
    tokens = SMALLEST
    while 2 * tokens <= LARGEST and 2 * tokens * per_token <= SHARE * free:
        tokens *= 2
    return tokens


def free_memory() -> int:
    """Return the bytes of memory that programs can still take."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
