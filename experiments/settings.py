"""Typed settings of every experiment: the schema that Hydra checks overrides against.

Each section is one dataclass; `experiments.dispatch` says which sections an experiment reads, and
only those enter its run id. Values live in `configs/`, defaults here are their fallback. The
dataclasses cannot be frozen (Hydra could not override them); nothing changes them after composing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from hydra.core.config_store import ConfigStore
from omegaconf import MISSING

from cma.orion.scoring import CONTEXT_PARTS


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
    """Which conversations or documents to use and where to look for them."""

    name: str = MISSING
    path: str | None = None
    """A data folder, given explicitly: if it lacks the file, that is an error and no fallback."""
    download: bool = True
    timeout_seconds: float = 10.0
    missing: str = "refuse"
    """Where the data set is nowhere to be found: `refuse` (status 2), or `skip` the run and say so
    on the terminal and on the page (status 0)."""
    max_conversations: int | None = None
    """Use the first so many conversations only (None: all)."""
    conversations: PinnedFile = field(default_factory=PinnedFile)
    corrections: PinnedFile = field(default_factory=PinnedFile)
    documents: PinnedFile = field(default_factory=PinnedFile)
    queries: PinnedFile = field(default_factory=PinnedFile)
    judgements: PinnedFile = field(default_factory=PinnedFile)
    split: str | None = None
    """Which qrels of a BEIR-style folder (None: test, else the only one there)."""
    title: str | None = None
    """What to call a BEIR-style folder's data set (None: by the folder's name)."""
    licence: str = "not stated"
    """Licence of the data in a BEIR-style folder, as its owner states it."""
    generated: GeneratedSettings = field(default_factory=GeneratedSettings)


@dataclass
class CoefficientSettings:
    """Weights of the paper's five parts of a score, and of those that look around a cell."""

    lexical: float = 0.6
    confidence: float = 0.1
    importance: float = 0.1
    recency: float = 0.1
    link: float = 0.1
    """Of the best lexical part one link away."""
    two_links: float = 0.0
    """Of the best lexical part two temporal links away."""
    reply: float = 0.0
    """Of the lexical part of the linked cell before, where that one asks."""
    session: float = 0.0
    """Of the overlap of the question with the cell's whole session."""
    bigrams: float = 0.0
    """Of the share of the question's pairs of adjacent terms that stand in the cell."""
    speaker: float = 0.0
    """Of whether the question names the cell's speaker."""
    statement: float = 0.0
    """Of whether the cell asks nothing."""
    month: float = 0.0
    """Of whether the cell was observed in a month that the question names."""
    moment: float = 0.0
    """Of whether the cell says a time and the question asks for one."""
    feedback: float = 0.0
    """Of the overlap with the terms that tell the best cells from all others."""


@dataclass
class RetrievalSettings:
    """One way to recall, by a name of its own."""

    name: str = "hand_set"
    analyser: str | None = None
    """The one that it goes with (None: each of `evaluation.analysers`)."""
    lexical: str = "overlap"
    coefficients: CoefficientSettings = field(default_factory=CoefficientSettings)
    half_life_seconds: float = 604800.0
    """Age at which recency has fallen to one half."""


@dataclass
class StoreSettings:
    """What becomes of the stores that an experiment fills."""

    keep: bool = False
    """Leave them in the run's folder, for the `cma` command (else they go when the run ends)."""


@dataclass
class EvaluationSettings:
    """What `retrieval` measures and how."""

    limit: int = 20
    """Cells recalled for a question; every metric looks at these and no further."""
    analysers: list[str] = field(default_factory=lambda: ["unicode", "english", "dialogue"])
    scorers: list[str] = field(
        default_factory=lambda: ["overlap", "idf_overlap", "jaccard", "bm25"]
    )
    hand_set: bool = True
    """Measure the coefficients of the `retrieval` group too."""
    peer: bool = True
    """Measure the bm25s library beside."""
    peer_k1: float = 1.5
    peer_b: float = 0.75
    dense: bool = False
    """Measure all-MiniLM-L6-v2 beside, and its sum with BM25 (the extra `dense`)."""
    resamples: int = 2000
    """Bootstrap samples behind each interval."""
    confidence: float = 0.95
    """Share of the resamples that an interval holds."""


