"""Decide what the result of a check means for the stored page, and when to check it again; only this module does."""

from datetime import datetime, timedelta
from typing import Any, assert_never

from afresh.backoff import backoff_seconds
from afresh.crawl import plausibility
from afresh.dataclass import replace
from afresh.model.fetch import (
    Failed,
    Gone,
    Moved,
    NotModified,
    Outcome,
    ReadDocument,
    Refused,
    Request,
    Seen,
    Validators,
)
from afresh.model.records import ContentAction, Decision, LinkAction, Page, PageStatus, Policy, RunId
from afresh.schedule.change_rate import ChangeStats
from afresh.search.stemming import kept_language, search_config
from afresh.urls.canonical import domain_of


def request_for(page: Page, policy: Policy, now: datetime, *, full: bool = False) -> Request:
    """Return the request for a page: unconditional if `full`, or if no content is stored or the content is outdated."""
    held = page.content_hash is not None and page.moved_to is None
    trusted = held and page.recipe == policy.recipe and not full and not is_stale(page, policy, now)
    return Request(
        url=page.url,
        validators=page.validators if trusted and page.validators else None,
        media_type=page.content_type if held else None,
        at=page.validators.url if held else None,
    )


def is_stale(page: Page, policy: Policy, now: datetime) -> bool:
    """Return whether the page is due for an unconditional request; the time varies by page to spread the load."""
    if not policy.reread_seconds or page.last_scraped is None:
        return False
    spread = 0.75 + page.id * 2_654_435_761 % 2**32 / 2**33
    return (now - page.last_scraped).total_seconds() > policy.reread_seconds * spread


def decide(page: Page, seen: Seen, policy: Policy, now: datetime) -> Decision:
    """Return what to store about a page after a check, and when to check it again."""
    match seen:
        case ReadDocument():
            decision = _read(page, seen, policy, now)
        case NotModified():
            decision = _not_modified(page, seen, policy, now)
        case Gone():
            decision = _gone(page, seen, policy, now)
        case Moved():
            decision = _moved(page, seen, policy, now)
        case Refused():
            decision = _refused(page, seen, policy, now)
        case Failed():
            decision = _failed(page, seen, policy, now)
        case _:
            assert_never(seen)
    return replace(decision, status_code=seen.status_code)


# fields that any clear answer resets, and those that an answer from an existing page resets
CLEAR: dict[str, Any] = {"failures": 0, "crashes": 0, "doubt": None, "doubt_hash": None, "doubt_run": None}
ANSWERED: dict[str, Any] = {**CLEAR, "gone_count": 0, "doomed_by": None}


def _rhythm(page: Page, now: datetime, *, changed: bool) -> ChangeStats:
    if page.content_hash is None or page.observed_at is None:
        return page.rhythm
    return page.rhythm.seen(changed, (now - page.observed_at).total_seconds())


def _read(page: Page, seen: ReadDocument, policy: Policy, now: datetime) -> Decision:
    document = seen.document
    if policy.doubts and page.refused_hash == document.content_hash:
        return _restored(page, seen, policy, now)
    doubt = None if seen.proven else plausibility.suspicion_of(page, document, seen.signs, policy)
    if doubt is not None and doubt.action is not plausibility.SuspicionAction.FLAG:
        return _doubted(page, seen, doubt, policy, now)
    if policy.respect_noindex and not document.index and not seen.proven:
        return _unwanted(page, seen, policy, now)
    language = kept_language(page.language, document.language, redetect=policy.redetect)
    other_language = policy.redetect and search_config(page.language) != search_config(language)
    changed, same_recipe = page.content_hash != document.content_hash, page.recipe == policy.recipe
    same = same_recipe and not other_language and not changed
    held = page.content_hash is not None and page.moved_to is None
    follow = LinkAction.STORED if held and page.links_hash == document.links_hash else LinkAction.NEW
    if policy.respect_nofollow and not document.follow:
        follow = LinkAction.NONE
    flag, flag_run = None if changed else plausibility.flag_that_stays(page, policy), page.doubt_run
    if doubt is not None:
        flag, flag_run = doubt.text, RunId(seen.signs.run)
    after = replace(
        page,
        status=PageStatus.ACTIVE,
        title=document.title,
        language=language,
        validators=seen.validators,
        content_type=seen.media_type,
        content_hash=document.content_hash,
        links_hash=None if follow is LinkAction.NONE else document.links_hash,
        links_left_out=document.links_left_out,
        recipe=policy.recipe,
        chunker=page.chunker if same else policy.chunker,
        moved_to=None,
        last_scraped=now,
        checked_at=now,
        changed_at=now if changed else page.changed_at,
        observed_at=now,
        rhythm=_rhythm(page, now, changed=changed) if same_recipe else page.rhythm,
        refused_hash=None,
        **ANSWERED | {"doubt": flag, "doubt_run": flag_run if flag is not None else None},
    )
    return Decision(
        page=after,
        outcome=Outcome.SUCCESS,
        content=ContentAction.KEEP if same else ContentAction.REPLACE,
        follow=follow,
        next_at=None if seen.proven else next_check_after_answer(now, after, policy),
        keeps_former=plausibility.keeps_former_text(page, document, seen.signs, policy, flag),
        reason=_read_reason(page, seen, policy, other_language=other_language),
    )


