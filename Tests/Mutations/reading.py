"""The mutations of reading: see table.py."""

from entry import CORE, STORE, mutation

# ── What is read: the end of a store, filters, searches, following ──

mutation("read", "late-lane", STORE + "View/EndPlan.swift",
         "        guard chain.lowerBound < time, let last = places.last else { return }\n",
         "        guard let last = places.last else { return }\n",
         "swift LastRecordsTests/testALaneThatIsOpenedLateIsNotLeftOut",
         "a lane is left out whose old records a full read gives at the end")
mutation("read", "ties-have-no-order", STORE + "View/StoreView.swift",
         "add(chain, firstOrder &+ UInt64(index))", "add(chain, firstOrder)",
         "swift StoreReaderTests/testEqualTimesComeInOneOrder",
         "what else is read decides the order of processes' records of equal times")
mutation("read", "shown-times-decide", STORE + "View/EndPlan.swift",
         "            guard let times = times(places[at], chain), "
         "isBefore(times.greatest, time),\n",
         "            guard let times = times(places[at], chain),\n",
         "swift LastRecordsTests/testEventsThatLookOldAreNotLeftOut",
         "events with times of their own hide how young their records are")
mutation("read", "last-block-decides", STORE + "View/EndPlan.swift",
         "        time < limit && limit - time > EndPlan.slackNs\n",
         "        time < limit\n",
         "swift LastRecordsTests/testEventsThatLookOldAreNotLeftOut",
         "a block is left out before whose last record a younger one stands")
mutation("read", "last-archive-decides", STORE + "View/EndPlan.swift",
         "archivesChecked = 16\n", "archivesChecked = 0\n",
         "swift LastRecordsTests/testEventsThatLookOldAreNotLeftOut",
         "an archive is left out that ends after the next one")
mutation("read", "older-rows-are-made", STORE + "View/EndPlan.swift",
         "        if startsAtRows, time > offset { start.monotonicNs = time - offset }\n", "",
         "swift LastRecordsTests/testNoRecordIsMadeOfWhatIsOlder",
         "records are made of rows that are older than the last ones")
mutation("read", "blocks-suffice", STORE + "View/EndPlan.swift",
         "            time = max(time, nearer)\n", "            time = min(time, nearer)\n",
         "swift LastRecordsTests/testNoRecordIsMadeOfWhatIsOlder",
         "the last blocks are read from their beginning")
mutation("read", "newest-of-each-lane", STORE + "View/EndPlan.swift",
         "        return newest[newest.count - enough]\n", "        return newest[0]\n",
         "swift LastRecordsTests/testNoRecordIsMadeOfWhatIsOlderInOtherLanes",
         "the oldest record looked at decides, not the oldest of those that are wanted")
mutation("read", "first-row-is-older", STORE + "Archive/BlockRecords.swift",
         "view.time[row] < start { row &+= 1 }", "view.time[row] <= start { row &+= 1 }",
         "swift LastRecordsTests/testNoRecordIsMadeOfWhatIsOlder",
         "the first of the last records is passed over in a block that is read whole")
mutation("read", "first-picked-row-is-older", STORE + "Block/WantedRows.swift",
         "heads.time[$0] >= start }", "heads.time[$0] > start }",
         "swift LastRecordsTests/testNoRecordIsMadeOfWhatIsOlder",
         "the first of the last records is not read")
mutation("read", "rows-behind-are-older", STORE + "Archive/ArchiveSource.swift",
         "                if found.left > 0 { start = 0 }\n", "",
         "swift LastRecordsTests/testTheLastRecordsAreTheEndOfAFullRead",
         "a row is left out whose time stepped back behind the first of the last ones")
mutation("read", "times-of-any-boot", STORE + "Facts/ArchiveFacts.swift",
         "        guard let timesOf, timesOf == (process.laneID, process.bootID) "
         "else { return nil }\n", "",
         "swift FactsCacheTests/testTimesThatTailLookedAtAreRemembered",
         "times of another boot are taken for those of a lane")
mutation("read", "times-of-first-archives", STORE + "Facts/ArchiveFacts.swift",
         "        guard timesOf ?? asked == asked, times.count",
         "        guard first?.process.laneID == process.laneID, times.count",
         "swift FactsCacheTests/testTimesThatTailLookedAtAreRemembered",
         "each tail looks into the archives again whose first record nobody asked for")
