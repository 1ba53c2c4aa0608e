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
    /// Bytes that the message must have; empty: all.
    public var containing: [UInt8] = []
    /// Bytes that the message must have, or that the fields or the stack trace may show: the caller
    /// looks at the records that come. Empty: all.
    package var showing: [UInt8] = []
    /// Where the records come from.
    package var origin = Origin()
    /// What else must be true of a record (docs/QUERY.md); nil: nothing.
    public var query: Query?
    /// Wait for more records instead of ending.
    public var follow = false
    /// With `follow`: skip what already exists.
    public var fromEnd = false
    /// Only the last so many of the records that are there and pass the filter; 0: all. With
    /// `follow`, those that are there at the start; all that come later follow. Does not read older
    /// archives further back than it must, and reports no damage there.
    public var last = 0
    /// With `last` or `window`: of large records fewer may come (`StoreReader.isCut`). Otherwise
    /// they are read twice, so that memory is bounded, too.
    package var isPage = false
    /// With `last` or `window`: so many bytes of records are kept.
    package var keptBytesMax = KeptRecords.bytesMax
    /// Only the records around one of them that match; nil: all.
    package var window: RecordWindow?
    /// Keys for encrypted archives (`AgeKeys.identities`).
    public var identities: [AgeIdentity] = []

    /// False: records whose text is made from a format have none, which saves the time where nobody
    /// looks at it.
    package var rendersText = true
    /// Blocks of archives are loaded ahead, on a second thread.
    package var readsAhead = false
    /// Records may come in any order, the damage after all of them: one archive after the other is
    /// read, and none waits for another with a block in memory. Not while following.
    package var isUnordered = false
    /// The caller probably stops after a few records: little is held for those that follow.
    package var isBrief = false
    /// What is remembered of archives; nil: all are opened. Only the command line has it.
    package var facts: FactsCache?
    /// Takes archives whose records need not be read.
    var answers: ArchiveAnswers?
    var ahead: ReadAhead?
    var room: BlockRoom?
    var passed: PassedRows?
    /// Counts what is wanted of archives by blocks; the reader gives the rest as records.
    var tally: (any BlockCounter)?

    public init() {}

    /// Counts blocks by columns where these decide. The caller adds the records that come.
    package mutating func count(by tally: FacetTally) { self.tally = tally }

    /// Where a read begins is found from its end.
    var looksBack: Bool { last > 0 || window != nil }

    /// Narrows `query`.
    public mutating func require(_ more: Query) { query = query?.and(more) ?? more }

    /// No record is left out.
    var takesAll: Bool { plan.takesAll && origin.takesAll }

    /// What `showing` looks for; nil: nothing.
    var shownSearch: (text: TextSearch, fields: FieldSearch)? {
        showing.isEmpty ? nil : (TextSearch(showing), FieldSearch(showing))
    }

    /// All of the above as one query.
    package var plan: QueryPlan {
        var plan = QueryPlan()
        plan.require(level: level)
        if kinds != 0 { plan.require(kinds: kinds) }
        plan.require(since: since)
        if until != 0 { plan.require(until: until) }
        if !logger.isEmpty {
            plan.require(.compare(.logger, .below, .text(Array(logger.utf8))))
        }
        for (key, value) in conditions {
            plan.require(.compare(.field(Array(key.utf8)), .written, .text(Array(value.utf8))))
        }
        if !containing.isEmpty { plan.require(.compare(.message, .contains, .text(containing))) }
        if let query { plan.require(query.node) }
        return plan
    }

    /// What the sources are asked: a record that is given apart is of no selection.
    var ofSources: ReaderOptions {
        var options = narrowed
        guard window?.isApart == true else { return options }
        (options.level, options.kinds, options.since, options.until) = (0, 0, 0, 0)
        (options.logger, options.conditions, options.containing) = ("", [], [])
        (options.showing, options.query, options.origin) = ([], nil, Origin())
        return options
    }

    /// The same selection, whose levels, kinds and times also say what the query says of them:
    /// readers leave out whole archives and blocks by them.
    var narrowed: ReaderOptions {
        guard query != nil else { return self }
        var options = self
        let plan = plan
        options.level = plan.level
        // No record has kind 31: there is nothing to read.
        if plan.kinds != .max { options.kinds = plan.kinds == 0 ? 1 << 31 : plan.kinds }
        options.since = plan.since
        if plan.until != .max { options.until = max(plan.until, 1) }
        return options
    }
}
