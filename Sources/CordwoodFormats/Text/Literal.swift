// Literals of the source as bytes. No state: any thread.

public enum Literal {
    @inlinable @inline(__always)
    public static func append(_ text: StaticString, _ out: inout [UInt8]) {
        unsafe out.append(
            contentsOf: UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount))
    }
}