@dataclass
class TallySettings:
    """What `contract_tally` runs."""

    suite: str = "tests/contracts"
    timeout_seconds: float = 900.0


@dataclass
class LadderSettings:
    """What `version_ladder` measures and by which declared rules."""

    budgets: list[int] = field(default_factory=lambda: [512, 1024, 2048])
    """Tokens by the plain counter."""
    analyser: str = "english"
    lexical: str = "idf_overlap"
    hits: int = 100
    """Cells recalled for a question, and the longest list that is packed."""
    window: int = 1000
    """Most turns of a frame; a longer session becomes several frames."""
    neighbours: int = 1
    """Cells on each side that a hit brings from its frame."""
    frames: int = 2
    """Sessions, each a frame, that a claim needs by the policy."""
    sessions: int = 4
    """Most sessions in which a word may be said and still be worth a claim."""
    claims: int = 50
    """Most claims about one speaker."""
    sources: int = 3
    """Source cells that a claim brings."""


@dataclass
class ModelSettings:
    """Which language model Sun runs."""

    name: str = MISSING
    place: str | None = None
    """A folder with a checkpoint, or an id of the model hub (None: weights drawn from `seed`)."""
    config: dict[str, Any] = field(default_factory=dict)
    """`model_type` and the fields of its configuration, for seeded weights."""
    seed: int = 20260701
    tokenizer: str = "qwen"
    device: str = "auto"
    """`cpu`, `cuda`, or `auto`: CUDA where there is one."""


@dataclass
class DeltaSettings:
    """What `delta_norm` and `model_transfer` deliver, and through which adapter."""

    subject: str = "Ann"
    predicate: str = "drinks"
    object: str = "green tea"
    other: str = "The night train to Lisbon leaves from platform four."
    """Content of the other memory."""
    prompt: str = "What should be ready when Ann comes home?"
    sites: int = 2
    """Layers at which the adapter works, evenly spread."""
    inner: int = 64
    gate: float = 1.0
    adapter_seed: int = 20260701
    dtypes: list[str] = field(default_factory=lambda: ["float32", "bfloat16"])


@dataclass
class TaskGainSettings:
    """The tiny model of `task_gain`, its adapter, and how both are trained and asked."""

    hidden: int = 64
    layers: int = 3
    sites: int = 2
    inner: int = 64
    facts: int = 2
    """Facts that a question comes with, the right one among them."""
    batch: int = 64
    base_steps: int = 1500
    base_rate: float = 2e-3
    adapter_steps: int = 400
    adapter_rate: float = 3e-3
    seeds: int = 5
    """Adapters trained, each from its own seed and on its own batches."""
    questions: int = 200
    """Held-out questions that each adapter is asked."""


@dataclass
class SweepSettings:
    """What `coefficient_sweep` varies, what it holds still, and by what it chooses."""

    design: str = "line_search"
    """grid, simplex, random, sobol; line_search goes on from Sobol points."""
    points: int = 10_000
    """Coefficient vectors, at most."""
    objective: str = "recall@10"
    """A metric, or `budget_recall`: evidence within a packet's token budget."""
    budget: int = 1024
    """Tokens of a packet by the plain counter, headings and sources included (`budget_recall`)."""
    hits: int = 100
    """Cells that are recalled for a packet to be built of (`budget_recall`)."""
    analyser: str = "dialogue"
    lexical: str = "idf_overlap"
    half_life_seconds: float = 604800.0
    """Age at which recency has fallen to one half."""
    parts: list[str] = field(default_factory=lambda: ["link", *CONTEXT_PARTS])
    """Parts whose coefficients vary beside the lexical one, which is the measure of the others."""
    low: float = 0.0
    """Least coefficient tried; lexical is held at 1."""
    high: float = 1.0
    """Greatest coefficient tried."""
    sample: int = 3
    """Settings that are recalled one question after another, for the speed-up."""
    threads: int = 0
    """Threads that count ranks (0: one for each processor)."""


