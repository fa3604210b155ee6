import unittest
from datetime import date

from schedule import deliveries


class ScheduleTest(unittest.TestCase):
    def test_weekend(self):
        self.assertEqual(deliveries(date(2025, 3, 7), 2), [date(2025, 3, 7), date(2025, 3, 10)])

    def test_christmas(self):
        self.assertEqual(deliveries(date(2025, 12, 24), 2)[1], date(2025, 12, 29))

    def test_fifth_of_january(self):
        self.assertEqual(deliveries(date(2026, 1, 2), 2)[1], date(2026, 1, 5))
