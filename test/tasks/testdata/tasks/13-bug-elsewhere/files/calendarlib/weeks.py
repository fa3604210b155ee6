from datetime import timedelta

from calendarlib.holidays import is_holiday

SATURDAY = 5


def is_workday(day):
    return day.weekday() < SATURDAY and not is_holiday(day)


def next_workday(day):
    day += timedelta(days=1)
    while not is_workday(day):
        day += timedelta(days=1)
    return day
