"""What can go wrong in an experiment on purpose: a wrong request, or data that is not as pinned."""

from __future__ import annotations


class ExperimentError(Exception):
    """Root of the harness's own errors; the message says what to do."""

    exit_status = 1


class UsageError(ExperimentError, ValueError):
    """The request itself is wrong: unknown key or option, missing value, size out of range."""

    exit_status = 2


class DataError(ExperimentError):
    """Data that was asked for is missing, unreadable, or not the pinned version."""

    exit_status = 2


class MissingDataError(DataError):
    """A data set that was asked for by name is nowhere to be found."""

    def __init__(self, title: str, message: str) -> None:
        """Keep what the data set is called beside what to do about it."""
        super().__init__(message)
        self.title = title


class RunFailedError(ExperimentError):
    """The experiment started and did not come to a result; a failed run was written."""
