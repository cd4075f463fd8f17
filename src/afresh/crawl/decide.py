"""What a look means: the one place where an outcome becomes state."""

from dataclasses import replace
from datetime import datetime
from typing import assert_never

from afresh.crawl.plausibility import CRASHES, RESTORED, Doubt, Trust, doubt_of, flag_that_stays, loses_text
from afresh.model.fetch import (
    Document,
    Failed,
    Gone,
    Moved,
    NotModified,
    Outcome,
    Read,
    Refused,
    Request,
    Seen,
    Validators,
)
from afresh.model.records import Content, Decision, Follow, Page, PageStatus, Policy, RunId
from afresh.schedule.due import next_look_after_answer, next_look_after_failure, next_regular_look
from afresh.search.stemming import search_config


def request_for(page: Page, policy: Policy, now: datetime, *, full: bool = False) -> Request:
    """The look to take: conditional only while the content it would vouch for is really held."""
    held = page.content_hash is not None and page.moved_to is None
    trusted = held and page.recipe == policy.recipe and not full and not is_stale(page, policy, now)
    return Request(
        url=page.url,
        validators=page.validators if trusted and page.validators else None,
        media_type=page.content_type if held else None,
        at=page.validators.url if held else None,
    )


def is_stale(page: Page, policy: Policy, now: datetime) -> bool:
    """Whether "not modified" was believed long enough; pages read together do not all get stale together."""
    if not policy.reread_seconds or page.last_scraped is None:
        return False
    spread = 0.75 + page.id * 2_654_435_761 % 2**32 / 2**33
    return (now - page.last_scraped).total_seconds() > policy.reread_seconds * spread


def decide(page: Page, seen: Seen, policy: Policy, now: datetime) -> Decision:
    """Turn what was seen of a page into what is to be done; the same look twice changes nothing more."""
    match seen:
        case Read():
            return _read(page, seen, policy, now)
        case NotModified():
            return _not_modified(page, seen, policy, now)
        case Gone():
            return _gone(page, seen, policy, now)
        case Moved():
            return _moved(page, seen, policy, now)
        case Refused():
            return _refused(page, seen, policy, now)
        case Failed():
            return _failed(page, seen, policy, now)
        case _:
            assert_never(seen)


def _answered(page: Page, now: datetime) -> Page:
    """The page after any answer that proves it is still there."""
    return replace(_undoubted(page), failures=0, gone_count=0, doomed_by=None, checked_at=now)


def _observed(page: Page, now: datetime, *, changed: bool) -> Page:
    """The page with one more look that tells how often it changes, since the last one that did."""
    since, rhythm = page.observed_at, page.rhythm
    if page.content_hash is not None and since is not None:
        rhythm = rhythm.seen(changed, (now - since).total_seconds())
    return replace(page, observed_at=now, rhythm=rhythm)


def _undoubted(page: Page) -> Page:
    """The page after an answer that says clearly what is so."""
    return replace(page, crashes=0, doubt=None, doubt_hash=None, doubt_run=None)


def _read(page: Page, seen: Read, policy: Policy, now: datetime) -> Decision:
    document = seen.document
    if policy.doubts and page.refused_hash == document.content_hash:
        return _restored(page, seen, policy, now)
    doubt = None if seen.proven else doubt_of(page, document, seen.signs, policy)
    if doubt is not None and doubt.trust is not Trust.FLAG:
        return _doubted(page, seen, doubt, policy, now)
    if policy.respect_noindex and not document.index and not seen.proven:
        return _unwanted(page, seen, policy, now)
    language = _language(page, document, policy)
    made = page.recipe == policy.recipe and not _speaks_anew(page, document, policy)
    same = made and page.content_hash == document.content_hash
    follow = _follow(page, seen, policy)
    changed = page.content_hash != document.content_hash
    comparable = page if page.recipe == policy.recipe else replace(page, observed_at=None)
    observed = _observed(comparable, now, changed=changed)
    flag, flag_run = None if changed else flag_that_stays(page, policy), page.doubt_run
    if doubt is not None:
        flag, flag_run = doubt.text, RunId(seen.signs.run)
    after = replace(
        _answered(observed, now),
        status=PageStatus.ACTIVE,
        title=document.title,
        language=language,
        validators=seen.validators,
        content_type=seen.media_type,
        content_hash=document.content_hash,
        links_hash=None if follow is Follow.NONE else document.links_hash,
        links_left_out=document.links_left_out,
        recipe=policy.recipe,
        chunker=page.chunker if same else policy.chunker,
        moved_to=None,
        last_scraped=now,
        changed_at=now if changed else page.changed_at,
        doubt=flag,
        doubt_run=flag_run if flag is not None else None,
        refused_hash=None,
    )
    return Decision(
        page=after,
        outcome=Outcome.SUCCESS,
        content=Content.KEEP if same else Content.REPLACE,
        follow=follow,
        next_at=None if seen.proven else next_look_after_answer(now, after, policy),
        keeps_former=loses_text(page, document, seen.signs, policy, flag),
        reason="".join(
            (
                _read_reason(page, seen, policy),
                _rendered_reason(seen),
                _canonical_reason(seen.document),
                _styles_reason(seen.document),
            )
        ),
        status_code=seen.status_code,
    )


