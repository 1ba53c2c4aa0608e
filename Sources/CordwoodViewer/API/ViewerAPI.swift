// The requests below /api/ (docs/VIEWER.md): finds the job of a request, and refuses a request for
// which there is none. The jobs run on readers' threads and open the stores anew each time, so
// nothing is shared between them. Any thread.

import Cordwood
import NIOHTTP1

struct ViewerAPI: Sendable {
    /// Returns an answer, or sends lines and returns none.
    typealias Job = @Sendable (LineStream) -> Reply?

    enum Found {
        case refused(Reply)
        case job(ViewerSeats.Kind, Job)
    }

    let options: ViewerOptions

    init(_ options: ViewerOptions) { self.options = options }

    func find(_ path: String, _ query: String) -> Found {
        guard let parameters = URLParameters(query) else {
            return .refused(.error(.badRequest, "the parameters are not percent-encoded UTF-8"))
        }
        do throws(Rejection) {
            let (name, rest) = ViewerAPI.split(path)
            switch (name, rest) {
            case ("store", nil): return .job(.query, StoreJob(options).run)
            case ("query", nil):
                return .job(.query, QueryJob(options, try QueryRequest(parameters)).run)
            case ("record", let key?):
                return .job(.query, RecordJob(options, try Self.key(key)).run)
            case ("around", let key?):
                return .job(.query, try AroundJob(options, try Self.key(key), parameters).run)
            case ("tail", nil):
                return .job(.tail, try TailJob(options, try Selected(parameters), parameters).run)
            case ("devices", nil):
                return .job(.query, try DevicesJob(options, parameters).run)
            case ("settings", nil): return .job(.query, SettingsJob(options).run)
            case ("queue", nil):
                return .job(.query, try QueueJob(options, parameters).run)
            case ("preview", let rest):
                return .job(.query, try PreviewJob(options, parameters, rest).run)
            case ("http", nil):
                return .job(.query, ExchangesJob(options, try ExchangesRequest(parameters)).run)
            case ("http.har", nil):
                let request = try ExchangesRequest(parameters, isHAR: true)
                return .job(.query, ExchangesJob(options, request).run)
            case ("http", let rest?):
                return .job(.query, try ExchangeJob(options, rest).run)
            case ("traces", nil):
                return .job(.query, try TracesJob(options, parameters).run)
            case ("trace", let id?): return .job(.query, try TraceJob(options, id).run)
            case ("transactions", let rest):
                return .job(.query, try TransactionsJob(options, parameters, funnel: rest).run)
            case ("transaction", let id?):
                return .job(.query, try TransactionsJob(options, parameters, id: id).run)
            case ("command", nil):
                let text = try CommandText.text(options, try Selected(parameters), parameters)
                return .job(.query) { _ in .json(text) }
            default: return .refused(.error(.notFound, "no such path"))
            }
        } catch {
            return .refused(error.reply)
        }
    }

    /// The job of a request that changes a store. The paths are `ViewerCheck.changes`.
    func findChange(_ path: String, _ body: [UInt8]) -> Found {
        do throws(Rejection) {
            let change = try ChangeRequest(options, path, body)
            return .job(.query) { _ in change.run() }
        } catch {
            return .refused(error.reply)
        }
    }

    private static func split(_ path: String) -> (name: String, rest: String?) {
        guard let slash = path.firstIndex(of: "/") else { return (path, nil) }
        return (String(path[..<slash]), String(path[path.index(after: slash)...]))
    }

    static func key(_ text: String) throws(Rejection) -> RecordKey {
        guard let key = RecordKey(text) else { throw Rejection("not the key of a record") }
        return key
    }
}

/// A request that no reader can answer.
struct Rejection: Error {
    var status = HTTPResponseStatus.badRequest
    var text: String
    /// In the query, in characters.
    var column: Int?

    init(_ text: String, column: Int? = nil) {
        self.text = text
        self.column = column
    }

    init(_ status: HTTPResponseStatus, _ text: String) {
        self.status = status
        self.text = text
    }

    /// - Parameter otherwise: the status if nothing is missing.
    init(_ error: CordwoodError, otherwise status: HTTPResponseStatus) {
        let isGone = error.status == UploadStatus.notFound.rawValue
        self.init(isGone ? .notFound : status, error.text)
    }

    var reply: Reply { .error(status, text, column: column) }
}

/// Which records a request asks for: `q`, `since` and `until` as the command line takes them.
struct Selected: Sendable {
    let query: Query?
    /// UTC ns; 0: open.
    let since: UInt64
    let until: UInt64

    static let all = Selected()

    private init() { (query, since, until) = (nil, 0, 0) }

    init(_ parameters: URLParameters) throws(Rejection) {
        let now = Machine.realtimeNs()
        since = try Selected.time(parameters["since"], "since", now)
        until = try Selected.time(parameters["until"], "until", now)
        guard let text = parameters["q"] else {
            query = nil
            return
        }
        do throws(QueryError) {
            query = try Query(text, nowNs: now)
        } catch {
            throw Rejection(error.text, column: error.column)
        }
    }

    private static func time(
        _ text: String?, _ name: String, _ now: UInt64
    ) throws(Rejection) -> UInt64 {
        guard let text else { return 0 }
        guard let time = TimeArgument.parse(text, nowNs: now, utc: false) else {
            throw Rejection("\(name) takes \(TimeArgument.forms); not \(text)")
        }
        return max(time, 1)
    }

    func readerOptions(_ options: ViewerOptions, _ facts: FactsCache?) -> ReaderOptions {
        var asked = ReaderOptions()
        asked.query = query
        asked.since = since
        asked.until = until
        asked.identities = options.identities
        asked.readsAhead = true
        asked.facts = facts
        return asked
    }

    /// For a record with its text.
    func matches(_ record: borrowing RecordRef) -> Bool {
        record.timeNs >= since && (until == 0 || record.timeNs < until)
            && query?.matches(record) ?? true
    }
}

extension URLParameters {
    func number(_ name: String, _ range: ClosedRange<Int>, unset: Int) throws(Rejection) -> Int {
        guard let text = self[name] else { return unset }
        guard let number: Int = Digits.number(text.utf8), range.contains(number) else {
            throw Rejection("\(name) takes \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func word(_ name: String, _ words: [String]) throws(Rejection) -> String {
        guard let text = self[name] else { return words[0] }
        guard words.contains(text) else {
            throw Rejection("\(name) takes \(words.joined(separator: ", "))")
        }
        return text
    }
}
