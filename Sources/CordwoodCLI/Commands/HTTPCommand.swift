// `cordwood http`: captured exchanges. The verb itself lists them; subcommands do the rest.

import ArgumentParser

struct HTTPCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "http",
        abstract: "List captured HTTP exchanges, show one, export them.",
        discussion: """
            Exchanges are the requests that programs send or serve, with headers and bodies (the \
            first 64 KiB of each, unless set otherwise), without their secrets. Capture is off \
            unless a program or `enable` says otherwise, and needs a program with hooks \
            (docs/HTTP.md). Without a subcommand it lists: `cordwood http logs` is `cordwood http \
            list logs`.

            Examples:
              cordwood http enable logs                # from the next second on
              cordwood http logs --failed --since 10m
              cordwood http -f logs --host '*.example.com'
              cordwood http logs --grep 'SY/530'       # in URLs, headers, bodies, errors
              cordwood http logs --slow 500 --har > slow.har
              cordwood http show 9f3c logs
            """,
        subcommands: [
            HTTPListCommand.self, HTTPShowCommand.self, HTTPEnableCommand.self,
            HTTPDisableCommand.self, HTTPAutoCommand.self,
        ],
        defaultSubcommand: HTTPListCommand.self)
}