mutation("read", "kept-turned", STORE + "View/KeptRecords.swift",
         "        places = []\n        (oldest, empty, bytes) = (0, 0, 0)\n",
         "        (oldest, empty, bytes) = (0, 0, 0)\n",
         "swift LastRecordsTests/testASecondAttemptKeepsTheOrder",
         "after another attempt the last records stand where those of the first stood")
mutation("read", "run-past-another", STORE + "Merge/MergeSource.swift",
         "            run.lastOrdering = slot.order < next.tie ? next.key : next.key &- 1\n",
         "            run.lastOrdering = next.key\n",
         "swift BlockRunTests/testOfTwoLanesAtATime",
         "a run goes on to a record that another lane's of the same time precedes")
mutation("read", "run-past-the-next-part", STORE + "Merge/ChainSource.swift",
         "            if !overflow { run.lastMonotonic = last }\n",
         "",
         "swift BlockRunTests/testOfTwoArchivesOfALane",
         "a run goes on past the first record of the lane's next archive")
mutation("read", "key-without-its-middle", "Sources/CordwoodCore/Format/GrowingText.swift",
         "            let middle = min(8, count &- 8)\n",
         "            let middle = 0\n",
         "swift GrowingBytesTests/testShortKeysAreEqualIfTheTextIs",
         "lines of one logger begin with the name of another")
mutation("read", "place-is-time", STORE + "Merge/MergeSource.swift",
         "                slot.reached = max(slot.reached, time)\n",
         "                slot.reached = time\n",
         "swift LastRecordsTests/testTheLastRecordsAreTheEndOfAFullRead",
         "a read without order takes a record for older than the one that it waited for")
mutation("read", "piece-has-other-bytes", STORE + "Block/BlockView.swift",
         "place.base &-= source[rows.lowerBound &- 1] }\n", "place.base &-= 0 }\n",
         "swift BlockPiecesTests/testPiecesGiveWhatBlocksGive",
         "records of a piece have the texts of others")
mutation("read", "piece-begins-anew", STORE + "Archive/ArchiveSource.swift",
         "        found.pass(rows: made.next)\n", "",
         "swift BlockPiecesTests/testPiecesGiveWhatBlocksGive",
         "records of a block that is held in pieces come twice")
mutation("read", "room-is-not-given-back", STORE + "Archive/ArchiveSource.swift",
         "        room?.remove(held)\n    }\n\n    package var header",
         "    }\n\n    package var header",
         "swift BlockPiecesTests/testPiecesGiveWhatBlocksGive",
         "archives that were read leave no room to those that follow")
mutation("read", "another-file-is-read-on", STORE + "Lanes/OpenFiles.swift",
         "            guard let now = FileFacts(of: opened), now.isSameFile(as: facts),\n",
         "            guard FileFacts(of: opened) != nil,\n",
         "swift OpenFilesTests/testWhatWasRemovedMeanwhileIsToldOnce",
         "an archive goes on in a file that has taken its name meanwhile")
mutation("read", "no-file-is-closed", STORE + "Lanes/OpenFiles.swift",
         "        while opened.count > limit, closeIdle() {}\n",
         "        while opened.count > .max, closeIdle() {}\n",
         "swift OpenFilesTests/testFewAreOpenAtATime",
         "archives of one time take every descriptor that the host has")
mutation("read", "no-file-is-given-up", STORE + "Lanes/OpenFiles.swift",
         "        number == Errno.EMFILE || number == Errno.ENFILE\n", "        false\n",
         "swift OpenFilesTests/testAHostThatHasUsedNearlyAllDescriptorsIsReadToTheEnd",
         "archives are missing where the host has nearly all descriptors")
mutation("read", "names-lack-a-letter", "Sources/CordwoodCore/System/DirectoryListing.swift",
         "                names[index].key = names[index].key &<< 8 | UInt64(byte)\n",
         "                names[index].key = names[index].key &<< 4 | UInt64(byte)\n",
         "swift SortedNamesTests/testPathsAreSortedByTheBytesOfTheirNames",
         "archives come in another order than the facts of them, and are opened anew")
mutation("read", "facts-are-anybodys", STORE + "Facts/StoreFacts.swift",
         "status.isRegular, FactsCache.isOwn(status),\n", "status.isRegular,\n",
         "swift FactsCacheTests/testAnotherStoreAnotherOwnerOrOpenModesMeanThatThereIsNothing",
         "others say what a store's archives hold")
