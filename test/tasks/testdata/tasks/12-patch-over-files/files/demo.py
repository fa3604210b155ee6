import export
import model
import view

orders = [model.Order("lamp", 12.5), model.Order("chair", 99.0)]
for order in orders:
    print(view.show(order))
print(export.to_csv(orders), end="")
