// A Swift host whose store is moved under it (Tests/Processes/moved.py): four threads log, segments
// roll until stdin ends. Then it closes and prints how many records were refused.
//
//     Moved STORE LEDGER
//
// Each thread counts its kept records in a slot of the ledger (Tests/Processes/host.h).

import Cordwood
import Glibc
import Synchronization

let threads = 4, slotsMax = 65_536, slotBytes = 32

func fail(_ why: String, _ code: Int32) -> Never {
    say("moved: \(why)\n")
    _exit(code)
}

func say(_ text: String) {
    var text = text
    text.withUTF8 { _ = write(1, $0.baseAddress, $0.count) }
}

final class Writer: Sendable {
    private static let hasStopped = Atomic(false)
    private let log: Logger
    private let index: Int
    nonisolated(unsafe) private let slot: UnsafeMutableRawPointer

    init(_ log: Logger, _ index: Int, _ ledger: UnsafeMutableRawPointer) {
        self.log = log
        self.index = index
        slot = ledger + index * slotBytes
    }

    private func run() {
        slot.storeBytes(of: UInt32(getpid()), as: UInt32.self)
        slot.storeBytes(of: 1, toByteOffset: 4, as: UInt32.self)
        var returned: UInt64 = 0
        while !Writer.hasStopped.load(ordering: .relaxed) {
            let status = log.info("w \(index) \(returned) from Swift")
            guard status == 0 else { fail("status \(status)", 4) }
            returned += 1
            slot.storeBytes(of: returned, toByteOffset: 8, as: UInt64.self)
            usleep(500)
        }
    }

    func start() -> pthread_t {
        var thread = pthread_t()
        let failed = pthread_create(
            &thread, nil,
            { writer in
                Unmanaged<Writer>.fromOpaque(writer!).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(self).toOpaque())
        guard failed == 0 else { fail("no thread", 2) }
        return thread
    }

    static func stop(_ threads: [pthread_t]) {
        hasStopped.store(true, ordering: .relaxed)
        for thread in threads { pthread_join(thread, nil) }
    }
}

let words = CommandLine.arguments
guard words.count == 3 else { exit(2) }
let file = open(words[2], O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
guard file >= 0, ftruncate(file, slotsMax * slotBytes) == 0,
    let ledger = mmap(
        nil, slotsMax * slotBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0),
    ledger != MAP_FAILED
else { fail("no ledger", 2) }
close(file)

let engine = try Engine(directory: words[1])
let log = engine.logger("swift.moved")
let started = (1...threads).map { Writer(log, $0, ledger).start() }
say("ready\n")
var input = pollfd(fd: 0, events: Int16(POLLIN), revents: 0)
while poll(&input, 1, 20) == 0 { try engine.roll() }
Writer.stop(started)
try engine.roll()
try engine.archiveWait(timeout: .seconds(20))
say("dropped \(try engine.stats().recordsDropped)\n")
guard try engine.close(timeout: .seconds(20)) else { fail("is still busy", 3) }
