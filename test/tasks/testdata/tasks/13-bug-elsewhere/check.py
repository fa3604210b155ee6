from taskcheck import need, passes, untouched

untouched("test_schedule.py", "schedule.py", "calendarlib/weeks.py")
passes("python3", "-m", "unittest")
shown = passes("python3", "-c", "from datetime import date; from calendarlib.holidays import is_holiday as h; "
    "print(h(date(2025, 5, 1)), h(date(2025, 1, 5)), h(date(2025, 12, 26)))")
need(shown.split() == ["True", "False", "True"], "1 May, 5 January and 26 December: holidays? " + shown)
