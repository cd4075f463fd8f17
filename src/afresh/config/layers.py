"""Load settings in layers, of which later ones win: defaults, file, environment, flags, settings of a source.

The variable of a setting is AFRESH_<SECTION>__<KEY>, for a named entry AFRESH_SINKS__<NAME>__<KEY>.
AFRESH_STORE and AFRESH_LOG are short forms.
"""

from collections.abc import Container, Iterable, Mapping
from functools import cache
from pathlib import Path

from afresh.config.forms import user_folder
from afresh.config.kb import kb_paths
from afresh.config.models import AI_BASE_URL, BASE_URLS, LOCAL_MODELS, REMOTE
from afresh.config.spec import FileEntry, InvalidValue, Scalar, SettingSpec, format_number, quote_value, suggest_nearest
from afresh.config.tree import NAMED, SECTIONS, Config, Place, replace_values, settings, suggest_key
from afresh.dataclass import replace
from afresh.errors import ConfigError

PREFIX = "AFRESH_"
SHORT = {"AFRESH_STORE": ("store", "url"), "AFRESH_LOG": ("log", "file")}
# Beginnings of variables that are not settings: of other parts of afresh, and of its tests and benchmarks.
OTHERS = ("CONFIG", "DEBUG", "FAILPOINTS", "GIT_TOKEN", "HOSTS", "NO_UV", "SHARED", "TOKEN", "BENCH_", "TEST_")
PER_SOURCE = ("crawl", "files", "policy", "storage", "links")
# Names of a source's own settings that differ from the key in the tree.
SHORT_NAMES = {"max_params": "max_url_params", "max_components": "max_path_components", "delay": "delay_seconds"}
# Those settings of a source that belong to its rules; all others belong to its policy.
RULES = (
    *("scope", "include", "exclude"),
    *("max_depth", "max_pages", "max_params", "max_components", "max_per_pattern"),
)
_BACKOFFS = (  # pairs of settings, of which the first (a wait) must not exceed the second (the maximum wait)
    ("policy", "backoff_base_seconds", "backoff_max_seconds"),
    ("kb", "url_refresh_fail_backoff_base_seconds", "url_refresh_fail_backoff_max_seconds"),
)

Layer = dict[Place, tuple[object, str]]  # setting → its value, and where it was set


def load(path: Path | None, env: Mapping[str, str], flags: Mapping[str, object], cwd: Path) -> Config:
    """Return the settings of all layers (`flags` maps keys like `store.url`); raise ConfigError with all problems."""
    file, named = find_file(path, env, cwd)
    found = _from_file(file, named=named) if file else {}
    found |= _from_environment(env, {key.rpartition(".")[0] for section, key in found if section in NAMED})
    found |= _from_flags(flags)
    origins = {".".join(place): origin for place, (_, origin) in found.items()}
    try:
        values = {place: value for place, (value, _) in found.items()}
        config = replace(replace_values(Config(), values), file=file, origins=origins)
    except InvalidValue as wrong:
        raise ConfigError(str(wrong)) from None
    if not config.store.url:
        raise ConfigError("there is no home folder to put the store in: name a file with --store sqlite:///FILE")
    config = _reconcile(config, origins)
    if config.kb.in_use:
        kb_paths(config, cwd)
    return config


def find_file(path: Path | None, env: Mapping[str, str], cwd: Path) -> tuple[Path | None, bool]:
    """Return the settings file to read (or None), and whether the user named it; a named file must exist."""
    if path is not None:
        return _named(cwd / path, f"--config {path}"), True
    if variable := env.get("AFRESH_CONFIG"):
        return _named(cwd / variable, f"AFRESH_CONFIG={variable}"), True
    return next((place for place in default_files(cwd) if place.is_file()), None), False


def default_files(cwd: Path) -> tuple[Path, ...]:
    """Return the default paths of a settings file; the first existing file is used if the user names none."""
    here, folder = (cwd / "afresh.yaml", cwd / "config.yaml"), user_folder("config")
    return (*here, folder / "config.yaml") if folder else here


def _named(file: Path, how: str) -> Path:
    if file.is_dir():
        raise ConfigError(f"{how} is a folder: name the YAML file in it")
    if not file.exists():
        raise ConfigError(f"{how} does not exist: create it or name another file")
    return file


def _from_file(file: Path, *, named: bool) -> Layer:
    from afresh.config.yaml_file import read

    found: Layer = {}
    problems: list[str] = []
    for entry in read(file):
        where = f"{file.name} line {entry.line}"
        try:
            if place := _place(entry):
                found[place] = _value(entry, _spec_at(*place)), where
        except InvalidValue as wrong:
            problems.append(f"{where}: {wrong}")
    if problems and not named and file.name == "config.yaml" and not found:
        problems.append(f"If {file} belongs to another program, name yours with --config or call it afresh.yaml.")
    if problems:
        raise ConfigError("\n".join(problems))
    return found


