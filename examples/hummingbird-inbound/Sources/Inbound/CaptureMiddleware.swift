// A middleware that records the requests and answers of a Hummingbird server: the inbound side of
// docs/HTTP.md. Bodies pass through piece by piece.

import Cordwood
import HTTPTypes
import Hummingbird
import NIOCore

struct CaptureMiddleware<Context: RequestContext>: RouterMiddleware {
    let engine: Engine

    /// Inside, `traceparent`, X-Transaction-Id and the conversation's header are in force, even if
    /// nothing is captured: records and requests of handlers belong to the caller's trace.
    func handle(
        _ request: Request, context: Context,
        next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        let headers = request.headers.map { ($0.name.rawName, $0.value) }
        return try await Cordwood.Context.withCaller(headers) {
            guard
                let exchange = engine.beginHTTP(
                    method: request.method.rawValue, url: url(request), headers: headers,
                    side: .server, conversation: Cordwood.Context.conversation)
            else { return try await next(request, context) }
            return try await record(exchange, request, context, next)
        }
    }

    private func record(
        _ exchange: HTTPExchange, _ request: Request, _ context: Context,
        _ next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        var request = request
        request.body = RequestBody(
            asyncSequence: request.body.map { part in
                part.withUnsafeReadableBytes { exchange.requestBody($0) }
                return part
            })
        do {
            var response = try await next(request, context)
            answered(exchange, response.status, response.headers)
            let body = response.body
            response.body = ResponseBody(contentLength: body.contentLength) { writer in
                do {
                    try await body.write(Told(writer: writer, exchange: exchange))
                    exchange.end()
                } catch {
                    failed(exchange, error)
                    throw error
                }
            }
            return response
        } catch let error as any HTTPResponseError {
            // Hummingbird turns it into an answer: a missing route, a guard's refusal.
            answered(exchange, error.status, (error as? HTTPError)?.headers ?? [:])
            exchange.end()
            throw error
        } catch {
            failed(exchange, error)
            throw error
        }
    }

    private func answered(
        _ exchange: HTTPExchange, _ status: HTTPResponse.Status, _ headers: HTTPFields
    ) {
        exchange.response(
            status: status.code, headers: headers.map { ($0.name.rawName, $0.value) })
    }

    private func failed(_ exchange: HTTPExchange, _ error: any Error) {
        exchange.end(
            error: "\(error)", errorType: "\(type(of: error))",
            isCancelled: error is CancellationError)
    }

    private func url(_ request: Request) -> String {
        let head = request.head
        return "\(head.scheme ?? "http")://\(head.authority ?? "localhost")\(head.path ?? "/")"
    }
}

/// The answer's writer, which reports what is written.
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
