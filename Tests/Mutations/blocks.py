"""The mutations of blocks (docs/BLOCK.md): see table.py."""

from entry import STORE, mutation

GOLDEN = "swift BlockGoldenTests/testGoldenBlocks"
DECODER = STORE + "Block/BlockDecoder.swift"

mutation("block", "any-size", DECODER,
         "        guard !isAll || leaves.isSpent && plan.left == 0 else",
         "        guard !isAll || leaves.isSpent else",
         GOLDEN, "a block holds less than its header says")
mutation("block", "bytes-left-over", DECODER,
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
         "        guard sum <= DenseLimits.dictionaryMax else { throw .damaged }\n", "",
         GOLDEN, "processes have any number of attributes")
mutation("block", "no-text-bytes", STORE + "Dense/DenseFrames.swift",
         "        guard !isBlock || textBytes > 0 else { throw .damaged }\n", "",
         GOLDEN, "empty texts have frames")
mutation("block", "columns-of-every-key", STORE + "Dense/PartsEncoder.swift",
         "pairsMost = 1_024\n", "pairsMost = 1_024_000\n",
         "swift BlockTests/testManyColumnsComeBackEqual",
         "a block of many keys has more leaves than a block may have")
mutation("block", "columns-of-every-argument", STORE + "Block/Block.swift",
         "argumentColumnsMost = 4_096\n", "argumentColumnsMost = 4_096_000\n",
         "swift BlockTests/testManyColumnsComeBackEqual", "as above, of many arguments")
mutation("block", "any-digits", STORE + "Dense/TimeForm.swift",
         "(plain | (plain &+ 0x0606_0006_0600_0606))", "(plain | plain &+ 0x0606_0006_0600_0606)",
         "swift DenseCodecTests/testTimesHaveDigits",
         "letters beyond ASCII in a time's place come back as digits")
