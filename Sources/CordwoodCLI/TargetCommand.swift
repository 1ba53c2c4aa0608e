// `cordwood target`: where a store's archives are to go, and the end of that.

import ArgumentParser
import Cordwood

struct TargetCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "target",
        abstract: "List a store's upload targets, or remove one.",
        discussion: """
            An archive stays on the disk until every registered target has it; a target that is no \
            more must therefore be removed.

            Example:
              cordwood target logs list
              cordwood target logs remove collector-archive
            """)

    enum Action: String, ExpressibleByArgument, CaseIterable { case list, remove }

    @Flag(help: "One JSON object a target.")
    var json = false

    @Argument(help: "The store's directory.", completion: .directory)
    var directory: String

    @Argument(help: "list or remove.")
    var action: Action

    @Argument(help: "Name of the target to remove.")
    var name: String?

    func run() throws {
        do throws(CordwoodError) {
            switch (action, name) {
            case (.list, nil):
                for target in try StoreSettings.targets(directory: directory) {
                    Output.standard.append(json ? asJSON(target) : asText(target))
                }
            case (.remove, let name?):
                try StoreSettings.removeTarget(name, directory: directory)
            default: throw CordwoodError(0, "")
            }
        } catch {
            guard error.status != 0 else {
                throw Failure(.usage, "target DIR list, or target DIR remove NAME")
            }
            throw Failure(.cannotOpen, error.text)
        }
    }

    private func asText(_ target: RegisteredTarget) -> String {
        OneLine.text(
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
