"""Runs as jobs: what an agent is told of them."""

from tests.fakes.records import report

from afresh.server.mcp.answers import error_line
from afresh.server.mcp.run_tools import job_of, line_of
from afresh.sync.reports import DocumentCounts


def test_R9_a_sync_is_a_job_with_the_counts_of_its_documents() -> None:
    job = job_of(report(run=12, mode="sync", documents=DocumentCounts(uploaded=3, stuck=1)))
    assert (job.mode, job.documents) == (
        "sync",
        {
            **dict.fromkeys(("replaced", "deleted", "adopted", "verified", "waiting", "failed"), 0),
            "uploaded": 3,
            "stuck": 1,
        },
    )
    assert line_of(job).endswith("documents: 3 uploaded, 1 stuck")
    assert job_of(report()).documents is None


def test_errors_speak_of_jobs_and_libraries() -> None:
    assert error_line("there is no run 999; `afresh runs` lists the latest runs").startswith("there is no job 999; ")
    assert (
        error_line("there is no source nosuch; did you mean docs?") == "there is no library nosuch; did you mean docs?"
    )
    assert error_line("source 3 is busy: run 12 is still active") == "source 3 is busy: job 12 is still active"
