// A server whose exchanges are recorded: Inbound STORE PORT

import Cordwood
import Hummingbird

let engine = try Engine(directory: CommandLine.arguments[1])
var options = HTTPCaptureOptions()
options.isEnabled = true
try engine.setHTTPCapture(options)

let log = engine.logger("orders")
let router = Router()
router.add(middleware: CaptureMiddleware(engine: engine))
router.get("/orders/:id") { _, context in
    log.info("an order is asked for")
    return "order \(context.parameters.get("id") ?? "?")\n"
}
router.post("/orders") { request, _ in
    var size = 0
    for try await part in request.body { size += part.readableBytes }
    return "\(size) bytes\n"
}
let port = Int(CommandLine.arguments[2]) ?? 8080
let server = Application(
    router: router, configuration: .init(address: .hostname("127.0.0.1", port: port)))
try await server.runService()
try engine.close()
