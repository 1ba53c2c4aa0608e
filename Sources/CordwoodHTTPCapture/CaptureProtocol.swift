// The URLProtocol of captured requests: makes Foundation's own protocol for the same task, forwards
// everything to it, and observes its reports to the session. One per task, on the task's queue.

import Cordwood
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking

class CaptureProtocol: URLProtocol {
    private var real: URLProtocol?
    private var recording: Recording?
    /// Taken where the task is resumed, or in CallersCache with the context from there.
    private let inForce = Context.Snapshot()

    /// Foundation's own protocol for http, which is not public: the first of its classes that
    /// accepts one.
    private static let native: URLProtocol.Type? = {
        guard let url = URL(string: "http://localhost/") else { return nil }
        let classes = URLSessionConfiguration.ephemeral.protocolClasses ?? []
        return classes.lazy.compactMap { $0 as? URLProtocol.Type }
            .first { $0.canInit(with: URLRequest(url: url)) }
    }()

    override class func canInit(with request: URLRequest) -> Bool {
        guard let scheme = request.url?.scheme?.lowercased(), scheme == "http" || scheme == "https",
            native != nil, let engine = Slots.engine(self)
        else { return false }
        return engine.isHTTPCaptureEnabled
    }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override class func requestIsCacheEquivalent(_ a: URLRequest, to b: URLRequest) -> Bool {
        a == b
    }

    override func startLoading() {
        if real == nil { begin() }
        real?.startLoading()
    }

    override func stopLoading() {
        if let task, let real, task.state == .canceling {
            recording?.cancelled(PartialAnswer(real), task)
        }
        real?.stopLoading()
    }

    private func begin() {
        guard let task, let client, let native = CaptureProtocol.native else { return }
        if let engine = Slots.engine(type(of: self)),
            let recording = Recording(engine, task, inForce)
        {
            self.recording = recording
        }
        real = native.init(
            task: task, cachedResponse: cachedResponse, client: Client(client, recording))
    }
}

/// Observes the real protocol's reports to the session, and forwards them.
private final class Client: NSObject, URLProtocolClient {
    private let next: any URLProtocolClient
    private let recording: Recording?

    init(_ next: any URLProtocolClient, _ recording: Recording?) {
        self.next = next
        self.recording = recording
    }

    func urlProtocol(
        _ real: URLProtocol, didReceive response: URLResponse,
        cacheStoragePolicy policy: URLCache.StoragePolicy
    ) {
        if let task = real.task { recording?.answered(response, task) }
        next.urlProtocol(real, didReceive: response, cacheStoragePolicy: policy)
    }

    /// For a task with a completion handler, or an answer from the cache: the entire body.
    func urlProtocol(_ real: URLProtocol, didLoad data: Data) {
        if let task = real.task { recording?.loaded(data, task) }
        next.urlProtocol(real, didLoad: data)
    }

    func urlProtocolDidFinishLoading(_ real: URLProtocol) {
        if let recording, let task = real.task { recording.finished(task) }
        next.urlProtocolDidFinishLoading(real)
    }

    func urlProtocol(_ real: URLProtocol, didFailWithError error: any Error) {
        if let task = real.task { recording?.failed(error, task) }
        next.urlProtocol(real, didFailWithError: error)
    }

    func urlProtocol(
        _ real: URLProtocol, wasRedirectedTo request: URLRequest, redirectResponse: URLResponse
    ) {
        next.urlProtocol(real, wasRedirectedTo: request, redirectResponse: redirectResponse)
    }

    /// Called before the answer.
    func urlProtocol(_ real: URLProtocol, cachedResponseIsValid response: CachedURLResponse) {
        recording?.isFromCache()
        next.urlProtocol(real, cachedResponseIsValid: response)
    }

    func urlProtocol(_ real: URLProtocol, didReceive challenge: URLAuthenticationChallenge) {
        // For the next try Foundation makes another protocol, which it sets in the task and which
        // is not visible here: this exchange ends with the refusal.
        if let task = real.task {
            if let response = challenge.failureResponse { recording?.answered(response, task) }
            recording?.finished(task)
        }
        next.urlProtocol(real, didReceive: challenge)
    }

    func urlProtocol(_ real: URLProtocol, didCancel challenge: URLAuthenticationChallenge) {
        next.urlProtocol(real, didCancel: challenge)
    }
}
#endif
