# Opens the store "logs" and keeps one record in it.
import cordwood

with cordwood.open("logs") as engine:
    log = engine.logger("app.python")
    log.info("hello from %s", "Python", order=7)  # fields by keyword
