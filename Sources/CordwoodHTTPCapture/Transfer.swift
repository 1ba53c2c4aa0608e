// Parts of a transfer that Foundation does not publish, read by reflection (Mirror): the body of an
// upload task, and the part of an answer that had arrived when a task was cancelled. If reflection
// shows nothing, all of it is empty. On the task's work queue, like the objects it reads.

import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking

/// A stored property of an object, its own or inherited.
private func stored(_ name: String, in object: Any) -> Any? {
    sequence(first: Mirror(reflecting: object), next: { $0.superclassMirror })
        .lazy.flatMap(\.children).first { $0.label == name }?.value
}

/// The payload of an enum case, if the value is that case.
private func payload(_ name: String, of value: Any) -> Any? {
    Mirror(reflecting: value).children.first { $0.label == name }?.value
}

/// The body of a task's request.
struct KnownBody {
    private(set) var parts: [Data] = []
    /// Bytes of a file after those.
    private(set) var hidden = 0
    private(set) var stream: InputStream?
    private static let fileBytesMax = 64 << 10

    init(_ task: URLSessionTask) {
        guard let body = stored("knownBody", in: task),
            let some = payload("some", of: body),
            let content = Mirror(reflecting: some).children.first?.value
        else { return }
        if let data = content as? DispatchData {
            parts = data.regions.map { Data($0) }
        } else if let stream = content as? InputStream {
            self.stream = stream
        } else if let url = content as? URL, let file = try? FileHandle(forReadingFrom: url) {
            let first = (try? file.read(upToCount: KnownBody.fileBytesMax)) ?? Data()
            parts = [first]
            hidden = Int(clamping: (try? file.seekToEnd()) ?? 0) - first.count
        }
    }
}

/// An answer under way in Foundation's protocol. If the task has a completion handler, Foundation
/// reports it only at its end.
struct PartialAnswer {
    private(set) var response: HTTPURLResponse?
    private(set) var body: Data?
    /// For a download: the size of its file.
    private(set) var fileBytes = 0

    init(_ real: URLProtocol) {
        guard let state = stored("internalState", in: real),
            let transfer = payload("transferInProgress", of: state)
        else { return }
        // It is nil until the header is complete.
        response = stored("response", in: transfer).flatMap { $0 as? HTTPURLResponse }
        guard response != nil, let drain = stored("bodyDataDrain", in: transfer) else { return }
        if let memory = payload("inMemory", of: drain), let data = payload("some", of: memory) {
            body = (data as? NSData).map { Data(referencing: $0) }
        } else if let file = payload("toFile", of: drain),
            let url = Mirror(reflecting: file).children.first?.value as? URL
        {
            let facts = try? FileManager.default.attributesOfItem(atPath: url.path)
            fileBytes = (facts?[.size] as? NSNumber)?.intValue ?? 0
        }
    }
}
#endif
