// The patterns of `grep` and `http --grep`; a bad one ends the command as usage.

import Cordwood

enum Patterns {
    static func make(
        _ text: String, isFixed: Bool, ignoresCase: Bool
    ) throws(Failure) -> TextPattern {
        do throws(ExpressionError) {
            return try TextPattern(text, isFixed: isFixed, ignoresCase: ignoresCase)
        } catch {
            throw Failure(.usage, "pattern: \(error.text)")
        }
    }
}
