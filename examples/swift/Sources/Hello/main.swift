// Opens the store "logs" and keeps one record in it.
import Cordwood

let engine = try Engine(directory: "logs")
let log = engine.logger("app.swift")
let (id, price, token) = (7, 2.5, "secret")
log.info("hello from Swift", fields: ["order": 7])
// Copied raw into the record, text is made when read; below the threshold nothing is evaluated.
log.warning("order \(id) at \(price, format: .fixed(2)) by \(token, privacy: .redacted)")
Context.with(["request": id]) { log.info("carries the request, as do the tasks started here") }
try engine.close()
