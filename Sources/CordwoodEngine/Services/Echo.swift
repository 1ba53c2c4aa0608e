// The console: this process's records as lines on stderr, read from its own lane like any reader
// would, so that the append path does not know about it. Coloured text on a terminal, JSON lines in
// a pipe or container. Any thread; one thread pumps at a time.
// SAFETY: each call owns its signal sets and lines, and lends each to one system call.

import CShims
import CordwoodCore
import CordwoodStore
import Glibc

final class Echo: @unchecked Sendable {
    // SAFETY: `source` and `lines` are used under `monitor` only.
    private let monitor = Monitor()
    private let level: UInt8
    private let store: String
    private let isJSON: Bool
    private let isTerminal: Bool
    private let hasColor: Bool
    private var source: LaneSource?
    private var lines: [UInt8] = []
    private var isWoken = false

    /// nil: the console is off.
    init?(console: Console, level: UInt8, store: String) {
        isTerminal = isatty(2) != 0
        switch console {
        case .off: return nil
        case .text: isJSON = false
        case .json: isJSON = true
        case .auto: isJSON = !isTerminal
        }
        hasColor = isTerminal && Environment.value("NO_COLOR") == nil
        self.level = level
        self.store = store
    }

    /// Writes every committed record that was not written yet.
    func pump(lane: String) {
        guard !lane.isEmpty else { return }
        monitor.locked {
            if source == nil {
                source = try? LaneSource.open(directory: store, lane: lane)
                source?.reportsDrops = false
            } else {
                try? source?.refresh()
            }
            guard let source else { return }
            while true {
                do {
                    guard let record = try source.advance() else { break }
                    if level == 0 || record.level >= level { add(record) }
                } catch {
                    continue
                }
                if lines.count > 64 << 10 { write() }
            }
            write()
        }
    }

    private func add(_ record: RecordRef) {
        if isJSON {
            JSONLine.append(record, to: &lines)
        } else {
            TextLine.append(record, to: &lines, utc: false, color: hasColor)
        }
    }

    /// A closed or full stderr loses the echo, never the record.
    private func write() {
        guard !lines.isEmpty else { return }
        StandardError.write(isJSON && isTerminal ? PlainText.json(lines) : lines)
        lines.removeAll(keepingCapacity: true)
    }

    func wait(ms: UInt64) {
        monitor.locked {
            if !isWoken { _ = monitor.wait(until: Deadline(afterMs: ms)) }
            isWoken = false
        }
    }

    func wake() {
        monitor.locked {
            isWoken = true
            monitor.notify()
        }
    }
}
