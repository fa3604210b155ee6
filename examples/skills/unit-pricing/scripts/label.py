#!/usr/bin/env python3
"""Work out a shelf label by the rules of SKILL.md, and print it with its working.

    label.py --product Rice --price 0.938 --content 0.4 --per 1 --unit kg

Needs Python 3.9 and nothing else. Prints the same for the same arguments.
"""

import argparse
import sys
from fractions import Fraction

LETTERS = "ABCDEFHJKLMNPRSTUVWXYZQ"  # no G, I or O; Q comes last


def number(text):
    """Read an exact decimal number that is not negative."""
    try:
        value = Fraction(text.replace(",", "."))
    except (ValueError, ZeroDivisionError):
        raise argparse.ArgumentTypeError(f"{text!r} is no number: write it like 3.49") from None
    if value < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is negative")
    return value


def half_down(value, decimals):
    """Round to a whole number of the last decimal; a half goes down."""
    shifted = value * 10**decimals
    whole = shifted.numerator // shifted.denominator
    return whole + (1 if shifted - whole > Fraction(1, 2) else 0)


def main():
    parser = argparse.ArgumentParser(description="Work out a shelf label.")
    parser.add_argument("--product", required=True)
    parser.add_argument("--price", required=True, type=number, help="shelf price in euros, deposit included")
    parser.add_argument("--deposit", default=Fraction(0), type=number, help="deposit in euros")
    parser.add_argument("--content", required=True, type=number, help="net content of all packs together")
    parser.add_argument("--per", required=True, type=number, help="size of the unit: 1, 10, 100 or 0.75")
    parser.add_argument("--unit", required=True, help="what content and size are counted in: kg, g, litre, piece, sheets, wash")
    args = parser.parse_args()
    if args.content == 0 or args.per == 0:
        parser.error("the content and the size of the unit must be more than 0")
    if args.deposit > args.price:
        parser.error("the deposit is more than the price")

    exact = (args.price - args.deposit) * args.per / args.content
    decimals = 3 if exact < 1 else 2
    rounded = half_down(exact, decimals)
    shown = f"{rounded // 10**decimals}.{rounded % 10**decimals:0{decimals}d}"
    remainder = (rounded + 17) % 23
    per = f"{float(args.per):g} {args.unit}"
    cents = half_down(args.price * 1000, 0)
    price = f"{cents // 1000}.{cents % 1000:03d}"
    price = price[:-1] if price.endswith("0") else price

    print(f"LARK | {args.product} | {price} EUR | {shown} EUR per {per} | {LETTERS[remainder]}")
    print(f"exact: {exact.numerator}/{exact.denominator}")
    print(f"rounded: {shown}")
    print(f"remainder: ({rounded} + 17) mod 23 = {remainder}, letter {LETTERS[remainder]}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
