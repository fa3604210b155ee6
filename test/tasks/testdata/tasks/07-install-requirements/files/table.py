from gridtext import Grid

COUNTS = {"apples": 12, "pears": 7, "figs": 110}

grid = Grid(columns=2)
for name, count in COUNTS.items():
    grid.add_row(str(count), name)
with open("table.txt", "w", encoding="utf-8") as f:
    f.write(grid.render())
print("written")
