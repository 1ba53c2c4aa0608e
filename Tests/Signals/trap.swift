// A Swift host that traps: array index out of range, in a function that the backtrace must name.
// `trap STORE MODE`, like host.c. Uses the C interface, so that one compiler call builds it.
import CCordwood
import Glibc

@inline(never)
func takeBeyond(_ values: [Int], _ index: Int) -> Int { values[index] }

var options = cw_options()
cw_options_init(&options, MemoryLayout<cw_options>.size)
alarm(20)
let status = CommandLine.arguments[1].withCString { directory in
    options.directory = directory
    var engine: OpaquePointer?
    guard cw_open(&options, &engine) == CW_OK else { return Int32(3) }
    if CommandLine.arguments[2] != "plain" {
        guard cw_crash_handler_install(engine) == CW_OK else { return Int32(4) }
    }
    print(takeBeyond([1, 2, 3], CommandLine.arguments.count))
    return Int32(0)
}
exit(status)
