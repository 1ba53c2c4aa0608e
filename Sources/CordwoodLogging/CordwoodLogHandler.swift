// A handler for swift-log: its loggers write to an engine.
//
//     LoggingSystem.bootstrap { CordwoodLogHandler(label: $0, engine: engine) }
//
// A handler is a value: metadata and log level of one never change another's. As long as nobody
// sets its log level it follows the engine's (Engine.setLevel with a prefix, CORDWOOD_LEVEL), and
// goes on doing so while the program runs. Any thread.

import Cordwood
import Logging

public struct CordwoodLogHandler: LogHandler {
    public var metadata: Logging.Logger.Metadata = [:]
    public var metadataProvider: Logging.Logger.MetadataProvider?
    private let logger: Cordwood.Logger
    /// nil: the engine's.
    private var ownLevel: Logging.Logger.Level?

    /// label: a dotted name of the engine's loggers; over 255 bytes nothing is written.
    public init(
        label: String, engine: Engine,
        metadataProvider: Logging.Logger.MetadataProvider? = LoggingSystem.metadataProvider
    ) {
        logger = engine.logger(label)
        self.metadataProvider = metadataProvider
    }

    /// Set, it holds for this handler alone, also below the engine's threshold.
    public var logLevel: Logging.Logger.Level {
        get { ownLevel ?? Logging.Logger.Level(threshold: logger.threshold) }
        set { ownLevel = newValue }
    }

    public subscript(metadataKey key: String) -> Logging.Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    public func log(event: LogEvent) {
        let level = Level(event.level)
        // The engine's threshold may lie above all of swift-log's levels.
        guard ownLevel != nil || logger.isEnabled(level) else { return }
        logger.record(
            level, message: event.message.description, fields: fields(event),
            error: event.error, file: event.file, function: event.function,
            line: UInt32(clamping: event.line))
    }

    /// The event's own metadata goes before the provider's, and that before the handler's.
    private func fields(_ event: LogEvent) -> [(String, FieldInput)] {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
        if let own = event.metadata { all.merge(own) { $1 } }
        var fields = MetadataFields()
        if !all.isEmpty {
            for (key, value) in all.sorted(by: { $0.key < $1.key }) { fields.add(key, value) }
        }
        // Said only where it is not the module that the file's name begins with.
        let source = event.source
        if !event.file.hasPrefix(source + "/") { fields.list.append(("source", .string(source))) }
        return fields.list
    }
}

extension Level {
    /// swift-log's levels by their names.
    public init(_ level: Logging.Logger.Level) {
        switch level {
        case .trace: self = .trace
        case .debug: self = .debug
        case .info: self = .info
        case .notice: self = .notice
        case .warning: self = .warn
        case .error: self = .error
        case .critical: self = .fatal
        }
    }
}

extension Logging.Logger.Level {
    /// The lowest that is written; `.critical` where none is.
    init(threshold: Level) {
        self = Self.allCases.first { Level($0) >= threshold } ?? .critical
    }
}
