"""The configuration: what may be set, in dataclasses, and how YAML files and `key=value` words become one of them.

The order of merging is: defaults here, `experiments/task/<task>.yaml`, `model/<model>.yaml`, `method/<method>.yaml`,
`profile/<profile>.yaml`, the profile's own sections for this task (`by_task`), model (`by_model`) and method (`by_method`), and
last the words of the command line.
The checks themselves are in `validation.py`. Nothing here imports torch: `tigs --help` and a mistyped key answer at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from omegaconf import OmegaConf

from tigs.errors import ConfigError
from tigs.validation import Origin, allowed, check_keys, check_ranges, dotted_fields, is_text, merge_values, parse_yaml

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
STRATEGIES = ("random", "middle")


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
    """Distinct fills to return, best first; fewer where the search has seen fewer, as a margin makes it."""
    max_rounds: int = allowed(50, minimum=0)
    """T: visits of every blank, by the methods that go round."""
    patience: int = allowed(1, minimum=1)
    """Stop a sentence after this many rounds that changed nothing."""
    start: str = allowed("beam", choices=("beam", "greedy", "random"))
    """What the rounds start from: the forward model's beam, its greedy fill, or random words."""
    refills: int = allowed(0, minimum=0)
    """Before the rounds, how often a whole sentence may be refilled by a beam that follows the gradient."""
    refill_width: int = allowed(10, minimum=1)
    """Hypotheses of that beam, for every blank of the longest run of blanks."""
    gradient: str = allowed("word", choices=("word", "mean"))
    """Where refills and first-order proposals take it: at the current words, or its mean with that at the words to expect."""
    proposal: str = allowed("nearest", choices=PROPOSALS)
    """Which words the P-step tries; `nearest` to the vector after the O-step is the paper's."""
    n_candidates: float = allowed(0.01, above=0.0, maximum=1e9)
    """K: candidates of the P-step; below 1 a share of the vocabulary."""
    reach: float = allowed(float("inf"), minimum=0.0)
    """`first-order-prefix`: a candidate whose estimate is this many nats behind that of the current word is not tried."""
    margin: float = allowed(float("inf"), above=0.0)
    """A candidate is dropped when its NLL so far is this many nats above the current word's; inf drops only what cannot win."""
    optimiser: str = allowed("nesterov", choices=("nesterov", "sgd", "adam"))
    step_size: float = allowed(10.0, above=0.0)
    """alpha of the O-step."""
    momentum: float = allowed(0.9, minimum=0.0, below=1.0)
    distance: str = allowed("euclidean", choices=("euclidean", "cosine"))
    penalty: float = allowed(0.0, minimum=0.0)
    """lambda: weight of the vectors' length in the O-step."""
    nearest_penalty: float = allowed(0.0, minimum=0.0)
    """Weight of a vector's distance to the nearest word in the O-step (Cheng et al. 2018)."""
    precision: str = allowed("float32", choices=("float32", "tf32", "bfloat16"))
    """What the P-step reads candidates in; the word it keeps is read again in float32. For GPUs."""
    compile: bool = False
    """Whether the decoder's step is compiled (`torch.compile`): a minute once, then less overhead on a GPU."""
    temperature: float = allowed(1.0, minimum=0.0)
    """Of GSN's sampling; 0 takes the likeliest word."""
    max_combinations: int = allowed(64, minimum=1)
    """Blanks of unknown length: how many combinations of lengths may be tried."""


@dataclass
class EvalConfig:
    """How test sets are run through a method."""

    limit: int | None = allowed(None, minimum=1)
    """Only this many templates of each set."""
    batch_size: int = allowed(64, minimum=1)
    """Sentences filled together, per process; fills do not depend on it."""


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


# The words `task=poetry`, `model=forward`, `profile=cpu` and `method=tigs` each choose a file of that folder.
GROUPS = ("task", "model", "profile", "method")
# A profile may have sections for one of these.
CHOOSERS = ("task", "model", "method")
_DEFAULT_CHOICE = {"task": "poetry", "model": "forward", "profile": "small", "method": "tigs"}
_FIELDS = dotted_fields(Config)


def experiments_folder() -> Path:
    """The YAML files: inside an installed package, or at the top of a checkout."""
    packaged = Path(__file__).parent / "experiments"
    return packaged if packaged.is_dir() else Path(__file__).parents[2] / "experiments"


def available(group: str) -> list[str]:
    """The files one can choose from in a group."""
    return sorted(path.stem for path in (experiments_folder() / group).glob("*.yaml"))


def compose(words: Sequence[str] = ()) -> Config:
    """One configuration from `key=value` words such as `task=poetry`, `profile=cpu`, `model.hidden=512`.

    Raises:
        ConfigError: for an unknown file or key, a wrong type, a value out of range, or a contradiction.
    """
    choices, overrides = _split_words(words)
    layers = [layer for group in ("task", "model", "method", "profile") for layer in _group_layers(group, choices)]
    layers += [_override_layer(word) for word in overrides]
    merged = OmegaConf.structured(Config)
    for origin, values in layers:
        merged = merge_values(merged, values, origin)
    config = cast(Config, OmegaConf.to_object(merged))
    config.profile = choices["profile"]
    if config.data.dir is not None and not any(word.startswith("data.source=") for word in overrides):
        config.data.source = "folder"
    check_ranges(config)
    _check_contradictions(config)
    return config


