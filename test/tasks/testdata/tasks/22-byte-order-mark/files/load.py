import csv
import sys


def read(path):
    with open(path, newline="", encoding="utf-8") as f:
        return list(csv.DictReader(f))


rows = read("stock.csv")
if rows and "id" not in rows[0]:
    sys.exit("the column id is missing")
with open("total.txt", "w", encoding="utf-8") as f:
    for row in rows:
        f.write(f"{row['id']}={row['count']}\n")
