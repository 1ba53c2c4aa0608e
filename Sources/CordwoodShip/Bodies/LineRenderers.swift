// The lines of ndjson and text bodies: like those of `cordwood cat`, in UTC and without colour, so
// that the same archive gives the same bytes on every machine. They differ only where servers need
// more: in ndjson a cut message is marked as cut.

import CordwoodStore

/// Renders records as lines of a body.
package struct LineRenderers: Sendable {
    package var json: RenderEntry
    package var text: RenderEntry

    package init(json: @escaping RenderEntry, text: @escaping RenderEntry) {
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
