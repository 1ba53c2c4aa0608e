// Changes that a user may make to a store: consent, levels, capture, and the waiting archives. Each
// setting is read with a version, a hash of its content. A change names the version that it was
// made for, and fails with 409 if that is outdated. The changes are those of the command line
// (StoreSettings), and take the same locks. One thread per job.

import Cordwood
import enum CordwoodFormats.JSONValue
import struct CordwoodFormats.JSONProblem

/// The stores of a viewer that are directories.
enum ChangeableStore {
    static func paths(_ options: ViewerOptions) -> [String] {
        options.paths.filter { FileFacts(following: FilePath($0))?.isDirectory == true }
    }

    /// - Parameter name: nil: the only one.
    static func named(_ name: String?, _ options: ViewerOptions) throws(Rejection) -> String {
        let stores = paths(options)
        guard let store = name ?? (stores.count == 1 ? stores[0] : nil), stores.contains(store)
        else { throw Rejection(.notFound, "store names none of the viewer's stores") }
        return store
    }

    /// False for a store on read-only media, or of another user.
    static func isWritable(_ path: String, _ options: ViewerOptions) -> Bool {
        !options.isReadOnly && Files.mayChange(directory: FilePath(path))
            && FileFacts(at: FilePath(path + "/store")) != nil
    }
}

enum Version {
    /// FNV-1a: only has to distinguish the contents of one setting.
    static func of(_ text: String) -> String {
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in text.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return Hex.text(hash)
    }
}

/// A store's present settings.
struct StoreState {
    let consent: Consent
    let control: ControlFile

    init(_ path: String) throws(CordwoodError) {
        consent = try StoreSettings.consent(directory: path)
        control = try StoreSettings.control(directory: path)
    }

    var capture: String { control.http.map { $0 ? "on" : "off" } ?? "auto" }

    var consentVersion: String { Version.of("consent \(consent.word)") }
    var captureVersion: String { Version.of("capture \(capture)") }
    var levelsVersion: String {
        Version.of(
            control.levels.reduce(into: "levels") { $0 += "\n\($1.number) \($1.prefix)" })
    }

    func append(_ path: String, _ options: ViewerOptions, to out: inout [UInt8]) {
        out += "{\"path\":".utf8
        JSONText.string(path, &out)
        out += ",\"writable\":\(ChangeableStore.isWritable(path, options))".utf8
        append("consent", consent.word, consentVersion, &out)
        append("capture", capture, captureVersion, &out)
        out += ",\"levels\":{\"value\":[".utf8
        let levels = (try? StoreSettings.levels(directory: path)) ?? []
        for (index, level) in levels.enumerated() {
            if index > 0 { out.append(0x2c) }
            JSONText.string(level.text, &out)
        }
        out += "],\"version\":\"\(levelsVersion)\"}}".utf8
    }

    private func append(
        _ name: String, _ value: String, _ version: String, _ out: inout [UInt8]
    ) {
        out += ",\"\(name)\":{\"value\":\"\(value)\",\"version\":\"\(version)\"}".utf8
    }
}

/// /api/settings
struct SettingsJob: Sendable {
    private let options: ViewerOptions

    init(_ options: ViewerOptions) { self.options = options }

    func run(_: LineStream) -> Reply? {
        var out = Array("{\"stores\":[".utf8)
        var problems: [String] = []
        var isFirst = true
        for path in ChangeableStore.paths(options) {
            do throws(CordwoodError) {
                let state = try StoreState(path)
                if !isFirst { out.append(0x2c) }
                isFirst = false
                state.append(path, options, to: &out)
            } catch {
                problems.append("\(path): \(error.text)")
            }
        }
        out += "],\"problems\":[".utf8
        for (index, text) in problems.enumerated() {
            if index > 0 { out.append(0x2c) }
            JSONText.string(text, &out)
        }
        out += "]}\n".utf8
        return .json(out)
    }
}

/// POST /api/consent, levels, capture, queue.
struct ChangeRequest: Sendable {
    private enum Wish: Sendable {
        case consent(Consent)
        case levels([LevelSetting])
        case capture(Bool?)
        case queue(QueueChange, archive: String?, target: String?)
    }

    private let options: ViewerOptions
    private let store: String
    /// Empty: any version.
    private let version: String
    private let wish: Wish

