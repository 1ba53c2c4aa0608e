// /api/preview: a request that would be made to a target for a waiting archive, without sending it;
// its body as it is sent (/sent), and before compression (/content). One thread per job.

import Cordwood

struct PreviewJob: Sendable {
    private enum Part {
        case request, sent, content
    }

    /// Of a body's content.
    static let contentBytesMax = 4 << 20
    private static let requestsMax = 1_000_000

    private let options: ViewerOptions
    private let part: Part
    private let store: String
    private let archive: String
    private let target: String
    private let number: Int

    init(
        _ options: ViewerOptions, _ parameters: URLParameters, _ rest: String?
    ) throws(Rejection) {
        self.options = options
        switch rest {
        case nil: part = .request
        case "sent": part = .sent
        case "content": part = .content
        default: throw Rejection(.notFound, "no such path")
        }
        guard let archive = parameters["archive"], let target = parameters["target"] else {
            throw Rejection("a preview needs an archive and a target")
        }
        self.archive = archive
        self.target = target
        number = try parameters.number("part", 0...PreviewJob.requestsMax, unset: 0)
        store = try ChangeableStore.named(parameters["store"], options)
    }

    func run(_ stream: LineStream) -> Reply? {
        var reply: Reply?
        var bytesLeft = part == .content ? PreviewJob.contentBytesMax : .max
        do throws(CordwoodError) {
            try StoreSettings.preview(
                number, archive: archive, target: target, isEncoded: part != .content,
                directory: store, identities: options.identities,
                shouldStop: { stream.isOver },
                begin: { request in
                    guard part == .request else {
                        stream.begin(
                            as: .file("\(request.id).bin", type: "application/octet-stream"))
                        return true
                    }
                    reply = .json(text(request))
                    return false
                },
                piece: {
                    var piece = Array($0.prefix(bytesLeft))
                    bytesLeft -= piece.count
                    return stream.send(&piece) && bytesLeft > 0
                })
        } catch {
            return Rejection(error, otherwise: .unprocessableEntity).reply
        }
        return reply
    }

    private func text(_ request: PreviewedRequest) -> [UInt8] {
        var object = JSONObject()
        object.add("id", request.id)
        object.add("method", request.method)
        object.add("origin", request.origin)
        object.add(
            "headers",
            request.headers.map { name, value in
                var header = JSONObject()
                header.add("name", name)
                header.add("value", value)
                return header
            })
        object.add("body_bytes", request.bytes)
        object.add("content_bytes", request.contentBytes)
        object.add("content_kept", min(request.contentBytes, UInt64(PreviewJob.contentBytesMax)))
        object.add("body_kind", PreviewJob.kind(request.format))
        if let records = request.records { object.add("records", UInt64(records)) }
        if !request.isLast { object.add("next", UInt64(number + 1)) }
        return Array(object.text.utf8) + [0x0a]
    }

    /// The same kinds as for the body of an exchange.
    private static func kind(_ format: String) -> String {
        switch format {
        case "json", "otlp-json": "json"
        case "ndjson", "text", "sap": "text"
        default: "bytes"
        }
    }
}