def _place(entry: FileEntry) -> Place | None:
    """Return section and key of the setting that an entry sets.

    Return None for a section or named entry itself, and for a key below a setting or below an unknown section.
    """
    section, *rest = entry.path
    if section not in SECTIONS and section not in NAMED:
        if rest:
            return None
        raise InvalidValue(f"unknown key {section}{suggest_key(section)}")
    depth = 2 if section in NAMED else 1  # levels of keys above a value
    if len(rest) >= depth:
        return (section, ".".join(rest)) if section in NAMED or len(rest) == 1 else None
    empty = isinstance(entry.value, Scalar) and entry.value.kind == "null" and not rest
    bare = bool(rest) and entry.items is not None and not entry.items
    if bare or (entry.value is not None and not empty):
        raise InvalidValue(f"{'.'.join(entry.path)}: expected keys, indented below it")
    return None


def _spec_at(section: str, key: str) -> SettingSpec:
    if section in NAMED:
        return NAMED[section].spec_of(key)
    if (section, key) not in settings():
        raise InvalidValue(f"unknown key {section}.{key}{suggest_key(f'{section}.{key}')}")
    return settings()[section, key]


def _value(entry: FileEntry, spec: SettingSpec) -> object:
    dotted, raw = ".".join(entry.path), entry.items if entry.value is None else entry.value
    if raw is None:
        raise InvalidValue(f"{dotted}: expected {spec.expected}, got a mapping")
    try:
        return spec.read(raw)
    except InvalidValue as wrong:
        raise InvalidValue(f"{dotted}: {wrong}") from None


def _from_environment(env: Mapping[str, str], entries: Iterable[str]) -> Layer:
    """Return the settings in environment variables, except empty ones; `entries`: the named entries in the file."""
    names = {f"{PREFIX}{section}__{key}".upper(): (section, key) for section, key in settings()} | SHORT
    found: Layer = {}
    problems: list[str] = []
    # Read short names first, so that the full name wins if both are set.
    for variable in sorted(env, key=lambda name: (name not in SHORT, name)):
        try:
            place = _place_of_variable(variable, names, entries) if variable.startswith(PREFIX) else None
            if place is not None:
                spec = _spec_at(*place)
                if env[variable]:
                    found[place] = read_typed_value(env[variable], spec), f"environment {variable}"
        except InvalidValue as wrong:
            problems.append(f"{variable}: {wrong}")
    if problems:
        raise ConfigError("\n".join(problems))
    return found


def unknown_variables(env: Iterable[str]) -> list[str]:
    """Return a sentence about each variable that looks like a setting but is none."""
    names = sorted(each.removeprefix(PREFIX) for each in env if each.startswith(PREFIX) and "__" not in each)
    wrong = [each for each in names if PREFIX + each not in SHORT and not each.startswith(OTHERS)]
    return [f"{PREFIX}{each} is not a setting{suggest_nearest(PREFIX + each, list(SHORT), PREFIX)}" for each in wrong]


def _place_of_variable(variable: str, names: Mapping[str, Place], entries: Iterable[str]) -> Place | None:
    section, _, rest = variable.removeprefix(PREFIX).partition("__")
    if section.lower() in NAMED:
        return section.lower(), NAMED[section.lower()].from_variable(rest, entries)
    if variable in names:
        return names[variable]
    almost = {name.replace("__", "_"): name for name in names}
    if variable in almost:
        raise InvalidValue(f"not a setting; did you mean {almost[variable]} (two underscores)?")
    if "__" in variable:
        raise InvalidValue(f"not a setting{suggest_nearest(variable, list(names), PREFIX)}")
    return None


def read_typed_value(text: str, spec: SettingSpec) -> object:
    if spec.optional and text.strip().lower() in {"null", "none"}:
        return spec.accept(None)
    if spec.kind != "list":
        return spec.read(Scalar(text))
    if not text.lstrip().startswith("["):
        return spec.read([Scalar(item.strip()) for item in text.split(",") if item.strip()])
    from afresh.config.yaml_file import flow_list

    if (items := flow_list(text)) is None:
        raise InvalidValue(f"expected a list such as [a, b] or a, b; got {text[:60]!r}")
    return spec.read(items)


def _from_flags(flags: Mapping[str, object]) -> Layer:
    found: Layer = {}
    for dotted, value in flags.items():
        section, _, key = dotted.partition(".")
        if section not in NAMED and (section, key) not in settings():
            raise ConfigError(f"unknown setting {dotted}{suggest_key(dotted)}")
        flag = "--store" if dotted == "store.url" else f"--{key.replace('_', '-')}"
        try:
            found[section, key] = _spec_at(section, key).accept(value), f"flag {flag}"
        except InvalidValue as wrong:
            raise ConfigError(f"{flag}: {wrong}") from None
    return found


