import os

from taskcheck import need, passes, text, untouched

untouched("CHANGELOG.md")
for path in ("shop/orders.py", "shop/invoice.py", "shop/report.py", "README.md", "test_shop.py"):
    need("calc_total" not in text(path), path + " has the old name")
    need("order_total" in text(path), path + " does not have the new name")
passes("python3", "-m", "unittest")
