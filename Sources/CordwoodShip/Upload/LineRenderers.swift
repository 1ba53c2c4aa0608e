// The lines of ndjson and text bodies. A seam until Read has its line writers: messages and times only.

import CordwoodCore

extension LineRenderers {
    public static let standard = LineRenderers(
        json: { record, into in
            into += Array("{\"time_ns\":\(record.timeNs),\"message\":\"".utf8)
            for byte in record.message {
                if byte == 0x22 || byte == 0x5C { into.append(0x5C) }
                into.append(byte < 0x20 ? 0x20 : byte)
            }
            into += Array("\"}\n".utf8)
        },
        text: { record, into in
            into += record.message
            into.append(0x0A)
        })
}
