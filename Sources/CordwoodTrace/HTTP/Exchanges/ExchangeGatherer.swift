// Makes exchanges from their records: the record of the beginning waits for that of the end, and
// exchanges without an end are returned as open. Waiting exchanges are bounded in number and bytes.
// Beyond that the oldest is returned as open at once, and again when it ends. Owned by one thread.

import CordwoodStore

public struct ExchangeGatherer: Sendable {
    /// For ReaderOptions.kinds: all other records are irrelevant here.
    public static let kinds: UInt32 = 1 << UInt32(ExchangeField.kind)
    /// The limit of held open exchanges.
    public static let openMax = 65_536
    /// The limit of their total bytes.
    public static let openBytesMax = 64 << 20
    /// The limit of one exchange; above it, headers and bodies are not held.
    static let oneBytesMax = 1 << 20

    /// Returns beginnings at once, in the state `isOpen`, and later their ends.
    public var isLive = false
    /// Tested on the last record of each exchange; exchanges that do not match are left out.
    public var query: Query?

    private let bodies: Bool
    private let watch: LaneWatch?
    private var open: [String: Waiting] = [:]
    /// Ids in the order of their beginnings, including those that ended meanwhile.
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
    ///   - bodies: false: exchanges come without bodies, which saves copies.
    ///   - watch: taken before the stores are read; nil: exchanges without an end are open, never
    ///     lost.
    public init(bodies: Bool = true, watch: LaneWatch? = nil) {
        self.bodies = bodies
        self.watch = watch
    }

    public var openCount: Int { open.count }

    /// Takes a record of any kind and returns the exchanges that it completes.
    public mutating func take(_ record: borrowing RecordRef, _ sink: (CapturedExchange) -> Void) {
        guard let exchange = CapturedExchange(record, bodies: bodies) else { return }
        let isWanted = query?.matches(record) ?? true
        guard exchange.isOpen else {
            if let waiting = open.removeValue(forKey: exchange.id) {
                openBytes = openBytes &- waiting.cost
            }
            if isWanted { sink(exchange) }
            return
        }
        guard isWanted else { return }
        if isLive || exchange.id.isEmpty { return sink(exchange) }
        hold(exchange)
        while open.count > ExchangeGatherer.openMax || openBytes > ExchangeGatherer.openBytesMax {
            guard let oldest = removeOldest() else { break }
            sink(oldest)
        }
    }

    /// Returns the open and lost exchanges, oldest first.
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
