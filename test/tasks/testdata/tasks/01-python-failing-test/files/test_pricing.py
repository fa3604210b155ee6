import unittest

import pricing


class PricingTest(unittest.TestCase):
    def test_subtotal(self):
        self.assertEqual(pricing.subtotal([(2, 150), (1, 99)]), 399)

    def test_discount_is_rounded(self):
        self.assertEqual(pricing.discount(999, 15), 150)

    def test_discount_rounds_down_too(self):
        self.assertEqual(pricing.discount(401, 10), 40)

    def test_total(self):
        self.assertEqual(pricing.total([(1, 999)], 15), 849)


if __name__ == "__main__":
    unittest.main()