mutation("read", "facts-are-unsummed", STORE + "Facts/StoreFacts.swift",
         "        guard checksum(body, from: 0) == all.word(body.count, UInt32.self) else {"
         " return false }\n", "",
         "swift FactsCacheTests/testEveryDamagedByteMeansThatThereIsNothing",
         "a disk's error hides an archive")
mutation("read", "facts-of-encrypted", STORE + "Facts/StoreFacts.swift",
         "info.isWhole, !info.isEncrypted, info", "info.isWhole, info",
         "swift FactsCacheTests/testNothingIsKeptOfEncryptedAndDamagedArchives",
         "what an archive reveals to its key alone lies in the open")
mutation("read", "facts-of-gone", STORE + "Facts/StoreFacts.swift",
         "(found < entries.count || news", "(news",
         "swift FactsCacheTests/testNothingIsKeptOfWhatIsGone",
         "what was erased from a store stays beside it")
mutation("read", "facts-of-another-file", STORE + "Facts/StoreFacts.swift",
         "        changedNs = file.changedNs\n", "        changedNs = 0\n",
         "swift FactsCacheTests/testAnArchiveThatWasReplacedIsLookedAtAnew",
         "an archive is taken for the one that had its name")
mutation("read", "facts-are-right", STORE + "View/ArchiveShelf.swift",
         "            facts?.forget(info.path)\n", "",
         "swift FactsCacheTests/testAnArchiveThatContradictsIsRight",
         "a fact that an archive contradicts is told again")
mutation("read", "digest-of-written-times", STORE + "Block/BlockView.swift",
         "        return Self.hasSections(kind[row]) ? ownTime(row) ?? written : written\n",
         "        return written\n",
         "swift FactsCacheTests/testADigestIsWhatARecordsCountGives",
         "what is remembered counts events by the time that they were written")
mutation("read", "digest-of-part", STORE + "View/ArchiveAnswers.swift",
         "            options.until == 0 || info.timeMax < options.until,\n", "",
         "swift FactsCacheTests/testAReaderFindsTheSameWithAndWithoutIt",
         "records after --until are counted")
mutation("read", "kept-is-borrowed", STORE + "View/KeptRecords.swift",
         "        record.context = own(other.context, &at)\n",
         "        _ = own(other.context, &at)\n",
         "swift KeptRecordsTests", "a kept record shows memory that others use by then")
mutation("read", "forms-are-trusted", STORE + "Lanes/Sections.swift",
         "        guard case .string(let text) = value, JSONCheck.isValid(text) else {"
         " return value }\n",
         "        guard case .string(let text) = value else { return value }\n",
         "swift JSONFieldTests/testWhatAStringSaysOfItself",
         "whoever writes a store writes lines of JSON of his own")
mutation("read", "paths-come-first", STORE + "Query/RecordNames.swift",
         "        return isFound || hasJSON && parts(name, of: record, body)\n",
         "        return hasJSON && parts(name, of: record, body) || isFound\n",
         "swift StructuredValueTests/testAFieldsOwnNameComesFirst",
         "a field with points in its name is asked beside one that is JSON")
mutation("read", "cut-json-is-json", CORE + "Paths/RichBody.swift",
         "field.type == JSONCheck.fieldType && cut == 0 && JSONCheck",
         "field.type == JSONCheck.fieldType && JSONCheck",
         "c-abi json_cut", "a number of which the end was cut is shown as another number")
mutation("read", "python-keeps-the-gil", "bindings/python/speed/cursor.h",
         "            Py_BEGIN_ALLOW_THREADS\n            take_batch(self);\n",
         "            take_batch(self);\n            Py_BEGIN_ALLOW_THREADS\n",
         "python-speed test_accelerator.WhichTest.test_a_reader_lets_others_run_and_is_one_threads",
         "no other thread of Python runs while a reader waits for a file")
mutation("read", "python-forgets-why", "bindings/python/speed/cursor.h",
         "    if (self->status < 0)\n        state->last_error", "    if (false)\n"
         "        state->last_error",
         "python-speed test_reader.ReaderTest.test_a_warning_that_is_an_error_loses_nothing",
         "a warning behind a batch tells of what failed last in this thread")
