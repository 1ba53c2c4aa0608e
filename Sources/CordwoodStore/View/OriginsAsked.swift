// Which processes a reader asks for, if it asks for particular ones. Archives whose processes are
// all remembered can then be passed over without being opened. A value.

import CordwoodCore

struct OriginsAsked {
    private let plan: QueryPlan
    private let origin: ReaderOptions.Origin

    /// nil: it asks for no particular ones.
    init?(_ options: ReaderOptions) {
        plan = options.plan
        origin = options.origin
        guard plan.asksOrigin || origin.service != nil || origin.process != nil else { return nil }
    }

    func mayMatch(_ origins: ArchiveOrigins) -> Bool {
        origins.shares.contains { share in
            let label = share.label
            if let process = origin.process, !process.matches(label.name, label.id) { return false }
            // Empty may mean that the attribute is missing.
            if let service = origin.service, !service.isEmpty, label.service != service {
                return false
            }
            let isHostKnown = !origins.mayNameHosts && !label.host.isEmpty
            let isServiceKnown = !origins.mayNameServices && !label.service.isEmpty
            return plan.mayMatch(
                OriginTest.Names(
                    host: isHostKnown ? label.host : nil,
                    service: isServiceKnown ? label.service : nil))
        }
    }
}
