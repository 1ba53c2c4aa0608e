"""The mutations of the viewer: see table.py."""

from entry import PAGE, STORE, SHIP, VIEWER, mutation

# ── Who sees the viewer ──

mutation("view", "any-host", VIEWER + "ViewerCheck.swift",
         "        guard hosts.count == 1, ViewerCheck.isOurs(host: hosts[0]) else {\n",
         "        guard hosts.count == 1 else {\n",
         "swift CheckTests/testHeadersOfTheAPI", "a name that was led here is answered")
mutation("view", "links-stay", VIEWER + "Keys.swift",
         "            if let found { links.remove(at: found) }\n", "",
         "swift CheckTests/testLinksWorkOnceAndInTime", "a link works again")
mutation("view", "forms-change", VIEWER + "ViewerCheck.swift",
         "        guard types.count == 1, ViewerCheck.isJSON(types[0]) else {\n",
         "        guard types.count <= 1 else {\n",
         "swift CheckTests/testChangesAreJSON", "a form of another site changes a store")
mutation("view", "read-only-changes", VIEWER + "ViewerCheck.swift",
         "ViewerCheck.changes.contains(path), mayChange else {\n",
         "ViewerCheck.changes.contains(path) else {\n",
         "swift CheckTests/testChangesAreJSON", "--read-only changes a store")
mutation("view", "nobodys-socket", VIEWER + "PeerUser.swift",
         "                fields[2].elementsEqual(remote), !fields[9].elementsEqual([0x30])\n",
         "                fields[2].elementsEqual(remote)\n",
         "swift CheckTests/testUsersOfSockets",
         "a socket that another user has closed counts as root's")

mutation("view", "gaps-in-the-list", PAGE + "rows.js",
         "        this.items = [];\n        this.hasNewer = false;\n",
         "        this.hasNewer = false;\n",
         "journeys follows_for_long",
         "what came too fast to show is missing between two rows of the list")
mutation("view", "stuck-in-silence", PAGE + "histogram.js",
         "    const range = this.asked ?? this.range;\n    if (!range) return;\n    const half",
         "    const range = this.range;\n    if (!range) return;\n    const half",
         "journeys brushes", "no key leads back from a time without records")
mutation("view", "follows-on", PAGE + "rows.js",
         "    if (state.follow) this.listener.onLeave();\n", "",
         "journeys leaves", "the page says that it follows after the reader went elsewhere")
for setting, case in (("consent", "who may change"), ("levels", "as the command"),
                      ("capture", "as the command")):
    mutation("view", f"old-{setting}", VIEWER + "API/Settings.swift",
             f"            guard state.{setting}Version == version,\n",
             f"            guard !state.{setting}Version.isEmpty,\n",
             f"viewer '{case}'", "what somebody else changed meanwhile is changed unseen")
mutation("view", "old-queue", VIEWER + "API/Settings.swift",
         "            guard QueueJob.version(entry) == version,\n",
         "            guard !QueueJob.version(entry).isEmpty,\n",
         "viewer 'the queue'", "an archive is tried again in a state that nobody saw")
mutation("view", "preview-of-another-form", SHIP + "Targets/RegisteredRequest.swift",
         "        options.bodyRecordsMax = bodies.recordsMax\n", "",
         "viewer previews", "what is shown is not what is sent")
mutation("view", "heaps-for-all", "Sources/CordwoodCLI/Main.swift",
         "        Memory.keepLittle()\n", "",
         "viewer 'large rows'", "each thread keeps the most that it ever had")
mutation("view", "pages-overlap", VIEWER + "API/ExchangesJob.swift",
         "        if let after, place >= after { return }\n",
         "        if let after, place > after { return }\n",
         "viewer http", "the last exchange of a page is the first of the next")
mutation("view", "deleted-is-shown", VIEWER + "API/TransactionsJob.swift",
         "            if let moment = forgotten.moment(record) { body(moment, record) }\n",
         "            if let moment = TransactionMoment(record) { body(moment, record) }\n",
         "viewer transactions", "a deleted transaction is listed")
mutation("view", "clocks-agree", VIEWER + "API/TraceJob.swift",
         "            if skew != 0 {", "            if skew > 0 {",
         "viewer traces", "a server that begins before its request looks well")
mutation("view", "a-field-is-no-name", STORE + "Query/OriginTest.swift",
         "            guard let found = names.name(key), let text = found else { return .open }\n",
         "            guard let found = names.name(key) else { return .open }\n"
         "            let text = found ?? \"\"\n",
         "swift OriginsTests/testFieldsComeFirst",
         "a record with a field host.name is not found among another device's")
