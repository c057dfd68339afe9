"""The one error that a user's mistake raises; commands print it as one line and exit with 2."""


class UserError(Exception):
    """Something the user can mend: says what was wrong, where (file, row, id), and what to do."""


def first_line(error: BaseException) -> str:
    """An error's first line that says something, without control characters and cut to a readable length."""
    lines = ["".join(filter(str.isprintable, line)).strip() for line in str(error).splitlines()]
    lines = [line for line in lines if line]
    return (lines[0] if lines else type(error).__name__)[:300]