def save(config: Config, path: Path) -> None:
    """Write the resolved configuration, to stand beside an output."""
    path.write_text(OmegaConf.to_yaml(OmegaConf.structured(config)), encoding="utf-8")


def to_plain(config: Any) -> dict[str, Any]:
    """Plain dictionaries and lists, which load again under torch's `weights_only=True`."""
    return cast(dict[str, Any], _without_infinity(OmegaConf.to_container(OmegaConf.structured(config))))


def _without_infinity(value: Any) -> Any:
    """JSON has no infinity; as a text it is read back as the number it is."""
    if isinstance(value, dict):
        return {key: _without_infinity(item) for key, item in value.items()}
    return "inf" if value == float("inf") else value


def from_plain(values: dict[str, Any], origin: str) -> Config:
    """The inverse of `to_plain`; `origin` is named in errors."""
    check_keys(values, _FIELDS, Origin(origin))
    merged = merge_values(OmegaConf.structured(Config), values, Origin(origin))
    config = cast(Config, OmegaConf.to_object(merged))
    check_ranges(config)
    return config


def _split_words(words: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    choices, overrides = dict(_DEFAULT_CHOICE), []
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise ConfigError(
                f"'{word}' is not a setting", remedy="Write settings as key=value, for example task=poetry"
            )
        if key in GROUPS:
            choices[key] = value
        elif key.removesuffix(".name") in GROUPS:
            group = key.removesuffix(".name")
            raise ConfigError(
                f"'{word}' would not choose the settings of that {group}", remedy=f"Write {group}={value}"
            )
        else:
            overrides.append(word)
    return choices, overrides


def _group_layers(group: str, choices: dict[str, str]) -> list[tuple[Origin, dict[str, Any]]]:
    name = choices[group]
    if name not in available(group):
        raise ConfigError(f"there is no {group} '{name}'", remedy=f"Choose one of: {', '.join(available(group))}")
    path = experiments_folder() / group / f"{name}.yaml"
    origin = Origin(f"experiments/{group}/{path.name}")
    values = parse_yaml(path.read_text(encoding="utf-8"), origin)
    check_keys(values, _fields_of(group), origin)
    parts = [(values.pop(f"by_{chooser}", None) or {}).get(choices[chooser]) for chooser in CHOOSERS]
    return [(origin, layer) for layer in (values, *parts) if layer]


def _fields_of(group: str) -> dict[str, Any]:
    """What a file of the group may set; a profile may set everything for one task, model or method alone, too."""
    fields = dict(_FIELDS)
    if group == "profile":
        for chooser in CHOOSERS:
            fields[f"by_{chooser}"] = Config
            for name in available(chooser):
                fields |= {f"by_{chooser}.{name}": Config}
                fields |= {f"by_{chooser}.{name}.{key}": kind for key, kind in _FIELDS.items()}
    return fields


def _override_layer(word: str) -> tuple[Origin, dict[str, Any]]:
    """`model.hidden=512` as `{"model": {"hidden": 512}}`."""
    origin = Origin(f"'{word}'")
    key, _, text = word.partition("=")
    value: Any = text
    # A path is taken as it stands: YAML would see a comment, a number or a list in some.
    if text and not (is_text(_FIELDS.get(key)) and text != "null" and "${" not in text):
        value = parse_yaml(f"value: {text}", origin)["value"]
    for part in reversed(key.split(".")):
        value = {part: value}
    check_keys(value, _FIELDS, origin)
    return origin, cast(dict[str, Any], value)


def _check_contradictions(config: Config) -> None:
    if config.data.source == "folder" and not config.data.dir:
        raise ConfigError("data.source=folder needs a folder", remedy="Set data.dir=PATH to the publisher's files")
    if config.data.dir and config.data.source != "folder":
        raise ConfigError(
            f"data.dir={config.data.dir} and data.source={config.data.source} contradict each other",
            remedy="Leave one of them out",
        )
    if config.data.min_target_length > config.data.max_target_length:
        raise ConfigError(
            f"data.min_target_length={config.data.min_target_length} is above "
            f"data.max_target_length={config.data.max_target_length}",
            remedy="No sentence could be kept; lower one or raise the other",
        )
    if config.trainer.devices == 0:
        raise ConfigError(
            "trainer.devices=0 leaves nobody to work", remedy="It must be at least 1, or -1 for all there are"
        )
    if config.model.hidden % 2:
        raise ConfigError(
            f"model.hidden={config.model.hidden} is odd",
            remedy="It must be even: each direction of the encoder is half of it",
        )
    if config.model.name == "mask-selfattn" and config.model.hidden % config.model.heads:
        raise ConfigError(
            f"model.heads={config.model.heads} does not divide model.hidden={config.model.hidden}",
            remedy="Choose a hidden size that is a multiple of the number of heads",
        )
