// Turns the bytes of an archive into those of an age file while they are written (FORMAT §11.5).
// The header is written last, into room reserved before the first chunk, because it contains the
// number and the times of the records. Owned by one PartFile; one thread at a time. The file key
// lives as long as this object.
// CRASH: until the header is written, the `.part` holds one with other numbers; it means nothing.
// SAFETY: writes take exactly a view's bytes.

import CShims
import CordwoodCore

final class SealingPart {
    private let descriptor: Int32
    private let path: FilePath
    private let fileKey: AgeSecret
    private let recipients: [AgeStanza]
    private let headerBytes: Int
    private let sealer: AgeSealer
    private var crc: UInt32 = 0
    /// Bytes after the header.
    private var payloadBytes: UInt64 = 0

    var written: UInt64 { UInt64(headerBytes) + payloadBytes }

    /// The descriptor is the caller's and is at the beginning of an empty file.
    init(
        _ descriptor: Int32, path: FilePath, recipients keys: [AgeRecipient], info: ArchiveInfo
    ) throws(ArchiveError) {
        guard Machine.givesKeys else {
            throw .system(operation: "getrandom", path: "\(path)", errno: Errno.last)
        }
        fileKey = AgeSecret(AgeCrypto.random(AgeHeader.fileKeyBytes))
        self.descriptor = descriptor
        self.path = path
        var stanzas: [AgeStanza] = []
        for key in keys {
            guard let stanza = key.stanza(fileKey) else {
                throw .argument("\(key.text) cannot be encrypted to")
            }
            stanzas.append(stanza)
        }
        recipients = stanzas
        sealer = AgeSealer(fileKey: fileKey)
        guard let summary = SealedFacts(info).stanza else { throw .memory }
        let header = AgeHeader.make(stanzas + [summary], fileKey: fileKey)
        guard header.count <= AgeHeader.bytesMax else {
            throw .limit("covers of one encrypted archive")
        }
        headerBytes = header.count
        try write(header)
        try unsafe sealer.salt.withUnsafeBufferPointer { (salt) throws(ArchiveError) in
            try put(UnsafeRawBufferPointer(salt))
        }
    }

    @safe func append(_ bytes: UnsafeRawBufferPointer) throws(ArchiveError) {
        try sealer.append(bytes) { (piece) throws(ArchiveError) in try put(piece) }
    }

    /// Writes the last chunk, and then the header.
    func finish(_ info: ArchiveInfo) throws(ArchiveError) {
        try unsafe sealer.finish { (piece) throws(ArchiveError) in try put(piece) }
        var facts = SealedFacts(info)
        facts.payloadBytes = payloadBytes
        facts.payloadCRC = crc
        guard let summary = facts.stanza else { throw .memory }
        let header = AgeHeader.make(recipients + [summary], fileKey: fileKey)
        guard header.count == headerBytes, Files.rewind(descriptor) else {
            throw failure(Errno.EIO)
        }
        try write(header)
    }

    @safe private func put(_ bytes: UnsafeRawBufferPointer) throws(ArchiveError) {
        try write(bytes)
        payloadBytes &+= UInt64(bytes.count)
        if let start = bytes.baseAddress { crc = unsafe cwi_crc32c(crc, start, bytes.count) }
    }

    private func write(_ bytes: [UInt8]) throws(ArchiveError) {
        try unsafe bytes.withUnsafeBufferPointer { (all) throws(ArchiveError) in
            try write(UnsafeRawBufferPointer(all))
        }
    }

    @safe private func write(_ bytes: UnsafeRawBufferPointer) throws(ArchiveError) {
        let error = unsafe Files.write(descriptor, bytes)
        guard error == 0 else { throw failure(error) }
    }

    private func failure(_ code: Int32) -> ArchiveError {
        .system(operation: "write", path: "\(path)", errno: code)
    }
}