def _reconcile(config: Config, given: Container[str]) -> Config:
    """Adapt defaults to values that the user has set; raise ConfigError if set values conflict."""
    policy = config.policy
    if policy.heartbeat_seconds * 2 > policy.lease_seconds:
        if "policy.heartbeat_seconds" in given:
            raise ConfigError(
                f"policy.heartbeat_seconds ({format_number(policy.heartbeat_seconds)}) must be at most half of "
                f"policy.lease_seconds ({format_number(policy.lease_seconds)}), or workers would lose their leases"
            )
        config = replace_values(config, {("policy", "heartbeat_seconds"): policy.lease_seconds / 6})
    for section, first, limit in _BACKOFFS:
        wait, max_wait = (getattr(getattr(config, section), key) for key in (first, limit))
        if wait > max_wait:
            if f"{section}.{first}" in given:
                at_most = f"must be at most {section}.{limit} ({format_number(max_wait)})"
                raise ConfigError(f"{section}.{first} ({format_number(wait)}) {at_most}")
            config = replace_values(config, {(section, first): max_wait})
    if wrong := _why_no_models(config):
        raise ConfigError(wrong)
    return config


def _why_no_models(config: Config) -> str | None:
    embedding, ai = config.embedding, config.ai
    provider, model = embedding.provider, embedding.model
    if provider == "local" and model not in (None, *LOCAL_MODELS):
        known = f"expected {' or '.join(LOCAL_MODELS)} with embedding.provider: local"
        return f"embedding.model: {known}, got {quote_value(model)}{suggest_nearest(str(model), LOCAL_MODELS)}"
    if provider == "openai" and not model:
        return "embedding.provider: openai needs a model: set embedding.model"
    if provider in REMOTE and not embedding.api_key and embedding.address == BASE_URLS[provider]:
        return (
            f"embedding.provider: {provider} needs a key (AFRESH_EMBEDDING__API_KEY), "
            "or an embedding.base_url that needs none"
        )
    if provider not in (*REMOTE, "none") and embedding.dimensions is not None:
        return f"embedding.dimensions: remove it: vectors of embedding.provider {provider} have a fixed size"
    if ai.provider == "openai" and not ai.model:
        return "ai.provider: openai needs a model: set ai.model"
    if not ai.api_key and ai.address == AI_BASE_URL:
        return "ai.provider: openai needs a key (AFRESH_AI__API_KEY), or an ai.base_url that needs none"
    if config.links.keywords and config.links.scorer == "model" and ai.address is None:
        return "links.scorer: model needs ai.provider: openai and ai.model, or set it to offline"
    return None


def apply_overrides(config: Config, partials: Iterable[Mapping[str, object]]) -> Config:
    """Return the settings with the values of `partials`; if several of them set a value, the last one wins."""
    values: dict[Place, object] = {}
    for partial in partials:
        for name, value in partial.items():
            section, key, spec = _rule(name)
            try:
                values[section, key] = spec.accept(value)
            except InvalidValue as wrong:
                raise ConfigError(f"{name}: {wrong}") from None
    return _reconcile(replace_values(config, values), {".".join(place) for place in values} | set(config.origins))


def split_settings(settings: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
    rules = {key: value for key, value in settings.items() if key in RULES}
    return rules, {key: value for key, value in settings.items() if key not in RULES}


def drop_operator_settings(stored: Mapping[str, object]) -> dict[str, object]:
    """Return the stored settings of a source without operator-only ones, which older versions accepted."""
    return {name: value for name, value in stored.items() if name not in operator_only_keys()}


@cache
def operator_only_keys() -> frozenset[str]:
    """Return the keys that a source may not set, because they name a path, a secret or a program."""
    return frozenset(
        key for (section, key), spec in settings().items() if section in PER_SOURCE and spec.is_operator_only
    )


@cache
def source_settings() -> Mapping[str, tuple[str, str, SettingSpec]]:
    """Return the settings that a source may have, by key and by short name: section, key and specification of each."""
    places = {
        key: (section, key, spec)
        for (section, key), spec in settings().items()
        if section in PER_SOURCE and not spec.is_operator_only
    }
    return places | {short: places[key] for short, key in SHORT_NAMES.items()}


def parse_rule(name: str, text: str) -> object:
    try:
        return read_typed_value(text, _rule(name)[2])
    except InvalidValue as wrong:
        raise ConfigError(f"{name}: {wrong}") from None


def check_rule_names(names: Iterable[str]) -> None:
    for name in names:
        _rule(name)


def _rule(name: str) -> tuple[str, str, SettingSpec]:
    if name in source_settings():
        return source_settings()[name]
    if name in operator_only_keys():
        raise ConfigError(f"{name}: only the operator may set this, in the settings file or the environment")
    raise ConfigError(f"unknown rule {name}{suggest_nearest(name, list(source_settings()))}")
