// Earlier names of calls. Each one only forwards to its replacement.

import CordwoodCore

extension Transaction {
    @available(*, deprecated, message: "with(_:) puts its ids into the records of its body")
    public func attach() -> Int32 { attachThread() }

    @available(*, deprecated, message: "with(_:) ends with its body")
    public func detach() -> Int32 { detachThread() }
}
