// Which processes a reader asks for, where it asks for some: archives of which all processes are
// remembered are then passed over without being opened. A value.

import CordwoodCore

struct OriginsAsked {
    private let plan: QueryPlan
    private let origin: ReaderOptions.Origin

    /// nil: it asks for none.
    init?(_ options: ReaderOptions) {
        plan = options.plan
        origin = options.origin
        guard plan.asksOrigin || origin.service != nil || origin.process != nil else { return nil }
    }

    func mayMatch(_ origins: ArchiveOrigins) -> Bool {
        origins.shares.contains { share in
            let label = share.label
            if let process = origin.process, !process.matches(label.name, label.id) { return false }
            // Empty may be an attribute that is missing.
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
