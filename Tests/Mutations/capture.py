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
         "swift OwnUploadTests/testUploadsMakeNoUploads",
         "a captured upload is the next thing to upload")
mutation("own", "origins-are-not-told", ENGINE + "Handle/Engine.swift",
         "            services.noteOrigins()\n            services.wakeShipper()\n",
         "            services.wakeShipper()\n",
         "swift OwnUploadTests/testUploadsMakeNoUploads", "as above")
mutation("own", "all-exchanges-wait", TRACE + "Capture/HTTPOrigins.swift",
         "            if found & ~sentToByHost == number, "
         "isServer || found & sentToByHost != 0 {\n",
         "            if found & ~sentToByHost == number {\n",
         "swift OwnUploadTests/testOnlyTransportsOfTheHostMatter",
         "exchanges with a target's server are not uploaded although libcurl sends there")
mutation("own", "first-target-decides", TRACE + "Capture/HTTPOrigins.swift",
         "            if found & ~sentToByHost == number, isServer || found & sentToByHost != 0 {\n"
         "                return true\n",
         "            if found & ~sentToByHost == number {\n"
         "                return isServer || found & sentToByHost != 0\n",
         "swift OwnUploadTests/testTargetsOfOneServer",
         "beside a target with libcurl, uploads by a transport make uploads")
mutation("own", "ports-differ", TRACE + "Capture/HTTPOrigins.swift",
         "        let port = url.port == 80 || url.port == 443 ? 0 : url.port\n",
         "        let port = url.portOrDefault\n",
         "swift OwnUploadTests/testServersBehindProxiesMakeNoUploads",
         "a target's server behind a proxy uploads each upload that it gets")
mutation("own", "never-by-age", ENGINE + "Services/Services.swift",
         "            now - since >= Services.rollAge(rollAgeNs, hasHostRecords: hasNewRecords)\n",
         "            hasNewRecords\n",
         "swift OwnUploadTests/testAnHourEndsTheWait",
         "exchanges with a target's origin are never uploaded if there are no other records")
mutation("own", "as-soon-as-others", ENGINE + "Services/ServicesUploads.swift",
         "        hasHostRecords ? wantedNs : max(wantedNs, 3_600_000_000_000)\n",
         "        wantedNs\n",
         "swift OwnUploadTests/testAnHourEndsTheWait", "each upload is the next one's reason")
mutation("secrets", "forms-end-in-tokens", TRACE + "Redaction/TextScan.swift",
         "!mayGoOn ? .max : isCut && !isMaybeWhole ? 0 : 4 }", "mayGoOn ? 0 : .max }",
         "swift SecretListTests/testTheEndsOfForms", "lang=sk-SK loses its end")
mutation("secrets", "behind-escapes", SHIMS + "tokens.c",
         "    if (digits >= 2 && at >= 3 && text[at - 3] == '%') return 1;\n", "",
         "swift SecretListTests/testEveryTokenOfAMaker", "%20ghp_… is kept")
mutation("secrets", "behind-letters-of-escapes", SHIMS + "tokens.c",
         "    if (at >= 2 && text[at - 2] == '\\\\') return 1;\n", "",
         "swift SecretListTests/testEveryTokenOfAMaker", "a token behind \\\\n is kept")
mutation("secrets", "keys-without-digits", SHIMS + "tokens.c",
         "    return has_digit && has_run;\n", "    return has_run;\n",
         "swift SecretListTests/testOrdinaryAnswersStay", "CSS classes lose their ends")
mutation("secrets", "keys-without-parts", SHIMS + "tokens.c",
         "        row = kinds[text[at]] & ALNUM ? row + 1 : 0;\n",
         "        row = kinds[text[at]] & LOWER ? row + 1 : 0;\n",
         "swift SecretListTests/testKeysWithManyParts", "keys with '-' are kept")
mutation("secrets", "keys-end-anywhere", SHIMS + "tokens.c",
         "one->form == KEY && count - last > KEY_LOOKED_AT ?", "0 ?",
         "swift BodyTests/testLongFormsTakeLinearTime", "sk-sk-sk-… takes quadratic time")
mutation("secrets", "equals-far-away", TRACE + "Redaction/TextScan.swift",
         "            let equals = at &+ text.slice(at, to).next(UInt8(ascii: \"=\"), from: 0)\n",
         "            let equals = text.next(UInt8(ascii: \"=\"), from: at)\n",
         "swift BodyTests/testLongFormsTakeLinearTime", "forms take quadratic time")
mutation("secrets", "short-tokens", SHIMS + "tokens.c",
         "    if (end - last < one->least && !is_open) return 0;\n", "",
         "swift SecretListTests/testEveryTokenOfAMaker", "ordinary words lose their ends")
mutation("secrets", "inside-words", SHIMS + "tokens.c",
         "        if (!is_path && !may_begin(text, start)) continue;\n", "",
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