def _restored(page: Page, seen: Read, policy: Policy, now: datetime) -> Decision:
    """A page that still shows what its owner replaced by its former text: that text stays."""
    after = replace(_answered(page, now), doubt=RESTORED, doubt_run=RunId(seen.signs.run))
    return Decision(
        page=after,
        outcome=Outcome.SUCCESS,
        content=Content.KEEP,
        follow=Follow.STORED,
        next_at=next_look_after_answer(now, after, policy),
        reason=f"{seen.status_code or 'read'}, but {RESTORED}",
        status_code=seen.status_code,
    )


def _language(page: Page, document: Document, policy: Policy) -> str | None:
    """The language of a page sticks: a page that changes hardly ever changes it, but a guess may slip."""
    if policy.redetect:
        return document.language or page.language
    return page.language or document.language


def _speaks_anew(page: Page, document: Document, policy: Policy) -> bool:
    """Whether a page is to be indexed in another language than it was; only where that was asked for."""
    language = _language(page, document, policy)
    return policy.redetect and search_config(page.language) != search_config(language)


def _doubted(page: Page, seen: Read, doubt: Doubt, policy: Policy, now: datetime) -> Decision:
    """Content that is not believed: what is on record stays, with a flag."""
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
        content=Content.KEEP,
        follow=Follow.STORED if page.content_hash is not None else Follow.NONE,
        next_at=next_regular_look(now, policy),
        doubtful=True,
        reason=f"{seen.status_code or 'read'}, but {doubt.text}",
        status_code=seen.status_code,
        error_message=doubt.text,
    )


def _follow(page: Page, seen: Read, policy: Policy) -> Follow:
    if policy.respect_nofollow and not seen.document.follow:
        return Follow.NONE
    on_record = page.content_hash is not None and page.moved_to is None
    unchanged = on_record and page.links_hash == seen.document.links_hash
    return Follow.STORED if unchanged else Follow.NEW


def _read_reason(page: Page, seen: Read, policy: Policy) -> str:
    code, content_hash = seen.status_code or "read", seen.document.content_hash
    if page.content_hash is None:
        return f"{code}, first content"
    if page.content_hash != content_hash:
        return f"{code}, content hash changed from {page.content_hash[:12]} to {content_hash[:12]}"
    if page.recipe != policy.recipe:
        return f"{code}, same content hash, made anew for another recipe"
    if _speaks_anew(page, seen.document, policy):
        return f"{code}, same content hash, made anew for another language"
    return f"{code}, same content hash {content_hash[:12]}"


def _rendered_reason(seen: Read) -> str:
    return f"; {seen.rendered}" if seen.rendered else ""


def _canonical_reason(document: Document) -> str:
    foreign = document.foreign_canonical
    return f"; its rel=canonical to another host is ignored: {foreign}" if foreign else ""


def _styles_reason(document: Document) -> str:
    return "; it has more styles than are read: hidden text may be in it" if document.styles_cut else ""


def _unwanted(page: Page, seen: Read, policy: Policy, now: datetime) -> Decision:
    """A page that asks not to be indexed: its links count, its content leaves."""
    after = replace(
        _answered(page, now),
        validators=Validators(),
        links_hash=seen.document.links_hash,
        links_left_out=seen.document.links_left_out,
        moved_to=None,
    )
    follow = Follow.NONE if policy.respect_nofollow and not seen.document.follow else Follow.NEW
    return Decision(
        page=after if page.content_hash is not None else replace(after, status=PageStatus.DELETED),
        outcome=Outcome.SUCCESS,
        content=Content.DROP,
        follow=follow,
        next_at=next_regular_look(now, policy),
        reason="the page asks not to be indexed (noindex)",
        status_code=seen.status_code,
    )


def _not_modified(page: Page, seen: NotModified, policy: Policy, now: datetime) -> Decision:
    if page.content_hash is None:
        broken = Failed(
            outcome=Outcome.FAILED,
            reason="not modified, but no content is on record",
            status_code=seen.status_code,
        )
        return _failed(replace(page, validators=Validators()), broken, policy, now)
    answered = page if seen.unasked else _answered(_observed(page, now, changed=False), now)
    flag = page.doubt if seen.unasked else flag_that_stays(page, policy)
    after = replace(
        answered,
        validators=page.validators.renewed(seen.validators),
        moved_to=None,
        doubt=flag,
        doubt_run=page.doubt_run if flag is not None else None,
    )
    return Decision(
        page=after,
        outcome=Outcome.NOT_MODIFIED,
        content=Content.KEEP,
        follow=Follow.STORED,
        next_at=next_look_after_answer(now, after, policy),
        reason=seen.unasked or _not_modified_reason(page.validators),
        status_code=seen.status_code,
    )


