// Bytes with fields: for hosts whose messages are not text of their own making, such as lines of a
// file.

import CordwoodCore

extension Logger {
    /// One record of bytes, kept as they are, with fields. Returns the header's status.
    @discardableResult
    public func write(
        _ level: Level, bytes: UnsafeRawBufferPointer, fields: [(String, FieldInput)]
    ) -> Int32 {
        guard fields.count <= FieldType.countMax else { return Status.limit }
        let encoded = RecordWriter.encode(fields)
        return encoded.withUnsafeBytes {
            var body = RichBody()
            body.message = bytes
            body.encodedFields = $0
            return AppendSlow.rich(block, level.number, body)
        }
    }
}
