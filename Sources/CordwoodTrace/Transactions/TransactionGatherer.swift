// Makes transactions from their records, in any order: several stores may be read one after the
// other. A transaction is never finished, because any process may join it again, so all are held
// until the end, up to a limit. Beyond it, the one that was inactive longest is returned
// unfinished, and begins anew if more of its records come. Owned by one thread.

import CordwoodStore

/// A transaction as its records describe it.
public struct StoredTransaction: Sendable {
    /// The limit of different events remembered; further ones are counted, and are in no funnel.
    static let reachedMax = 256

    public let id: TransactionID
    /// Empty: no name was registered.
    public internal(set) var usecaseName = ""
    /// UTC ns, of its first and last record.
    public internal(set) var first: UInt64
    public internal(set) var last: UInt64
    /// The times of its first begin or join, and of its last end; 0: none.
    public internal(set) var began: UInt64 = 0
    public internal(set) var ended: UInt64 = 0
    public internal(set) var events: UInt64 = 0
    /// Events with an error.
    public internal(set) var errors: UInt64 = 0
    /// The events it reached, each once.
    public internal(set) var reached: [Int32] = []
    public internal(set) var lastEvent: Int32?
    private var lastEventTime: UInt64 = 0
    /// The time of its last record that is not an event.
    private var markTime: UInt64 = 0
    private var isMarkEnd = false

    /// Its last record, apart from events, is an end.
    public var isEnded: Bool { isMarkEnd }

    /// ns, from its first begin or join to its last end; if it has no begin, from its first record.
    public var duration: UInt64? {
        guard isEnded, ended > 0 else { return nil }
        let from = began > 0 ? began : first
        return ended > from ? ended &- from : 0
    }

    public init(_ moment: TransactionMoment) {
        id = moment.id
        first = moment.time
        last = moment.time
        add(moment)
    }

    public mutating func add(_ moment: TransactionMoment) {
        first = min(first, moment.time)
        last = max(last, moment.time)
        if !moment.usecaseName.isEmpty { usecaseName = moment.usecaseName }
        switch moment.operation {
        case .begin, .join:
            began = began == 0 ? moment.time : min(began, moment.time)
            mark(moment, isEnd: false)
        case .end:
            ended = max(ended, moment.time)
            mark(moment, isEnd: true)
        case .event:
            events &+= 1
            if moment.errorCode != nil { errors &+= 1 }
            guard let event = moment.event else { return }
            if moment.time >= lastEventTime {
                lastEvent = event
                lastEventTime = moment.time
            }
            if reached.count < StoredTransaction.reachedMax, !reached.contains(event) {
                reached.append(event)
            }
        }
    }

    private mutating func mark(_ moment: TransactionMoment, isEnd: Bool) {
        guard moment.time >= markTime else { return }
        markTime = moment.time
        isMarkEnd = isEnd
    }
}

public struct TransactionGatherer: Sendable {
    /// The limit of held transactions.
    public static let heldMax = 262_144

    private let heldMax: Int
    private var held: [TransactionID: (one: StoredTransaction, serial: UInt64)] = [:]
    /// Activity in order; may contain older entries of the same transaction.
    private var order: [(id: TransactionID, serial: UInt64)] = []
    private var orderHead = 0
    private var serial: UInt64 = 0

    public init(heldMax: Int = TransactionGatherer.heldMax) { self.heldMax = max(heldMax, 1) }

    /// Takes a record's content and returns the transactions that no longer fit.
    public mutating func take(_ moment: TransactionMoment, _ sink: (StoredTransaction) -> Void) {
        serial &+= 1
        if held[moment.id] == nil {
            held[moment.id] = (StoredTransaction(moment), serial)
        } else {
            held[moment.id]?.one.add(moment)
            held[moment.id]?.serial = serial
        }
        order.append((moment.id, serial))
        while held.count > heldMax, orderHead < order.count {
            let (id, serial) = order[orderHead]
            orderHead &+= 1
            guard let oldest = held[id], oldest.serial == serial else { continue }
            held[id] = nil
            sink(oldest.one)
        }
        if order.count > 4 &* heldMax &+ 1_024
            || order.count &- orderHead > 2 &* held.count &+ 1_024
        {
            tidy()
        }
    }

    /// Returns the rest, oldest first.
    public mutating func finish(_ sink: (StoredTransaction) -> Void) {
        let rest = held.values.sorted { ($0.one.first, $0.serial) < ($1.one.first, $1.serial) }
        held = [:]
        order = []
        orderHead = 0
        for one in rest { sink(one.one) }
    }

    private mutating func tidy() {
        order = order[orderHead...].filter { held[$0.id]?.serial == $0.serial }
        orderHead = 0
    }
}
