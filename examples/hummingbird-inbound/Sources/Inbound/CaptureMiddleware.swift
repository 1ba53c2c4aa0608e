// A middleware that records what a Hummingbird server is asked and what it answers: the inbound
// side of docs/HTTP.md. Bodies pass through piece by piece.

import Cordwood
import HTTPTypes
import Hummingbird
import NIOCore

struct CaptureMiddleware<Context: RequestContext>: RouterMiddleware {
    let engine: Engine

    func handle(
        _ request: Request, context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard engine.isHTTPCaptureEnabled,
            let exchange = engine.beginHTTP(
                method: request.method.rawValue, url: url(request),
                headers: request.headers.map { ($0.name.rawName, $0.value) }, side: .server)
        else { return try await next(request, context) }
        var request = request
        request.body = RequestBody(
            asyncSequence: request.body.map { part in
                part.withUnsafeReadableBytes { exchange.requestBody($0) }
                return part
            })
        do {
            var response = try await next(request, context)
            exchange.response(
                status: response.status.code,
                headers: response.headers.map { ($0.name.rawName, $0.value) })
            let body = response.body
            response.body = ResponseBody(contentLength: body.contentLength) { writer in
                do {
                    try await body.write(Told(writer: writer, exchange: exchange))
                    exchange.end()
                } catch {
                    exchange.end(error: "\(error)", errorType: "\(type(of: error))")
                    throw error
                }
            }
            return response
        } catch {
            exchange.end(error: "\(error)", errorType: "\(type(of: error))")
            throw error
        }
    }

    private func url(_ request: Request) -> String {
        let head = request.head
        return "\(head.scheme ?? "http")://\(head.authority ?? "localhost")\(head.path ?? "/")"
    }
}

/// The answer's writer, that tells what is written.
private struct Told: ResponseBodyWriter {
    var writer: any ResponseBodyWriter
    let exchange: HTTPExchange

    mutating func write(_ buffer: ByteBuffer) async throws {
        buffer.withUnsafeReadableBytes { exchange.responseBody($0) }
        try await writer.write(buffer)
    }

    consuming func finish(_ trailers: HTTPFields?) async throws {
        try await writer.finish(trailers)
    }
}
