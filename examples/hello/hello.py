# Keeps a record in the store "logs".
import cordwood
with cordwood.open("logs") as engine:
    log = engine.logger("app.python")  # or logging.getLogger().addHandler(cordwood.Handler(engine))
    log.info("hello from %s", "Python", order=7)  # fields by keyword
