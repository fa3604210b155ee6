import unittest

from shop import invoice, orders, report

ORDER = {"items": [{"name": "pen", "price": 120, "count": 2}]}


class ShopTest(unittest.TestCase):
    def test_total(self):
        self.assertEqual(orders.calc_total(ORDER), 240)

    def test_invoice(self):
        self.assertTrue(invoice.render(ORDER).endswith("total: 240"))

    def test_biggest(self):
        self.assertIs(report.biggest([{"items": []}, ORDER]), ORDER)
