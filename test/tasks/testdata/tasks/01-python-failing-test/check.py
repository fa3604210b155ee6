from taskcheck import need, passes, run, untouched

untouched("test_pricing.py")
passes("python3", "-m", "unittest")
shown = passes("python3", "-c", "import pricing; print(pricing.discount(333, 10), pricing.discount(335, 10))")
need(shown.split() == ["33", "34"], "333 and 335 cents at 10 % give discounts of " + shown)
