// The lines of ndjson and text bodies: as `cordwood cat` prints them, in UTC and without colour, so
// that the same archive gives the same bytes on every machine. Where they differ it is for servers:
// a message that was cut says so in ndjson, too.

import CordwoodStore

/// How records become lines of a body.
package struct LineRenderers: Sendable {
    package var json: RenderLine
    package var text: RenderLine

    package init(json: @escaping RenderLine, text: @escaping RenderLine) {
        self.json = json
        self.text = text
    }

    package static let standard = LineRenderers(
        json: { record, into in
            JSONLine.append(record, mark: Cut.mark(of: record), to: &into)
        },
        text: { record, into in
            TextLine.append(record, to: &into, utc: true, color: false)
        })
}
