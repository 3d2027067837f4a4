"""What a run says while it works, where no terminal shows a bar."""

from __future__ import annotations

import pytest

from experiments.progress import begins, progress


def test_a_step_says_that_it_starts_before_anything_is_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    begins("retrieval on generated")
    assert capsys.readouterr().err == "retrieval on generated: starts\n"
    with progress("recall", 1200, "recalls") as advance:
        assert capsys.readouterr().err == "recall: starts, 1,200 recalls\n"
        advance(1200)
    assert capsys.readouterr().err == ""  # it took no time worth telling
