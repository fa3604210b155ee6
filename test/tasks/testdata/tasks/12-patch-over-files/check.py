from taskcheck import need, passes, text

shown = passes("python3", "-c", """
import export, model, view
orders = [model.Order("a", 1.0), model.Order("b", 2.5, "CHF")]
print(view.show(orders[0]), view.show(orders[1]), export.to_csv(orders), sep="\\n", end="")
""")
want = "a: 1.00 EUR\nb: 2.50 CHF\nname,amount,currency\na,1.00,EUR\nb,2.50,CHF\n"
need(shown == want, "orders are shown and written as:\n" + shown)
need("currency" in text("NOTES.md").lower(), "NOTES.md says nothing of the currency")
