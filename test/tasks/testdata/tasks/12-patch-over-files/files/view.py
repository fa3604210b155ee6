def show(order):
    return f"{order.name}: {order.amount:.2f}"
