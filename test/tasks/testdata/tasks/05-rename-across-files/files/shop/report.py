from shop import orders


def biggest(all_orders):
    return max(all_orders, key=lambda order: orders.calc_total(order))
