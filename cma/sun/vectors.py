"""Context vectors: the one narrow surface over which memory reaches the model (paper: Sun)."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch

from cma.values.errors import InvalidValueError, Reason


@dataclass(frozen=True, slots=True, eq=False)
class ContextVectors:
    """Vectors of a batch, and which of their slots hold memory.

    values: float tensor, batch x slots x hidden. mask: bool tensor, batch x slots; a false slot
    holds nothing and its numbers are set to zero. Raises InvalidValueError: `vectors-shape`,
    `vectors-mask`, `vectors-device`, `vectors-dtype`, `vectors-not-finite`.
    """

    values: torch.Tensor
    mask: torch.Tensor
    labels: tuple[str, ...] = field(default=())
    """What each slot came from, such as a cell's id: for the receipt, never for the model."""

    def __post_init__(self) -> None:
        """Check the two tensors against each other."""
        values, mask = self.values, self.mask
        if not isinstance(values, torch.Tensor) or values.dim() != 3 or 0 in values.shape:
            raise _refused(Reason.VECTORS_SHAPE, "values", _shape(values), "batch x slots x hidden")
        if not values.is_floating_point():
            raise _refused(Reason.VECTORS_DTYPE, "values", str(values.dtype), "floating point")
        if (
            not isinstance(mask, torch.Tensor)
            or mask.dtype is not torch.bool
            or mask.shape != values.shape[:2]
        ):
            shape = f"{_shape(mask)} of {getattr(mask, 'dtype', '?')}"
            raise _refused(Reason.VECTORS_MASK, "mask", shape, "batch x slots of torch.bool")
        if mask.device != values.device:
            raise _refused(Reason.VECTORS_DEVICE, "mask", str(mask.device), str(values.device))
        # Zeroed before anything is computed: NaN in a slot that counts for nothing is contagious.
        kept = torch.where(mask[..., None], values, torch.zeros((), dtype=values.dtype))
        if not bool(torch.isfinite(kept).all()):
            raise _refused(Reason.VECTORS_NOT_FINITE, "values", "NaN or infinity", "finite numbers")
        object.__setattr__(self, "values", kept)
        if self.labels and len(self.labels) != values.shape[1]:
            raise _refused(
                Reason.VECTORS_SHAPE, "labels", str(len(self.labels)), "one label a slot"
            )

    @property
    def hidden(self) -> int:
        """The length of a vector."""
        return int(self.values.shape[2])

    @property
    def batch(self) -> int:
        """The number of rows."""
        return int(self.values.shape[0])

    @property
    def slots(self) -> int:
        """The number of slots in use, over all rows."""
        return int(self.mask.sum())

    def require_memory(self) -> None:
        """Raise InvalidValueError (`vectors-zero`) unless each used slot has a nonzero vector."""
        norms = self.values.float().norm(dim=-1)
        if self.slots == 0 or bool((norms[self.mask] == 0).any()):
            raise _refused(
                Reason.VECTORS_ZERO, "values", "a used slot of zeros, or none", "nonzero vectors"
            )


def stacked(vectors: ContextVectors, rows: int) -> ContextVectors:
    """Return the one row of context repeated for a batch of so many rows."""
    if vectors.batch != 1:
        raise _refused(Reason.VECTORS_SHAPE, "values", f"{vectors.batch} rows", "one row")
    return ContextVectors(
        vectors.values.expand(rows, -1, -1), vectors.mask.expand(rows, -1), vectors.labels
    )


def no_memory(like: ContextVectors) -> ContextVectors:
    """Return one empty slot a row: what the adapter is given where there is no memory."""
    values = torch.zeros_like(like.values[:, :1])
    return ContextVectors(values, torch.zeros_like(like.mask[:, :1]))


def masked(vectors: ContextVectors) -> ContextVectors:
    """Return the same vectors, none of whose slots counts."""
    return ContextVectors(vectors.values, torch.zeros_like(vectors.mask), vectors.labels)


def zeroed(vectors: ContextVectors) -> ContextVectors:
    """Return vectors of zeros in the same slots, which do count."""
    return ContextVectors(torch.zeros_like(vectors.values), vectors.mask, vectors.labels)


def shuffled(vectors: ContextVectors, *, seed: int) -> ContextVectors:
    """Return vectors whose components stand in another order, the same in every slot.

    The norm of each vector stays; what it says does not.
    """
    order = torch.randperm(vectors.hidden, generator=torch.Generator().manual_seed(seed))
    return ContextVectors(
        vectors.values[..., order.to(vectors.values.device)], vectors.mask, vectors.labels
    )


def _shape(tensor: object) -> str:
    shape = getattr(tensor, "shape", None)
    return type(tensor).__name__ if shape is None else " x ".join(map(str, shape))


def _refused(reason: Reason, field_name: str, value: str, wanted: str) -> InvalidValueError:
    return InvalidValueError(
        reason,
        "the context vectors cannot be used",
        field=field_name,
        value=value,
        remedy=f"give {wanted}",
    )
