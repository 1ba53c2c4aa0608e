// The console: this process's records as lines on stderr, read from its own lane as any reader
// would, so the append path does not know about it. Coloured text on a terminal, JSON lines in a
// pipe or container. Any thread; one thread pumps at a time.
// SAFETY: each call owns its signal sets and lines, and lends each to one system call.

import CShims
import CordwoodCore
import CordwoodStore

final class Echo: @unchecked Sendable {
    // SAFETY: `source`, `lines` and what makes lines are used under `monitor` only.
    private let monitor = Monitor()
    private let level: UInt8
    private let store: FilePath
    private let isJSON: Bool
    private let isTerminal: Bool
    private let json = JSONLines()
    private let text: TextLines
    private var source: LaneSource?
    private var lines: [UInt8] = []
    private var isWoken = false

    /// nil: the console is off.
    init?(console: Console, level: UInt8, store: FilePath) {
        isTerminal = Machine.isTerminal(2)
        switch console {
        case .off: return nil
        case .text: isJSON = false
        case .json: isJSON = true
        case .auto: isJSON = !isTerminal
        }
        text = TextLines(
            utc: false, color: isTerminal && Environment.value("NO_COLOR") == nil)
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
            json.append(record, to: &lines)
        } else {
            text.append(record, to: &lines)
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
