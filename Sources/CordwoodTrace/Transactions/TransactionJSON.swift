// Transactions, their records and the figures of use cases as objects of JSON, as `cordwood
// transactions --json` prints them. Pure.

import CordwoodFormats

package enum TransactionJSON {
    package static func object(_ one: StoredTransaction) -> JSONObject {
        var object = JSONObject()
        object.add("id", one.id.text)
        object.add("usecase", number: Int64(one.id.usecase))
        if !one.usecaseName.isEmpty { object.add("name", one.usecaseName) }
        object.add("first", Times.text(one.first))
        object.add("last", Times.text(one.last))
        object.add("events", one.events)
        object.add("errors", one.errors)
        object.add("ended", one.isEnded)
        if let duration = one.duration { object.add("duration_ms", milliseconds: duration) }
        if let event = one.lastEvent { object.add("last_event", number: Int64(event)) }
        return object
    }

    package static func object(_ moment: TransactionMoment) -> JSONObject {
        var object = JSONObject()
        object.add("time", Times.text(moment.time))
        object.add("id", moment.id.text)
        object.add("operation", moment.operation.rawValue)
        if let event = moment.event { object.add("event", number: Int64(event)) }
        if !moment.eventName.isEmpty { object.add("name", moment.eventName) }
        if let code = moment.errorCode { object.add("error_code", code) }
        if let text = moment.errorDescription { object.add("error_description", text) }
        if let duration = moment.duration { object.add("duration_ms", milliseconds: duration) }
        object.add("pid", UInt64(moment.processID))
        object.add("process", moment.processName)
        if let span = moment.spanID { object.add("span_id", span) }
        return object
    }

    package static func object(_ one: UsecaseFigures) -> JSONObject {
        var object = JSONObject()
        object.add("usecase", number: Int64(one.usecase))
        if !one.name.isEmpty { object.add("name", one.name) }
        object.add("count", one.count)
        object.add("ended", one.ended)
        object.add("with_errors", one.withErrors)
        if let half = one.duration(0.5), let most = one.duration(0.95), let all = one.duration(1) {
            var duration = JSONObject()
            duration.add("p50", milliseconds: half)
            duration.add("p95", milliseconds: most)
            duration.add("max", milliseconds: all)
            object.add("duration_ms", duration)
        }
        object.add("stopped_at_once", one.stoppedAtOnce)
        object.add(
            "funnel",
            one.funnel.map { event, step in
                var row = JSONObject()
                row.add("event", number: Int64(event))
                if !step.name.isEmpty { row.add("name", step.name) }
                row.add("reached", step.reached)
                row.add("share", raw: share(step.reached, one.count, scale: 1))
                row.add("stopped", step.stopped)
                return row
            })
        return object
    }

    /// In percent with one digit, or as a fraction of 1 with three.
    package static func share(_ part: UInt64, _ all: UInt64, scale: UInt64 = 100) -> String {
        guard all > 0 else { return "0" }
        let thousandths = (Double(part) * 1000 / Double(all)).rounded()
        let number = UInt64(max(0, min(thousandths, 1_000_000)))
        if scale == 100 { return "\(number / 10).\(number % 10)" }
        return "\(number / 1000).\(Digits.text(number % 1000, width: 3))"
    }
}
