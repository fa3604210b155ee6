from lib.numbers import label
from textutil import title

print(title("a small report"))
for number in (7, 12345678):
    print(label(number))
