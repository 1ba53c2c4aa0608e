// Keeps two records in the store "logs".
import Cordwood
let engine = try Engine(directory: "logs")
let log = engine.logger("app.swift")
let (id, price, token) = (7, 2.5, "secret")
log.info("hello from Swift", fields: ["order": 7])
log.warning("order \(id) at \(price, format: .fixed(2)) by \(token, privacy: .redacted)")
try engine.close()
