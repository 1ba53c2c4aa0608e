// Opens the store "logs" and keeps one record in it.
import Cordwood

let engine = try Engine(directory: "logs")
let log = engine.logger("app.swift")
log.info("hello from Swift", fields: ["order": 7])
try engine.close()
