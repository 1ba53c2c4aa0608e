"""The mutations of the collector: see table.py."""

from entry import STORE, mutation

COLLECTOR = "Sources/CordwoodCollector/"

mutation("collector", "tokens-are-read-once", COLLECTOR + "Upkeep.swift",
         "        let problem = tokens.lookAgain()\n", "        let problem: String? = nil\n",
         "servers door.tokens_of_a_file", "a token that was removed still opens the door")
mutation("collector", "an-empty-file-counts", COLLECTOR + "Tokens.swift",
         "        guard !tokens.isEmpty else {", "        guard true else {",
         "servers door.tokens_of_a_file", "a file caught while it is written shuts everyone out")
mutation("collector", "health-is-always-ok", COLLECTOR + "RequestCheck.swift",
         "problem.map { Answer($0) } ?? .healthy", ".healthy",
         "servers door.readiness", "a balancer sends clients to a collector that stores nothing")
mutation("collector", "health-waits-for-a-client", COLLECTOR + "Upkeep.swift",
         "        depot.tryAgain()\n", "",
         "servers door.readiness", "a collector that nobody is sent to never becomes well")
mutation("collector", "a-body-after-head", COLLECTOR + "Connection.swift",
         "        if hasBody {\n", "        if true {\n",
         "swift RefusalTests/testHeadHasNoBody", "the body is taken for the next answer")
mutation("send", "flat-fields-only-where-any", STORE + "Lines/JSONLine.swift",
         "object += \"{}\".utf8", "return",
         "swift TextEncoderTests/testHostileNDJSON", "the lines have two shapes")
