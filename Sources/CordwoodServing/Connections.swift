// The open connections. Decides who gets one, and which one gives way when all are in use: first a
// connection that has waited too long for a request, then the one with the slowest body. Ends all
// of them when the server stops. Any thread; the lock is held for table operations only.

import NIOCore
import Synchronization

package final class Connections: Sendable {
    /// Names a connection. INVARIANT: used only while it is counted, because afterwards another one
    /// may get the name.
    package typealias Place = ObjectIdentifier

    /// The activity of a connection, as far as it decides who gives way.
    package enum Phase {
        /// Waits for the head of a request.
        case waiting(since: NIODeadline)
        /// Receives a body, at the rate of its last step.
        case receiving(bytesPerSecond: UInt64)
        /// Busy with our own work, or leaving anyway.
        case busy
    }

    /// The reason a newcomer gets no connection.
    package struct ConnectionRefusal {
        package let reason: String
        package let retryAfterSeconds: Int
    }

    private struct Entry {
        let channel: any Channel
        let peer: Peer
        var phase: Phase
        /// Asked to end; no longer counted.
        var isGivingWay = false
        /// The open channel, and each job that runs or waits for it.
        var users = 1
    }

    private struct Content {
        var open: [Place: Entry] = [:]
        var count = 0
        var countByPeer: [Peer: Int] = [:]
        var refusals = 0
        var returns = ReturnTimes()

        mutating func uncount(_ peer: Peer) {
            count -= 1
            let left = (countByPeer[peer] ?? 0) - 1
            countByPeer[peer] = left > 0 ? left : nil
        }
    }

    /// The limit of refused clients that are still being answered.
    private static let refusalsMax = 64

    /// How long unread bytes are discarded, until the client closes: closing over them would reset
    /// the connection and lose the last answer.
    package static let lingerMs: Int64 = 2_000

    private let limits: ConnectionLimits
    private let content = Mutex(Content())

    package init(_ limits: ConnectionLimits) { self.limits = limits }

    /// Nil: the channel is counted until it has closed and the last job for it has ended.
    package func add(_ channel: any Channel, peer: Peer) -> ConnectionRefusal? {
        let key = Place(channel)
        let now = NIODeadline.now()
        let perPeerMax = limits.connectionsMax(of: peer)
        let (refusal, leaving) = content.withLock {
            content -> (ConnectionRefusal?, (any Channel)?) in
            var leaving: (any Channel)?
            if perPeerMax < limits.connectionsMax,
                content.countByPeer[peer, default: 0] >= perPeerMax
            {
                leaving = giveWay(&content, now) { $0.peer == peer }
                if leaving == nil {
                    let reason = "\(perPeerMax) connections of its address are open"
                    // That address blocks only itself.
                    let seconds = Int.random(in: 1...ReturnTimes.secondsMin)
                    return (ConnectionRefusal(reason: reason, retryAfterSeconds: seconds), nil)
                }
            } else if content.count >= limits.connectionsMax {
                leaving = giveWay(&content, now) { _ in true }
                if leaving == nil {
                    let all = limits.connectionsMax
                    return (refuse(&content, now, "all \(all) connections are taken"), nil)
                }
            }
            content.open[key] = Entry(channel: channel, peer: peer, phase: .waiting(since: now))
            content.count += 1
            content.countByPeer[peer, default: 0] += 1
            return (nil, leaving)
        }
        leaving?.pipeline.fireUserInboundEventTriggered(GiveWay())
        if refusal == nil {
            channel.closeFuture.whenComplete { _ in self.release(key) }
        }
        return refusal
    }

    package func set(_ phase: Phase, of place: Place) {
        content.withLock { $0.open[place]?.phase = phase }
    }

    /// For a job: `release` follows when it has ended.
    package func hold(_ place: Place) { content.withLock { $0.open[place]?.users += 1 } }

    package func release(_ place: Place) {
        content.withLock { content in
            guard let entry = content.open[place] else { return }
            content.open[place]?.users -= 1
            guard entry.users == 1 else { return }
            content.open[place] = nil
            if !entry.isGivingWay { content.uncount(entry.peer) }
        }
    }

    /// Seconds after which a refused client should come back.
    package func retryAfterSeconds() -> Int {
        content.withLock {
            $0.returns.seconds(now: .now(), random: .random(in: .min ... .max))
        }
    }

    /// False: too many refused clients are being answered. True: `endRefusal` must follow.
    package func beginRefusal() -> Bool {
        content.withLock { content in
            guard content.refusals < Connections.refusalsMax else { return false }
            content.refusals += 1
            return true
        }
    }

    package func endRefusal() { content.withLock { $0.refusals -= 1 } }

    /// Idle connections close now, busy ones after their answer, the rest when time is up.
    package func drain(timeoutMs: Int64) {
        let channels = content.withLock { content in content.open.values.map { $0.channel } }
        guard let loop = channels.first?.eventLoop else { return }
        for channel in channels {
            channel.pipeline.fireUserInboundEventTriggered(ChannelShouldQuiesceEvent())
        }
        let timeout = loop.scheduleTask(in: .milliseconds(timeoutMs)) {
            for channel in channels { channel.close(promise: nil) }
        }
        for channel in channels { try? channel.closeFuture.wait() }
        timeout.cancel()
    }

    private func refuse(_ content: inout Content, _ now: NIODeadline, _ reason: String)
        -> ConnectionRefusal
    {
        ConnectionRefusal(
            reason: reason,
            retryAfterSeconds: content.returns.seconds(
                now: now, random: .random(in: .min ... .max)))
    }

    /// The longest wait for a request beyond the limit, otherwise the slowest body below it.
    private func giveWay(
        _ content: inout Content, _ now: NIODeadline, among isMeant: (Entry) -> Bool
    ) -> (any Channel)? {
        let latest = now - .milliseconds(limits.headTimeoutPressedMs)
        var longest: (key: Place, since: NIODeadline)?
        var slowest: (key: Place, rate: UInt64)?
        for (key, entry) in content.open where !entry.isGivingWay && isMeant(entry) {
            switch entry.phase {
            case .waiting(let since):
                if since <= min(latest, longest?.since ?? .distantFuture) { longest = (key, since) }
            case .receiving(let rate):
                if rate < min(limits.bodyBytesPerSecondPressed, slowest?.rate ?? .max) {
                    slowest = (key, rate)
                }
            case .busy: break
            }
        }
        guard let key = longest?.key ?? slowest?.key, let entry = content.open[key] else {
            return nil
        }
        content.open[key]?.isGivingWay = true
        content.uncount(entry.peer)
        return entry.channel
    }
}

