import ArgumentParser

@main
struct CordwoodCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "cordwood")
}
