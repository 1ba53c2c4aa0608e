// A pair of archive and target as JSON, for `cordwood queue --json` and the viewer. Pure.

import CordwoodFormats
import CordwoodStore

extension QueueEntry {
    /// - Parameter more: adds members at the end.
    package func appendJSON(
        to out: inout [UInt8], more: (inout JSONMembers, inout [UInt8]) -> Void = { _, _ in }
    ) {
        var members = JSONMembers(&out)
        text("archive", archive, &members, &out)
        members.number("bytes", bytes, &out)
        text("target", target, &members, &out)
        text("state", state.word, &members, &out)
        members.number("attempts", UInt64(state.attempts), &out)
        if case .retry(_, let notBeforeMs, let reason, _) = state {
            text("reason", reason.rawValue, &members, &out)
            if notBeforeMs > 0 {
                text("not_before", Times.text(notBeforeMs &* 1_000_000), &members, &out)
            }
        }
        switch state {
        case .paused(_, let status, _), .sent(let status), .quarantined(let status, _),
            .kept(let status, _):
            members.number("http_status", UInt64(max(status, 0)), &out)
        default: break
        }
        members.number("records_sent", state.progress.done, &out)
        if case .kept(_, let records) = state {
            members.number("records_refused", UInt64(records), &out)
        }
        members.text("cause", cause, &out)
        more(&members, &out)
        members.end(&out)
    }

    private func text(
        _ name: StaticString, _ text: String, _ members: inout JSONMembers, _ out: inout [UInt8]
    ) {
        members.name(name, &out)
        JSONText.string(text, &out)
    }
}
