// `cordwood http`: captured exchanges. The verb itself lists them; subcommands do the rest.

import ArgumentParser

struct HTTPCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "http",
        abstract: "List captured HTTP exchanges, show one, export them.",
        discussion: """
            Without a subcommand it lists: `cordwood http logs` is `cordwood http list logs`, \
            whose options `cordwood http list --help` has. Works while programs write.

            Examples:
              cordwood http enable logs                    running programs follow in a second
              cordwood http logs --failed --since 10m
              cordwood http -f logs --host '*.example.com'
              cordwood http logs --grep 'SY/530'           headers, bodies and errors, too
              cordwood http logs --slow 500 --har > slow.har
              cordwood http show 9f3c logs
              cordwood http show 9f3c logs --curl | sh
              cordwood http enable logs                    from the next second on
            """,
        subcommands: [
            HTTPListCommand.self, HTTPShowCommand.self, HTTPEnableCommand.self,
            HTTPDisableCommand.self, HTTPAutoCommand.self,
        ],
        defaultSubcommand: HTTPListCommand.self)
}
