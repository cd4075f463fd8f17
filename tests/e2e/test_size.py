"""P11: a crawl stays as small as it began, however much it reads or has to read; soak/ does it at length."""

import pytest
from soak import frontier, pages


def test_F112_memory_descriptors_and_threads_stay_flat(capsys: pytest.CaptureFixture[str]) -> None:
    """In so short a crawl caches still fill, so memory gets more room than in the long one."""
    assert pages.main(["--pages", "700", "--growth", "25"]) == 0
    assert "700 pages" in capsys.readouterr().out


def test_P11_many_addresses_in_the_queue_cost_little(capsys: pytest.CaptureFixture[str]) -> None:
    assert frontier.main(["--urls", "3000", "--megabytes", "300"]) == 0
    assert "addresses queued" in capsys.readouterr().out
