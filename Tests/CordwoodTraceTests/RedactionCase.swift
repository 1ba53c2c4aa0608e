// What tests of redaction share: rules, what is kept of a body and of a line, a seeded generator.

import CordwoodEngine
import CordwoodTestSupport
import XCTest

@testable import Cordwood
@testable import CordwoodCore
@testable import CordwoodTrace

/// The CPU time of this thread; work of other threads does not count.
func threadSeconds() -> Double {
    var now = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now)
    return Double(now.tv_sec) + Double(now.tv_nsec) / 1e9
}

class RedactionCase: XCTestCase {
    private let directory = StorePlace.path("redaction")
    private(set) var engine: Engine?

    override func setUpWithError() throws { engine = try Engine(directory: directory) }

    override func tearDownWithError() throws {
        try engine?.close()
        try FileManager.default.removeItem(atPath: directory)
    }

    func rules(_ patterns: [String] = [], keys: [String] = []) throws -> HTTPRules {
        var options = HTTPCaptureOptions()
        options.redactPatterns = patterns
        options.redactKeys = ["Kunden-Nr"] + keys
        return try unsafe HTTPRules(
            logger: XCTUnwrap(engine).findLogger("HTTP").block, options)
    }

    /// What is kept of a body.
    func redact(
        _ text: [UInt8], _ rules: HTTPRules, type: String = "", isCut: Bool = false,
        keepsText: Bool = false
    ) -> String {
        var edits = Edits()
        var out = GrowingBytes()
        unsafe text.withUnsafeBufferPointer { text in
            unsafe Array(type.utf8).withUnsafeBufferPointer { type in
                let text = unsafe ByteText(text.baseAddress, text.count)
                let kept = unsafe Redactor(Unmanaged.passUnretained(rules)).body(
                    text, contentType: ByteText(type.baseAddress, type.count), isCut: isCut,
                    keepsText: keepsText, &edits)
                edits.finish(text.slice(0, kept), into: &out)
            }
        }
        return String(decoding: out.text.array, as: UTF8.self)
    }

    func redact(_ text: String, _ rules: HTTPRules, type: String = "") -> String {
        redact(Array(text.utf8), rules, type: type)
    }

    func line(_ text: String, _ rules: HTTPRules, isURL: Bool = false, isCut: Bool = false)
        -> String
    {
        var edits = Edits()
        var out = GrowingBytes()
        unsafe Array(text.utf8).withUnsafeBufferPointer {
            let text = unsafe ByteText($0.baseAddress, $0.count)
            let redactor = unsafe Redactor(Unmanaged.passUnretained(rules))
            if isURL {
                redactor.url(text, isCut: isCut, &edits, into: &out)
            } else {
                redactor.line(text, isCut: isCut, &edits, into: &out)
            }
        }
        return String(decoding: out.text.array, as: UTF8.self)
    }
}
