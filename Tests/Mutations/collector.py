"""The mutations of the collector: see table.py."""

from entry import STORE, mutation

COLLECTOR = "Sources/CordwoodCollector/"

mutation("collector", "tokens-are-read-once", COLLECTOR + "Upkeep.swift",
         "        let problem = tokens.lookAgain(depot.senders)\n",
         "        let problem: String? = nil\n",
         "servers door.tokens_of_a_file", "a token that was removed still opens the door")
mutation("collector", "an-empty-file-counts", COLLECTOR + "Tokens.swift",
         "        guard !clients.isEmpty else {", "        guard true else {",
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
MODEL = "swift ClientsTests/testEachClientsRecordsAreAsItSentThem"
WHOSE = "swift SendersTests/testWhoseALaneIs"

mutation("client", "lanes-are-everybodys", COLLECTOR + "ArchiveTable.swift",
         "                case .another: foreign = foreign ?? (lane, owner ?? 0)\n",
         "                case .another: break\n",
         MODEL, "any client adds records to a device's lane")
mutation("client", "a-restart-forgets", COLLECTOR + "Depot.swift",
         "            if !claims.isEmpty { try senders.note(claims, new.sender) }\n", "",
         MODEL, "after a restart, the next client has the lane")
mutation("client", "the-first-two-have-it", COLLECTOR + "ArchiveTable.swift",
         "$0.name == nil && $0.client != client", "$0.name == nil && $0.client == 0",
         "swift SendersTests/testTwoAtOnce",
         "two clients that send a lane at once both have it")
mutation("client", "any-number-of-lanes", COLLECTOR + "ArchiveTable.swift",
         "content.lanes.count <= coversMax && content.coverCount <= coversMax\n", "true\n",
         "swift SendersTests/testNoClientTakesTheRoomOfOthers", "lanes take the collector's memory")
mutation("client", "one-client-has-all-the-room", COLLECTOR + "ArchiveTable.swift",
         "senders.areSeveral ? ArchiveTable.sharesMin : 1", "senders.areSeveral ? 1 : 1",
         "swift SendersTests/testNoClientTakesTheRoomOfOthers",
         "one client fills the table, and the others get 507")
mutation("client", "an-owner-needs-room-as-well", COLLECTOR + "ArchiveTable.swift",
         "                claims.isEmpty\n", "                false\n",
         "swift SendersTests/testNoClientTakesTheRoomOfOthers",
         "devices with a lane get 507 because others have many")
mutation("client", "a-twin-being-judged-is-foreign", COLLECTOR + "ArchiveTable.swift",
         "            if twin != nil, rivals.first?.name.isEmpty == true { return .busy }\n", "",
         "swift SendersTests/testTwoAtOnce",
         "a client whose token changed gets no answer to compare with")
mutation("client", "room-never-comes-back", COLLECTOR + "Depot.swift",
         "        if case .crowded = reception, tidyUp() { reception = judge(new) }\n", "",
         "swift DepotTests/testRoomComesBackWithWhatIsRemoved",
         "what retention removed takes room until the next start")
mutation("client", "a-race-is-a-failure", COLLECTOR + "Depot.swift",
         "                if forgetGone([rival]) { return .gone }\n", "",
         "swift DepotTests/testWhatGoesWhileItIsComparedIsGone",
         "an upload beside `cordwood compact` gets 500")
mutation("client", "what-was-compared-stays", COLLECTOR + "Depot.swift",
         "        if forgetGone(rivals) { return .gone }\n"
         "        return rivals", "        return rivals",
         "swift DepotTests/testWhatTakesItsPlaceMeanwhileIsCompared",
         "an archive is hidden by one that `cordwood compact` makes while it is judged")
mutation("client", "any-number-of-rivals", COLLECTOR + "Depot.swift",
         "read >= Depot.readMax || bytes", "bytes",
         "swift DepotTests/testOneArchiveIsComparedWithFew",
         "one upload keeps a file thread for hours")
mutation("client", "any-bytes-of-rivals", COLLECTOR + "Depot.swift",
         "read >= Depot.readMax || bytes > Depot.comparedBytesMax", "read >= Depot.readMax",
         "swift DepotTests/testOneArchiveIsComparedWithLittle",
         "one upload keeps a file thread for hours")
mutation("client", "any-number-of-headers", COLLECTOR + "Depot.swift",
         "all.count > Depot.rivalsMax ? Array(all.prefix(1)) : all", "all",
         "swift DepotTests/testOneArchiveIsComparedWithFew",
         "one upload keeps a file thread for minutes")
mutation("client", "headers-count-as-records", COLLECTOR + "Depot.swift",
         "                case .other: break\n", "                case .other: read += 1\n",
         "swift DepotTests/testOneArchiveIsComparedWithFew",
         "what only shares segments with many is put aside")
mutation("client", "comparing-is-small", COLLECTOR + "Depot.swift",
         "max(facts.rawBytes, table.comparedBytes(facts)) >=", "facts.rawBytes >=",
         "swift DepotTests/testWhatIsComparedMakesACheckLarge",
         "small uploads wait for two that are compared with large archives")
mutation("client", "a-free-table-is-shared-out", COLLECTOR + "ArchiveTable.swift",
         "            if content.coverCount <= coversMax / 2 { return true }\n", "",
         "swift SendersTests/testNoClientTakesTheRoomOfOthers",
         "a fleet with one token gets 507 for ever once one device has its own")
mutation("client", "clients-of-one-line-have-two-shares", COLLECTOR + "Senders.swift",
         "content.client($1.key) == client ? $1.value", "$1.key == client ? $1.value",
         "swift SendersTests/testNoClientTakesTheRoomOfOthers",
         "a client takes the room of others, part of it under its earlier number")
mutation("client", "a-lane-of-any-size", COLLECTOR + "ArchiveTable.swift",
         "?? 0 <= ArchiveTable.laneCoversMax", "?? 0 <= .max",
         "swift SendersTests/testALaneHasAsManyCoversAsAnArchive",
         "uploads of one lane hold the table's lock for long")
mutation("client", "names-are-forgotten-twice", COLLECTOR + "ArchiveTable.swift",
         "            guard content.archives.removeValue(forKey: rival.number) != nil "
         "else { return }\n",
         "            content.archives[rival.number] = nil\n",
         "swift SendersTests/testAnArchiveIsForgottenOnce",
         "an archive is replaced by another one with its name")
mutation("client", "some-digits-are-a-client", COLLECTOR + "Senders.swift",
         "        case (LineWords.same, 4):\n", "        case (LineWords.same, 3...):\n",
         "swift SendersTests/testATornLineIsSkipped",
         "after a power cut, a device has the lanes of a third one")
mutation("client", "who-comes-back-is-new", COLLECTOR + "Senders.swift",
         "                let round = next.tokens[digest]?.round ?? round\n", "",
         WHOSE, "a device gets the lanes of one that it was known beside")
mutation("client", "a-full-disk-keeps-tokens", COLLECTOR + "Tokens.swift",
         "        content.withLock { $0.all.removeAll { !left.contains($0.token) } }\n", "",
         "swift SendersTests/testATokenGoesWhenTheDiskIsFull",
         "a revoked token counts for as long as the disk is full")
mutation("client", "a-token-of-two-lines", COLLECTOR + "Tokens.swift",
         "guard Tokens.repeated(given + listed) == nil else { throw .tokens(Tokens.repeatedText) }",
         "_ = listed",
         "swift SendersTests/testATokenHasOneClient", "two devices become one client by mistake")
mutation("client", "a-neighbour-inherits", COLLECTOR + "Senders.swift",
         "            return came > content.latest[owner] ?? 0 ? .open : .another\n",
         "            return came > 0 ? .open : .another\n",
         WHOSE, "once a token is gone, any other device has its lanes")
mutation("client", "a-new-token-is-a-stranger", COLLECTOR + "Senders.swift",
         "            let number = known.min() ?? next.lastClient + 1\n",
         "            let number = next.lastClient + 1\n",
         WHOSE, "a device whose token changes is put aside")
mutation("client", "tokens-are-in-the-file", COLLECTOR + "Senders.swift",
         "                lines.append(\"token \\(digest.hex) \\(number) \\(round) here\")\n",
         "                lines.append(\"token \\(digest.hex) \\(number) \\(round) here\")\n"
         "                lines.append(String(decoding: tokens[0], as: UTF8.self))\n",
         WHOSE, "whoever reads the collector's directory has the tokens")
mutation("client", "a-torn-line-goes-on", COLLECTOR + "Senders.swift",
         "isTorn ? [0x0a] : []", "isTorn ? [] : []",
         "swift SendersTests/testATornLineIsSkipped", "a lane's line is lost behind a torn one")
mutation("client", "an-id-is-a-receipt", STORE + "View/StoredArchive.swift",
         "                case false?: return .contradiction(\"an archive without",
         "                case false?: if true { return .known } else { return .other }\n"
         "                case .some: return .contradiction(\"an archive without",
         MODEL, "a device deletes what the collector has not, for junk under its id")
mutation("client", "encrypted-ones-are-receipts", STORE + "View/StoredArchive.swift",
         "                    return isSame && prints[0] == prints[1]\n",
         "                    return isSame || prints[0] == prints[1]\n",
         MODEL, "a device deletes what the collector has not, for what nobody can read")
mutation("client", "replacing-is-believed", STORE + "View/StoredArchive.swift",
         "            case true?: return .superset\n            case false?:\n",
         "            case true?, false?: return .superset\n            case .some:\n",
         MODEL, "a later archive hides what is there")
mutation("client", "what-contradicts-is-dropped", COLLECTOR + "Quarantine.swift",
         "        try new.file.publish(as: stem + \".cwa\")\n", "",
         MODEL, "an archive that was acknowledged is nowhere")
mutation("client", "any-lane-in-a-block", STORE + "Archive/Checks/ArchiveVerifier.swift",
         "            !records.dictionaries.processes.allSatisfy({ lanes.contains($0.laneID) })\n",
         "            lanes.isEmpty\n",
         "swift RealArchiveTests/testLanesOfBlocksAreCovered",
         "an archive of one lane has records of another")
mutation("send", "flat-fields-only-where-any", STORE + "Lines/JSONLine.swift",
         "object += \"{}\".utf8", "return",
         "swift TextEncoderTests/testHostileNDJSON", "the lines have two shapes")
