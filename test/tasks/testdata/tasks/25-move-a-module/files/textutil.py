"""Small helpers for text."""


def shorten(text, width):
    """The text, cut to the width with an ellipsis."""
    return text if len(text) <= width else text[: width - 1] + "…"


def title(text):
    return " ".join(word.capitalize() for word in text.split())
