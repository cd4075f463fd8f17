#!/bin/sh
# Brings the browser that tests show pages in: the one that is there, else Debian's, else Playwright's own.
# Called by the Makefile after setup.sh; safe to run again.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "· $*"; }

there() {
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        if command -v "$name" >/dev/null 2>&1; then return 0; fi
    done
    # Playwright knows where its own would be.
    .venv/bin/python -c '
from pathlib import Path
from playwright.sync_api import sync_playwright
with sync_playwright() as playwright:
    raise SystemExit(not Path(playwright.chromium.executable_path).exists())' 2>/dev/null
}

log="$(mktemp)"
trap 'rm -f "$log"' EXIT
run() { "$@" >"$log" 2>&1; }

from_debian() {
    [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 || return 1
    export DEBIAN_FRONTEND=noninteractive
    run apt-get update && run apt-get install --yes --no-install-recommends chromium
}

if there; then exit 0; fi
say "fetching Chromium for the tests that need a browser"
if from_debian || run .venv/bin/python -m playwright install chromium; then exit 0; fi
tail -n 5 "$log" >&2
say "no Chromium: tests that need one will fail (on Debian: apt install chromium)"
