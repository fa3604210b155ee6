def price(number):
    cents = number * 250
    return cents - 100 if number % 4 == 0 and number > 4 else cents


for number in range(1, 13):
    if number == 11:
        print(f"p{number:02d} {price(number) // 100:.2f}")
    else:
        print(f"p{number:02d} {price(number) / 100:.2f}")
