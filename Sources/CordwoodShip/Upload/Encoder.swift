// Makes the body of a request: the archive's file as it stands, or a temporary file of rendered or
// compressed bytes that is unlinked as soon as it is open. One gzip member or one zstd frame a
// body, for servers refuse more (TARGETS). The same archive gives the same bytes on every attempt:
// no time, no file name and no randomness goes in.

import CShims
import CordwoodCore
import Glibc

/// Opens the records of an archive file. Handed in: Upload does not see Archive.
public typealias OpenRecords =
    @Sendable (_ path: String) throws(ReadProblem) -> any RecordSource

/// Appends a line with its newline to `into`.
public typealias RenderLine = @Sendable (_ record: RecordRef, _ into: inout [UInt8]) -> Void

struct Body: ~Copyable {
    /// nil: the archive's own descriptor.
    let temporary: Int32?
    let bytes: UInt64

    deinit { if let temporary { cwi_file_close(temporary) } }
}

struct Encoder {
    let paths: StorePaths
    let openRecords: OpenRecords
    let jsonLine: RenderLine
    let textLine: RenderLine

    /// So many damaged places are passed over in one archive before it counts as unreadable.
    static let problemsMax = 10_000

    /// - Parameter shouldStop: asked now and then; a stopped encoding gives nil.
    func encode(
        _ archive: borrowing ArchiveLock, format: BodyFormat, encoding: BodyEncoding,
        shouldStop: () -> Bool
    ) throws(UploadError) -> Body? {
        if format == .archive && encoding == .none {
            return Body(temporary: nil, bytes: archive.bytes)
        }
        let descriptor = try temporaryFile(archive.stem)
        do throws(UploadError) {
            var sink = try CompressingSink(
                descriptor: descriptor, path: paths.queue, encoding: encoding)
            let isWhole: Bool
            switch format {
            case .archive: isWhole = try copy(archive, into: &sink, shouldStop)
            case .ndjson: isWhole = try render(archive, into: &sink, jsonLine, shouldStop)
            case .text: isWhole = try render(archive, into: &sink, textLine, shouldStop)
            }
            guard isWhole else {
                cwi_file_close(descriptor)
                return nil
            }
            return Body(temporary: descriptor, bytes: try sink.finish())
        } catch {
            cwi_file_close(descriptor)
            throw error
        }
    }

    private func copy(
        _ archive: borrowing ArchiveLock, into sink: inout CompressingSink,
        _ shouldStop: () -> Bool
    ) throws(UploadError) -> Bool {
        var buffer = [UInt8](repeating: 0, count: CompressingSink.chunkBytes)
        var offset: UInt64 = 0
        while offset < archive.bytes {
            if shouldStop() { return false }
            // SAFETY: at most the buffer's own count is read.
            let got = unsafe pread(archive.descriptor, &buffer, buffer.count, off_t(offset))
            if got < 0 && errno == EINTR { continue }
            guard got > 0 else {
                throw UploadError.system(
                    call: "pread", path: paths.archive(archive.stem), errno: got < 0 ? errno : EIO)
            }
            try sink.append(buffer[0..<got])
            offset += UInt64(got)
        }
        return true
    }

    private func render(
        _ archive: borrowing ArchiveLock, into sink: inout CompressingSink, _ line: RenderLine,
        _ shouldStop: () -> Bool
    ) throws(UploadError) -> Bool {
        let path = paths.archive(archive.stem)
        var problems = 0
        do {
            let source = try openRecords(path)
            var lines: [UInt8] = []
            while true {
                do {
                    guard let record = try source.advance() else {
                        try sink.append(lines[...])
                        return true
                    }
                    line(record, &lines)
                } catch ReadProblem.damaged(let text) {
                    problems += 1
                    guard problems < Encoder.problemsMax else { throw ReadProblem.damaged(text) }
                }
                if lines.count >= CompressingSink.chunkBytes {
                    if shouldStop() { return false }
                    try sink.append(lines[...])
                    lines.removeAll(keepingCapacity: true)
                }
            }
        } catch let problem as ReadProblem {
            throw Encoder.uploadError(problem, path: path)
        } catch let error as UploadError {
            throw error
        } catch {
            throw UploadError.damaged("\(path) could not be read")
        }
    }

    private static func uploadError(_ problem: ReadProblem, path: String) -> UploadError {
        switch problem {
        case .damaged(let text): return .damaged("\(path): \(text)")
        case .version(let text): return .version("\(path): \(text)")
        case .system(let text, let code):
            return .system(call: text, path: path, errno: code)
        }
    }

    /// Has no name any more when it is given; the name began with a dot, so it meant nothing. Only
    /// the holder of the archive's lock makes this name.
    private func temporaryFile(_ stem: String) throws(UploadError) -> Int32 {
        let path = paths.queue + "/" + StorePaths.bodyPrefix + stem
        unsafe unlink(path)
        let descriptor = unsafe cwi_file_open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
        guard descriptor >= 0 else {
            throw UploadError.system(call: "open", path: path, errno: errno)
        }
        // CRASH: an empty file; the next body of that archive, or Outbox.removeOrphans, takes it.
        unsafe unlink(path)
        return descriptor
    }
}