mutation("read", "filter-changes-order", STORE + "Archive/ArchiveSource.swift",
         "                    if unsafe records?.isFollowedInOrder == true, isOfOneProcess {\n",
         "                    if isOfOneProcess {\n",
         "swift LastRecordsTests/testAFilterLeavesTheOrderAsItIs",
         "a record that is left out no longer holds back the older one behind it")
mutation("read", "a-run-outlives-its-source", STORE + "View/StoreReader.swift",
         "            unsafe run = nil\n            guard !isStopped, try merge.next(&record)",
         "            guard !isStopped, try merge.next(&record)",
         "swift BlockRunTests/testARunEndsWithItsRecords",
         "records come late behind a damaged block, or of an archive that was closed")
mutation("read", "padding-is-foreign", STORE + "Lanes/Text/FormatSearch.swift",
         "                    let pad = Token.some(ByteSet(\" \"))\n",
         "                    let pad = Token.some(ByteSet())\n",
         "swift TextSearchTests/testASearchFindsWhatATestOfEveryTextFinds",
         "a text that is padded with the space that is searched is not found")
mutation("read", "null-has-no-letters", STORE + "Lanes/Text/FormatSearch.swift",
         "        case .null: run(ByteSet(\"(null)\"), .null)\n",
         "        case .null: break\n",
         "swift TextSearchTests/testASearchFindsWhatATestOfEveryTextFinds",
         "a NULL that is printed as (null) is not found")
mutation("read", "unlike-lines-are-mined", STORE + "Codecs/StringsEncoder.swift",
         "        if isOuter, sharing == .lines { return try raw(values) }\n", "",
         "swift BlockTests/testUnlikeLinesAreStoredAsTheyAre",
         "lines without anything in common take more bytes at effort 1 than at 0")
mutation("read", "a-choice-is-for-ever", STORE + "Codecs/TemplatesEncoder.swift",
         "blocksUntilChoice = sharing == before ? Self.choicePeriod - 1 : 0\n",
         "blocksUntilChoice = Self.choicePeriod - 1\n",
         "swift ColumnCodecTests/testColumnsAreSharedAsTheLinesAsk",
         "what suits a log's first lines is kept for the blocks after them: archives grow")
mutation("read", "a-sample-is-all", STORE + "Codecs/TemplatesEncoder.swift",
         "let most = packer.isThorough ? Int.max : Self.choiceBytes\n",
         "let most = Self.choiceBytes\n",
         "swift ColumnCodecTests/testColumnsAreSharedAsTheLinesAsk",
         "a small archive takes half as much again, if its middle is unlike its ends")
mutation("read", "nothing-is-measured", STORE + "Codecs/IntsEncoder.swift",
         "packer.isThorough && values.count >= BlockPacker.planeBytes\n", "false\n",
         "swift ColumnCodecTests/testALargeColumnOfASmallArchiveIsMeasured",
         "small archives take more bytes, by the choices that estimates get wrong")
mutation("read", "symbols-are-not-tried", STORE + "Codecs/BlockFrames.swift",
         "                if found < size {\n", "                if true {\n",
         "swift ColumnCodecTests/testMatchesAreSoughtInPlanesThatRepayThem",
         "planes of bytes in no order take more bytes and three times as long to read")
mutation("read", "matches-are-forgotten", STORE + "Codecs/BlockFrames.swift",
         "        blocksUntilLook = isLook ? Self.lookPeriod - 1 : blocksUntilLook - 1\n",
         "        blocksUntilLook = .max\n",
         "swift ColumnCodecTests/testMatchesAreSoughtInPlanesThatRepayThem",
         "an archive whose first block has no repeated words has none in all others")
mutation("read", "no-archive-is-small", STORE + "Archive/ArchiveWriter.swift",
         "try appendBlock(isOnly: info.blockCount == 0) }\n", "try appendBlock() }\n",
         "swift MethodChoiceTests/testTheOnlyBlockOfAnArchiveTakesFewerBytes",
         "the small archives of short programs take more bytes")
mutation("read", "an-extract-in-any-order", STORE + "Archive/Extract/ExtractBuilder.swift",
         "isWanted = record.monotonicNs >= lastMonotonic\n", "isWanted = true\n",
         "swift ExtractTests/testWhatHasNoExtract",
         "severe records come in another order than with all the others")
