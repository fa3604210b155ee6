from calendarlib.weeks import next_workday


def deliveries(first, count):
    """The days of count deliveries, one each workday from the first on."""
    days = [first]
    while len(days) < count:
        days.append(next_workday(days[-1]))
    return days
