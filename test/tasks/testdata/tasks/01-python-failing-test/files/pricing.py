"""Prices of an order, in cents."""


def subtotal(lines):
    return sum(quantity * price for quantity, price in lines)


def discount(amount, percent):
    """What is taken off the amount, rounded to the nearest cent."""
    return amount * percent // 100


def total(lines, percent=0):
    amount = subtotal(lines)
    return amount - discount(amount, percent)
