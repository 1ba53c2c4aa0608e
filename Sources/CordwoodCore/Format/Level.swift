// Severity: any number from 1 to 24 (OpenTelemetry's). Some of them have names.

public struct Level: Hashable, Comparable, Sendable, CustomStringConvertible {
    public let number: UInt8

    /// nil outside 1…24.
    public init?(number: UInt8) {
        guard number >= 1, number <= 24 else { return nil }
        self.number = number
    }

    /// A name in any case, a number, or "INFO+2".
    public init?(_ text: String) {
        guard let number = parseLevel(text) else { return nil }
        self.number = number
    }

    private init(_ number: UInt8) { self.number = number }

    public static let trace = Level(1)
    public static let debug = Level(5)
    public static let info = Level(9)
    public static let notice = Level(10)
    public static let warn = Level(13)
    public static let error = Level(17)
    public static let fatal = Level(21)
    /// For thresholds only: enables nothing.
    public static let off = Level(255 as UInt8)

    public static func < (a: Level, b: Level) -> Bool { a.number < b.number }

    public var description: String { self == .off ? "OFF" : levelName(number) }
}
