"""The web interface: server-rendered pages for people, built on the same services as the other interfaces."""

from fastapi import APIRouter

from afresh.server.web import frame, login, pages, runs, search, settings, sources

OPEN: tuple[APIRouter, ...] = (frame.assets_router, login.router)  # without a token
ROUTERS: tuple[APIRouter, ...] = (sources.router, settings.router, pages.router, runs.router, search.router)
