"""The learning rate in the course of a training."""

import math

from seqlm.train.settings import RunConfig

_FINAL_LR_SHARE = 0.01


def scheduled_lr(config: RunConfig, done: float) -> float:
    """Return the learning rate where a share ``done`` of a training is done."""
    if config.schedule == "constant":
        return config.lr
    if done < config.warmup_share:
        share = done / config.warmup_share
    else:
        fall = (done - config.warmup_share) / (1 - config.warmup_share)
        share = _FINAL_LR_SHARE + (1 - _FINAL_LR_SHARE) * (1 + math.cos(math.pi * fall)) / 2
    return config.lr * share
