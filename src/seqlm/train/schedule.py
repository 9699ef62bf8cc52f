"""The learning rate during a training run."""

import math

from seqlm.train.settings import RunConfig

_FINAL_LR_SHARE = 0.01


def scheduled_lr(config: RunConfig, share_done: float) -> float:
    """Return the learning rate after a share of a training run, from 0 to 1."""
    if config.schedule == "constant":
        return config.lr
    if share_done < config.warmup_share:
        factor = share_done / config.warmup_share
    else:
        decayed = (share_done - config.warmup_share) / (1 - config.warmup_share)
        factor = _FINAL_LR_SHARE + (1 - _FINAL_LR_SHARE) * (1 + math.cos(math.pi * decayed)) / 2
    return config.lr * factor