mutation("read", "an-extract-is-trusted", STORE + "Archive/ArchiveSource.swift",
         "            extract.isIntact(shared.file)\n", "            true\n",
         "swift ExtractTests/testDamageOnOneSideLosesNothingOfTheOther",
         "severe records whose copies are damaged are not read, although the blocks have them")
mutation("read", "an-extract-for-all-levels", STORE + "Archive/ArchiveSource.swift",
         "guard let extract, limits.level >= extract.level,", "guard let extract,",
         "swift ExtractTests/testSevereRecordsComeFromTheExtract",
         "whoever asks for all records gets the severe ones")
mutation("read", "an-extract-begins-the-archive", STORE + "Archive/ArchiveSource.swift",
         "blocks.first?.isExtract == true ? extract?.firstMonotonic : nil\n", "nil\n",
         "swift ExtractTests/testTheArchiveBeginsWithItsFirstRecord",
         "an archive's place among others is that of its first severe record")
mutation("read", "an-extract-is-verified-alone", STORE + "Archive/Checks/ArchiveVerifier.swift",
         "copies.recordCount != result.severeCount, result.isWhole {", "false {",
         "swift ExtractTests/testVerifyingComparesTheExtract",
         "an extract that has other records than the blocks is called whole")
mutation("read", "arguments-are-words", STORE + "Codecs/BlockEncoder.swift",
         "        return bytes(strings) > strings.count * proseBytes ? .prose : .run\n",
         "        return .run\n",
         "swift BlockTests/testLongArgumentsAreMinedAsMessages",
         "interpolated lines are stored as text: archives grow")
mutation("read", "a-day-has-one-form", STORE + "Codecs/TimeForm.swift",
         "            if found.days != days || form.dateCode != self.code {\n",
         "            if found.days != days {\n",
         "swift ColumnCodecTests/testTimesOfOneDay",
         "two forms of one date print alike: the block is read again and thrown away")
mutation("read", "stamps-have-no-year", STORE + "Codecs/TimeForm.swift",
         "days(2_000, month, day) &- stampYear\n",
         "days(2_000, month, day)\n",
         "swift ColumnCodecTests/testTimesWithoutAYear",
         "a time of syslog is a number that no reader takes: blocks stay plain")
mutation("read", "marks-are-classes", "Sources/CShims/scan.c",
         "60, 21, 28, 21, 53, 93);\n", "60, 21, 28, 20, 53, 93);\n",
         "swift ColumnCodecTests/testMarksAreThoseOfTheClasses",
         "words end elsewhere than those that columns are shared by: archives grow",
         also=(("Sources/CShims/scan_lanes.h",
                "WITHIN(v, '-', '9') |\n", "WITHIN(v, '.', '9') |\n"),))
mutation("read", "end-of-a-long-text", "Sources/CShims/scan_lanes.h",
         "    *rest = at;\n", "    *rest = count;\n",
         "swift TextSearchTests/testAWordInALongTextIsFoundWhereItIsFirst",
         "a word is missed where the fast search of a long text ends")
mutation("read", "few-places-of-a-word", "Sources/CShims/scan_lanes.h",
         "bits; bits &= bits - 1, tries += length) {\n", "bits; bits = 0, tries += length) {\n",
         "swift TextSearchTests/testAWordInALongTextIsFoundWhereItIsFirst",
         "of several places in one lane that may be the word, only the first is looked at")
mutation("read", "kinds-share-a-column", STORE + "Codecs/TemplatesEncoder.swift",
         "                if column < 0 || kinds[column] != kind {\n",
         "                if column < 0 {\n",
         "swift ColumnCodecTests/testColumnsHaveOneKind",
         "a time's number is taken for a string's length: archiving does not end",
         also=((STORE + "Codecs/TemplatesEncoder.swift",
                "hash &+ UInt64(kind) &* 0x9E37_79B9_7F4A_7C15)\n",
                "hash &+ UInt64(kind))\n"),))
mutation("read", "old-rows-are-left-out", STORE + "Block/WantedRows.swift",
         "unsafe row &+ 1 < records && Int64(bitPattern: time[row &+ 1] &- time[row]) >= 0\n",
         "row &+ 1 < records\n",
         "swift WantedRowsTests/testFewRowsAreThoseOfTheWhole",
         "records wait for one that a filter left out, and come in another order")
