"""Logits, and labels drawn from them."""

import torch


def draw_labels(logits, seed=0):
    """Labels drawn from softmax(logits)."""
    g = torch.Generator().manual_seed(1000 + seed)  # not the seed that drew the logits
    noise = torch.rand(logits.shape, generator=g, dtype=torch.float64)
    return (logits - (-noise.clamp_min(1e-12).log()).log()).argmax(-1)


def draw_logits(n, c, scale=2.0, seed=0):
    return scale * torch.randn(n, c, generator=torch.Generator().manual_seed(seed)).double()
