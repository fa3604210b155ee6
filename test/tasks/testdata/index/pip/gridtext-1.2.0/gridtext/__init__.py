"""Tables of plain text, for the tests of Metier."""

__version__ = "1.2.0"


class Grid:
    """A table with columns of equal place."""

    def __init__(self, columns):
        self.columns = columns
        self.rows = []

    def add_row(self, *cells):
        """Adds a row of as many cells as the table has columns."""
        if len(cells) != self.columns:
            raise ValueError("a row has %d cells" % self.columns)
        self.rows.append(cells)

    def render(self):
        """The table as text, two spaces between columns."""
        widths = [max(len(row[i]) for row in self.rows) for i in range(self.columns)]
        return "".join("  ".join(c.ljust(w) for c, w in zip(row, widths)).rstrip() + "\n" for row in self.rows)
