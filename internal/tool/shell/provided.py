import os
import re
import sys

# Prints the names of the distributions that this Python has. Directories that it does
# not look in by itself come as arguments. Nothing is imported from any of them.
print("metier-packages 1")
for place in sys.argv[1:] + sys.path:
    try:
        names = os.listdir(place)
    except OSError:
        continue
    for name in names:
        found = re.match(r"([A-Za-z0-9._]+?)(-.*)?\.(dist|egg)-info$", name)
        if found:
            print(found.group(1))
