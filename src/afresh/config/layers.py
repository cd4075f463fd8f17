"""The layers of settings: defaults < file < environment < flags."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from afresh.config.agree import settle
from afresh.config.environment import from_environment
from afresh.config.kb_paths import kb_paths
from afresh.config.spec import Entry, Scalar, Spec, WrongValue
from afresh.config.tree import NAMED, SECTIONS, Config, Found, Place, replaced, settings, suggestion
from afresh.errors import ConfigError


def load(path: Path | None, env: Mapping[str, str], flags: Mapping[str, object], cwd: Path) -> Config:
    """All settings from every layer, or a ConfigError that names each wrong one.

    `path` is the file the user named, if any; `flags` maps dotted keys such as `store.url` to values.
    """
    file, named = find_file(path, env, cwd)
    table = settings()
    found = from_file(file, table, named=named) if file else Found()
    found |= from_environment(env, table, _names_in(found))
    found |= from_flags(flags, table)
    try:
        config = replace(replaced(Config(), found.values), file=file, origins=found.origins)
    except WrongValue as wrong:
        raise ConfigError(str(wrong)) from None
    if not config.store.url:
        raise ConfigError(
            "there is no home folder to keep the store in: name one with --store sqlite:///FILE"
        )
    config = settle(config, found.origins)
    if config.kb.in_use:
        kb_paths(config, cwd)
    return config


def _names_in(found: Found) -> set[str]:
    """The names of the entries that are set so far."""
    return {key.rpartition(".")[0] for section, key in found.values if section in NAMED}


def find_file(path: Path | None, env: Mapping[str, str], cwd: Path) -> tuple[Path | None, bool]:
    """The settings file in use, and whether the user named it; a named file must exist."""
    if path is not None:
        return _named(cwd / path, f"--config {path}"), True
    if variable := env.get("AFRESH_CONFIG"):
        return _named(cwd / variable, f"AFRESH_CONFIG={variable}"), True
    return next((place for place in usual_places(cwd) if place.is_file()), None), False


def usual_places(cwd: Path) -> tuple[Path, ...]:
    """Where a settings file is looked for when none is named, the first that exists."""
    import platformdirs

    here = cwd / "afresh.yaml", cwd / "config.yaml"
    try:
        return *here, Path(platformdirs.user_config_dir("afresh", appauthor=False)) / "config.yaml"
    except RuntimeError:  # this user has no home
        return here


def _named(file: Path, how: str) -> Path:
    if file.is_dir():
        raise ConfigError(f"{how} names a folder: name the YAML file in it")
    if not file.exists():
        raise ConfigError(f"{how} names a file that does not exist: create it or name another")
    return file


def from_file(file: Path, table: Mapping[Place, Spec], *, named: bool) -> Found:
    """The settings of a file; every wrong key and value is reported, not just the first."""
    from afresh.config.yaml_file import read

    found = Found()
    problems: list[str] = []
    for entry in read(file):
        where = f"{file.name} line {entry.line}"
        try:
            if entry.path[0] in NAMED:
                _add_named(entry, found, where)
            elif place := _place(entry, table):
                found.add(place, _value(entry, table[place]), where)
        except WrongValue as wrong:
            problems.append(f"{where}: {wrong}")
    if problems and not named and file.name == "config.yaml" and not found.values:
        problems.append(
            f"If {file} is not meant for afresh, name yours with --config or call it afresh.yaml."
        )
    if problems:
        raise ConfigError("\n".join(problems))
    return found


def _add_named(entry: Entry, found: Found, where: str) -> None:
    """Take a setting of an entry with a name; the headings above it hold no value."""
    if len(entry.path) < 3:
        empty = isinstance(entry.value, Scalar) and entry.value.kind == "null"
        bare = len(entry.path) > 1 and not entry.items and entry.items is not None
        if bare or (not entry.is_mapping and not (empty and len(entry.path) == 1)):
            raise WrongValue(f"{'.'.join(entry.path)}: expected its keys, indented below it")
        return
    section, dotted = entry.path[0], ".".join(entry.path[1:])
    found.add((section, dotted), _value(entry, NAMED[section].spec_of(dotted)), where)


def _place(entry: Entry, table: Mapping[Place, Spec]) -> Place | None:
    """The setting an entry of the file sets; None for a section's heading or what an error already covers."""
    section, *rest = entry.path
    if not rest:
        _check_heading(entry, table)
        return None
    if section not in SECTIONS or len(rest) > 1:
        return None
    if (section, rest[0]) not in table:
        dotted = f"{section}.{rest[0]}"
        raise WrongValue(f"unknown key {dotted}{suggestion(dotted, table)}")
    return section, rest[0]


def _check_heading(entry: Entry, table: Mapping[Place, Spec]) -> None:
    name = entry.path[0]
    if name not in SECTIONS:
        raise WrongValue(f"unknown key {name}{suggestion(name, table)}")
    empty = not isinstance(entry.value, list) and entry.value is not None and entry.value.kind == "null"
    if not entry.is_mapping and not empty:
        raise WrongValue(f"{name}: expected its keys, indented below it")


def _value(entry: Entry, spec: Spec) -> object:
    dotted = ".".join(entry.path)
    raw = entry.items if entry.value is None else entry.value
    if raw is None:
        raise WrongValue(f"{dotted}: expected {spec.expected}, got a mapping")
    try:
        return spec.read(raw)
    except WrongValue as wrong:
        raise WrongValue(f"{dotted}: {wrong}") from None


def from_flags(flags: Mapping[str, object], table: Mapping[Place, Spec]) -> Found:
    """The settings given on the command line, under their dotted keys."""
    found = Found()
    for dotted, value in flags.items():
        section, _, key = dotted.partition(".")
        if section in NAMED:
            found.add((section, key), NAMED[section].spec_of(key).accept(value), f"flag {dotted}")
            continue
        if (section, key) not in table:
            raise ConfigError(f"unknown setting {dotted}{suggestion(dotted, table)}")
        flag = "--store" if dotted == "store.url" else f"--{key.replace('_', '-')}"
        try:
            found.add((section, key), table[section, key].accept(value), f"flag {flag}")
        except WrongValue as wrong:
            raise ConfigError(f"{flag}: {wrong}") from None
    return found
