"""How the pages of a source, or of all, stand in external stores."""

from datetime import datetime

from rich.text import Text

from afresh.cli.pieces import text
from afresh.present.safe_text import clean
from afresh.present.wording import ago, count
from afresh.sync.reports import SinkView


def states(view: SinkView) -> str:
    """`12 active, 1 ready for indexing`."""
    told = (f"{count(number)} {name.replace('_', ' ')}" for name, number in view.states.items())
    return ", ".join(told) or "no pages"


def sink(view: SinkView, now: datetime) -> Text:
    """`folder: 12 active, synced 2 min ago`, and what is wrong since when."""
    shown = text(f"{view.kind}: {states(view)}, synced {ago(view.synced_at, now)}")
    if view.stuck:
        many = count(view.stuck, "document is", "documents are")
        shown.append(f"; {many} stuck: afresh sync --to {clean(view.sink)}", "yellow")
    if view.error:
        since = f", failing since {view.failing_since:%Y-%m-%d %H:%M} UTC" if view.failing_since else ""
        shown.append(f"{since}: {clean(view.error)}; then afresh sync --to {clean(view.sink)}", "red")
    return shown
