"""The fingerprint of a model's weights: equal exactly when every tensor is, byte for byte."""

from __future__ import annotations

import hashlib
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import torch
from torch import nn

from cma.values.identity import canonical

DOMAIN = b"cma/weights/1\0"
THREADS = 4


def weights_fingerprint(module: nn.Module) -> str:
    """Return the SHA-256 over name, type, shape and bytes of every parameter and buffer.

    Tensors count in the order of their names; one that goes by two names counts once. Equality is
    of this machine's bytes: seeded weights may differ between releases of torch.
    """
    tensors = dict(chain(module.named_parameters(), module.named_buffers()))
    names = sorted(tensors)
    # Hashing lets other threads run, so a few of them read memory as fast as it gives.
    with ThreadPoolExecutor(THREADS) as pool:
        digests = list(pool.map(lambda name: _tensor_digest(tensors[name]), names))
    told = [
        [name, str(tensors[name].dtype), list(tensors[name].shape), digest]
        for name, digest in zip(names, digests, strict=True)
    ]
    return hashlib.sha256(DOMAIN + canonical(told)).hexdigest()


def _tensor_digest(tensor: torch.Tensor) -> str:
    # Viewed as bytes, so that bfloat16 and NaN payloads count as they lie in memory.
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return hashlib.sha256(flat.view(torch.uint8).numpy().data).hexdigest()
