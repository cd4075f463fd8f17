#!/bin/sh
# Installs afresh as users do, into build/smoke-…, and runs the demo and some tests there:
#   smoke.sh lowest    with the lowest versions that pyproject.toml allows
#   smoke.sh newest    on the newest Python of this machine, with the newest versions that it allows
# Called by the Makefile after setup.sh; further arguments go to pytest. Needs uv.
set -eu
cd "$(dirname "$0")/.."
what="$1"
shift
TOOLS="pytest pytest-asyncio pytest-xdist hypothesis packaging pywhatwgurl snowballstemmer"
TESTS="tests/urls tests/config tests/extract tests/search tests/sources/web
    tests/server/test_rest.py tests/server/test_mcp_jobs.py tests/server/test_serve.py tests/server/web/test_formats.py"

say() { printf '%s\n' "· $*"; }

works() { "$1" -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

newest() {
    for minor in 15 14 13 12; do
        for python in "python3.$minor" "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3."$minor".*/bin/python; do
            if works "$python"; then echo "$python"; return; fi
        done
    done
    echo .venv/bin/python
}

python=.venv/bin/python
resolution=lowest-direct
[ "$what" = lowest ] || { python="$(newest)"; resolution=highest; }
place="build/smoke-$what"
say "installing afresh on $("$python" --version) with the $what versions that it allows"
.venv/bin/python -m uv venv --quiet --clear --python "$python" "$place"
requirements="$place/requirements.txt"
uv() { .venv/bin/python -m uv pip "$@" --quiet --index-strategy unsafe-best-match --python "$place/bin/python"; }
uv compile pyproject.toml --extra browser --extra postgres --resolution "$resolution" --no-header --no-annotate \
    --output-file "$requirements" >/dev/null
# shellcheck disable=SC2086 # the tools are words
uv install --compile-bytecode --requirement "$requirements" $TOOLS
uv install --no-deps .

say "the demo"
"$place/bin/afresh" demo >"$place/demo.txt"
say "some tests"
"$place/bin/python" -c 'import ada_url' 2>/dev/null || TESTS="${TESTS#tests/urls }"  # they compare with it
# shellcheck disable=SC2086 # so are the tests
PYTHONDONTWRITEBYTECODE='' "$place/bin/python" -m pytest -n auto --dist loadfile -m "not slow" \
    --hypothesis-profile=quick ${*:-$TESTS}

[ "$what" = newest ] || exit 0
say "the demo without ada-url and PyStemmer, as on a Python that they have no wheel for"
.venv/bin/python -m uv pip uninstall --quiet --python "$place/bin/python" ada-url pystemmer
"$place/bin/afresh" demo >"$place/demo-without.txt"
