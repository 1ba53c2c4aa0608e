// `cordwood policy`: shows the last policy that a store received from a URL.

import ArgumentParser
import Cordwood

struct PolicyCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "policy",
        abstract: "Show the policy that a store keeps from its URL.",
        usage: "cordwood policy [DIR] [show] [--json]",
        discussion: """
            A policy is a JSON document by which a server sets levels, limits and whether to send, \
            for many programs at once (docs/UPLOADS.md). A program opened with a policy URL keeps \
            the last valid one in the store and starts with it the next time. What the program \
            does not allow (policy_allow) has no effect; its log names that. Policies that a \
            program received in another way are not in the store. Exits with 1 if the store has no \
            policy.

            Example:
              cordwood policy logs
            """)

    @Flag(help: "One JSON object: where it is from, when it came, and the policy as it came.")
    var json = false

    @Argument(
        help: ArgumentHelp(
            "The store's directory (default: CORDWOOD_DIR), then show, the only action.",
            valueName: "dir, action"),
        completion: .directory)
    var words: [String] = []

    func run() throws {
        let (directory, rest) = try StoreWords.split(words) { $0 == "show" }
        guard rest.isEmpty || rest == ["show"] else {
            throw Failure(.usage, "policy [DIR] [show]")
        }
        let policy: StoredPolicy?
        do throws(CordwoodError) {
            policy = try StoreSettings.policy(directory: directory)
        } catch {
            throw Failure(.cannotOpen, error.text)
        }
        guard let policy else {
            throw Failure(.nothingFound, "\(directory) keeps no policy")
        }
        Output.standard.append(json ? asJSON(policy) : asText(policy))
    }

    private func asText(_ policy: StoredPolicy) -> String {
        var lines = [
            "from     \(policy.origin)", "came     \(Times.text(policy.savedNs))",
        ]
        guard let document = policy.document else {
            return (lines + ["not valid, and not used: \(policy.problem)"])
                .map { PlainText.oneLine($0) + "\n" }.joined()
        }
        func add(_ name: String, _ value: String?) {
            if let value { lines.append("\(name)  \(value)") }
        }
        add("enabled", document.isEnabled.map { $0 ? "true" : "false" })
        for level in document.levels {
            let word = level.number == 255 ? "OFF" : Level(number: level.number)?.description
            add("level", "\(level.prefix.isEmpty ? "(root)" : level.prefix) \(word ?? "")")
        }
        add("expiration_days", document.expirationDays.map { "\($0)" })
        add("max_files", document.filesMax.map { "\($0)" })
        add("max_file_size_bytes", document.fileBytesMax.map { "\($0)" })
        add("quota_bytes", document.quotaBytes.map { "\($0)" })
        add("upload_interval_s", document.uploadIntervalSeconds.map { "\($0)" })
        add("retry_quarantined", document.retryQuarantined)
        for key in document.unknownKeys { add("unknown", key) }
        return lines.map { PlainText.oneLine($0) + "\n" }.joined()
    }

    private func asJSON(_ policy: StoredPolicy) -> String {
        var object = JSONObject()
        object.add("origin", policy.origin)
        object.add("saved", Times.text(policy.savedNs))
        object.add("valid", policy.document != nil)
        if !policy.problem.isEmpty { object.add("problem", policy.problem) }
        object.add("policy", String(decoding: policy.json, as: UTF8.self))
        return object.text + "\n"
    }
}
