"""The leaderboard: runs become rows in a store, and a store becomes one table. Knows nothing of what shows it."""

from truegap.leaderboard.row import Row, row_of
from truegap.leaderboard.store import LocalStore, Receipt, default_store
from truegap.leaderboard.table import COLUMNS, search, table

__all__ = ["COLUMNS", "LocalStore", "Receipt", "Row", "default_store", "row_of", "search", "table"]
