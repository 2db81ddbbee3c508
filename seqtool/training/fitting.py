"""Finds how many tokens fit in one forward and backward pass on a device."""

import os

import torch

from seqtool.config import Config
from seqtool.model.oom import is_out_of_memory
from seqtool.model.transformer import Transformer
from seqtool.training.loss import smoothed_cross_entropy

SMALLEST, LARGEST = 512, 65536
SHARE = 0.6  # of the free memory that a trial may take, since other batches are shaped less kindly


def fit_batch_tokens(model: Transformer, config: Config, vocab: int, device: torch.device) -> int:
    """Return the largest power of two of tokens, within bounds, that fits the memory at hand."""
    if device.type == "cuda":
        return _fit_by_trial(model, config, vocab, device)
    return _fit_by_estimate(config, free_memory())


def _fit_by_trial(model: Transformer, config: Config, vocab: int, device: torch.device) -> int:
    """Double the batch until it no longer fits a share of the device's memory."""
    tokens = SMALLEST
    while tokens < LARGEST:
        try:
            torch.cuda.reset_peak_memory_stats(device)
            _try_batch(model, config, vocab, 2 * tokens, device)
            used = torch.cuda.max_memory_allocated(device)
            if used > SHARE * torch.cuda.get_device_properties(device).total_memory:
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


def _try_batch(model: Transformer, config: Config, vocab: int, tokens: int, device: torch.device) -> None:
    length = min(config.data.max_tokens, 64)
    ids = torch.full((max(1, tokens // length), length), min(4, vocab - 1), device=device)
    with torch.autocast(device.type, dtype=torch.bfloat16, enabled=config.train.precision != "float32"):
        states = model(ids, ids).flatten(0, 1)
        loss, _ = smoothed_cross_entropy(states, model.output_weight, ids.flatten(), config.train.label_smoothing)
    loss.backward()


def _fit_by_estimate(config: Config, free: int) -> int:
    """Estimate from what a layer keeps for the backward pass: about 16 vectors of d_model and 3 of d_ff a token."""
    m = config.model
    per_layer = 4 * (16 * m.d_model + 3 * m.d_ff)
    per_token = (m.encoder_layers + 2 * m.decoder_layers) * per_layer
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
