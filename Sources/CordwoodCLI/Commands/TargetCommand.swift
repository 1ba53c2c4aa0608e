// `cordwood target`: adds and removes the targets of a store's archives, and tests whether a server
// would accept them.

import ArgumentParser
import Cordwood

struct TargetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "target",
        abstract: "List a store's upload targets, remove one, or test a server.",
        usage: """
            cordwood target [DIR] [list]
            cordwood target [DIR] remove NAME
            cordwood target test URL [--kind KIND] [options of cordwood upload]
            """,
        discussion: """
            list prints name, kind, address, format and encoding. An archive stays on the disk \
            until every target has it, so remove a target that no longer exists. Archives then no \
            longer wait for it, and those that all the others have are deleted. A program that \
            adds the target registers it again.

            test sends one harmless request (a health check, an empty body, HEAD) and reports what \
            the answer says and what it cannot say. It exits with 5 if the server would not take \
            archives. It stores nothing, here or there. The options after --json are for test, and \
            those of `cordwood upload`.

            Example:
              cordwood target logs
              cordwood target logs remove collector-logs.example.org-archive-1f2e
              CORDWOOD_TOKEN=secret cordwood target test https://loki.example --kind loki
            """)

    @Flag(help: "One JSON object a target.")
    var json = false

    @OptionGroup var destination: Destination

    @Argument(
        help: ArgumentHelp(
            """
            The store's directory (default: CORDWOOD_DIR), then list (default) or remove NAME; or \
            test and the server's address.
            """, valueName: "dir, action"),
        completion: .directory)
    var words: [String] = []

    func run() throws {
        if words.count == 2, words[0] == "test", words[1].contains("://") {
            return try test(words[1])
        }
        // `test` without a URL is not a store.
        guard words != ["test"] else { throw TargetCommand.wrongWords }
        let (directory, rest) = try StoreWords.split(words) { $0 == "list" || $0 == "remove" }
        guard rest.count <= 2 else { throw TargetCommand.wrongWords }
        do throws(CordwoodError) {
            switch (rest.first ?? "list", rest.dropFirst().first) {
            case ("list", nil):
                for target in try StoreSettings.targets(directory: directory) {
                    Output.standard.append(json ? asJSON(target) : asText(target))
                }
            case ("remove", let target?):
                try StoreSettings.removeTarget(target, directory: directory)
            default: throw CordwoodError(0, "")
            }
        } catch {
            guard error.status != 0 else { throw TargetCommand.wrongWords }
            throw Failure(.cannotOpen, error.text)
        }
    }

    private static let wrongWords = Failure(
        .usage, "target [DIR] [list], target [DIR] remove NAME, or target test URL")

    private func test(_ url: String) throws(Failure) {
        let options = try destination.options(to: url)
        let report: ProbeReport
        do throws(CordwoodError) {
            report = try StoreUploader.probe(options)
        } catch {
            throw Failure(.usage, error.text)
        }
        Output.standard.append(json ? asJSON(report) : asText(report))
        if !report.isFine { throw Failure(.failed) }
    }

    private func asText(_ report: ProbeReport) -> String {
        let verdict = report.isFine ? "fine" : "not fine"
        let expect =
            report.expect.isEmpty
            ? [] : ["to take no other server's answer for this one's: --expect '\(report.expect)'"]
        return
            ([
                report.request, "\(verdict): \(report.text)",
                "not looked at: \(report.notLookedAt)",
            ] + expect).map { PlainText.oneLine($0) + "\n" }.joined()
    }

    private func asJSON(_ report: ProbeReport) -> String {
        var object = JSONObject()
        object.add("request", report.request)
        object.add("fine", report.isFine)
        object.add("http_status", UInt64(max(report.httpStatus, 0)))
        object.add("answer", report.text)
        object.add("not_looked_at", report.notLookedAt)
        if !report.expect.isEmpty { object.add("expect", report.expect) }
        return object.text + "\n"
    }

    private func asText(_ target: RegisteredTarget) -> String {
        PlainText.oneLine(
            "\(target.name)  \(target.kind) \(target.origin) \(target.format) \(target.encoding)")
            + "\n"
    }

    private func asJSON(_ target: RegisteredTarget) -> String {
        var object = JSONObject()
        object.add("name", target.name)
        object.add("kind", target.kind)
        object.add("origin", target.origin)
        object.add("format", target.format)
        object.add("encoding", target.encoding)
        return object.text + "\n"
    }
}
