// Transactions, their records and figures, as lines for people or as JSON objects. Text from a
// store is escaped.

import Cordwood

enum TransactionText {
    // ── One transaction ──

    static func print(_ one: StoredTransaction, _ selection: Selection) {
        let output = Output.standard
        guard !selection.json else { return output.append(TransactionJSON.object(one).text + "\n") }
        output.put { Times.appendReadable(one.first, utc: selection.utc, to: &$0) }
        let state = one.isEnded ? "ended" : "open"
        let duration = one.duration ?? one.last - one.first
        var text = " \(one.id.text) \(columns(one.events, 4)) events "
        text += "\(columns(one.errors, 3)) errors "
        text += "\(right(ExchangeLine.milliseconds(duration), 11)) ms \(state)"
        if !one.usecaseName.isEmpty { text += "  \(PlainText.oneLine(one.usecaseName))" }
        output.append(text + "\n")
    }

    // ── One record ──

    static func print(_ moment: TransactionMoment, since first: UInt64, _ selection: Selection) {
        let output = Output.standard
        guard !selection.json else {
            return output.append(TransactionJSON.object(moment).text + "\n")
        }
        output.put { Times.appendReadable(moment.time, utc: selection.utc, to: &$0) }
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

    // ── Figures ──

    static func print(_ figures: TransactionFigures, isJSON: Bool) {
        let output = Output.standard
        let all = figures.all
        if isJSON {
            for one in all { output.append(TransactionJSON.object(one).text + "\n") }
        } else {
            for (index, one) in all.enumerated() {
                if index > 0 { output.append("\n") }
                table(one)
            }
        }
        if figures.leftOut > 0 {
            let verb = figures.leftOut == 1 ? "is" : "are"
            Complaint.tell(
                Counted.text(figures.leftOut, "transaction")
                    + " of further use cases \(verb) left out")
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
            "  \(columns(reached, 10)) \(right(TransactionJSON.share(reached, count), 6))% "
                + "\(columns(stopped, 8))  \(name)\n")
    }

    private static func columns(_ number: UInt64, _ width: Int) -> String {
        right(String(number), width)
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(0, width - text.utf8.count)) + text
    }
}
