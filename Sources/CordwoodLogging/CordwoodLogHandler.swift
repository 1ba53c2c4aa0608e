// A handler for swift-log: its loggers write to an engine.
//
//     LoggingSystem.bootstrap { CordwoodLogHandler(label: $0, engine: engine) }
//
// A handler is a value: its metadata and log level never change another's. Until its log level is
// set, it follows the engine's (Engine.setLevel with a prefix, CORDWOOD_LEVEL), even as that
// changes. Any thread.

import Cordwood
import Logging

public struct CordwoodLogHandler: LogHandler {
    public var metadata: Logging.Logger.Metadata = [:]
    public var metadataProvider: Logging.Logger.MetadataProvider?
    private let logger: Cordwood.Logger
    /// nil: the engine's level.
    private var ownLevel: Logging.Logger.Level?

    /// label: a dotted name of the engine's loggers; one over 255 bytes writes nothing.
    public init(
        label: String, engine: Engine,
        metadataProvider: Logging.Logger.MetadataProvider? = LoggingSystem.metadataProvider
    ) {
        logger = engine.logger(label)
        self.metadataProvider = metadataProvider
    }

    /// Once set, it applies to this handler only, even below the engine's threshold.
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

    /// The event's own metadata overrides the provider's, which overrides the handler's.
    private func fields(_ event: LogEvent) -> [(String, FieldInput)] {
        var all = metadata
        if let provided = metadataProvider?.get() { all.merge(provided) { $1 } }
        if let own = event.metadata { all.merge(own) { $1 } }
        var fields = MetadataFields()
        if !all.isEmpty {
            for (key, value) in all.sorted(by: { $0.key < $1.key }) { fields.add(key, value) }
        }
        // Added only if it differs from the module at the start of the file's name.
        let source = event.source
        if !event.file.hasPrefix(source + "/") { fields.list.append(("source", .string(source))) }
        return fields.list
    }
}

extension Level {
    /// Maps swift-log's levels by name.
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
    /// The lowest level that is written; `.critical` if none is.
    init(threshold: Level) {
        self = Self.allCases.first { Level($0) >= threshold } ?? .critical
    }
}
