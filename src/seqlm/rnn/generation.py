"""Continuing prefixes with a network.

Producing text is *generation*; *sampling* is how minibatches are cut. How the next token
is chosen from the distribution is a :class:`SamplingConfig`.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from seqlm.rnn.network import Network


@dataclass(frozen=True)
class SamplingConfig:
    """How a token is chosen from logits.

    ``temperature`` 0 is greedy; above, tokens are drawn from q proportional to
    p to the power 1 / temperature (exercise 8.5-3 with alpha = 1 / temperature).
    ``top_k`` keeps the k most likely tokens; ``top_p`` keeps the smallest set of most
    likely tokens that holds this much probability (nucleus).
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None

    @property
    def is_greedy(self) -> bool:
        """Whether each token is the likeliest."""
        return self.temperature == 0

    def pick(self, logits: Tensor, generator: torch.Generator) -> Tensor:
        """Return one token for each row of ``logits`` (B, V), shape ``(B,)``.

        ``<unk>``, token 0, is never chosen, because it is not a piece of text. Changes ``logits``.
        """
        logits.select(1, 0).fill_(-torch.inf)
        if self.is_greedy:
            return logits.argmax(1)
        # Relative to the largest logit, so that no temperature, however low, makes a number too large.
        coldest = torch.finfo(logits.dtype).tiny
        logits = (logits - logits.amax(1, keepdim=True)) / max(self.temperature, coldest)
        if self.top_k is not None and self.top_k < logits.shape[1]:
            smallest = logits.topk(self.top_k, dim=1).values[:, -1:]
            logits = logits.masked_fill(logits < smallest, -torch.inf)
        probs = torch.softmax(logits, 1)
        if self.top_p is not None:
            ordered, order = probs.sort(stable=True, dim=1, descending=True)
            # A token stays while the mass before it is below top_p: the first one always does.
            before = ordered.cumsum(1) - ordered
            probs = torch.zeros_like(probs).scatter(1, order, ordered.masked_fill(before >= self.top_p, 0))
        return torch.multinomial(probs, 1, generator=generator)[:, 0]


@torch.inference_mode()
def continue_prefixes(
    model: Network, prefixes: list[list[int]], num_preds: int, sampling: SamplingConfig, seed: int
) -> list[list[int]]:
    """Return ``num_preds`` tokens for each prefix; prefixes of one length share a batch.

    The state warms up on the prefix. Raises ValueError for an empty prefix.
    """
    if not all(prefixes):
        raise ValueError("an empty prefix gives the model nothing to continue")
    generator = torch.Generator(model.device).manual_seed(seed)
    by_length: dict[int, list[int]] = {}
    for index, prefix in enumerate(prefixes):
        by_length.setdefault(len(prefix), []).append(index)
    continuations: list[list[int]] = [[] for _ in prefixes]
    for members in by_length.values():
        ids = torch.tensor([prefixes[index] for index in members]).to(model.device)  # (B, prefix)
        for index, tokens in zip(members, _continue(model, ids, num_preds, sampling, generator).tolist(), strict=True):
            continuations[index] = tokens
    return continuations


def _continue(
    model: Network, ids: Tensor, num_preds: int, sampling: SamplingConfig, generator: torch.Generator
) -> Tensor:
    """Return ``(B, num_preds)`` tokens that follow prefixes of one length, ``ids`` (B, prefix)."""
    logits, state = model(ids, model.initial_state(len(ids)))
    first = sampling.pick(logits[:, -1], generator)
    if sampling.is_greedy:
        return torch.cat([first[:, None], model.continue_greedily(first, state, num_preds - 1)], 1)
    chosen, step = [first], model.step_fn(state)
    for _ in range(num_preds - 1):
        chosen.append(sampling.pick(step(chosen[-1]), generator))
    return torch.stack(chosen, 1)
