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
    /// Bytes that the message must contain, or that the fields or the stack trace may show; the
    /// caller checks the records that are returned. Empty: all.
    package var showing: [UInt8] = []
    /// The origin of the records.
    package var origin = Origin()
    /// What else must be true of a record (docs/QUERY.md); nil: nothing.
    public var query: Query?
    /// Wait for more records instead of ending.
    public var follow = false
    /// With `follow`: skip what already exists.
    public var fromEnd = false
    /// Only the last so many of the existing records that pass the filter; 0: all. With `follow`,
    /// of those that exist at the start; all later ones follow. Does not read older archives
    /// further back than it must, and reports no damage there.
    public var last = 0
    /// With `last` or `window`: if records are large, fewer may be returned (`StoreReader.isCut`).
    /// Otherwise they are read twice, so memory is bounded, too.
    package var isPage = false
    /// With `last` or `window`: limit on the total size of the records kept.
    package var keptBytesMax = KeptRecords.bytesMax
    /// With `last` or `window`: of a lane with more segments in lanes/, only the last ones that are
    /// needed are read; the headers of the others are.
    package var segmentsOpenMax = 64
    /// Only the matching records around one record; nil: all.
    package var window: RecordWindow?
    /// Keys for encrypted archives (`AgeKeys.identities`).
    public var identities: [AgeIdentity] = []

    /// False: records whose text is made from a format have no text, which saves time if it is not
    /// needed.
    package var rendersText = true
    /// Loads blocks of archives ahead, on a second thread.
    package var readsAhead = false
    /// Records may come in any order, and damage after all of them. Archives are then read one
    /// after another, and none waits for another with a block in memory. Not while following.
    package var isUnordered = false
    /// The caller probably stops after a few records: little is held for later ones.
    package var isBrief = false
    /// What is remembered of archives; nil: all are opened. Only the command line has it.
    package var facts: FactsCache?
    /// Takes archives whose records need not be read.
    var answers: ArchiveAnswers?
    var ahead: ReadAhead?
    var room: BlockRoom?
    var passed: PassedRows?
    /// Counts wanted records of archives by blocks; the reader returns the rest as records.
    var tally: (any BlockCounter)?

    public init() {}

    /// Counts blocks by columns where these decide. The caller adds the records that are returned.
    package mutating func count(by tally: FacetTally) { self.tally = tally }

    /// The start of the read is found from the end.
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

    /// The options for the sources: if the window's record is apart, they leave out nothing.
    var ofSources: ReaderOptions {
        window?.isApart == true ? unfiltered : narrowed
    }

    /// The same, for every record.
    var unfiltered: ReaderOptions {
        var options = self
        (options.level, options.kinds, options.since, options.until) = (0, 0, 0, 0)
        (options.logger, options.conditions, options.containing) = ("", [], [])
        (options.showing, options.query, options.origin) = ([], nil, Origin())
        return options
    }

    /// The same selection, with levels, kinds and times narrowed by the query: readers use these to
    /// leave out whole archives and blocks.
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
