"""The site: every page, and what everybody may see of it."""

from fastapi import APIRouter

from afresh.faces.web import (
    adding,
    assets,
    live,
    login,
    overview,
    pages,
    pictures,
    runs,
    searching,
    settings,
    sources,
)
from afresh.faces.web.frame import trouble

__all__ = ["OPEN", "ROUTERS", "trouble"]

OPEN: tuple[APIRouter, ...] = (assets.router, login.router)  # without a token
ROUTERS: tuple[APIRouter, ...] = (
    overview.router,
    live.router,
    adding.router,
    sources.router,
    settings.router,
    pictures.router,
    pages.router,
    runs.router,
    searching.router,
)
