"""What commands answer: JSON that scripts rely on, and text that people read."""

import re
from dataclasses import fields
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh, Opened
from tests.fakes.records import NOW, URL, change, found, hit, minutes, page, plan, preview, report, source, synced, why

from afresh.config.tree import default_store_url
from afresh.model.filters import PageFilter
from afresh.model.overview import Preview
from afresh.model.records import Attempt, ChangeKind, PageStatus
from afresh.model.reports import (
    Finding,
    FoundVersion,
    HistoryEntry,
    HostQueue,
    OpenedPage,
    PageExplanation,
    PageView,
    RefreshPlan,
    RunReport,
    SearchHit,
    SourceView,
    StoreStatus,
    WorkerView,
)
from afresh.sync.reports import DocumentOutcome, SyncedDocument

REPORT_KEYS = {
    *("run", "source", "mode", "state", "checked", "new", "changed", "unchanged", "not_modified", "deleted"),
    *("missing", "moved", "failed", "refused", "bytes", "chunks_embedded", "chunks_reused", "ai_calls"),
    "seconds",
}


def names(kind: type) -> set[str]:
    return {each.name for each in fields(kind)}


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["crawl", URL], RunReport),
        (["confirm", "7"], RunReport),
        (["show", "harbor"], SourceView),
        (["why", URL], PageExplanation),
        (["status"], StoreStatus),
        (["plan", "harbor"], RefreshPlan),
        (["plan", "https://elsewhere.example/"], Preview),
        (["open", URL], OpenedPage),
        (["find-version", "react@18"], FoundVersion),
    ],
)
def test_single_answers_are_one_object(afresh: Afresh, kb: Opened, arguments: list[str], kind: type) -> None:
    kb.answers["sources.preview"] = preview(URL)
    ended = afresh(*arguments, "--json")
    assert ended.code == 0
    assert set(ended.document) == names(kind)


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        (["search", "retried"], SearchHit),
        (["sources"], SourceView),
        (["pages", "harbor"], PageView),
        (["history", URL], HistoryEntry),
        (["attempts", "3", "--outcome", "NOT_MODIFIED"], Attempt),
        (["doctor"], Finding),
    ],
)
def test_lists_are_arrays_of_objects(afresh: Afresh, arguments: list[str], kind: type) -> None:
    ended = afresh(*arguments, "--json")
    assert isinstance(ended.document, list)
    assert set(ended.document[0]) == names(kind)


