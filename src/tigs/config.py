"""Everything that may be set, as dataclasses with its defaults and the values that are allowed.

`composition.py` puts one of them together from YAML files and `key=value` words.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tigs.validation import allowed

TASKS = ("dialog", "poetry", "aprc")
MODELS = ("forward", "backward", "birnn", "mask-seq2seq", "mask-selfattn", "evaluator")
METHODS = (
    "tigs",
    "tigs-plus",
    "seq2seq-f",
    "seq2seq-b",
    "seq2seq-fb",
    "birnn-gsn",
    "birnn-bibs",
    "mask-seq2seq",
    "mask-selfattn",
    "template",
)
PROPOSALS = ("nearest", "first-order", "prefix", "first-order-prefix", "all")
PRECISIONS = ("float32", "tf32", "bfloat16")
STRATEGIES = ("random", "middle")
# Keys that say where things lie and what they run on; no result depends on them but for rounding.
PLACES = (
    "output_dir",
    "data.cache_dir",
    "data.dir",
    "data.source",
    "trainer.accelerator",
    "trainer.devices",
    "trainer.nodes",
    "trainer.strategy",
)


@dataclass
class TaskConfig:
    """What is filled in."""

    name: str = allowed("poetry", choices=TASKS)


@dataclass
class DataConfig:
    """Where the corpus comes from and which pairs of it are kept."""

    source: str = allowed("sample", choices=("sample", "download", "folder"))
    """`sample` is built in; `download` fetches from the publisher; `folder` reads `dir` (set by itself when `dir` is given)."""
    dir: str | None = None
    """Folder with the publisher's files."""
    cache_dir: str = "runs/cache"
    """Prepared data and downloads are kept here."""
    min_target_length: int = allowed(1, minimum=1)
    max_target_length: int = allowed(50, minimum=1)
    max_context_length: int = allowed(50, minimum=0)
    max_train_pairs: int | None = allowed(None, minimum=1)
    """Keep only this many training pairs; null keeps all."""
    validation_share: float = allowed(0.02, above=0.0, below=0.5)
    """Share of the corpus for validation and test, where the publisher gives no splits."""
    test_share: float = allowed(0.05, above=0.0, below=0.5)
    split_eight_lines: bool = True
    """Poetry: an eight-line poem is two quatrains; false drops it."""
    sample_pairs: int = allowed(6000, minimum=100)
    """Size of the built-in sample."""
    sample_seed: int = 0


@dataclass
class VocabularyConfig:
    """Which tokens have an id of their own. The special tokens come on top of `size`."""

    size: int = allowed(10_000, minimum=1)
    min_count: int = allowed(1, minimum=1)


@dataclass
class TestSetConfig:
    """The templates on which methods are compared: every strategy with every ratio."""

    size: int = allowed(5000, minimum=1)
    """Sentences of the test split; all of it if it has fewer."""
    strategies: list[str] = allowed(("random", "middle"), choices=STRATEGIES)
    ratios: list[float] = allowed((0.25, 0.5, 0.75), above=0.0, maximum=1.0)
    seed: int = 2019


@dataclass
class ModelConfig:
    """Sizes of one model. Embeddings are as wide as the hidden state, as in the original code."""

    name: str = allowed("forward", choices=MODELS)
    hidden: int = allowed(256, minimum=2)
    layers: int = allowed(1, minimum=1)
    dropout: float = allowed(0.2, minimum=0.0, below=1.0)
    heads: int = allowed(4, minimum=1)
    """Attention heads of the Transformer; must divide `hidden`."""
    seed_offset: int = allowed(0, minimum=0, maximum=2**31)
    """Added to `seed`, so that the evaluator is a training of its own."""


@dataclass
class TrainerConfig:
    """How a model is trained."""

    max_epochs: int = allowed(30, minimum=1)
    batch_size: int = allowed(256, minimum=1)
    """Sentences per step over all devices together."""
    learning_rate: float = allowed(1e-3, above=0.0)
    warmup_steps: int = allowed(0, minimum=0)
    """Steps over which the learning rate rises to `learning_rate` (the Transformer needs them)."""
    gradient_clip: float = allowed(5.0, above=0.0)
    patience: int = allowed(3, minimum=1)
    """Stop after this many epochs without a better validation NLL."""
    devices: int = allowed(1, minimum=-1)
    """Processes on this machine; -1 takes every device there is."""
    nodes: int = allowed(1, minimum=1)
    accelerator: str = allowed("auto", choices=("auto", "cpu", "gpu"))
    strategy: str = allowed("auto", choices=("auto", "ddp"))
    precision: str = allowed("32-true", choices=("32-true", "bf16-mixed"))
    sample_fills: int = allowed(8, minimum=0)
    """Validation templates whose fill is shown in W&B after each epoch."""


