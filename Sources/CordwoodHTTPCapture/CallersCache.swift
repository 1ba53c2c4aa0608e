// Wraps the configuration's cache. URLSession makes a data task's protocol on a queue of its own,
// once the cache has answered; the wrapper carries the context (fields, ids, the conversation) over
// from where the task was resumed. Any thread; the cache is otherwise unchanged. Without a cache,
// and for downloads, the protocol is made where the task is resumed.

import Cordwood
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking

final class CallersCache: URLCache, @unchecked Sendable {
    let cache: URLCache

    init(_ cache: URLCache) {
        self.cache = cache
        // Never used itself; the path is no directory, so none is made.
        super.init(memoryCapacity: 0, diskCapacity: 0, diskPath: "/dev/null/none")
    }

    override func getCachedResponse(
        for task: URLSessionDataTask, completionHandler: @escaping (CachedURLResponse?) -> Void
    ) {
        let inForce = Context.Snapshot()
        // SAFETY: called once, as the cache would call it.
        nonisolated(unsafe) let handler = completionHandler
        cache.getCachedResponse(for: task) { response in
            inForce.run { unsafe handler(response) }
        }
    }

    override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        cache.cachedResponse(for: request)
    }

    override func storeCachedResponse(_ response: CachedURLResponse, for request: URLRequest) {
        cache.storeCachedResponse(response, for: request)
    }

    override func storeCachedResponse(_ response: CachedURLResponse, for task: URLSessionDataTask) {
        cache.storeCachedResponse(response, for: task)
    }

    override func removeCachedResponse(for request: URLRequest) {
        cache.removeCachedResponse(for: request)
    }

    override func removeCachedResponse(for task: URLSessionDataTask) {
        cache.removeCachedResponse(for: task)
    }

    override func removeAllCachedResponses() { cache.removeAllCachedResponses() }

    override func removeCachedResponses(since date: Date) {
        cache.removeCachedResponses(since: date)
    }

    override var memoryCapacity: Int {
        get { cache.memoryCapacity }
        set { cache.memoryCapacity = newValue }
    }

    override var diskCapacity: Int {
        get { cache.diskCapacity }
        set { cache.diskCapacity = newValue }
    }

    override var currentMemoryUsage: Int { cache.currentMemoryUsage }
    override var currentDiskUsage: Int { cache.currentDiskUsage }
}
#endif
