import unittest

import app


class AppTest(unittest.TestCase):
    def test_settings(self):
        self.assertEqual(app.settings()["workers"], 2)
