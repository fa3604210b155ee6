import textutil


def label(number):
    return textutil.shorten(f"number {number}", 10)