@dataclass
class ScaleSettings:
    """Sizes that `scale` builds, the texts that it makes, and how long it asks."""

    cells: list[int] = field(default_factory=lambda: [1_000, 10_000, 100_000])
    """Sizes, each measured by itself."""
    vocabulary: int = 50_000
    terms: int = 12
    """Words of a cell."""
    query_terms: int = 8
    queries: int = 200
    """Questions of each mix."""
    checked: int = 20
    """Questions of each mix whose answers are held against brute force."""
    engines: list[str] = field(default_factory=lambda: ["cma", "bm25s", "tantivy", "fts5"])
    patience_seconds: float = 10.0
    """An engine that has answered for so long is asked no more questions of that mix."""


@dataclass
class ConcurrencySettings:
    """How many use one store at once in `concurrency`, and how long."""

    writers: int = 8
    """Processes, and then threads of one process."""
    operations: int = 200
    """Operations of each."""


@dataclass
class RecoverySettings:
    """What `recovery` breaks, and how often."""

    parts: list[str] = field(default_factory=lambda: ["snapshots", "kills", "power", "io", "flips"])
    """What is done; a part that is left out has no figures."""
    kills: int = 1000
    """Writers killed."""
    control_kills: int = 200
    """Writers killed whose store never syncs."""
    between: int = 32
    """Power is cut at every sync and at each so many calls between (0: at syncs alone)."""
    faults: list[str] = field(default_factory=lambda: ["io", "dropped", "map"])
    """How calls to the disk fail; also `io-stays`, `read`, `full`, `full-stays`, `short`."""
    logs: list[str] = field(default_factory=lambda: ["growing"])
    """Under disk faults: a log left to grow, or one `folded` into the file at each commit."""
    flips: int = 300
    """Bits flipped in each file of a live store."""


@dataclass
class FuzzSettings:
    """How much hostile input `fuzz` makes."""

    inputs: int = 10_000
    """Inputs for all readers together."""
    workers: int = 2
    """Processes that share the inputs."""
    memory_mib: int = 2_048
    """What each process may take beyond what it starts with."""


@dataclass
class TransferSettings:
    """Over which families `model_transfer` goes."""

    families: list[str] = field(default_factory=lambda: ["qwen3", "llama", "gpt_neox"])


@dataclass
class Settings:
    """Everything an experiment can be told."""

    experiment: str = MISSING
    seed: int = 20260701
    """Of what an experiment draws, such as resamples and designs; generated data and models have
    seeds of their own."""
    resume: bool = True
    """Reuse a finished run of the same settings, sources and data."""
    paths: Paths = field(default_factory=Paths)
    data: DataSettings = field(default_factory=DataSettings)
    retrieval: RetrievalSettings = field(default_factory=RetrievalSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    evaluation: EvaluationSettings = field(default_factory=EvaluationSettings)
    tally: TallySettings = field(default_factory=TallySettings)
    model: ModelSettings = field(default_factory=ModelSettings)
    delta: DeltaSettings = field(default_factory=DeltaSettings)
    task_gain: TaskGainSettings = field(default_factory=TaskGainSettings)
    scale: ScaleSettings = field(default_factory=ScaleSettings)
    transfer: TransferSettings = field(default_factory=TransferSettings)
    ladder: LadderSettings = field(default_factory=LadderSettings)
    sweep: SweepSettings = field(default_factory=SweepSettings)
    concurrency: ConcurrencySettings = field(default_factory=ConcurrencySettings)
    fuzz: FuzzSettings = field(default_factory=FuzzSettings)
    recovery: RecoverySettings = field(default_factory=RecoverySettings)


def register() -> None:
    """Make the schema known to Hydra; doing so again changes nothing."""
    ConfigStore.instance().store(name="schema", node=Settings)
