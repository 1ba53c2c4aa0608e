// Fuzz target: a block (FORMAT §11.4), as BlockInput (Tests/CordwoodStoreTests/BlockFile.swift)
// takes it from the input. Only with libFuzzer: BlockGoldenTests runs changed inputs without it.

@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ data: UnsafePointer<UInt8>?, _ size: Int) -> Int32 {
    BlockInput.run(UnsafeRawBufferPointer(start: data, count: size))
    return 0
}
