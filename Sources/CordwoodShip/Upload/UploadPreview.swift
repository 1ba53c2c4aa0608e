// One request that would be made for a waiting archive, for people who look at a store from
// outside. The planner makes it from the target's registration, in memory, without locking or
// changing the store. The limits that the sending program learnt from its server (a smaller body, a
// simpler encoding) are in no file, so its request may differ. Any thread.
// SAFETY: views of bodies are copied in the call that hands them out.

import CordwoodCore
import CordwoodStore

/// A request as it would be sent, with `***` for secrets.
package struct PreviewedRequest: Sendable {
    package let id: String
    package let method: String
    /// `https://host:port`; the rest of the URL is in no registration.
    package let origin: String
    package let headers: [(name: String, value: String)]
    package let format: String
    /// The body as it is sent, and before compression.
    package let bytes: UInt64
    package let contentBytes: UInt64
    /// nil: the archive goes as a file.
    package let records: UInt32?
    /// Nothing of the archive follows.
    package let isLast: Bool
}

package struct UploadPreview {
    /// Larger bodies are not made here.
    package static let bodyBytesMax: UInt64 = 64 << 20

    private let paths: StorePaths
    private let identities: [AgeIdentity]
    /// The archive's file name.
    private let archive: String
    /// The target's name.
    private let target: String

    package init(
        storeDirectory: FilePath, archive: String, target: String, identities: [AgeIdentity]
    ) {
        paths = StorePaths(storeDirectory)
        self.identities = identities
        self.archive = archive
        self.target = target
    }

    /// - Parameters:
    ///   - number: of the request, from 0, among those that one attempt would make.
    ///   - isEncoded: pieces are those of the body as it is sent, else those of its content.
    ///   - begin: false: no pieces.
    package func make(
        _ number: Int, isEncoded: Bool, shouldStop: @escaping () -> Bool,
        begin: (PreviewedRequest) -> Bool, piece: ([UInt8]) -> Bool
    ) throws(UploadError) {
        let registered = try TargetRegistry(storeDirectory: paths.root).list()
        guard let one = registered.first(where: { $0.name == target }) else {
            throw UploadError.notFound("no target is named \(target)")
        }
        guard let stem = StorePaths.stem(ofFile: archive),
            try StoreFiles.list(paths.archives).contains(archive),
            let opened = ArchiveLock(lookingIn: paths, stem: stem)
        else { throw UploadError.notFound("no archive is named \(archive)") }
        let outbox = Outbox(paths: paths)
        let state = try outbox.states(stem)[one.key] ?? .waiting
        guard !state.isFinal else {
            throw UploadError.notFound("it does not wait for \(target): it is \(state.word)")
        }
        let made = try Target(registered: one)
        var planner = Planner(
            target: made, paths: paths, identities: identities, summary: try summary(stem),
            progress: state.progress, refusals: try outbox.refusals(stem, one.key, state))
        if !isEncoded { planner.encoding = .none }
        let chunksMax = UploadPreview.bodyBytesMax / UInt64(CompressingSink.chunkBytes)
        var chunksLeft = chunksMax
        planner.shouldStop = {
            if chunksLeft > 0 { chunksLeft -= 1 }
            return chunksLeft == 0 || shouldStop()
        }
        var before = number
        var isFound = false
        _ = try planner.run(opened) { (delivery, part, body) throws(UploadError) in
            chunksLeft = chunksMax
            guard before == 0 else {
                before -= 1
                return true
            }
            isFound = true
            if begin(try PreviewedRequest(made, delivery, part, body)) {
                _ = try unsafe body.read { unsafe piece(Array($0)) }
            }
            return false
        }
        guard isFound else {
            throw chunksLeft == 0
                ? UploadError.limit("bodies over \(UploadPreview.bodyBytesMax) bytes are not shown")
                : UploadError.notFound("nothing of it waits, or not as many requests")
        }
    }

    private func summary(_ stem: String) throws(UploadError) -> ArchiveSummary {
        let path = paths.archive(stem)
        do throws(ReadProblem) {
            return try ArchiveSummary(path: path, identities: identities)
        } catch .locked(let text) {
            throw .locked(text)
        } catch .system(let call, let code) {
            throw .system(call: call, path: "\(path)", errno: code)
        } catch {
            throw .damaged(error.line)
        }
    }
}

extension PreviewedRequest {
    /// Sends as the target does, but to no server.
    fileprivate init(
        _ target: Target, _ delivery: Delivery, _ part: Planner.Part, _ body: borrowing Body
    ) throws(UploadError) {
        var request: TransferRequest?
        var delivery = delivery
        _ = try target.send(&delivery, body, bytesPerSecond: 0, isStopped: { true }) {
            if request == nil { request = $0 }
            return .failed("a preview sends nothing")
        }
        id = delivery.id
        method = request?.method ?? target.dialect.method
        origin = target.origin
        headers = (request?.headers ?? []).map {
            let isPlain =
                SentSecrets.plainHeaders.contains($0.lowercasedName)
                && !target.headers.contains($0)
            return ($0.name, isPlain ? $0.value : SentSecrets.mark)
        }
        format = target.format.rawValue
        bytes = body.bytes
        contentBytes = body.contentBytes
        records = part.records
        isLast = part.isLast
    }
}
