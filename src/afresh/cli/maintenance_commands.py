"""The commands that look after the store and the settings: remove, doctor, config, demo."""

import os
import sys

import click

from afresh.cli.session import Session, here
from afresh.cli.shell import Group, argument, command, option, switch
from afresh.config import describe, find_file, tell, usual_places
from afresh.errors import ConfigError, StoreError, UsageError
from afresh.model.reports import SourceView
from afresh.model.store_reports import Finding
from afresh.ports import Access
from afresh.present.safe_text import clean
from afresh.present.wording import count
from afresh.present.wording import label as spoken

SECTION = "Look after"


@command(SECTION, "afresh remove react@18", "afresh remove react@18 --yes")
@argument("label", "LABEL", "The source, as NAME or NAME@VERSION.")
@switch("--yes", "-y", text="Do not ask.")
def remove(session: Session, label: str, yes: bool) -> int:
    """Delete a source with its pages and index; the attempts stay in the history."""
    if not yes:
        view = session.ask(lambda kb: kb.sources.view(label, only=True))
        if not _agreed(session, view):
            session.say("Nothing was removed.")
            return 1
    removed = session.ask(lambda kb: kb.sources.remove(label), access=Access.CHANGE)
    if not session.wrote_json({"removed": label, "pages": removed}) and not session.quiet:
        session.show(f"Removed {clean(label)} with {count(removed, 'page')}.")
    return 0


def _agreed(session: Session, view: SourceView) -> bool:
    name = spoken(view.name, view.version)
    if session.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(
            f"remove {name} would delete {count(view.pages, 'page')}: add --yes to say that you mean it"
        )
    return click.confirm(f"Delete {clean(name)} with {count(view.pages, 'page')} for good?", err=True)


@command(SECTION, "afresh doctor", "afresh doctor --json")
def doctor(session: Session) -> int:
    """Check settings, store and surroundings, and say how to fix what is wrong."""
    findings = _examine(session)
    if not session.wrote_json(findings):
        from afresh.cli import details

        session.show(details.findings(findings))
    return 0 if all(finding.ok for finding in findings) else 1


def _examine(session: Session) -> list[Finding]:
    try:
        found = session.config
    except ConfigError as wrong:
        return [
            Finding(
                check="settings",
                ok=False,
                detail=str(wrong),
                fix="correct it; afresh config check tells more",
            )
        ]
    try:
        return session.ask(lambda kb: kb.status.doctor())
    except StoreError as wrong:
        from afresh.services.doctor import without_store

        return without_store(found, wrong)


@click.group(
    "config",
    cls=Group,
    no_args_is_help=False,
    section=SECTION,
    examples=("afresh config show", "afresh config check"),
)
def config() -> None:
    """Show and check the settings."""


@command("", "afresh config show", "afresh config show --json", name="show")
def config_show(session: Session) -> None:
    """Print every setting, its value and where it came from; secrets are masked."""
    if session.wrote_json(describe(session.config)):
        return
    from afresh.cli import details

    session.show(details.settings(tell(session.config)))


@command("", "afresh config check", "afresh --config other.yaml config check", name="check")
def config_check(session: Session) -> None:
    """Say whether the settings are right; wrong ones are named with file, line and nearest key.

    Places that messages are sent to (webhooks, notify) are checked by the rules that hold when they are sent:
    private addresses are refused unless network.allow names them.
    """
    from afresh.services.sink_registry import check_targets

    found = session.config
    check_targets(found)
    changed = len(found.origins)
    if session.wrote_json({"ok": True, "file": found.file, "set": dict(found.origins)}):
        return
    where = f"{clean(str(found.file))} is right" if found.file else "No settings file, which is fine"
    differ = "1 setting differs" if changed == 1 else f"{count(changed)} settings differ"
    session.show(f"{where}; {differ} from the defaults.")


@command("", "afresh config path", name="path")
def config_path(session: Session) -> None:
    """Print the settings file in use, or where one is looked for."""
    file, _ = find_file(session.config_file, os.environ, here())
    places = usual_places(here())
    if session.wrote_json({"path": file, "looked_for": places}):
        return
    if file:
        session.show(clean(str(file)))
    else:
        session.say("No settings file; one is looked for here, in this order:")
        for place in places:
            session.show(clean(str(place)))


@command(SECTION, "afresh demo", "afresh demo --pace 2      # slowly, to read along")
@option(
    "--pace", metavar="SECONDS", type=click.FloatRange(0, 60), default=0.0, text="Pause between the scenes."
)
def demo(session: Session, pace: float) -> int:
    """Show in a few seconds what afresh does, on a small site of its own.

    Serves a documentation site on this machine, crawls it, changes it, refreshes it and searches it, with a
    store that is thrown away. Needs no network and no key.
    """
    from afresh.cli.demo import play

    return play(session, pace)


for each in (config_show, config_check, config_path):
    config.add_command(each)

COMMANDS = (remove, doctor, config, demo)
