// `cordwood serve`: the viewer in a browser, until it is told to stop or is no longer used.

import ArgumentParser
import Cordwood
import CordwoodServing
import CordwoodViewer

struct ServeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "serve",
        abstract: "Show stores in a browser on this machine.",
        discussion: """
            Prints a link, which works once and for 60 s, and serves until SIGTERM or SIGINT, then \
            exits with 0. Enter in the terminal prints another link. Only this machine and the \
            user who started it are served; from another machine, use ssh -L as the second line \
            says. Programs that log do not notice it. What the page changes is what `cordwood \
            consent`, `level`, `http enable` and `queue` change, and nothing with --read-only. \
            docs/VIEWER.md says who gets in, and what a program may ask.

            Example:
              cordwood serve logs --open
            """)

    @Option(help: "A loopback address and a port; port 0 takes a free one.")
    var listen = "127.0.0.1:0"

    @Option(
        help: ArgumentHelp(
            "Listen on a Unix socket of this name instead, which only its owner can use.",
            valueName: "path"),
        completion: .file())
    var socket: String?

    @Flag(help: "Open the link in the browser (xdg-open).")
    var open = false

    @Flag(help: "Change nothing in the stores, whatever the page is told.")
    var readOnly = false

    @Option(help: "Exit when nobody has asked anything for so long: 30m, 2h; or never.")
    var idleExit = "30m"

    #if DEBUG
    @Option(help: "Serve the page's files from this directory.")
    var page: String?
    #endif

    @OptionGroup var keys: IdentityOption
    @OptionGroup var sources: Sources

    func run() throws {
        var options = ViewerOptions(paths: [])
        guard let address = ListenAddress(listen) else {
            throw Failure(.usage, "--listen takes ADDRESS:PORT")
        }
        (options.host, options.port) = (address.host, address.port)
        options.socketPath = socket
        options.identities = try keys.identities()
        // The user who starts the server uses the browser, whoever owns the stores.
        options.userID = Machine.userID()
        options.paths = try sources.resolved()
        options.isReadOnly = readOnly
        options.notice = { Complaint.offer($0) }
        #if DEBUG
        options.pageDirectory = page
        #endif
        let idleMs = try idleLimitMs()

        // Blocked before any thread starts, so that only this thread takes them.
        Signals.blockEnd()
        let viewer = Viewer(options: options)
        do throws(ViewerError) {
            let port = try viewer.start()
            let place = Place(host: options.host, port: port, socket: socket)
            place.tell(viewer.makeLink(), isFirst: true, opens: open)
            place.tellMore(by: viewer)
        } catch {
            if case .notLoopback = error { throw Failure(.usage, error.description) }
            throw Failure(.cannotOpen, error.description)
        }
        waitForEnd(viewer, idleMs: idleMs)
        viewer.stop()
    }

    /// Nil: never.
    private func idleLimitMs() throws(Failure) -> UInt64? {
        if idleExit == "never" { return nil }
        guard let ns = TimeArgument.duration(idleExit[...]), ns > 0 else {
            throw Failure(.usage, "--idle-exit takes a duration as in 30m, or never")
        }
        return max(ns / 1_000_000, 1)
    }

    private func waitForEnd(_ viewer: Viewer, idleMs: UInt64?) {
        guard let idleMs else { return Signals.waitForEnd() }
        while true {
            let idle = viewer.idle.wholeMs
            if idle >= idleMs {
                return Complaint.tell("nobody has asked anything for \(idleExit)")
            }
            if Signals.waitForEnd(withinMs: idleMs - idle) { return }
        }
    }
}

/// Where the viewer is reached.
private struct Place: Sendable {
    let host: String
    let port: Int
    let socket: String?

    /// Writes the link, and the first time how to reach it.
    func tell(_ link: String, isFirst: Bool, opens: Bool = false) {
        let name = host.contains(":") ? "[\(host)]" : host
        let machine = Machine.words()?.host ?? "HOST"
        var text: String
        if let socket {
            text = "http://127.0.0.1:8080\(link)\n"
            if isFirst {
                text += "reach it by ssh -L 8080:\(PlainText.oneLine(socket)) \(machine)"
            }
        } else {
            text = "http://\(name):\(port)\(link)\n"
            if isFirst {
                text += "from another machine: ssh -L \(port):\(name):\(port) \(machine)"
            }
        }
        if isFirst {
            text += ", then this link within 60 s"
            text += Machine.isTerminal(0) ? "; Enter prints another one\n" : "\n"
        }
        _ = unsafe Array(text.utf8).withUnsafeBytes { unsafe Files.write(1, $0) }
        guard opens, socket == nil else { return }
        let error = Program.start(["xdg-open", "http://\(name):\(port)\(link)"])
        if error != 0 { Complaint.tell("xdg-open: \(Errno.text(error))") }
    }

    /// Enter in the terminal prints another link.
    func tellMore(by viewer: Viewer) {
        guard Machine.isTerminal(0) else { return }
        _ = EngineThread.start("cw-enter") {
            var byte = [UInt8](repeating: 0, count: 1)
            while unsafe byte.withUnsafeMutableBytes({ unsafe Files.readNext(0, into: $0) }) == 1 {
                if byte[0] == 0x0a { tell(viewer.makeLink(), isFirst: false) }
            }
        }
    }
}