def _not_modified_reason(asked: Validators) -> str:
    if asked.etag:
        return f"304 by ETag {asked.etag}"
    if asked.last_modified:
        return f"304 by Last-Modified {asked.last_modified}"
    return "same size and modification time"


def _gone(page: Page, seen: Gone, policy: Policy, now: datetime) -> Decision:
    count = page.gone_count + 1
    proven = page.content_hash is None or count >= policy.gone_after
    after = replace(_undoubted(page), failures=0, gone_count=count, moved_to=None, checked_at=now)
    if page.content_hash is None:
        after = replace(after, status=PageStatus.DELETED)
    said = seen.reason or seen.status_code or "the file is not there"
    return Decision(
        page=after,
        outcome=Outcome.GONE,
        content=Content.DROP if proven else Content.KEEP,
        follow=Follow.NONE,
        next_at=None if proven else next_look_after_failure(now, count, policy),
        reason=f"{said}" if proven else f"{said}, {count} of {policy.gone_after} times in a row",
        status_code=seen.status_code,
    )


def _moved(page: Page, seen: Moved, policy: Policy, now: datetime) -> Decision:
    after = replace(  # its links on record give way to the target: only a full look brings them back
        _undoubted(page),
        failures=0,
        gone_count=0,
        moved_to=seen.to,
        validators=Validators(),
        links_hash=None,
        links_left_out=0,
        checked_at=now,
    )
    if page.content_hash is None:
        after = replace(after, status=PageStatus.REDIRECT)
    return Decision(
        page=after,
        outcome=Outcome.MOVED,
        content=Content.DROP,
        follow=Follow.NONE,
        next_at=next_regular_look(now, policy),
        reason=f"{seen.status_code or 'moved'}, permanently to {seen.to}",
        status_code=seen.status_code,
    )


def _without_answer(page: Page, now: datetime, strikes: int = 1) -> Page:
    """The page after a look that showed nothing: content, hashes and validators stay as they are."""
    status = page.status
    if page.content_hash is None and status == PageStatus.PENDING:
        status = PageStatus.ERROR
    return replace(page, failures=page.failures + strikes, status=status, checked_at=now)


def _refused(page: Page, seen: Refused, policy: Policy, now: datetime) -> Decision:
    settled = seen.validators is not None and page.content_hash is None
    after = _unreadable(page, seen, policy, now) if settled else _without_answer(page, now)
    later = next_look_after_failure(now, after.failures, policy) if policy.refusals_back_off else None
    return Decision(
        page=after,
        outcome=seen.outcome,
        content=Content.KEEP,
        follow=Follow.STORED if page.content_hash is not None else Follow.NONE,
        next_at=None if settled else later or next_regular_look(now, policy),
        refused=True,
        reason=_refused_reason(seen, "not read" if settled else "not fetched"),
        status_code=seen.status_code,
        error_message=seen.reason,
    )


def _refused_reason(seen: Refused, done: str) -> str:
    return seen.reason if seen.status_code is not None else f"{done}: {seen.reason}"


def _unreadable(page: Page, seen: Refused, policy: Policy, now: datetime) -> Page:
    """A page that holds nothing afresh reads: it is not opened again until the listing shows it changed."""
    return replace(
        page,
        status=PageStatus.ERROR,
        validators=seen.validators or Validators(),
        recipe=policy.recipe,
        failures=0,
        checked_at=now,
    )


def _failed(page: Page, seen: Failed, policy: Policy, now: datetime) -> Decision:
    after = _without_answer(page, now, strikes=int(seen.retry_after is None))  # being asked to wait is none
    if seen.poison is not None:
        after = _crashed(after, seen.poison)
    quarantined = seen.poison is not None and after.crashes >= CRASHES
    pauses = after.failures if seen.retry_after else max(1, after.failures)
    return Decision(
        page=after,
        outcome=seen.outcome,
        content=Content.KEEP,
        follow=Follow.STORED if page.content_hash is not None else Follow.NONE,
        next_at=next_look_after_failure(now, pauses, policy, seen.retry_after),
        retry=after.failures <= policy.retries and not (quarantined or seen.hopeless),
        doubtful=quarantined,
        reason=seen.reason,
        status_code=seen.status_code,
        error_message=seen.reason,
    )


def _crashed(page: Page, body_hash: str) -> Page:
    """A page on which the parser crashed; after a few times its body is not given to it again."""
    crashes = page.crashes + 1
    said = f"reading it crashed the parser {crashes} times" if crashes >= CRASHES else page.doubt
    return replace(page, crashes=crashes, doubt=said, doubt_hash=body_hash)
