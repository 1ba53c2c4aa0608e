"""Like transactions.c, in Python: names come from enums. transactions.py STORE URL"""
import enum
import sys

import cordwood


class Usecase(enum.IntEnum):
    CHECKOUT = 17


class Event(enum.IntEnum):
    BEGUN = 0
    PAID = 1


with cordwood.open(sys.argv[1]) as engine:
    engine.add_target(sys.argv[2], kind="transactions", name="transactions", auth_token="token")
    with engine.transaction(Usecase.CHECKOUT) as checkout:  # records inside carry the id
        checkout.event(Event.BEGUN)
        for name, value in checkout.headers().items():
            print(f"{name}: {value}")
        checkout.event(Event.PAID, error_code="42", error_description="the card was refused")
    print(engine.flush_transactions(timeout=30).records, "events sent")
