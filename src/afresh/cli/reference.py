"""The reference pages of the docs, written from the code: `python -m afresh.cli.reference`."""

from collections.abc import Iterator
from pathlib import Path

import click

from afresh.cli.details import spelled
from afresh.cli.program import program
from afresh.config import Config, tell
from afresh.config.tree import NAMED

WIDTH = 80
_ONLY_GIVEN = {"kind", "secret"}  # that have no default
START, END = "<!-- written from the code -->", "<!-- end of what is written from the code -->"


def commands_block() -> str:
    """The help of every command, as docs/cli.md has to hold it."""
    return "\n".join(f"## `{name}`\n\n```text\n{text}```\n" for name, text in helps())


def helps() -> Iterator[tuple[str, str]]:
    """Every command with its help, in the order of the program."""
    root = _context(program, "afresh")
    yield "afresh", program.get_help(root) + "\n"
    for command in program.commands.values():
        context = _context(command, str(command.name), root)
        yield context.command_path, command.get_help(context) + "\n"
        for below in getattr(command, "commands", {}).values():
            inner = _context(below, str(below.name), context)
            yield inner.command_path, below.get_help(inner) + "\n"


def _context(command: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    settings = {"terminal_width": WIDTH, **command.context_settings}
    return click.Context(command, parent=parent, info_name=name, **settings)


def settings_block() -> str:
    """Every setting in a table, as docs/configuration.md has to hold it."""
    rows = ["| key | default | takes | what it is for |", "|---|---|---|---|"]
    for told in tell(Config()):
        default = (
            "a file in the user's data folder" if told.key == "store.url" else f"`{spelled(told.value)}`"
        )
        rows.append(f"| `{told.key}` | {default} | {told.spec.expected} | {told.spec.doc} |")
    for section in NAMED.values():
        usual = section.kind()
        for key, spec in section.specs().items():
            default = f"`{spelled(getattr(usual, key))}`" if key not in _ONLY_GIVEN else ""
            rows.append(f"| `{section.name}.NAME.{key}` | {default} | {spec.expected} | {spec.doc} |")
    return "\n".join(rows)


BLOCKS = {"cli.md": commands_block, "configuration.md": settings_block}


def renewed(page: str, block: str) -> str:
    """The page with the block between its marks replaced."""
    before, _, rest = page.partition(START)
    _, _, after = rest.partition(END)
    return f"{before}{START}\n\n{block}\n\n{END}{after}"


def main(folder: Path = Path("docs")) -> None:
    """Brings both pages up to date."""
    for name, block in BLOCKS.items():
        page = folder / name
        page.write_text(renewed(page.read_text(encoding="utf-8"), block()), encoding="utf-8")


if __name__ == "__main__":
    main()
