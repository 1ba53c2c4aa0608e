// The lines of ndjson and text bodies: the same as `cordwood cat` prints, in UTC and without
// colour, so that the same archive gives the same bytes on every machine.

import CordwoodCore

/// How records become lines of a body.
public struct LineRenderers: Sendable {
    public var json: RenderLine
    public var text: RenderLine

    public init(json: @escaping RenderLine, text: @escaping RenderLine) {
        self.json = json
        self.text = text
    }

    public static let standard = LineRenderers(
        json: { record, into in JSONLine.append(record, to: &into) },
        text: { record, into in
            TextLine.append(record, to: &into, utc: true, color: false, escape: false)
        })
}
