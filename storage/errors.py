"""What can go wrong in the store. Nothing here is ever turned into ``None``.

```text
StorageError
├── StoreUnreadable     the file is not ours, is damaged, or can't be opened
├── StoreTooNew         written by a newer version of this program
├── StoreBusy           another program held the write lock for longer than we wait
├── UnknownTask         no such task or call in the store
├── UnknownQuestion     no such question in the store
└── QuestionClosed      the question is no longer open: answered, withdrawn, or replaced
```
"""

from __future__ import annotations


class StorageError(Exception):
    """Something went wrong in the store; the message says what and what to do."""


class StoreUnreadable(StorageError):
    """The database can't be opened or read."""


class StoreTooNew(StorageError):
    """The database was written by a newer version of this program."""


class StoreBusy(StorageError):
    """Another program held the write lock for longer than we wait."""


class UnknownTask(StorageError):
    """The store holds no such task or call."""


class UnknownQuestion(StorageError):
    """The store holds no such question."""


class QuestionClosed(StorageError):
    """The question is no longer open, so nothing was saved for it."""