@dataclass
class MethodConfig:
    """How blanks are filled. A method reads the fields that concern it; `experiments/method/` says which."""

    name: str = allowed("tigs", choices=METHODS)
    beam_width: int = allowed(5, minimum=1)
    score_known: bool = True
    """Beams: whether the probability of known words helps to choose between hypotheses (fair), or only the blanks' (probably
    what the paper ran)."""
    allow_unk: bool = False
    """Whether `<unk>` may be filled in."""
    n_best: int = allowed(1, minimum=1)
    """Distinct fills to return, best first; fewer where the search has seen fewer, as a margin, a reach and refills make it."""
    max_rounds: int = allowed(50, minimum=0)
    """T: visits of every blank, by the methods that go round."""
    patience: int = allowed(1, minimum=1)
    """Stop a sentence after this many rounds that changed nothing."""
    start: str = allowed("beam", choices=("beam", "greedy", "refill", "random"))
    """What the rounds start from: the forward model's beam, its greedy fill, its beam that follows the gradient at the words to
    expect, or random words."""
    refills: int = allowed(0, minimum=0)
    """Before the rounds, how often a whole sentence may be refilled by a beam that follows the gradient at its words."""
    refill_width: int = allowed(8, minimum=1)
    """Hypotheses of these beams, for every blank of the longest run of blanks."""
    refill_least: int = allowed(1, minimum=1)
    """Hypotheses of these beams at least, however short the longest run."""
    pair_width: int = allowed(0, minimum=0)
    """Before `refills` and the rounds, sentences with two blanks are refilled by a beam that follows the gradient at their words
    and keeps at least so many hypotheses; 0 leaves it out."""
    gradient: str = allowed("word", choices=("word", "mean"))
    """Where refills of a fill and first-order proposals take it: at the current words, or its mean with that at the words to
    expect."""
    proposal: str = allowed("nearest", choices=PROPOSALS)
    """Which words the P-step tries; `nearest` to the vector after the O-step is the paper's."""
    n_candidates: float = allowed(0.01, above=0.0, maximum=1e9)
    """K: candidates of the P-step; below 1 a share of the vocabulary."""
    reach: float = allowed(float("inf"), minimum=0.0)
    """`first-order-prefix`: a candidate whose estimate is this many nats behind that of the current word is not tried."""
    margin: float = allowed(float("inf"), above=0.0)
    """A candidate is dropped when its NLL so far is this many nats above the current word's, a hypothesis of a refill when it is
    so far above the best one's, behind the last blank above that with the best estimate; inf drops only what cannot win."""
    margin_decay: float = allowed(1.0, above=0.0, maximum=1.0)
    """What is left of the margin after each word that is read behind the blank; 1 where more than one fill is asked for."""
    refill_margin_decay: float = allowed(1.0, above=0.0, maximum=1.0)
    """The same for hypotheses of a refill, after each known word since the last blank."""
    optimiser: str = allowed("nesterov", choices=("nesterov", "sgd", "adam"))
    step_size: float = allowed(10.0, above=0.0)
    """alpha of the O-step."""
    momentum: float = allowed(0.9, minimum=0.0, below=1.0)
    distance: str = allowed("euclidean", choices=("euclidean", "cosine"))
    penalty: float = allowed(0.0, minimum=0.0)
    """lambda: weight of the vectors' length in the O-step."""
    nearest_penalty: float = allowed(0.0, minimum=0.0)
    """Weight of a vector's distance to the nearest word in the O-step (Cheng et al. 2018)."""
    precision: str = allowed("float32", choices=PRECISIONS)
    """TIGS, on a GPU: what candidates are read in first; those that are left are read again in float32."""
    temperature: float = allowed(1.0, minimum=0.0)
    """Of GSN's sampling; 0 takes the likeliest word."""
    max_combinations: int = allowed(64, minimum=1)
    """Blanks of unknown length: how many combinations of lengths may be tried."""

    @property
    def effective_margin_decay(self) -> float:
        """`margin_decay`, or 1 where several fills are asked for: what has fallen behind may still be among the n best."""
        return self._unless_several(self.margin_decay)

    @property
    def effective_refill_margin_decay(self) -> float:
        """`refill_margin_decay`, or 1 for the same reason."""
        return self._unless_several(self.refill_margin_decay)

    def _unless_several(self, decay: float) -> float:
        return decay if self.n_best == 1 else 1.0


@dataclass
class EvalConfig:
    """How test sets are run through a method."""

    limit: int | None = allowed(None, minimum=1)
    """Only this many templates of each set."""
    batch_size: int = allowed(128, minimum=1)
    """Sentences filled together, per process; fills do not depend on it."""
    compile: bool = False
    """Whether the recurrent decoders' step is compiled by torch, which takes a minute and is meant for GPUs."""


@dataclass
class Config:
    """Everything that decides a result."""

    profile: str = "small"
    seed: int = allowed(0, minimum=0, maximum=2**31)
    output_dir: str = "runs"
    task: TaskConfig = field(default_factory=TaskConfig)
    data: DataConfig = field(default_factory=DataConfig)
    vocabulary: VocabularyConfig = field(default_factory=VocabularyConfig)
    test_sets: TestSetConfig = field(default_factory=TestSetConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    trainer: TrainerConfig = field(default_factory=TrainerConfig)
    method: MethodConfig = field(default_factory=MethodConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
