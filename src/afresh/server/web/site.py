"""The site: every page, and what everybody may see of it."""

from fastapi import APIRouter

from afresh.server.web import (
    adding,
    assets,
    charts,
    live,
    login,
    overview,
    pages,
    runs,
    search,
    settings,
    sources,
)
from afresh.server.web.frame import trouble

__all__ = ["OPEN", "ROUTERS", "trouble"]

OPEN: tuple[APIRouter, ...] = (assets.router, login.router)  # without a token
ROUTERS: tuple[APIRouter, ...] = (
    overview.router,
    live.router,
    adding.router,
    sources.router,
    settings.router,
    charts.router,
    pages.router,
    runs.router,
    search.router,
)
