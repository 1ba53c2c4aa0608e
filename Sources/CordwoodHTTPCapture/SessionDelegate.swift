// The delegate of our sessions: forwards to the host's delegate and observes the traffic.
// Foundation's questions go to the host's delegate if it implements them; otherwise Foundation's
// default answers. On the session's delegate queue.

import Cordwood
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking

final class SessionDelegate: NSObject, URLSessionDataDelegate, URLSessionDownloadDelegate,
    URLSessionWebSocketDelegate
{
    private let host: (any URLSessionDelegate)?
    /// The session's queue, on which all calls arrive in order.
    let queue: OperationQueue
    private var task: (any URLSessionTaskDelegate)? { host as? any URLSessionTaskDelegate }
    private var data: (any URLSessionDataDelegate)? { host as? any URLSessionDataDelegate }
    private var download: (any URLSessionDownloadDelegate)? {
        host as? any URLSessionDownloadDelegate
    }

    private var webSocket: (any URLSessionWebSocketDelegate)? {
        host as? any URLSessionWebSocketDelegate
    }

    init(_ host: (any URLSessionDelegate)?, _ queue: OperationQueue) {
        self.host = host
        self.queue = queue
    }

    func urlSession(_ session: URLSession, didBecomeInvalidWithError error: (any Error)?) {
        host?.urlSession(session, didBecomeInvalidWithError: error)
    }

    func urlSession(
        _ session: URLSession, didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (
                URLSession.AuthChallengeDisposition, URLCredential?
            ) -> Void
    ) {
        guard let host else { return completionHandler(.performDefaultHandling, nil) }
        host.urlSession(session, didReceive: challenge, completionHandler: completionHandler)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        willPerformHTTPRedirection response: HTTPURLResponse, newRequest request: URLRequest,
        completionHandler: @escaping @Sendable (URLRequest?) -> Void
    ) {
        let recording = Recordings.find(task)
        guard let host = self.task else {
            let request = SessionDelegate.withCookies(request, session.configuration)
            recording?.redirected(response, request, task)
            return completionHandler(request)
        }
        host.urlSession(
            session, task: task, willPerformHTTPRedirection: response, newRequest: request
        ) { chosen in
            // A redirection that is not followed is the answer.
            if let chosen { recording?.redirected(response, chosen, task) }
            completionHandler(chosen)
        }
    }

    /// A redirection's request as Foundation makes it in sessions without a delegate for it. With
    /// such a delegate, Foundation leaves the cookies to the delegate (the configuration's headers
    /// are part of every transfer).
    private static func withCookies(
        _ request: URLRequest, _ configuration: URLSessionConfiguration
    ) -> URLRequest {
        guard configuration.httpShouldSetCookies, let url = request.url,
            let cookies = configuration.httpCookieStorage?.cookies(for: url),
            let value = HTTPCookie.requestHeaderFields(with: cookies)["Cookie"], !value.isEmpty
        else { return request }
        var request = request
        request.setValue(value, forHTTPHeaderField: "Cookie")
        return request
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didReceive challenge: URLAuthenticationChallenge,
        completionHandler:
            @escaping @Sendable (
                URLSession.AuthChallengeDisposition, URLCredential?
            ) -> Void
    ) {
        guard let host = self.task else { return completionHandler(.performDefaultHandling, nil) }
        host.urlSession(
            session, task: task, didReceive: challenge, completionHandler: completionHandler)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        needNewBodyStream completionHandler: @escaping @Sendable (InputStream?) -> Void
    ) {
        guard let host = self.task else { return completionHandler(nil) }
        host.urlSession(session, task: task) { stream in
            completionHandler(stream.map { Recordings.find(task)?.watched($0) ?? $0 })
        }
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didSendBodyData sent: Int64,
        totalBytesSent total: Int64, totalBytesExpectedToSend expected: Int64
    ) {
        self.task?.urlSession(
            session, task: task, didSendBodyData: sent, totalBytesSent: total,
            totalBytesExpectedToSend: expected)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask, didCompleteWithError error: (any Error)?
    ) {
        self.task?.urlSession(session, task: task, didCompleteWithError: error)
    }

    func urlSession(
        _ session: URLSession, task: URLSessionTask,
        didFinishCollecting metrics: URLSessionTaskMetrics
    ) {
        self.task?.urlSession(session, task: task, didFinishCollecting: metrics)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask, didReceive response: URLResponse,
        completionHandler: @escaping @Sendable (URLSession.ResponseDisposition) -> Void
    ) {
        guard let data else { return completionHandler(.allow) }
        data.urlSession(
            session, dataTask: dataTask, didReceive: response, completionHandler: completionHandler)
    }

    func urlSession(_ session: URLSession, dataTask: URLSessionDataTask, didReceive bytes: Data) {
        Recordings.find(dataTask)?.received(bytes)
        data?.urlSession(session, dataTask: dataTask, didReceive: bytes)
    }

    func urlSession(
        _ session: URLSession, dataTask: URLSessionDataTask,
        willCacheResponse response: CachedURLResponse,
        completionHandler: @escaping @Sendable (CachedURLResponse?) -> Void
    ) {
        guard let data else { return completionHandler(response) }
        data.urlSession(
            session, dataTask: dataTask, willCacheResponse: response,
            completionHandler: completionHandler)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didFinishDownloadingTo location: URL
    ) {
        download?.urlSession(
            session, downloadTask: downloadTask, didFinishDownloadingTo: location)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask, didWriteData written: Int64,
        totalBytesWritten total: Int64, totalBytesExpectedToWrite expected: Int64
    ) {
        download?.urlSession(
            session, downloadTask: downloadTask, didWriteData: written, totalBytesWritten: total,
            totalBytesExpectedToWrite: expected)
    }

    func urlSession(
        _ session: URLSession, downloadTask: URLSessionDownloadTask,
        didResumeAtOffset offset: Int64,
        expectedTotalBytes expected: Int64
    ) {
        download?.urlSession(
            session, downloadTask: downloadTask, didResumeAtOffset: offset,
            expectedTotalBytes: expected)
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didOpenWithProtocol name: String?
    ) {
        webSocket?.urlSession(session, webSocketTask: webSocketTask, didOpenWithProtocol: name)
    }

    func urlSession(
        _ session: URLSession, webSocketTask: URLSessionWebSocketTask,
        didCloseWith code: URLSessionWebSocketTask.CloseCode, reason: Data?
    ) {
        webSocket?.urlSession(
            session, webSocketTask: webSocketTask, didCloseWith: code, reason: reason)
    }
}
#endif