def test_what_is_not_kept_is_previewed_and_lists_are_narrowed(
    afresh: Afresh, kb: Opened, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = "https://elsewhere.example/"
    kb.answers["sources.preview"] = preview(target)
    displayed = afresh("plan", target).out
    assert all(
        words in displayed for words in ("Harbor", "not added yet", "1 link on the start page", "on another host")
    )
    del kb.answers["sources.preview"]
    Path("notes").mkdir()
    for number in range(12):
        Path(f"notes/{number}.md").write_text(f"note {number}")
    Path("notes/long.md").write_text("a long note " * 100)
    monkeypatch.setenv("AFRESH_FILES__MAX_FILE_BYTES", "100")
    listed = afresh("plan", "./notes").out
    assert all(words in listed for words in ("its files", "12 files", "and 2 more"))
    assert "1 larger than files.max_file_bytes" in listed
    afresh("pages", "harbor", "--language", "en", "--depth", "2", "--text", "hooks")
    afresh("changes", "--url", URL, "--kind", "moved")
    assert kb.calls == [
        ("sources.plan", {"label": target}),
        ("sources.preview", {"target": target, "here": True}),
        ("sources.plan", {"label": "./notes"}),
        ("sources.preview", {"target": "./notes", "here": True}),
        ("pages.of_source", {"label": "harbor", "which": PageFilter(language="en", depth=2, text="hooks")}),
        ("pages.changes", {"url": URL, "kind": "moved"}),
    ]


def test_a_new_source_is_previewed_before_there_is_a_store(afresh: Afresh, kb: Opened) -> None:
    own = Path(default_store_url().removeprefix("sqlite:///"))
    own.unlink()
    Path("notes").mkdir()
    Path("notes/one.md").write_text("note 1")
    ended = afresh("plan", "./notes")
    assert (ended.code, ended.err) == (0, "")
    assert "1 file" in ended.out
    assert "not added yet" in ended.out
    assert not own.exists()
    assert kb.config is not None
    assert not Path(kb.config.store.url.removeprefix("sqlite:///")).parent.exists()
    assert "no source" in afresh("plan", "tide").err


def test_a_report_has_the_keys_of_the_design(afresh: Afresh) -> None:
    for arguments in (["crawl", URL], ["refresh"], ["refresh", "a"]):
        document = afresh(*arguments, "--json").document
        assert set(document) >= REPORT_KEYS
        assert (document["checked"], document["state"]) == (1169, "completed")


def test_refresh_is_one_object_also_for_several_sources(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(report(notes=("a",)), report(run=8, source="other", state="partial", checked=1, failed=1))
    document = afresh("refresh", "--json").document
    assert (document["checked"], document["failed"], document["state"]) == (1170, 1, "partial")
    assert [run["run"] for run in document["runs"]] == [7, 8]
    assert (document["run"], document["source"], document["notes"]) == (None, None, ["a"])
    kb.let_runs_end_with()
    nothing = afresh("refresh", "--json")
    assert (nothing.code, nothing.document["runs"], nothing.document["checked"]) == (0, [], 0)


def test_json_values_are_plain(afresh: Afresh, kb: Opened) -> None:
    kb.answers["search.search"] = found(hit())
    first = afresh("search", "x", "--json").document[0]
    assert first["checked_at"] == "2026-03-04T11:58:00Z"
    assert first["path"] == ["Retries", "Back-off"]
    assert first["text"].startswith("A job that fails is retried with")
    kb.answers["pages.of_source"] = [page(status=PageStatus.REDIRECT)]
    assert afresh("pages", "harbor", "--json").document[0]["status"] == "redirect"
    kb.let_runs_end_with(report(seconds=float("nan")))
    assert afresh("crawl", URL, "--json").document["seconds"] is None


def test_F107_lone_surrogates_never_break_json(afresh: Afresh, kb: Opened) -> None:
    kb.answers["search.search"] = found(hit(title="broken \ud800 title", text="\x02pair\x03 \ud83d\ude00"))
    ended = afresh("search", "x", "--json")
    ended.out.encode()
    assert ended.document[0]["title"] == "broken � title"
    assert ended.document[0]["text"] == "pair 😀"


def test_with_json_stdout_holds_nothing_else(afresh: Afresh) -> None:
    ended = afresh("refresh", "--json", "-v")
    assert ended.document["run"] == 7
    assert "a run was resumed" in ended.err


def test_R9_the_attempts_of_a_sync_are_its_documents_then_and_now(afresh: Afresh, kb: Opened) -> None:
    kb.answers |= {"runs.get": report(run=107, mode="sync"), "runs.documents": [synced()]}
    displayed = afresh("attempts", "107").out
    assert re.search(r"uploaded +active +ready for indexing +team +Retries +" + re.escape(URL), displayed)
    assert [set(each) for each in afresh("attempts", "107", "--json").document] == [names(SyncedDocument)]
    afresh("attempts", "107", "--outcome", "stuck")
    assert ("runs.documents", {"number": 107, "outcome": DocumentOutcome.STUCK, "limit": 50}) in kb.calls
    assert "expected one of uploaded" in afresh("attempts", "107", "--outcome", "timeout").err


def test_changes_without_diff(afresh: Afresh, kb: Opened) -> None:
    kb.answers["pages.changes"] = [change()]
    assert re.search(r"not modified +304 .*" + re.escape(URL), afresh("attempts", "3").out)
    assert "expected one of success, not_modified" in afresh("attempts", "3", "--outcome", "odd").err
    assert "+after 5 s" in afresh("changes").out
    assert "+after 5 s" not in afresh("changes", "--no-diff").out
    assert afresh("changes", "--json").document[0]["diff"].startswith("@@")
    assert afresh("changes", "--no-diff", "--json").document[0]["diff"] is None


# ---- what people read -----------------------------------------------------------------------


def test_the_report_reads_well(afresh: Afresh) -> None:
    assert afresh("refresh", "-q").out == "python-docs · refresh completed in 0.4 s\n"
    assert afresh("refresh").out.splitlines() == [
        "python-docs · refresh completed in 0.4 s",
        "     12  new           read for the first time",
        "     70  changed       content replaced",
        "  1,080  not modified  304 or unchanged file",
        "      7  unchanged     downloaded, same content",
        "  1,169 checked: 1,080 skipped as unchanged, 7 downloaded with the same content, 82 processed; "
        "92 % of downloads saved",
    ]


def test_a_full_run_saved_no_downloads(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(report(checked=82, new=0, changed=0, not_modified=0, unchanged=82))
    out = afresh("refresh", "--full").out
    assert out.endswith("82 checked: 82 downloaded with the same content, 0 processed\n")
    assert "saved" not in out
    assert "skipped" not in out


def test_one_chunk_is_not_many(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(report(chunks_embedded=1, chunks_reused=0))
    assert "1 passage embedded, 0 reused" in afresh("refresh", "-v").out


def test_refused_pages_are_explained(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(report(refused=2))
    out = afresh("refresh").out
    assert "2  refused       robots.txt, 401/403, private (network.allow), unreadable, or out of scope" in out


def test_the_reasons_of_refused_pages_are_counted(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(report(refused=4, refusals={"401/403": 1, "robots.txt": 3}))
    assert "4  refused       robots.txt: 3 · 401/403: 1\n" in afresh("refresh").out
    kb.let_runs_end_with(report(refused=4, refusals={"unreadable": 4}))
    assert "4  refused       unreadable\n" in afresh("refresh").out


def test_a_first_crawl_does_not_speak_of_previous_versions(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(report(known=0, state="partial", doubtful=2, failed=1))
    out = afresh("refresh").out
    assert "2  doubtful      looks like an error, login or empty page; not stored\n" in out
    assert "1  failed        could not be read, retried later\n" in out
    kb.let_runs_end_with(report(state="partial", doubtful=2, failed=1))
    out = afresh("refresh").out
    assert "looks like an error, login or empty page; any previous version kept\n" in out
    assert "1  failed        any previous version kept, retried later\n" in out


def test_a_page_that_was_read_at_its_new_url_is_a_part_of_the_sum(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(
        report(checked=30, new=1, changed=2, not_modified=23, unchanged=0, refused=1, moved=1, deleted=1, moved_read=1)
    )
    line = (
        "30 checked: 23 skipped as unchanged, 3 processed, 1 read at its new URL, 2 redirected or gone, 1 not read; "
        "85 % of downloads saved"
    )
    assert line in afresh("refresh").out


def test_the_last_line_of_a_report_adds_up(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(report(checked=30, new=2, changed=3, not_modified=15, unchanged=0, refused=1, failed=4))
    line = "30 checked: 15 skipped as unchanged, 5 processed, 5 redirected or gone, 5 not read"
    assert line in afresh("refresh").out


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"state": "failed", "error": "the start page could not be read: 503"}, ["read: 503", "afresh refresh"]),
        ({"state": "needs_confirmation", "held": 12}, ["12 pages look deleted", "afresh confirm 7"]),
        ({"state": "cancelled"}, ["To continue, run afresh refresh python-docs"]),
        ({"state": "partial", "error": "2 pages could not be read"}, ["2 pages could", "To retry, run"]),
    ],
)
def test_quiet_still_says_what_went_wrong_and_what_to_do(
    afresh: Afresh, kb: Opened, more: dict[str, object], expected: list[str]
) -> None:
    kb.let_runs_end_with(report(notes=("a note",), **more))
    out = afresh("refresh", "-q").out
    assert all(part in out for part in expected)
    assert "note:" not in out
    assert "checked" not in out


def test_a_note_that_repeats_the_error_is_left_out(afresh: Afresh, kb: Opened) -> None:
    error = "the start page could not be read: connection refused by docs.example.org"
    notes = (
        "https://docs.example.org/sitemap.xml: connection refused by docs.example.org",
        "2 broken links (404 or 410)",
        "2 broken links (404 or 410)",
    )
    kb.let_runs_end_with(report(state="failed", error=error, notes=notes))
    out = afresh("refresh").out
    assert out.count("connection refused") == 1
    assert out.count("note: 2 broken links") == 1


def test_a_braked_run_says_what_to_type(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(report(state="needs_confirmation", held=120, notes=("sitemap.xml was empty",)))
    out = afresh("refresh").out
    assert "120 pages look deleted. That exceeds the deletion limit, so nothing was removed yet." in out
    assert "afresh confirm 7" in out
    assert "note: sitemap.xml was empty" in out


def test_a_stopped_run_says_how_to_go_on(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with(report(state="cancelled", version="3"))
    assert "To continue, run afresh refresh python-docs@3" in afresh("refresh").out
    ended = afresh("crawl", URL, "--name", "my docs")
    assert f"To continue, run afresh crawl {URL} --name 'my docs'" in ended.out


def test_nothing_to_refresh_is_reported(afresh: Afresh, kb: Opened) -> None:
    kb.let_runs_end_with()
    assert "Add one with `afresh crawl URL`" in afresh("refresh").err
    assert afresh("refresh", "--due").err.endswith("Nothing is due.\n")


def test_a_hit_reads_well(afresh: Afresh, kb: Opened) -> None:
    kb.answers["search.search"] = found(hit())
    assert afresh("search", "retry").out.splitlines() == [
        "1  Retries  harbor@2",
        f"   {URL}",
        "   Back-off",
        "   A job that fails is retried with a growing pause.",
        "   The first retry comes after 2 s.",
        "   checked 2 minutes ago, changed 3 days ago",
    ]
    assert "score 3.142" in afresh("search", "retry", "-v").out


def test_a_weak_answer_says_so_before_its_hits(afresh: Afresh, kb: Opened) -> None:
    kb.answers["search.search"] = found(hit(weak=True, relevance=0.2))
    assert afresh("search", "retry").out.startswith("no good match for retry; nearest by meaning:\n\n1  Retries")
    assert "nearest by words:" in afresh("search", "retry", "--mode", "text").out
    [row] = afresh("search", "retry", "--json").document
    assert (row["weak"], row["relevance"]) == (True, 0.2)


def test_notes_of_a_search_stand_beside_the_answer(afresh: Afresh, kb: Opened) -> None:
    kb.answers["search.search"] = found(hit(), notes=["answered by words alone"])
    ended = afresh("search", "retry", "--json")
    assert ended.document[0]["url"] == URL
    assert ended.err == "note: answered by words alone\n"
    assert afresh("search", "retry", "-q").err == ""


def test_the_context_of_a_hit_is_displayed_whole(afresh: Afresh, kb: Opened) -> None:
    kb.answers["search.search"] = found(hit(context="# Retries\n\n" + "A long text.\n" * 30))
    out = afresh("search", "retry", "--context").out
    assert out.count("   A long text.") == 30
    assert "   Retries\n" in out
    assert afresh("search", "retry", "--json").document[0]["context"].startswith("# Retries")


def test_matches_are_highlighted_on_a_terminal(afresh: Afresh, kb: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    kb.answers["search.search"] = found(hit())
    assert "\x1b[1;33mretried\x1b[0m" in afresh("search", "retry").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "33m" not in afresh("search", "retry").out


def test_nothing_found_is_reported(afresh: Afresh, kb: Opened) -> None:
    kb.answers |= {"sources.views": [], "pages.changes": []}
    assert "No results for zebra." in afresh("search", "zebra").out
    assert len(afresh("search", "zebra " * 1000).out) < 200
    assert "afresh crawl https://" in afresh("sources").out
    assert afresh("pages", "harbor", "--text", "zebra").out == "No pages match.\n"
    assert afresh("changes").out == "No changes.\n"
    assert afresh("search", "zebra", "--json").document == []


def test_why_begins_with_the_evidence(afresh: Afresh, kb: Opened) -> None:
    kb.answers["pages.explain"] = why()
    lines = afresh("why", URL).out.splitlines()
    assert lines[0] == '304 by ETag "v1": the content is as it was.'
    assert any("next check" in line and "in 20 hours" in line for line in lines)
    assert lines[-1].strip() == "and 3 more"


def test_lists_show_relative_times_and_whole_addresses(afresh: Afresh, kb: Opened) -> None:
    long = URL + "x" * 300
    assert "3 minutes ago" in afresh("pages", "harbor").out
    assert "3 minutes ago" in afresh("sources").out
    assert re.search(r"waiting +– +4", afresh("history", URL).out)
    assert "retries" in afresh("links", "harbor").out
    kb.answers |= {"pages.of_source": [page(url=long)], "sources.plan": plan(), "sources.view": source()}
    assert long in afresh("pages", "harbor").out
    assert "refresh would check 1,005 pages, about 12 s" in afresh("plan", "harbor").out
    assert "include" in afresh("show", "harbor").out


def test_status_names_the_run_that_waits_for_a_confirmation(afresh: Afresh, kb: Opened) -> None:
    kb.answers["status.get"] = StoreStatus(
        store="sqlite:///kb.db",
        sources=1,
        pages=1234,
        doubtful=3,
        chunks=8000,
        attempts=5000,
        pending=12,
        in_flight=0,
        oldest_pending=minutes(3),
        runs=(report(state="needs_confirmation", held=120),),
        workers=(WorkerView(host="anvil", pid=4711, since=minutes(90), heartbeat_at=NOW, runs=(7,), held=24),),
        hosts=(HostQueue(domain="docs.example.org", waiting=1200, held=24, oldest=minutes(2)),),
        pages_per_second=12.5,
        size_bytes=12_345_678,
    )
    assert "afresh confirm 7" in afresh("status").out


def test_a_plan_says_what_is_due_and_what_the_budget_leaves_of_it(afresh: Afresh, kb: Opened) -> None:
    kb.answers["sources.plan"] = plan()
    assert re.search(r"due now +700$", afresh("plan", "harbor").out, re.MULTILINE)
    kb.answers["sources.plan"] = plan(budget=50)
    out = " ".join(afresh("plan", "harbor").out.split())
    assert "due now 700 (one `afresh refresh --due` checks 50 of them)" in out
    assert afresh("plan", "harbor", "--json").document["due"] == 700


def test_show_speaks_its_values(afresh: Afresh, kb: Opened) -> None:
    rules = {"include": [], "exclude": ["*/a", "*/b"], "max_params": None}
    kb.answers["sources.view"] = source(rules=rules, policy={"respect_robots": False, "concurrency": 2})
    out = re.sub(" +", " ", afresh("show", "harbor@2").out)
    for line in ("include none", "exclude */a, */b", "max_params no limit", "respect_robots no", "concurrency 2"):
        assert f" {line}\n" in out


def test_a_look_that_is_late_is_due_now(afresh: Afresh, kb: Opened) -> None:
    kb.answers["pages.explain"] = why()
    assert re.search("next check +in 20 hours", afresh("why", URL).out)
    kb.answers["pages.explain"] = why(next_check=minutes(1))
    assert re.search("next check +due now", afresh("why", URL).out)
    assert "due now" in afresh("history", URL).out
    assert "ago" not in afresh("history", URL).out


def test_doctor_names_the_fix(afresh: Afresh, kb: Opened) -> None:
    kb.answers["status.doctor"] = [Finding(check="store", ok=True, detail="opens")]
    assert afresh("doctor").code == 0
    kb.answers["status.doctor"] = [Finding(check="disk", ok=False, detail="full", fix="make room")]
    ended = afresh("doctor")
    assert ended.code == 1
    assert "✗ disk" in ended.out
    assert "fix: make room" in ended.out


def test_config_show_says_where_values_come_from(afresh: Afresh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AFRESH_CRAWL__CONCURRENCY", "5")
    monkeypatch.setenv("AFRESH_STORE", "sqlite:///kb.db?token=hush")
    out = afresh("config", "show").out
    assert re.search(r"crawl.concurrency +5 +environment AFRESH_CRAWL__CONCURRENCY", out)
    assert re.search(r"crawl.max_pages +10000 +default", out)
    assert "hush" not in out
    assert afresh("config", "show", "--json").document["store"]["url"] == "sqlite:///kb.db?token=***"
    assert "2 settings differ" in afresh("config", "check").out
    assert afresh("config", "check", "--json").document["ok"] is True


HOSTILE = "a\x1b[31mred\x07 [bold]x[/bold] \u202egnp.exe\r\nsecond\x9b2J :smile: \ud800"


def test_F111_text_from_outside_cannot_steer_the_terminal(afresh: Afresh, kb: Opened) -> None:
    kb.answers["search.search"] = found(
        hit(title=HOSTILE, url=f"https://x/{HOSTILE}", text=HOSTILE, path=(HOSTILE,), source=HOSTILE)
    )
    kept = source(name=HOSTILE, url=HOSTILE, kind=HOSTILE, rules={HOSTILE: [HOSTILE]})
    kb.answers |= {"sources.views": [kept], "sources.view": kept}
    kb.answers["pages.of_source"] = [page(title=HOSTILE, url=HOSTILE, moved_to=HOSTILE)]
    kb.answers["pages.changes"] = [change(url=HOSTILE, diff=HOSTILE, kind=ChangeKind.MOVED, moved_to=HOSTILE)]
    kb.let_runs_end_with(report(source=HOSTILE, error=HOSTILE, notes=(HOSTILE,), state="failed"))
    kb.answers["status.doctor"] = [Finding(check=HOSTILE, ok=False, detail=HOSTILE, fix=HOSTILE)]
    calls = [["search", "x"], ["search", "x", "-v"], ["sources"], ["show", "harbor"], ["pages", "harbor"]]
    calls += [["changes"], ["refresh"], ["crawl", "x"], ["doctor"], ["search", HOSTILE]]
    for arguments in calls:
        ended = afresh(*arguments)
        for displayed in (ended.out, ended.err):
            assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\ud800]", displayed), arguments
    assert "[bold]x[/bold]" in afresh("search", "x").out
    assert ":smile:" in afresh("search", "x").out


def test_F111_hostile_errors_are_one_clean_line(afresh: Afresh, kb: Opened) -> None:
    kb.answers["sources.views"] = ValueError("a\x1b[2Jb")
    assert "\x1b" not in afresh("sources").err
    assert "\x1b" not in afresh("frob\x1b[2J").err


def test_a_schedule_says_what_runs_it_and_that_it_was_removed(afresh: Afresh, kb: Opened) -> None:
    done = afresh("schedule", "--set", "every 6h", "harbor")
    assert (done.code, done.err) == (0, "Schedules need a running process: `afresh schedule` or `afresh serve`.\n")
    kb.answers["schedules.keep"] = True
    assert re.match(r"Running the schedules of harbor@2: next run .+\. Ctrl-C stops\.\n$", afresh("schedule").err)
    assert afresh("schedule", "--once").err == ""
    assert afresh("schedule", "--set", "none", "harbor").out == "Removed the schedule of harbor.\n"
    assert afresh("schedule", "--set", "none", "harbor", "--json").document == []
    wrong = afresh("schedule", "--set", "off", "harbor")
    assert (wrong.code, wrong.err.endswith("; `--set none` removes a schedule\n")) == (2, True)
