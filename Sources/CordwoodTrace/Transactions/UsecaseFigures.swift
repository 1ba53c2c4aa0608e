// Figures of use cases: the number of transactions, how many ended, how long they took, how far
// they got. Memory: a few words per use case and event, and 8 bytes per duration, all within
// limits; the excess is counted and reported. Owned by one thread.

import CordwoodStore

public struct UsecaseFigures: Sendable {
    /// For one event: how many reached it, and for how many it was the last without an end.
    public struct Step: Sendable {
        public internal(set) var name = ""
        public internal(set) var reached: UInt64 = 0
        public internal(set) var stopped: UInt64 = 0
    }

    static let eventsMax = 4_096

    public let usecase: Int32
    /// Empty: no name was registered.
    public internal(set) var name = ""
    public internal(set) var count: UInt64 = 0
    public internal(set) var ended: UInt64 = 0
    /// Transactions with an error in at least one event.
    public internal(set) var withErrors: UInt64 = 0
    /// Transactions with neither event nor end.
    public internal(set) var stoppedAtOnce: UInt64 = 0
    var durations: [UInt64] = []
    private var steps: [Int32: Step] = [:]

    init(usecase: Int32) { self.usecase = usecase }

    /// The events in the order of their numbers.
    public var funnel: [(event: Int32, step: Step)] {
        steps.sorted { $0.key < $1.key }.map { ($0.key, $0.value) }
    }

    /// ns, of those that ended; nil: none did. `share` 0.5: half of them took no longer.
    public func duration(_ share: Double) -> UInt64? {
        guard !durations.isEmpty else { return nil }
        let rank = (share * Double(durations.count)).rounded(.up)
        return durations.sorted()[min(max(Int(rank), 1), durations.count) - 1]
    }

    mutating func learn(_ moment: TransactionMoment) {
        if !moment.usecaseName.isEmpty { name = moment.usecaseName }
        guard let event = moment.event, !moment.eventName.isEmpty else { return }
        step(event) { $0.name = moment.eventName }
    }

    mutating func add(_ one: StoredTransaction) {
        count &+= 1
        if one.isEnded { ended &+= 1 }
        if one.errors > 0 { withErrors &+= 1 }
        for event in one.reached { step(event) { $0.reached &+= 1 } }
        guard !one.isEnded else { return }
        if let last = one.lastEvent {
            step(last) { $0.stopped &+= 1 }
        } else {
            stoppedAtOnce &+= 1
        }
    }

    private mutating func step(_ event: Int32, _ change: (inout Step) -> Void) {
        if steps[event] == nil, steps.count >= UsecaseFigures.eventsMax { return }
        change(&steps[event, default: Step()])
    }
}

/// The figures of every use case of a store, or of several.
public struct TransactionFigures: Sendable {
    public static let usecasesMax = 4_096
    /// The limit of kept durations; those of further transactions are in no percentile.
    public static let durationsMax = 4 << 20

    private var usecases: [Int32: UsecaseFigures] = [:]
    private var durationCount = 0
    /// Transactions of use cases beyond the limit.
    public private(set) var leftOut: UInt64 = 0

    public init() {}

    public var all: [UsecaseFigures] { usecases.values.sorted { $0.usecase < $1.usecase } }

    /// Learns the names in a record.
    public mutating func learn(_ moment: TransactionMoment) {
        if moment.usecaseName.isEmpty && moment.eventName.isEmpty { return }
        guard has(moment.id.usecase) else { return }
        usecases[moment.id.usecase]?.learn(moment)
    }

    public mutating func add(_ one: StoredTransaction) {
        guard has(one.id.usecase) else {
            leftOut &+= 1
            return
        }
        usecases[one.id.usecase]?.add(one)
        if let duration = one.duration, durationCount < TransactionFigures.durationsMax {
            usecases[one.id.usecase]?.durations.append(duration)
            durationCount &+= 1
        }
    }

    private mutating func has(_ usecase: Int32) -> Bool {
        if usecases[usecase] != nil { return true }
        guard usecases.count < TransactionFigures.usecasesMax else { return false }
        usecases[usecase] = UsecaseFigures(usecase: usecase)
        return true
    }
}
