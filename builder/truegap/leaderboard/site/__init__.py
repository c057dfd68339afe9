"""The leaderboard's pages for reading, as HTML made on the server, and its API. Knows nothing of Gradio.

Everything that a visitor can look at is a query (`View`), so that every view is an address. What rows say is foreign
text: templates escape it, and the pages allow no script but their own.
"""

from truegap.leaderboard.site.api import Api, NotAllowedError
from truegap.leaderboard.site.asgi import Site
from truegap.leaderboard.site.narrow import Narrow
from truegap.leaderboard.site.pages import Pages
from truegap.leaderboard.site.throttle import Rates, Throttle
from truegap.leaderboard.site.view import View, parse
from truegap.leaderboard.site.visitors import is_here

__all__ = ["Api", "Narrow", "NotAllowedError", "Pages", "Rates", "Site", "Throttle", "View", "is_here", "parse"]
