// The options of all reading verbs that select records by their origin.

import ArgumentParser
import Cordwood

struct OriginOption: ParsableArguments {
    /// Fewer digits would match by chance.
    private static let traceDigitsMin = 8
    private static let traceDigitsMax = 32

    @Option(
        help: ArgumentHelp("This trace id, or its first 8 or more digits.", valueName: "id"))
    var trace: String?

    @Option(help: ArgumentHelp("This process, by name or process id.", valueName: "process"))
    var process: String?

    @Option(help: ArgumentHelp("This thread, by name or thread id.", valueName: "thread"))
    var thread: String?

    @Option(help: ArgumentHelp("Processes with this service.name.", valueName: "name"))
    var service: String?

    var isSet: Bool { trace != nil || process != nil || thread != nil || service != nil }

    func filter() throws(Failure) -> ReaderOptions.Origin {
        var filter = ReaderOptions.Origin()
        if let trace {
            let digits = trace.map { UInt8($0.hexDigitValue ?? 255) }
            let range = OriginOption.traceDigitsMin...OriginOption.traceDigitsMax
            guard range.contains(digits.count), digits.allSatisfy({ $0 < 16 }) else {
                throw Failure(.usage, "--trace takes 8 to 32 hexadecimal digits; not \(trace)")
            }
            filter.traceDigits = digits
        }
        filter.process = process.map { ReaderOptions.Origin.Name($0) }
        filter.thread = thread.map { ReaderOptions.Origin.Name($0) }
        filter.service = service
        return filter
    }
}