def _read_reason(page: Page, seen: ReadDocument, policy: Policy, *, other_language: bool) -> str:
    document, before = seen.document, page.content_hash
    if before is None:
        reason = "first content"
    elif before != document.content_hash:
        reason = f"content hash changed from {before[:12]} to {document.content_hash[:12]}"
    elif page.recipe != policy.recipe:
        reason = "same content hash, processed again because afresh or its settings changed"
    elif other_language:
        reason = "same content hash, processed again for another language"
    else:
        reason = f"same content hash {before[:12]}"
    reason = f"{seen.status_code or 'read'}, {reason}"
    if seen.rendered:
        reason += f"; {seen.rendered}"
    if document.foreign_canonical:
        reason += f"; its rel=canonical to another host is ignored: {document.foreign_canonical}"
    if document.styles_cut:
        reason += "; it has too many styles to check: some text may be hidden"
    return reason


def _restored(page: Page, seen: ReadDocument, policy: Policy, now: datetime) -> Decision:
    """Decide to keep the restored former text, because the page still shows the text that the user rejected."""
    doubt = {"doubt": plausibility.RESTORED, "doubt_run": RunId(seen.signs.run)}
    after = replace(page, checked_at=now, **ANSWERED | doubt)
    return Decision(
        page=after,
        outcome=Outcome.SUCCESS,
        follow=LinkAction.STORED,
        next_at=next_check_after_answer(now, after, policy),
        reason=f"{seen.status_code or 'read'}, but {plausibility.RESTORED}",
    )


def _doubted(page: Page, seen: ReadDocument, doubt: plausibility.Suspicion, policy: Policy, now: datetime) -> Decision:
    """Decide to keep the stored content, and to flag the page as suspicious."""
    flagged = replace(
        _without_answer(page, now),
        crashes=0,
        doubt=doubt.text,
        doubt_hash=seen.document.content_hash,
        doubt_run=RunId(seen.signs.run),
    )
    return Decision(
        page=flagged,
        outcome=Outcome.FAILED,
        follow=LinkAction.STORED if page.content_hash is not None else LinkAction.NONE,
        next_at=next_regular_look(now, policy),
        doubtful=True,
        reason=f"{seen.status_code or 'read'}, but {doubt.text}",
        error_message=doubt.text,
    )


def _unwanted(page: Page, seen: ReadDocument, policy: Policy, now: datetime) -> Decision:
    """Decide to drop the content of a page with noindex, and to follow its links."""
    document = seen.document
    after = replace(
        page,
        status=page.status if page.content_hash is not None else PageStatus.DELETED,
        validators=Validators(),
        links_hash=document.links_hash,
        links_left_out=document.links_left_out,
        moved_to=None,
        checked_at=now,
        **ANSWERED,
    )
    return Decision(
        page=after,
        outcome=Outcome.SUCCESS,
        content=ContentAction.DROP,
        follow=LinkAction.NONE if policy.respect_nofollow and not document.follow else LinkAction.NEW,
        next_at=next_regular_look(now, policy),
        reason="the page asks not to be indexed (noindex)",
    )


def _not_modified(page: Page, seen: NotModified, policy: Policy, now: datetime) -> Decision:
    if page.content_hash is None:
        broken = Failed(
            outcome=Outcome.FAILED, reason="not modified, but no content is stored", status_code=seen.status_code
        )
        return _failed(replace(page, validators=Validators()), broken, policy, now)
    asked, checked = page.validators, dict[str, Any]()
    if not seen.skip_reason:
        flag = plausibility.flag_that_stays(page, policy)
        checked = {"checked_at": now, "observed_at": now, "rhythm": _rhythm(page, now, changed=False), **ANSWERED}
        checked |= {"doubt": flag, "doubt_run": page.doubt_run if flag is not None else None}
    after = replace(page, validators=asked.renewed(seen.validators), moved_to=None, **checked)
    reason = "same size and modification time"
    if asked.etag or asked.last_modified:
        reason = f"304 by ETag {asked.etag}" if asked.etag else f"304 by Last-Modified {asked.last_modified}"
    return Decision(
        page=after,
        outcome=Outcome.NOT_MODIFIED,
        follow=LinkAction.STORED,
        next_at=next_check_after_answer(now, after, policy),
        reason=seen.skip_reason or reason,
    )


