// Selects records by their origin: trace, process, service, thread. A value; any thread.
// SAFETY: a trace's id is read below its count.

import CordwoodCore

extension ReaderOptions {
    package struct Origin: Sendable {
        /// A process or a thread by its name or its number.
        package struct Name: Sendable {
            let text: String
            let number: UInt32?

            package init(_ text: String) {
                self.text = text
                number = UInt32(text)
            }

            func matches(_ name: String, _ number: UInt32) -> Bool {
                name == text || number == self.number
            }
        }

        /// The digits that the trace's id begins with, each 0…15; empty: any trace or none.
        package var traceDigits: [UInt8] = []
        package var process: Name?
        package var thread: Name?
        /// The attribute `service.name`.
        package var service: String?
        /// This record alone, or those of its thread or process. Lanes of others are not read.
        package var beside: Beside?

        package enum Beside: Sendable {
            case record(RecordID)
            case thread(of: RecordID)
            case process(of: RecordID)

            var id: RecordID {
                switch self {
                case .record(let id), .thread(let id), .process(let id): id
                }
            }
        }

        package init() {}

        package var takesAll: Bool {
            traceDigits.isEmpty && process == nil && thread == nil && service == nil
                && beside == nil
        }

        func matches(_ record: borrowing RecordRef) -> Bool {
            let thread = record.thread
            if let wanted = self.thread, !wanted.matches(thread.name, thread.threadID) {
                return false
            }
            if let process, !process.matches(thread.process.name, thread.process.processID) {
                return false
            }
            if let service, thread.process.attribute("service.name") != service { return false }
            if let beside, !Origin.matches(beside, record.id) { return false }
            return traceDigits.isEmpty || isOfTrace(record.traceID)
        }

        private static func matches(_ beside: Beside, _ id: RecordID) -> Bool {
            switch beside {
            case .record(let wanted): id == wanted
            case .thread(let wanted): id.isOfThread(of: wanted)
            case .process(let wanted): id.isOfLane(of: wanted)
            }
        }

        /// False: that lane has none of the records.
        func mayHave(lane: LaneID) -> Bool {
            guard let beside else { return true }
            return RecordID(lane: lane, threadSerial: 0, sequence: 0).isOfLane(of: beside.id)
        }

        @safe private func isOfTrace(_ id: UnsafeRawBufferPointer) -> Bool {
            guard traceDigits.count <= id.count * 2 else { return false }
            for (index, digit) in traceDigits.enumerated() {
                let byte = Bytes.u8(id, index / 2)
                guard digit == (index % 2 == 0 ? byte >> 4 : byte & 15) else { return false }
            }
            return true
        }
    }
}
