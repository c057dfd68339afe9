"""The one error that a user's mistake raises; commands print it as one line and exit with 2."""


class UserError(Exception):
    """Something the user can mend: says what was wrong, where (file, row, id), and what to do."""
