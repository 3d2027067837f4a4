"""Typed settings of every experiment: the schema that Hydra checks overrides against.

Each section is one dataclass; `experiments.dispatch` says which sections an experiment reads, and
only those enter its run id. Values live in `configs/`, defaults here are their fallback. The
dataclasses cannot be frozen (Hydra could not override them); nothing changes them after composing.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING


@dataclass
class Paths:
    """Where results go: the one root of everything that an experiment writes."""

    runs: str = "runs"


@dataclass
class PinnedFile:
    """One file of a data set, pinned by digest."""

    path: str = ""
    """Place below a data folder."""
    url: str = ""
    """Address of exactly this version."""
    sha256: str = ""
    licence: str = ""


@dataclass
class GeneratedSettings:
    """Size and seed of the generated conversations; turns and questions count per conversation."""

    seed: int = 2026
    conversations: int = 6
    sessions: int = 10
    turns: int = 200
    questions: int = 40


@dataclass
class DataSettings:
    """Which conversations to use and where to look for them."""

    name: str = MISSING
    path: str | None = None
    """A data folder, given explicitly: if it lacks the file, that is an error and no fallback."""
    download: bool = True
    timeout_seconds: float = 10.0
    max_conversations: int | None = None
    """Use the first so many conversations only (None: all)."""
    conversations: PinnedFile = field(default_factory=PinnedFile)
    corrections: PinnedFile = field(default_factory=PinnedFile)
    generated: GeneratedSettings = field(default_factory=GeneratedSettings)


@dataclass
class CoefficientSettings:
    """Weights of the five parts of a score."""

    lexical: float = 0.6
    confidence: float = 0.1
    importance: float = 0.1
    recency: float = 0.1
    link: float = 0.1


@dataclass
class RetrievalSettings:
    """One hand-set way to recall."""

    name: str = "hand_set"
    lexical: str = "overlap"
    coefficients: CoefficientSettings = field(default_factory=CoefficientSettings)
    half_life_seconds: float = 604800.0


@dataclass
class StoreSettings:
    """What becomes of the stores that an experiment fills."""

    keep: bool = False


@dataclass
class EvaluationSettings:
    """What `retrieval` measures and how."""

    limit: int = 20
    """Cells recalled for a question; every metric looks at these and no further."""
    analysers: list[str] = field(default_factory=lambda: ["unicode", "english"])
    scorers: list[str] = field(
        default_factory=lambda: ["overlap", "idf_overlap", "jaccard", "bm25"]
    )
    hand_set: bool = True
    """Measure the coefficients of the `retrieval` group too."""
    peer: bool = True
    """Measure the bm25s library beside."""
    peer_k1: float = 1.5
    peer_b: float = 0.75
    resamples: int = 2000
    confidence: float = 0.95


@dataclass
class TallySettings:
    """What `contract_tally` runs."""

    suite: str = "tests/contracts"
    timeout_seconds: float = 900.0


@dataclass
class Settings:
    """Everything an experiment can be told."""

    experiment: str = MISSING
    seed: int = 20260701
    resume: bool = True
    """Reuse a finished run of the same settings, sources and data."""
    paths: Paths = field(default_factory=Paths)
    data: DataSettings = field(default_factory=DataSettings)
    retrieval: RetrievalSettings = field(default_factory=RetrievalSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    tally: TallySettings = field(default_factory=TallySettings)


def register() -> None:
    """Make the schema known to Hydra; doing so again changes nothing."""
    ConfigStore.instance().store(name="schema", node=Settings)