def _gone(page: Page, seen: Gone, policy: Policy, now: datetime) -> Decision:
    count = page.gone_count + 1
    proven = page.content_hash is None or count >= policy.gone_after
    status = page.status if page.content_hash is not None else PageStatus.DELETED
    after = replace(page, status=status, gone_count=count, moved_to=None, checked_at=now, **CLEAR)
    evidence = seen.reason or seen.status_code or "the file does not exist"
    return Decision(
        page=after,
        outcome=Outcome.GONE,
        content=ContentAction.DROP if proven else ContentAction.KEEP,
        next_at=None if proven else next_check_after_failure(now, count, policy),
        reason=str(evidence) if proven else f"{evidence}, {count} of {policy.gone_after} times in a row",
    )


def _moved(page: Page, seen: Moved, policy: Policy, now: datetime) -> Decision:
    after = replace(  # the stored links are replaced by the redirect, so the next request is unconditional
        page,
        status=page.status if page.content_hash is not None else PageStatus.REDIRECT,
        gone_count=0,
        moved_to=seen.to,
        validators=Validators(),
        links_hash=None,
        links_left_out=0,
        checked_at=now,
        **CLEAR,
    )
    return Decision(
        page=after,
        outcome=Outcome.MOVED,
        content=ContentAction.DROP,
        next_at=next_regular_look(now, policy),
        reason=f"{seen.status_code or 'moved'}, permanently to {seen.to}",
    )


def _without_answer(page: Page, now: datetime, strikes: int = 1) -> Page:
    """Return the page with its failures increased by `strikes`; its content, hashes and validators are unchanged."""
    status = page.status
    if page.content_hash is None and status == PageStatus.PENDING:
        status = PageStatus.ERROR
    return replace(page, failures=page.failures + strikes, status=status, checked_at=now)


def _refused(page: Page, seen: Refused, policy: Policy, now: datetime) -> Decision:
    is_unreadable = seen.validators is not None and page.content_hash is None
    after = _without_answer(page, now)
    if is_unreadable:  # not a readable format: skip it until the listing shows a change
        after = replace(
            page,
            status=PageStatus.ERROR,
            validators=seen.validators or Validators(),
            recipe=policy.recipe,
            failures=0,
            checked_at=now,
        )
    done = "not read: " if seen.validators is not None else "not fetched: "
    later = next_check_after_failure(now, after.failures, policy) if policy.refusals_back_off else None
    return Decision(
        page=after,
        outcome=seen.outcome,
        follow=LinkAction.STORED if page.content_hash is not None else LinkAction.NONE,
        next_at=None if is_unreadable else later or next_regular_look(now, policy),
        refused=True,
        reason=seen.reason if seen.status_code is not None else done + seen.reason,
        error_message=seen.reason,
    )


def _failed(page: Page, seen: Failed, policy: Policy, now: datetime) -> Decision:
    after = _without_answer(page, now, strikes=int(seen.retry_after is None))  # a request to wait is not a failure
    crashes = page.crashes + 1
    quarantined = seen.crash_hash is not None and crashes >= plausibility.CRASHES
    if seen.crash_hash is not None:
        doubt = f"parsing it crashed {crashes} times" if quarantined else page.doubt
        after = replace(after, crashes=crashes, doubt=doubt, doubt_hash=seen.crash_hash)
    pauses = after.failures if timedelta(seconds=seen.retry_after or 0) else max(1, after.failures)
    return Decision(
        page=after,
        outcome=seen.outcome,
        follow=LinkAction.STORED if page.content_hash is not None else LinkAction.NONE,
        next_at=next_check_after_failure(now, pauses, policy, seen.retry_after),
        retry=after.failures <= policy.retries and not (quarantined or seen.hopeless),
        doubtful=quarantined,
        reason=seen.reason,
        error_message=seen.reason,
    )


def next_regular_look(now: datetime, policy: Policy) -> datetime:
    return now + timedelta(seconds=policy.recheck_seconds)


def next_check_after_answer(now: datetime, page: Page, policy: Policy) -> datetime:
    """Return the time of the next check of a page that answered.

    With the schedule `auto`, `policy.check_plan` decides. Otherwise, the check follows after the regular interval or,
    with `policy.adapt`, after half the time since the last change, up to a limit.
    """
    if policy.check_plan is not None:
        return now + timedelta(seconds=policy.check_plan.wait(domain_of(page.url), page.rhythm))
    seconds = policy.recheck_seconds
    if policy.adapt and page.changed_at is not None:
        quiet = (now - page.changed_at).total_seconds()
        seconds = max(seconds, min(quiet / 2, policy.adapt_max_seconds))
    return now + timedelta(seconds=seconds)


def next_check_after_failure(
    now: datetime, failures: int, policy: Policy, retry_after: float | None = None
) -> datetime:
    """Return when to try a failed page again: by exponential backoff, and not before the server's Retry-After."""
    pause = backoff_seconds(failures, policy.backoff_base_seconds, policy.backoff_max_seconds)
    return now + timedelta(seconds=max(pause, retry_after or 0.0))