/// The limits of a server's connections.
package struct ConnectionLimits: Sendable {
    package var connectionsMax = 256
    /// The limit for one IPv4 address, or for one /64 of IPv6. Nil: a quarter of all; no limit for
    /// loopback, where a proxy serves many clients.
    package var connectionsPerAddressMax: Int?
    /// While connections are short, a client that waits longer for its next request gives way to a
    /// new one …
    package var headTimeoutPressedMs: Int64 = 5_000
    /// … and so do slower bodies, the slowest first.
    package var bodyBytesPerSecondPressed: UInt64 = 8 << 10

    package init() {}

    package func connectionsMax(of peer: Peer) -> Int {
        let perPeer = peer.isLoopback ? connectionsMax : max(connectionsMax / 4, 1)
        return min(connectionsPerAddressMax ?? perPeer, connectionsMax)
    }
}

/// Tells a connection that another one gets its place.
package struct GiveWay: Sendable {}

/// When refused clients should come back: spread over a time that grows with their number, so that
/// about `perSecond` of them come at once. Pure; clock and randomness are passed in.
package struct ReturnTimes {
    package static let perSecond = 10
    package static let secondsMin = 5
    package static let secondsMax = 600
    private static let window = TimeAmount.seconds(60)

    private var windowBegan = NIODeadline.distantPast
    private var count = 0
    private var countBefore = 0

    package init() {}

    package mutating func seconds(now: NIODeadline, random: UInt64) -> Int {
        let age = now - windowBegan
        if age >= ReturnTimes.window {
            countBefore = age < ReturnTimes.window * 2 ? count : 0
            (windowBegan, count) = (now, 0)
        }
        count += 1
        let wanted = max(count, countBefore) / ReturnTimes.perSecond
        let span = min(max(wanted, ReturnTimes.secondsMin), ReturnTimes.secondsMax)
        return 1 + Int(random.multipliedFullWidth(by: UInt64(span)).high)
    }
}
