"""Log in with a token, and log out."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from afresh.server.auth import UNKNOWN, allowed_of, cookie_header, cookie_of
from afresh.server.request_checks import RateLimiter, caller, peer_of, too_many
from afresh.server.requests import Kb
from afresh.server.web.frame import PageRoute, form_of, is_ours, redirect, show

router = APIRouter(include_in_schema=False, route_class=PageRoute)


@router.get("/login")
async def ask(request: Request, kb: Kb, place: Annotated[str, Query(alias="to", max_length=2_000)] = "/") -> Response:
    allowed_of(request.scope)  # reveals no source
    cookie = cookie_of(request.scope) if "authorization" not in request.headers else None
    if cookie and await kb.tokens.permissions_of_login(cookie) is not None:
        return redirect(place if is_ours(place) else "/")
    return show(request, "login.html", place=place, wrong=None, any_token=await kb.tokens.exist())


@router.post("/login")
async def log_in(request: Request, kb: Kb) -> Response:
    allowed_of(request.scope)  # open to everyone
    guesses: RateLimiter = request.app.state.guesses
    form = await form_of(request)
    token, place = form.get("token", "").strip(), form.get("to", "/")
    if (login := await kb.tokens.log_in(token)) is None:
        request.app.state.failures.record(request.scope)
        if wait := guesses.take(caller(peer_of(request.scope))):
            raise too_many(wait)
        return show(request, "login.html", 401, place=place, wrong=UNKNOWN, any_token=await kb.tokens.exist())
    answer = redirect(place if is_ours(place) else "/")
    answer.headers["set-cookie"] = cookie_header(request.scope, login)
    return answer


@router.post("/logout")
async def log_out(request: Request, kb: Kb) -> Response:
    allowed_of(request.scope)  # reveals no source
    if cookie := cookie_of(request.scope):
        await kb.tokens.log_out(cookie)
    answer = redirect("/login")
    answer.headers["set-cookie"] = cookie_header(request.scope, "")
    return answer
