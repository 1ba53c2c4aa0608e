// Makes exchanges of their records: the one of the beginning waits for the one of the end, and what
// has no end is handed out as open. What waits is bounded in number and bytes: beyond that the
// oldest is handed out as open at once, and again when it ends. Owned by one thread.

import CordwoodStore

public struct ExchangeGatherer: Sendable {
    /// For ReaderOptions.kinds: no other record means anything here.
    public static let kinds: UInt32 = 1 << UInt32(ExchangeField.kind)
    /// Open exchanges held.
    public static let openMax = 65_536
    /// And their bytes, together.
    public static let openBytesMax = 64 << 20
    /// Of one; above this its headers and bodies are not held.
    static let oneBytesMax = 1 << 20

    /// Beginnings are handed out as they come, in the state `isOpen`, and their ends after them.
    public var isLive = false

    private let bodies: Bool
    private let watch: LaneWatch?
    private var open: [String: Waiting] = [:]
    /// Ids in the order of their beginnings; those that ended meanwhile stand in it, too.
    private var order: [(id: String, serial: UInt64)] = []
    private var orderHead = 0
    private var serial: UInt64 = 0
    private var openBytes = 0

    private struct Waiting {
        var exchange: CapturedExchange
        var serial: UInt64
        var cost: Int
    }

    /// - Parameters:
    ///   - bodies: false: exchanges come without them, which spares copies.
    ///   - watch: taken before the stores are read; nil: what has no end is open, never lost.
    public init(bodies: Bool = true, watch: LaneWatch? = nil) {
        self.bodies = bodies
        self.watch = watch
    }

    public var openCount: Int { open.count }

    /// Takes a record of any kind and hands out what is finished by it.
    public mutating func take(_ record: borrowing RecordRef, _ sink: (CapturedExchange) -> Void) {
        guard let exchange = CapturedExchange(record, bodies: bodies) else { return }
        guard exchange.isOpen else {
            if let waiting = open.removeValue(forKey: exchange.id) {
                openBytes = openBytes &- waiting.cost
            }
            return sink(exchange)
        }
        if isLive || exchange.id.isEmpty { return sink(exchange) }
        hold(exchange)
        while open.count > ExchangeGatherer.openMax || openBytes > ExchangeGatherer.openBytesMax {
            guard let oldest = removeOldest() else { break }
            sink(oldest)
        }
    }

    /// Hands out what is still open, or lost, the oldest first.
    public mutating func finish(_ sink: (CapturedExchange) -> Void) {
        let rest = open.values.sorted {
            ($0.exchange.start, $0.serial) < ($1.exchange.start, $1.serial)
        }
        open.removeAll()
        order.removeAll()
        orderHead = 0
        openBytes = 0
        for waiting in rest {
            var exchange = waiting.exchange
            if let process = exchange.process, watch?.isOver(process) ?? false {
                exchange.isOpen = false
                exchange.isLost = true
            }
            sink(exchange)
        }
    }

    private mutating func hold(_ exchange: CapturedExchange) {
        var exchange = exchange
        if exchange.cost > ExchangeGatherer.oneBytesMax {
            exchange.request.headers = []
            exchange.response.headers = []
            exchange.request.body = nil
            exchange.response.body = nil
            exchange.urlBytes = Array(exchange.urlBytes.prefix(ExchangeGatherer.oneBytesMax))
        }
        serial &+= 1
        let waiting = Waiting(exchange: exchange, serial: serial, cost: exchange.cost)
        if let before = open.updateValue(waiting, forKey: exchange.id) {
            openBytes = openBytes &- before.cost
        }
        openBytes = openBytes &+ waiting.cost
        order.append((exchange.id, serial))
        if order.count &- orderHead > 2 &* open.count &+ 1_024 { tidy() }
    }

    private mutating func removeOldest() -> CapturedExchange? {
        while orderHead < order.count {
            let (id, serial) = order[orderHead]
            orderHead &+= 1
            guard let waiting = open[id], waiting.serial == serial else { continue }
            open[id] = nil
            openBytes = openBytes &- waiting.cost
            return waiting.exchange
        }
        return nil
    }

    private mutating func tidy() {
        order = order[orderHead...].filter { open[$0.id]?.serial == $0.serial }
        orderHead = 0
    }
}
