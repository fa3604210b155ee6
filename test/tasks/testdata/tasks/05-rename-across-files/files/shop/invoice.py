from shop.orders import calc_total


def render(order):
    rows = [f'{item["name"]}: {item["price"] * item["count"]}' for item in order["items"]]
    rows.append(f"total: {calc_total(order)}")
    return "\n".join(rows)