mutation("read", "eight-rows-are-in-order", STORE + "Block/WantedRows.swift",
         "                if found & 1 != 0 || Int64(bitPattern: steps) < 0 { break }\n",
         "                if found & 1 != 0 { break }\n",
         "swift WantedRowsTests/testFewRowsAreThoseOfTheWhole",
         "a row before an older one is left out, and others come in another order")
mutation("read", "processes-are-one", STORE + "Block/BlockLoad.swift",
         "                if content.processes.lane.count != 1 { wanted = nil }\n", "",
         "swift WantedRowsTests/testBlocksOfSeveralProcessesAreWhole",
         "rows are left out that decide where those of another process stand")
mutation("read", "events-have-no-time", STORE + "Block/WantedRows.swift",
         "        if heads.kind[row] & UInt64(BlockKind.hasSections) != 0 { return true }\n", "",
         "swift WantedRowsTests/testFewRowsAreThoseOfTheWhole",
         "a record with a time of its own is looked for at another")
mutation("read", "rows-are-not-numbered", STORE + "Block/BlockLoad.swift",
         "            unsafe next[who] = sequence &+ 1\n",
         "            unsafe next[who] = sequence\n",
         "swift BlockTests/testRecordsComeBackEqual",
         "records have ids that other records have")
mutation("read", "picked-rows-count-alone", STORE + "Block/BlockLoad.swift",
         "            if column == .sequence { plan.rows = all }\n", "",
         "swift WantedRowsTests/testFewRowsAreThoseOfTheWhole",
         "records of a question have ids that other records have")
mutation("read", "picked-rows-have-first-contexts", STORE + "Block/BlockLoad.swift",
         "                content.context = try gather(content.context, plan.rows)\n", "",
         "swift WantedRowsTests/testFewRowsAreThoseOfTheWhole",
         "records of a question have fields of other records")
mutation("read", "picked-rows-have-first-formats", STORE + "Block/ContentDecoder.swift",
         "            content.format = try gather(plan.format, plan.deferred)\n",
         "            content.format = plan.format\n",
         "swift WantedRowsTests/testFewRowsAreThoseOfTheWhole",
         "records of a question have formats of other records")
mutation("read", "picked-rows-begin-the-block", STORE + "Block/BlockLoad.swift",
         "found.firstTime = content.time[0] }\n", "found.firstTime = nil }\n",
         "swift WantedRowsTests/testFewRowsAreThoseOfTheWhole",
         "a lane begins when the first record of a question was written")
mutation("read", "texts-lie-together", STORE + "Block/BlockLoad.swift",
         "guard let letters, opened.hasAllTexts, ", "guard let letters, ",
         "swift BlockLettersTests/testTextsInFramesOfTheirOwnAreLookedAt",
         "a search does not find what a block has in frames of their own")
mutation("read", "formats-have-no-letters", STORE + "Block/BlockLoad.swift",
         "opened.hasAllTexts, parts == .all,", "opened.hasAllTexts,",
         "swift BlockLettersTests/testFormatsThatAreNotReadDecideNothing",
         "a block is passed over whose formats print what is searched for")
mutation("read", "letters-leave-no-times", STORE + "Block/BlockLoad.swift",
         "                (found.isWithout, wanted) = (true, nil)\n"
         "                plan.columns = BlockParts.times.columns\n",
         "                (found.isWithout, wanted) = (true, nil)\n"
         "                plan.columns = BlockColumns(.processes)\n",
         "swift BlockLettersTests/testNoTextIsPassedOver",
         "a block without a text decides nothing about the order of others")
mutation("read", "values-are-not-stepped-over", STORE + "Codecs/Picks.swift",
         "                        taken[Int(columns[place])] &+= seen[number]\n", "",
         "swift WantedRowsTests/testFewRowsAreThoseOfTheWhole",
         "a record has the values of one before it")
mutation("read", "hex-hides-words", STORE + "Codecs/StringsEncoder.swift",
         "            if hasHole, isOther { return false }\n", "",
         "swift BlockLettersTests/testHexTakesNoPartOfAWord",
         "letters of a word are stored as digits, and a search passes the block over")
mutation("read", "escapes-are-letters", STORE + "Block/LetterRun.swift",
         '"nrt".utf8.contains(first) { return run.dropFirst() }\n',
         '"nrt".utf8.contains(first) { return run }\n',
         "swift BlockLettersTests/testNoTextIsPassedOver",
         "what follows an escape is looked for with the escape's letter")