    init(_ options: ViewerOptions, _ path: String, _ body: [UInt8]) throws(Rejection) {
        self.options = options
        let members = try ChangeRequest.members(body)
        let names = Set(members.map(\.key))
        let known: Set<String> =
            path == "queue"
            ? ["store", "version", "value", "archive", "target"] : ["store", "version", "value"]
        guard names.isSubset(of: known) else {
            throw Rejection("no such member: \(names.subtracting(known).sorted()[0])")
        }
        func value(_ name: String) -> JSONValue? { members.first { $0.key == name }?.value }
        func text(_ name: String) throws(Rejection) -> String? {
            switch value(name) {
            case nil, .null: return nil
            case .string(let text): return text
            default: throw Rejection("\(name) takes a string")
            }
        }
        store = try ChangeableStore.named(try text("store"), options)
        version = try text("version") ?? ""
        switch path {
        case "consent":
            let word = try text("value") ?? ""
            guard
                let found = [Consent.granted, .pending, .denied].first(where: { $0.word == word })
            else { throw Rejection("value takes granted, pending, denied") }
            wish = .consent(found)
        case "capture":
            switch try text("value") {
            case "on": wish = .capture(true)
            case "off": wish = .capture(false)
            case "auto": wish = .capture(nil)
            default: throw Rejection("value takes on, off, auto")
            }
        case "levels":
            guard case .array(let elements) = value("value"), !elements.isEmpty else {
                throw Rejection("value takes a list of PREFIX=LEVEL")
            }
            wish = .levels(try elements.map(ChangeRequest.level))
        default:
            guard let change = QueueChange(rawValue: try text("value") ?? "") else {
                throw Rejection("value takes retry, quarantine")
            }
            wish = .queue(change, archive: try text("archive"), target: try text("target"))
        }
        try requireVersion()
    }

    private static func members(_ body: [UInt8]) throws(Rejection) -> [JSONValue.Member] {
        let parsed: JSONValue
        do throws(JSONProblem) {
            parsed = try JSONValue.parse(body, bytesMax: body.count)
        } catch {
            throw Rejection("the body is no JSON: \(error.text)")
        }
        guard case .object(let members) = parsed else { throw Rejection("the body is no object") }
        return members
    }

    private static func level(_ value: JSONValue) throws(Rejection) -> LevelSetting {
        guard let text = value.string else { throw Rejection("a level is a string") }
        do throws(LevelWordError) {
            return try LevelSetting(text)
        } catch {
            throw Rejection("'\(text)': '\(error.word)' is no level: \(LevelSetting.words)")
        }
    }

    /// Failed pairs may be retried together at any time; a change to one archive depends on its
    /// state.
    private func requireVersion() throws(Rejection) {
        if case .queue(let change, let archive, let target) = wish {
            guard archive != nil || change == .retry else {
                throw Rejection("quarantine needs an archive and a target")
            }
            if archive == nil { return }
            guard target != nil else { throw Rejection("an archive needs a target beside it") }
        }
        guard !version.isEmpty else { throw Rejection("version is missing") }
    }

    private static let passed = Rejection(
        .conflict, "somebody else has changed it meanwhile; look again")

    func run() -> Reply? {
        do throws(Rejection) {
            guard ChangeableStore.isWritable(store, options) else {
                throw Rejection(.notFound, "this store cannot be changed here")
            }
            do throws(CordwoodError) {
                return try perform()
            } catch {
                let isWrong = error.status == UploadStatus.argument.rawValue
                throw Rejection(error, otherwise: isWrong ? .badRequest : .internalServerError)
            }
        } catch {
            return error.reply
        }
    }

    private func perform() throws(CordwoodError) -> Reply {
        let state = try StoreState(store)
        switch wish {
        case .consent(let consent):
            guard state.consentVersion == version,
                try StoreSettings.setConsent(consent, from: state.consent, directory: store)
            else { return ChangeRequest.passed.reply }
        case .levels(let settings):
            guard state.levelsVersion == version,
                try StoreSettings.setLevels(
                    settings, from: state.control.levels, directory: store)
            else { return ChangeRequest.passed.reply }
        case .capture(let isOn):
            guard state.captureVersion == version,
                try StoreSettings.setHTTP(isOn, from: state.control.http, directory: store)
            else { return ChangeRequest.passed.reply }
        case .queue(let change, let archive, let target):
            return try performQueue(change, archive, target)
        }
        var out: [UInt8] = []
        try StoreState(store).append(store, options, to: &out)
        out.append(0x0a)
        return .json(out)
    }

    private func performQueue(
        _ change: QueueChange, _ archive: String?, _ target: String?
    ) throws(CordwoodError) -> Reply {
        var count = 1
        if let archive, let target {
            let entries = try StoreSettings.queue(directory: store)
            guard let entry = entries.first(where: { $0.archive == archive && $0.target == target })
            else { return Rejection(.notFound, "no such archive, or no such target").reply }
            guard QueueJob.version(entry) == version,
                try StoreSettings.change(
                    change, archive: archive, target: target, from: entry.state, directory: store)
            else { return ChangeRequest.passed.reply }
        } else {
            count = try StoreSettings.retry(archive: nil, target: target, directory: store)
        }
        return .json(Array("{\"changed\":\(count)}\n".utf8))
    }
}
