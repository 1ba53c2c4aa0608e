// The part of a read around one record: so many records before it, the record itself, and so many
// after it, in the order of a full read. Paging goes by records, not by times, so records with
// equal times are neither lost nor seen twice. A value; any thread.

import CordwoodCore

package struct RecordWindow: Sendable {
    package var id: RecordID
    /// UTC ns: roughly when the record is shown. Decides where the search for it begins; a wrong
    /// time costs time, and nothing else.
    package var timeNs: UInt64
    package var before: Int
    /// nil: all that follow.
    package var after: Int?
    /// The record does not match the other conditions. It is returned nevertheless, and the sources
    /// leave out nothing.
    package var isApart: Bool

    package init(
        around id: RecordID, timeNs: UInt64, before: Int, after: Int?, isApart: Bool = false
    ) {
        self.id = id
        self.timeNs = timeNs
        self.before = max(before, 0)
        self.after = after
        self.isApart = isApart
    }
}
