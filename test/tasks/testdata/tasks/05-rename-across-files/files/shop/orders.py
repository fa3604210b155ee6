def calc_total(order):
    """The sum of an order, in cents."""
    return sum(item["price"] * item["count"] for item in order["items"])


def is_free(order):
    return calc_total(order) == 0
