#!/bin/sh
# Makes .venv with afresh and its tools in it. Called by the Makefile; safe to run again.
# `setup.sh --group NAME` adds a further dependency group of pyproject.toml to a .venv that is there.
set -eu
cd "$(dirname "$0")/.."

say() { printf '%s\n' "· $*"; }

suits() {
    # A pyenv shim may exist without a Python behind it, and some systems ship Python without venv.
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    if [ -n "${PYTHON:-}" ]; then
        suits "$PYTHON" && { echo "$PYTHON"; return; }
        echo "PYTHON=$PYTHON is not a working Python 3.11 or newer with the venv module." >&2
        exit 2
    fi
    for name in python3.14 python3.13 python3.12 python3.11 python3 python; do
        if suits "$name"; then echo "$name"; return; fi
    done
    echo "afresh needs Python 3.11 or newer with the venv module (on Debian: python3-venv). Set PYTHON=… to name one." >&2
    exit 2
}

# Caches go to the home if it can be written, else nowhere; nothing else leaves the clone and TMPDIR.
cache="${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}"
if ! mkdir -p "$cache" 2>/dev/null || [ ! -w "$cache" ]; then
    export UV_NO_CACHE=1 PIP_NO_CACHE_DIR=1
fi
export PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
log="$(mktemp)"
trap 'rm -f "$log"' EXIT

run() { "$@" >"$log" 2>&1; }
show() { tail -n 20 "$log" >&2; }

# The scripts in .venv know their place, so a clone that was moved gets a new one.
moved() { [ -f .venv/.installed ] && [ "$(cat .venv/.installed)" != "$(pwd)" ]; }

if moved || ! .venv/bin/python -c 'import pip' >/dev/null 2>&1; then
    python="$(find_python)"
    say "creating .venv with $("$python" --version 2>&1)"
    run "$python" -m venv --clear .venv || { show; exit 1; }
fi

with_uv() {
    [ "${AFRESH_NO_UV:-}" = "" ] || return 1
    run .venv/bin/python -m uv --version ||
        run .venv/bin/python -m pip install --quiet -c constraints.txt uv || return 1
    run .venv/bin/python -m uv pip install --quiet --compile-bytecode --python .venv/bin/python \
        -e . --group "$group" -c constraints.txt
}

with_pip() {
    run .venv/bin/python -m pip install --quiet --upgrade 'pip>=25.1' &&
        run .venv/bin/python -m pip install --quiet -e . --group "$group" -c constraints.txt
}

group=dev
[ "${1:-}" = "--group" ] && group="$2"

say "installing afresh and its tools ($group)"
if ! with_uv; then
    say "installing with pip (uv is not at hand; this takes a minute or two)"
    with_pip || { show; exit 1; }
fi

pwd >.venv/.installed
say "ready"