mutation("read", "arguments-end-words", STORE + "Block/LetterRun.swift",
         "            if isAfterArgument, isFirst { return false }\n", "",
         "swift TextSearchTests/testASearchFindsWhatATestOfEveryTextFinds",
         "a word that is partly an argument is looked for whole in the block's text")
mutation("read", "strings-are-whole", STORE + "Lanes/Text/FormatSearch.swift",
         "                where follow.has(wanted[end]) {\n",
         "                where follow.has(wanted[end]) && end < 0 {\n",
         "swift TextSearchTests/testASearchFindsWhatATestOfEveryTextFinds",
         "a text that ends a string and goes on in the format is not found")
mutation("read", "hit-ends-before", STORE + "Lanes/Text/TextSearch.swift",
         "                rest.count &- lefts[index] &+ searches[index].count <= size\n",
         "                rest.count &- lefts[index] &+ searches[index].count < size\n",
         "swift TextSearchTests/testASearchFindsWhatATestOfEveryTextFinds",
         "a text at the end of a row is not found")
mutation("read", "pass-ignores-order", STORE + "Archive/BlockRecords.swift",
         "        while row < end, isInOrder(row &+ 1) { row &+= 1 }\n",
         "        while row < end { row &+= 1 }\n",
         "swift LastRecordsTests/testAFilterLeavesTheOrderAsItIs",
         "a row that is passed over no longer holds back the older one behind it")
mutation("read", "one-process-for-all", STORE + "Archive/ArchiveSource.swift",
         "            isOfOneProcess = found.dictionaries.processes.count == 1\n",
         "            isOfOneProcess = true\n",
         "swift LastRecordsTests/testALaneAmongOthersInAnArchiveDecidesTheirOrder",
         "records of another boot are left out that hold back those behind them")
mutation("read", "lanes-together-are-left-out", STORE + "View/StoreView.swift",
         "!chain.isShared, chain.archives.allSatisfy({ $0.covers.count == 1 }) else {\n",
         "!chain.isShared, chain.archives.allSatisfy({ $0.covers.count > 0 }) else {\n",
         "swift LastRecordsTests/testALaneAmongOthersInAnArchiveDecidesTheirOrder",
         "an archive of several lanes is left out by the times of one")
mutation("read", "undecided-boot-is-left-out", STORE + "View/StoreView.swift",
         "        guard let process, merge.knows(process) else { return nil }\n",
         "        guard let process else { return nil }\n",
         "swift LastRecordsTests/testALaneThatDecidesItsBootIsNotLeftOut",
         "a lane is left out that would place another one of its boot")
mutation("read", "clock-back-is-old", STORE + "View/EndPlan.swift",
         "                shownMin = max(shownMin, found.entry.timeMin)\n",
         "                shownMin = found.entry.timeMin\n",
         "swift LastRecordsTests/testAClockThatWentBackHidesNothing",
         "much that is older is read because a clock went back")
mutation("read", "strange-time-is-waited-for", STORE + "View/FollowWait.swift",
         "min(held, now) &+ StoreView", "held &+ StoreView",
         "swift FollowTests/testTimes", "a damaged lane's time stops a follower for years")

mutation("read", "cut-for-memory-is-whole", STORE + "Lanes/Text/DeferredText.swift",
         "            if out.failed { record.flags.insert(.truncated) }\n", "",
         "signals memory_of_texts", "a text that memory was refused for looks complete")
mutation("read", "no-memory-for-a-field", STORE + "Lanes/Text/BraceText.swift",
         "        if text.failed { body.fail() }\n", "",
         "signals memory_of_texts", "a number that memory was refused for looks complete")
mutation("read", "log-stops-at-a-level", "Sources/CordwoodCLI/Commands/LogCommand.swift",
         "        if status > 0 {\n", "        if status > 0, false {\n",
         "swift ReadingVerbTests/testLogObeysTheLevelOfTheStore",
         "a level of the store ends the pipe, and so the program that writes to it")
mutation("read", "replaced-is-read", STORE + "View/ArchiveShelf.swift",
         "        for info in found where !old.contains(info.id) {\n",
         "        for info in found {\n",
         "swift CompactTests/testWhatAnotherArchiveReplacesIsPassedOver",
         "records of archives that a compacted one replaces are shown twice")
