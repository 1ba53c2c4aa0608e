"""The mutations of what captures leave alone and of the secrets that they replace: see table.py."""

from entry import ENGINE, SHIMS, SHIP, STORE, mutation

TRACE = "Sources/CordwoodTrace/HTTP/"

mutation("own", "no-header", SHIP + "Transport/UploadRequest.swift",
         "            + (mark.map { [(UploadMark.header, $0.value)] } ?? [])\n", "",
         "python test_own_uploads", "a transport on another thread has its uploads captured")
mutation("own", "any-value-counts", TRACE + "Capture/HTTPHeaders.swift",
         "        case .mark: isUpload = value.uploadMark?.isAccepted ?? false\n",
         "        case .mark: isUpload = true\n",
         "python test_own_uploads", "a caller's header hides the requests that pass it on")
mutation("own", "servers-believe-it", TRACE + "Capture/ExchangeState.swift",
         "    var isUpload: Bool { request.isUpload && !isServer }\n",
         "    var isUpload: Bool { request.isUpload }\n",
         "swift OwnUploadTests/testServersRecordIt", "a target's server hides its own requests")
mutation("own", "unknown-to-another-process", STORE + "Files/Directories.swift",
         "            UploadMark(file).accept()\n", "",
         "python test_own_uploads", "the processes of a pool capture what they send")
mutation("own", "dropped-headers-count", TRACE + "Capture/HTTPCapture.swift",
         "            unsafe exchange.pointee.uncounted = engine\n", "",
         "python test_own_uploads", "a captured upload is the next thing to upload")
mutation("own", "origins-are-not-told", ENGINE + "Handle/Engine.swift",
         "            services.noteOrigins()\n            services.wakeShipper()\n",
         "            services.wakeShipper()\n",
         "python test_own_uploads", "as above")
mutation("own", "all-exchanges-wait", TRACE + "Capture/HTTPOrigins.swift",
         "            if found & ~sentToByHost == number { return isServer || "
         "found & sentToByHost != 0 }\n",
         "            if found & ~sentToByHost == number { return true }\n",
         "swift OwnUploadTests/testOnlyTransportsOfTheHostMatter",
         "exchanges with a target's server are not uploaded although libcurl sends there")
mutation("secrets", "short-tokens", SHIMS + "tokens.c",
         "    if (end - last < one->least && !(is_open && end == count)) return 0;\n", "",
         "swift SecretListTests/testEveryTokenOfAMaker", "ordinary words lose their ends")
mutation("secrets", "inside-words", SHIMS + "tokens.c",
         "        if (!is_path && start && cwi_name_byte(text[start - 1])) continue;\n", "",
         "swift SecretListTests/testEveryTokenOfAMaker", "ordinary words lose their ends")
mutation("secrets", "no-addresses", SHIMS + "tokens.c",
         "        *from = is_path ? secret : start;\n",
         "        *from = is_path ? end : start;\n",
         "swift SecretListTests/testEveryTokenOfAMaker", "a webhook's address is kept whole")
mutation("once", "first-counts", STORE + "Lanes/JSONWalk.swift",
         "        for index in members.indices.reversed() {\n",
         "        for index in members.indices {\n",
         "swift JSONFieldTests/testNamesOnce", "of equal names the first counts")
mutation("once", "names-repeat", STORE + "Lines/JSONLine.swift",
         "        case .json(let text): JSONWalk.appendOnce(text, to: &out)\n",
         "        case .json(let text): JSONWalk.append(text, to: &out)\n",
         "swift JSONFieldTests/testNamesOnce", "a body of format json has a name twice")
