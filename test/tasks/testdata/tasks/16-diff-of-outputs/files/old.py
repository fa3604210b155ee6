for number in range(1, 13):
    price = number * 250
    if number % 4 == 0:
        price -= 100
    print(f"p{number:02d} {price / 100:.2f}")
