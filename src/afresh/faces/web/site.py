"""The site: every page, and what everybody may see of it."""

from fastapi import APIRouter

from afresh.faces.web import assets, login, overview
from afresh.faces.web.frame import trouble

__all__ = ["OPEN", "ROUTERS", "trouble"]

OPEN: tuple[APIRouter, ...] = (assets.router, login.router)  # without a token
ROUTERS: tuple[APIRouter, ...] = (overview.router,)
