"""The exceptions of the ledger, and when each is raised.

    CheapGPUError
    └── LedgerError            the ledger did not do what was asked; nothing of it is kept
        ├── MoneyError         a price or an amount that cannot be kept exactly
        ├── FactError          a fact that contradicts itself
        ├── ConflictError      it contradicts what is recorded already
        ├── UnknownError       there is no such account or attempt
        ├── IllegalError       the schema refused it: a fault of the program that asked
        ├── BusyError          too many operations wait; try again later
        ├── UnavailableError   the file could not be written
        ├── ClosedError        the store is closed
        ├── InUseError         another process has the file
        └── MigrationError     the file is of another version, or no ledger

What a buyer may run into (no funds, a limit, a key used twice) is an answer, not an exception:
`facts.Refused`.
"""

from cheapgpu.core.errors import CheapGPUError


class LedgerError(CheapGPUError):
    """The ledger did not do what was asked of it, and nothing of it is kept."""


class MoneyError(LedgerError):
    """A price or an amount cannot be kept exactly, or is out of range."""


class FactError(LedgerError):
    """A fact contradicts itself or is out of range; it was not written."""


class ConflictError(LedgerError):
    """What is asked contradicts what is recorded already, which stays as it is."""


class UnknownError(LedgerError):
    """There is no such account or attempt, or it is of another kind."""


class IllegalError(LedgerError):
    """The schema refused a transition; the program that asked for it is at fault."""


class BusyError(LedgerError):
    """As many operations wait as may; nothing was done, and it may be tried again."""


class UnavailableError(LedgerError):
    """The file could not be written: nothing was acknowledged; the message says what to do."""


class ClosedError(LedgerError):
    """The store was closed before it took this operation."""


class InUseError(LedgerError):
    """Another process, or another store of this one, writes this file."""


class MigrationError(LedgerError):
    """The file is no ledger, or of another version than this program knows."""
