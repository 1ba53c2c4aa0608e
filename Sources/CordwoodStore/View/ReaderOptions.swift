// What a reader shows and where it begins.

public struct ReaderOptions: Sendable {
    /// Lowest level to show; 0: all.
    public var level: UInt8 = 0
    /// Set of 1 << kind; 0: all.
    public var kinds: UInt32 = 0
    /// UTC, ns since 1970, inclusive; 0: from the first.
    public var since: UInt64 = 0
    /// Exclusive; 0: to the last.
    public var until: UInt64 = 0
    /// This name and those below it; empty: all.
    public var logger = ""
    /// Fields that must have these values, as text.
    public var conditions: [(key: String, value: String)] = []
    /// Wait for more records instead of ending.
    public var follow = false
    /// With `follow`: skip what already exists.
    public var fromEnd = false
    /// Keys for encrypted archives (`AgeKeys.identities`).
    public var identities: [AgeIdentity] = []

    public init() {}

    var filter: RecordFilter {
        var filter = RecordFilter()
        filter.level = level
        filter.kinds = kinds
        filter.since = since
        filter.until = until
        filter.logger = Array(logger.utf8)
        filter.conditions = conditions.map { (Array($0.key.utf8), Array($0.value.utf8)) }
        return filter
    }
}
