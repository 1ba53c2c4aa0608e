// The smallest Swift host, like consumer.c.

import Cordwood

let engine = try Engine(directory: CommandLine.arguments[1])
let log = engine.logger("consumer.swift")
log.info("hello")
log.info("fields", fields: ["order": .int(7), "user": .string("anna")])
try engine.close()
try engine.close()
