"""What can go wrong, in the words of the command."""

from __future__ import annotations


class CommqError(Exception):
    """commq could not do what it was asked to.

    ``str()`` of it is what the command said, without ``commq: `` before it.
    """

    #: Exit status of the command; None if it did not run.
    status: int | None

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.status = status

    def __str__(self) -> str:
        return self.message


class UsageError(CommqError):
    """Exit status 2: the question was wrong, or the run cannot answer it."""


class RunNotFound(UsageError, KeyError):
    """No run of that name is in the store."""


class RunUnreadable(UsageError):
    """The run is there and cannot be read: it is damaged, or of another version of the schema."""


class CheckFailed(CommqError):
    """Exit status 1: a check failed."""


class ProgramFailed(CommqError):
    """The captured program ended with another exit status than 0, or by a signal.

    What was recorded until then is a run all the same: see ``run``.
    """

    def __init__(self, message: str, status: int | None = None, run: object = None) -> None:
        super().__init__(message, status)
        #: The run, a :class:`commq.Run`; None if there is none.
        self.run = run


class CommandNotFound(CommqError, FileNotFoundError):
    """There is no command commq: neither beside this package, nor in ``$PATH``."""
