"""The leaderboard: runs become rows in a store, requests become runs, and a store becomes one table.

Knows nothing of what shows it.
"""

from truegap.leaderboard.ask import ask
from truegap.leaderboard.checks import PROTOCOLS
from truegap.leaderboard.limits import Limits
from truegap.leaderboard.local_store import LocalStore
from truegap.leaderboard.local_user import local_user
from truegap.leaderboard.opening import default_store, open_store
from truegap.leaderboard.request import Request
from truegap.leaderboard.row import Row, row_of
from truegap.leaderboard.store import Contents, Queue, Receipt, Store
from truegap.leaderboard.table import COLUMNS, search, table
from truegap.leaderboard.worker import keep_working, start_worker, work

__all__ = [
    "COLUMNS",
    "PROTOCOLS",
    "Contents",
    "Limits",
    "LocalStore",
    "Queue",
    "Receipt",
    "Request",
    "Row",
    "Store",
    "ask",
    "default_store",
    "keep_working",
    "local_user",
    "open_store",
    "row_of",
    "search",
    "start_worker",
    "table",
    "work",
]
