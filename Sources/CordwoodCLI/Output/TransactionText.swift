// Transactions, their records and figures, as lines for people or as JSON objects. Text from a
// store is escaped.

import Cordwood

enum TransactionText {
    // ── One transaction ──

    static func print(_ one: StoredTransaction, _ selection: Selection) {
        let output = Output.standard
        guard !selection.json else { return output.append(object(one).text + "\n") }
        Times.appendReadable(one.first, utc: selection.utc, to: &output.bytes)
        let state = one.isEnded ? "ended" : "open"
        let duration = one.duration ?? one.last - one.first
        output.append(
            " \(one.id.text) \(columns(one.events, 4)) events \(columns(one.errors, 3)) errors "
                + "\(right(ExchangeLine.milliseconds(duration), 11)) ms \(state)"
                + (one.usecaseName.isEmpty ? "" : "  \(PlainText.oneLine(one.usecaseName))") + "\n")
    }

    private static func object(_ one: StoredTransaction) -> JSONObject {
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

    // ── One record ──

    static func print(_ moment: TransactionMoment, since first: UInt64, _ selection: Selection) {
        let output = Output.standard
        guard !selection.json else { return output.append(object(moment).text + "\n") }
        Times.appendReadable(moment.time, utc: selection.utc, to: &output.bytes)
        var text = " +\(right(ExchangeLine.milliseconds(moment.time - first), 10)) ms "
        text += "\(PlainText.oneLine(moment.processName))[\(moment.processID)] "
        text += moment.operation.rawValue
        if let event = moment.event { text += " \(event)" }
        if !moment.eventName.isEmpty { text += " \(PlainText.oneLine(moment.eventName))" }
        if let code = moment.errorCode {
            let words = [code, moment.errorDescription ?? ""].filter { !$0.isEmpty }
            text += "  ! \(PlainText.oneLine(words.joined(separator: ": ")))"
        }
        if let duration = moment.duration {
            text += " after \(ExchangeLine.milliseconds(duration)) ms"
        }
        let isRed = output.hasColor && moment.errorCode != nil
        output.append(isRed ? "\u{1B}[31m\(text)\u{1B}[0m\n" : text + "\n")
    }

    private static func object(_ moment: TransactionMoment) -> JSONObject {
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

    // ── Figures ──

    static func print(_ figures: TransactionFigures, isJSON: Bool) {
        let output = Output.standard
        let all = figures.all
        if isJSON {
            for one in all { output.append(object(one).text + "\n") }
        } else {
            for (index, one) in all.enumerated() {
                if index > 0 { output.append("\n") }
                table(one)
            }
        }
        if figures.leftOut > 0 {
            Complaint.tell("\(figures.leftOut) transactions of further use cases are left out")
        }
    }

    private static func table(_ one: UsecaseFigures) {
        let output = Output.standard
        let name = one.name.isEmpty ? "" : " \(PlainText.oneLine(one.name))"
        output.append("use case \(one.usecase)\(name)\n")
        output.append("  transactions \(one.count), ended \(one.ended), ")
        output.append("with errors \(one.withErrors)\n")
        if let half = one.duration(0.5), let most = one.duration(0.95), let all = one.duration(1) {
            output.append(
                "  took p50 \(ExchangeLine.milliseconds(half)) ms, "
                    + "p95 \(ExchangeLine.milliseconds(most)) ms, "
                    + "max \(ExchangeLine.milliseconds(all)) ms\n")
        }
        output.append("     reached   share  stopped  event\n")
        row(one.count, of: one.count, one.stoppedAtOnce, "(begun)")
        for (event, step) in one.funnel {
            let name = step.name.isEmpty ? "" : " \(PlainText.oneLine(step.name))"
            row(step.reached, of: one.count, step.stopped, "\(event)\(name)")
        }
    }

    private static func row(_ reached: UInt64, of count: UInt64, _ stopped: UInt64, _ name: String)
    {
        Output.standard.append(
            "  \(columns(reached, 10)) \(right(share(reached, count), 6))% \(columns(stopped, 8))"
                + "  \(name)\n")
    }

    private static func object(_ one: UsecaseFigures) -> JSONObject {
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
    private static func share(_ part: UInt64, _ all: UInt64, scale: UInt64 = 100) -> String {
        guard all > 0 else { return "0" }
        let thousandths = (Double(part) * 1000 / Double(all)).rounded()
        let number = UInt64(max(0, min(thousandths, 1_000_000)))
        if scale == 100 { return "\(number / 10).\(number % 10)" }
        return "\(number / 1000).\(Digits.text(number % 1000, width: 3))"
    }

    private static func columns(_ number: UInt64, _ width: Int) -> String {
        right(String(number), width)
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.utf8.count)) + text
    }
}
