"""What the settings ask for beyond afresh itself, and whether it is there: a browser, a model."""

from urllib.parse import urlsplit

from afresh.config import Config
from afresh.errors import AfreshError
from afresh.model.store_reports import Finding
from afresh.models.prompt_file import prompt
from afresh.sources.web.browser.launch import why_no_browser, why_unsandboxed

_FREE = "no model is asked: summaries and link scores are made on this machine"


def browser(config: Config, *, always: bool = False) -> Finding:
    """Whether pages that need a browser can be shown; none is started. `always`: a source insists on it."""
    if config.crawl.render == "never" and not always:
        return Finding(check="browser", ok=True, detail="no page is shown in a browser (crawl.render)")
    own = config.browser
    lack = why_no_browser(own.engines, own.executable_path, own.channel)
    if lack is None:
        risk = why_unsandboxed(own.sandbox) if "chromium" in own.engines else None
        detail = "pages that need a browser can be shown" + (f"; {risk}" if risk else "")
        return Finding(check="browser", ok=True, detail=detail)
    if config.crawl.render == "always" or always:
        detail = "pages are to be shown in a browser (crawl.render), and none is there"
        return Finding(check="browser", ok=False, detail=detail, fix=lack)
    detail = f"none: pages made by script are read as they are; to show them: {lack}"
    return Finding(check="browser", ok=True, detail=detail)


def model(config: Config) -> Finding:
    """Whether the settings name all that is needed to ask a model; nobody is asked."""
    ai, links = config.ai, config.links
    if ai.address is None and links.scorer == "model":
        fix = "set ai.provider to openai and ai.model, or links.scorer to offline"
        return Finding(check="model", ok=False, detail="links.scorer wants a model, and none is set", fix=fix)
    try:
        prompt("summary.md", ai.prompt_file, "ai.prompt_file")
        prompt("links.md", links.prompt_file, "links.prompt_file")
    except AfreshError as wrong:
        return Finding(check="model", ok=False, detail=str(wrong), fix="name another file, or null")
    if ai.address is None:
        return Finding(check="model", ok=True, detail=_FREE)
    host = urlsplit(ai.address).hostname
    most = "any number of" if ai.budget_per_run is None else f"at most {ai.budget_per_run:,}"
    detail = f"{ai.model} at {host} is asked for summaries and link scores, {most} calls a run"
    return Finding(check="model", ok=True, detail=detail)