mutation("read", "compacted-is-new", STORE + "View/ArchiveShelf.swift",
         "            if !info.replaced.isEmpty, replaced.hasListed(info) {\n",
         "            if info.replaced.isEmpty, replaced.hasListed(info) {\n",
         "swift CompactTests/testReadersBesideIt",
         "a follower shows the records of a compacted archive again")
mutation("read", "replacement-for-each", STORE + "View/ArchiveShelf.swift",
         "        if replaced.isSupplied(info) { return nil }\n", "",
         "swift CompactTests/testReadersThatListedBeforeIt",
         "each archive that is gone brings all records of its replacement")
mutation("read", "replacement-from-its-start", STORE + "View/ReplacedArchives.swift",
         "?.hasRead(record) != true { return true }", "?.isWhole != true { return true }",
         "swift CompactTests/testReadersThatListedBeforeIt",
         "a replacement shows what was read before it")
mutation("read", "old-threads-are-new", STORE + "View/ReplacedArchives.swift",
         "        guard before > 0 else { return false }\n",
         "        guard before > 9_999 else { return false }\n",
         "swift CompactTests/testThreadsThatEndedBeforeAreNotShownAgain",
         "records of threads that ended in an earlier archive are shown again")

mutation("read", "a-recipient-fewer", STORE + "Archive/SealedFile.swift",
         "                guard let owner else { return nil }\n",
         "                guard let owner else { continue }\n",
         "swift CompactEncryptedTests/testAllRecipientsCanReadWhatBecameOne",
         "a recipient whose key was not given cannot read a compacted archive")
mutation("read", "anybody-s-recipients", STORE + "Keep/StoreCompactor.swift",
         "recipients.map(\\.text).sorted().joined(", "[String]().joined(",
         "swift CompactEncryptedTests/testOnlyArchivesOfTheSameRecipientsBecomeOne",
         "archives become one that others may read than before")
mutation("read", "replaced-needs-a-key", STORE + "Archive/SealedFacts.swift",
         "        info.replaced = replaced\n", "",
         "swift CompactEncryptedTests/testWhatItReplacedGoesWithTheKey",
         "without the key archives count that a compacted one replaces")

mutation("read", "window-is-placed", STORE + "View/StoreReader.swift",
         "isStopped || isFound && placed > window.before {", "isStopped || isFound {",
         "swift RecordWindowTests/testAWindowIsAPartOfAFullRead",
         "a page has records that stand elsewhere in a full read, or too few")
mutation("read", "beside-is-anybody", STORE + "View/RecordOrigin.swift",
         "            if let beside, !Origin.matches(beside, record.id) { return false }\n", "",
         "swift RecordWindowTests/testRecordsBesideOne",
         "a thread's records are those of its whole process")
mutation("read", "counts-own-times", STORE + "Archive/Columns/FacetTally.swift",
         "            case SectionKind.time where body.count == 8: "
         "time = body.word(0, UInt64.self)\n",
         "",
         "swift FacetTallyTests/testColumnsCountWhatRecordsDo",
         "an event with a time of its own is counted where it was written")
mutation("read", "stop-before-block", STORE + "Archive/ArchiveSource.swift",
         "            if passed?.isStopped == true { return false }\n",
         "",
         "swift BlockPiecesTests/testAReadThatIsLeftEndsBeforeTheNextBlock",
         "a client that closes while blocks are counted has its whole store read")
mutation("read", "large-last-records", STORE + "View/StoreReader.swift",
         "        var left = max(0, all - options.last)\n",
         "        var left = max(0, all - options.last + 1)\n",
         "swift LastRecordsTests/testTheLastRecordsAreTheEndOfAFullRead",
         "of large records, `tail -n` leaves out the first")

# ── What a spreadsheet reads ──

mutation("csv", "formulas", STORE + "Lines/CSVLine.swift",
         "isFormula = isSafe && LineCSV.beginsFormula(text)\n", "isFormula = false\n",
         "swift VerbTests/testExportSafeCSV", "a spreadsheet computes what a record says")
mutation("csv", "full-width-formulas", STORE + "Lines/CSVLine.swift",
         "(0xbc, 0x8b), ", "", "swift VerbTests/testExportSafeCSV", "a spreadsheet computes ＋1")
