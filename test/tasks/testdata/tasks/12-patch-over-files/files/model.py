from dataclasses import dataclass


@dataclass
class Order:
    name: str
    amount: float
