"""The mutations of what policies may do: see table.py."""

from entry import ENGINE, SHIP, mutation

LIMITS = SHIP + "Policy/PolicyDocument.swift"
TELLS = ENGINE + "Services/ServicesPolicy.swift"

mutation("policy", "erases", LIMITS,
         "            return erases ? least : nil\n", "            return least\n",
         "python test_policy.PolicyTest.test_by_default_a_policy_removes_nothing",
         "a server deletes what was not sent")
mutation("policy", "no-floor", LIMITS,
         "            if erases, wanted >= least { return wanted }\n",
         "            if erases { return wanted }\n",
         "swift PolicyEngineTests/testWhatAPolicyMayLose", "a mistyped limit deletes all")
mutation("policy", "turns-off", LIMITS,
         "        if !allow.contains(.off) {\n", "        if false {\n",
         "python test_policy.PolicyTest.test_by_default_a_policy_removes_nothing",
         "a server stops logging")
mutation("policy", "binds-others", ENGINE + "Stores/StoreSettings.swift",
         "document?.allowed(by: allow, over: own, segmentBytes: Settings.segmentBytesDefault)"
         ".policy",
         "document",
         "swift ReadingVerbTests/testByDefaultAKeptPolicyErasesNothing",
         "`cordwood log` deletes what a policy says, whatever the store's program allows")
mutation("policy", "by-http", SHIP + "Policy/PolicySource.swift",
         "        guard !isOpen || address.isLoopback || allow.contains(.http) else {\n",
         "        guard !isOpen || !origin.isEmpty else {\n",
         "python test_policy.PolicyTest.test_where_a_policy_may_come_from",
         "whoever is on the way writes the policy")
mutation("policy", "loopback-by-prefix", SHIP + "Transport/WebAddress.swift",
         'isFour ? numbers[0] == "127" :', 'host.hasPrefix("127.") ? true :',
         "python test_policy.PolicyTest.test_where_a_policy_may_come_from",
         "a name that begins like an address counts as this machine")
mutation("policy", "silences-what-is-told", TELLS,
         "isOwed: level >= own)\n", "isOwed: false)\n",
         "python test_policy.PolicyTest.test_a_policy_that_may_erase_leaves_some",
         "a policy turns off the log that tells of it")
mutation("policy", "small-segments", LIMITS,
         '"max_file_size_bytes", fileBytesMax, segmentBytes,',
         '"max_file_size_bytes", fileBytesMax, 1,',
         "swift PolicyEngineTests/testWhatAPolicyMayLose", "a server cuts large records")
mutation("policy", "http-for-any-word", SHIP + "Policy/PolicySource.swift",
         "allow.contains(.http) else {", "!allow.isEmpty else {",
         "swift PolicyTests/testWhereAPolicyMayComeFrom",
         "a host that lets policies erase also lets them come by http")
