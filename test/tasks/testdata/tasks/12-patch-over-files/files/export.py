import csv
import io


def to_csv(orders):
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["name", "amount"])
    for order in orders:
        writer.writerow([order.name, f"{order.amount:.2f}"])
    return out.getvalue()
