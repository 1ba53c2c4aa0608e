// Bytes with fields, for hosts that log text of foreign origin, such as lines of a file.
// SAFETY: the caller's bytes and the encoded fields hold during the append, which copies them.

import CordwoodCore

extension Logger {
    /// Writes one record of bytes, unchanged, with fields. Returns the header's status.
    @discardableResult
    public func write(
        _ level: Level, bytes: UnsafeRawBufferPointer, fields: [(String, FieldInput)]
    ) -> Int32 {
        guard fields.count <= FieldType.countMax else { return Status.limit }
        let encoded = RecordWriter.encode(fields)
        return unsafe encoded.withUnsafeBytes {
            var body = RichBody()
            unsafe body.message = bytes
            unsafe body.encodedFields = $0
            return unsafe AppendSlow.rich(block, level.number, body)
        }
    }
}
