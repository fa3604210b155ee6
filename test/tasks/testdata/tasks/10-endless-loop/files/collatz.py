"""How many steps the Collatz sequence takes from a number down to 1."""


def steps(number):
    count = 0
    while number != 1:
        if number % 2 == 0:
            number = number // 2
        else:
            number = 3 * number - 1
        count += 1
    return count


if __name__ == "__main__":
    with open("steps.txt", "w", encoding="utf-8") as f:
        for number in range(1, 31):
            f.write(f"{number} {steps(number)}\n")
