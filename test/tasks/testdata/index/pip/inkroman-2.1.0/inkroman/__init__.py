"""Roman numerals, for the tests of Metier."""

_SIGNS = (
    (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
    (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
)


def to_roman(number):
    """The number, from 1 to 3999, in Roman numerals."""
    if not 1 <= number <= 3999:
        raise ValueError("Roman numerals go from 1 to 3999")
    text = ""
    for value, sign in _SIGNS:
        text += sign * (number // value)
        number %= value
    return text


def from_roman(text):
    """The number of Roman numerals that to_roman wrote."""
    for number in range(1, 4000):
        if to_roman(number) == text:
            return number
    raise ValueError(text + " is no Roman numeral")


class Dial:
    """The face of a clock."""

    def __init__(self, hours=12):
        self.hours = hours

    def numerals(self):
        """The numerals of the face, from the first hour on."""
        return [to_roman(hour) for hour in range(1, self.hours + 1)]

    def opposite(self, hour):
        """The numeral across from an hour."""
        return to_roman((hour - 1 + self.hours // 2) % self.hours + 1)
