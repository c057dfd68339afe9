"""The leaderboard's pages for reading, as HTML made on the server: rows in, pages out. Knows nothing of Gradio.

Everything that a visitor can look at is a query (`View`), so that every view is an address. What rows say is foreign
text: templates escape it, and the pages allow no script but their own.
"""

from truegap.leaderboard.site.asgi import Site
from truegap.leaderboard.site.narrow import Narrow
from truegap.leaderboard.site.pages import Pages
from truegap.leaderboard.site.view import View, parse

__all__ = ["Narrow", "Pages", "Site", "View", "parse"]
