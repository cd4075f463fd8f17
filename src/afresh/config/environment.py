"""Settings from environment variables: AFRESH_<SECTION>__<KEY>, and AFRESH_STORE and AFRESH_LOG for short.

Those of an entry with a name have it in between: AFRESH_SINKS__<NAME>__<KEY>.
"""

from collections.abc import Collection, Mapping

from afresh.config.spec import Scalar, Spec, WrongValue, nearest
from afresh.config.tree import NAMED, Found, Place
from afresh.errors import ConfigError

PREFIX = "AFRESH_"
SHORT = {"AFRESH_STORE": ("store", "url"), "AFRESH_LOG": ("log", "file")}


def from_environment(
    env: Mapping[str, str], table: Mapping[Place, Spec], entries: Collection[str] = ()
) -> Found:
    """The settings that variables give; an empty variable counts as not set."""
    names = {f"{PREFIX}{section}__{key}".upper(): (section, key) for section, key in table} | SHORT
    found = Found()
    problems: list[str] = []
    # The short names are read first, so that the full name wins where both are set.
    for variable in sorted(env, key=lambda name: (name not in SHORT, name)):
        try:
            section = variable.removeprefix(PREFIX).partition("__")[0].lower()
            if variable.startswith(PREFIX) and section in NAMED:
                dotted = NAMED[section].from_variable(variable[len(PREFIX) + len(section) + 2 :], entries)
                spec = NAMED[section].spec_of(dotted)
                if env[variable]:
                    found.add((section, dotted), read_text(env[variable], spec), f"environment {variable}")
                continue
            place = _place(variable, names)
            if place is not None and env[variable]:
                found.add(place, read_text(env[variable], table[place]), f"environment {variable}")
        except WrongValue as wrong:
            problems.append(f"{variable}: {wrong}")
    if problems:
        raise ConfigError("\n".join(problems))
    return found


def _place(variable: str, names: Mapping[str, Place]) -> Place | None:
    if not variable.startswith(PREFIX):
        return None
    if variable in names:
        return names[variable]
    almost = {name.replace("__", "_"): name for name in names}
    if variable in almost:
        raise WrongValue(f"not a setting; did you mean {almost[variable]} (two underscores)?")
    if "__" in variable:
        raise WrongValue(f"not a setting{nearest(variable, list(names))}")
    return None


def read_text(text: str, spec: Spec) -> object:
    """The value that a line of text means for a setting; WrongValue if it means none."""
    if spec.optional and text.strip().lower() in {"null", "none"}:
        return spec.accept(None)
    if spec.kind == "list":
        return spec.read(_items(text))
    return spec.read(Scalar(text))


def _items(text: str) -> list[Scalar]:
    if text.lstrip().startswith("["):
        from afresh.config.yaml_file import flow_list

        items = flow_list(text)
        if items is None:
            raise WrongValue(f"expected a list such as [a, b] or a, b; got {text[:60]!r}")
        return items
    return [Scalar(item.strip()) for item in text.split(",") if item.strip()]
