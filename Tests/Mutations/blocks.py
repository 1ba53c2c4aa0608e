"""The mutations of blocks (FORMAT §11.4): see table.py."""

from entry import STORE, mutation

GOLDEN = "swift BlockGoldenTests/testGoldenBlocks"
DECODER = STORE + "Block/ContentDecoder.swift"
LOAD = STORE + "Block/BlockLoad.swift"
MAKER = STORE + "Archive/BlockMaker.swift"
CHECK = STORE + "Block/BlockCheck.swift"

mutation("block", "any-size", LOAD,
         "        guard !isAll || leaves.isSpent && plan.left == 0 else",
         "        guard !isAll || leaves.isSpent else",
         GOLDEN, "a block holds less than its header says")
mutation("block", "bytes-left-over", LOAD,
         "        guard !isAll || leaves.isSpent && plan.left == 0 else",
         "        guard !isAll || plan.left == 0 else",
         GOLDEN, "bytes of a frame belong to no leaf")
mutation("block", "endless", DECODER,
         "        guard bytes <= left else { throw .damaged }\n", "",
         GOLDEN, "a block holds more than its header says")
mutation("block", "contexts-beyond", DECODER,
         "        guard plan.contextMost <= UInt64(count) else { throw .damaged }\n", "",
         GOLDEN, "a record has a context that the block does not have")
mutation("block", "attributes-together", DECODER,
         "        guard sum <= BlockLimits.dictionaryMax else { throw .damaged }\n", "",
         GOLDEN, "processes have any number of attributes")
mutation("block", "no-text-bytes", STORE + "Codecs/LeafReader.swift",
         "planeBytes > 0, textBytes > 0 else", "planeBytes > 0 else",
         GOLDEN, "empty texts have frames")
mutation("block", "columns-of-every-key", STORE + "Codecs/PartsEncoder.swift",
         "pairsMost = 1_024\n", "pairsMost = 1_024_000\n",
         "swift BlockTests/testManyColumnsComeBackEqual",
         "a block of many keys has more leaves than a block may have")
mutation("block", "columns-of-every-argument", STORE + "Block/Block.swift",
         "argumentColumnsMost = 4_096\n", "argumentColumnsMost = 4_096_000\n",
         "swift BlockTests/testManyColumnsComeBackEqual", "as above, of many arguments")
mutation("block", "any-digits", STORE + "Codecs/TimeForm.swift",
         "(plain | (plain &+ 0x0606_0006_0600_0606))", "(plain | plain &+ 0x0606_0006_0600_0606)",
         "swift ColumnCodecTests/testTimesHaveDigits",
         "letters beyond ASCII in a time's place come back as digits")
mutation("block", "unfit-ends-the-archive", MAKER,
         "            // Less memory, and other codecs.\n            effort = .swift\n",
         "            throw .limit(\"size of a block\")\n",
         "swift BlockMakerTests/testColumnsThatDoNotFitAreStoredAsTheyAre",
         "records that do not fit a block as columns are never archived")
mutation("block", "effort-is-what-was-asked", MAKER,
         "                    madeEffort = effort\n",
         "                    madeEffort = self.effort\n",
         "swift BlockMakerTests/testColumnsThatDoNotFitAreStoredAsTheyAre",
         "a header names another effort than the block was made with")
mutation("block", "huge-is-mined", MAKER,
         "var effort = block.bytes > Self.minedMax ? .swift : self.effort\n",
         "var effort = self.effort\n",
         "swift BlockMakerTests/testHugeBlocksAreStoredAsTheyAre",
         "one huge record takes several times its size in memory")
mutation("block", "any-block-comes-back", DECODER,
         "            isSame = try block.has(column, content)\n",
         "            _ = try block.has(column, content)\n",
         "swift BlockMakerTests/testOnlyWhatComesBackIsKept",
         "records are removed although what was stored of them is not the same")
for column, word in [("level", "UInt64($0.level)"), ("sequence", "$0.sequence")]:
    mutation("block", f"any-{column}-comes-back", CHECK,
             f"        case .{column}: rows.have(content.{column}) {{ {word} }}\n",
             f"        case .{column}: true\n",
             "swift BlockMakerTests/testOnlyWhatComesBackIsKept", "as above")
for column in ["context", "logger"]:
    mutation("block", f"any-{column}-comes-back", CHECK,
             f"        case .{column}: rows.have(content.{column}) {{ UInt64($0.{column}) }}\n",
             f"        case .{column}: true\n",
             "swift BlockMakerTests/testOnlyRowsThatComeBackAreKept", "as above")
mutation("block", "any-message-comes-back", CHECK,
         "index < found.count, found[index].isSame(text.part(at, size)) else",
         "index < found.count else",
         "swift BlockMakerTests/testOnlyWhatComesBackIsKept", "as above")
mutation("block", "any-section-comes-back", CHECK,
         "        return unsafe Slice(readBack.bytes).isSame(Slice(sections.bytes))\n",
         "        return true\n",
         "swift BlockMakerTests/testOnlyPartsThatComeBackAreKept", "as above")
mutation("block", "any-argument-comes-back", CHECK,
         "        return found.areNext(in: &cursor, of: format) && cursor.left == 0\n",
         "        return true\n",
         "swift BlockMakerTests/testOnlyPartsThatComeBackAreKept", "as above")
mutation("block", "few-columns-have-formats", STORE + "Block/BlockDictionaries.swift",
         "(0..<known.place.line.count).map", "(0..<known.types.count).map",
         "swift FacetTallyTests/testColumnsCountWhatRecordsDo",
         "a count reads beyond the columns that it asked for")
mutation("block", "sites-beyond", STORE + "Block/BlockDictionaries.swift",
         "                guard index < UInt32(sites.count) else { return false }\n", "",
         "swift FacetTallyTests/testADamagedSectionCountsNothing",
         "a record has a site that the block does not have")
mutation("block", "frames-outlive-their-memory", STORE + "Block/ContentDecoder.swift",
         "                leaves.forget()\n", "",
         "swift BlockMakerTests/testColumnsWithEqualPlanes",
         "a block whose columns share a plane is stored with effort 0")
mutation("block", "arguments-need-not-parse", STORE + "Block/Block.swift",
         "            && (!record.arguments.isEmpty || record.argumentTypes.isEmpty)\n", "",
         "swift BlockMakerTests/testArgumentsThatDoNotParseAreLeftOut",
         "a lane with damaged arguments is never archived")
