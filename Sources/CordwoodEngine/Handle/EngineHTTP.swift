// Captured HTTP exchanges (docs/HTTP.md) for Swift hosts, and what the C calls are made of.
// SAFETY: a block is never unmapped.

import CCordwood
import CShims
import CordwoodCore
import CordwoodTrace

extension Engine {
    /// How exchanges are captured from now on; those under way keep what was in force. Throws where
    /// an option is not valid; then nothing was changed.
    public func setHTTPCapture(_ options: HTTPCaptureOptions) throws(CordwoodError) {
        let services = try services()
        let rules = try unsafe HTTPRules(
            logger: services.logger(HTTPCapture.loggerName), options)
        unsafe HTTPSwitch.setRules(block, rules)
        services.setHTTP(host: options.isEnabled)
    }

    /// One load.
    public var isHTTPCaptureEnabled: Bool { unsafe HTTPCapture.isOn(block) }

    /// Of an engine that was switched on from outside, whose host said nothing.
    fileprivate func makeHTTPRules() {
        guard let services = try? services(),
            let logger = unsafe try? services.logger(HTTPCapture.loggerName),
            let rules = unsafe try? HTTPRules(logger: logger, HTTPCaptureOptions())
        else { return }
        unsafe HTTPSwitch.setFirstRules(block, rules)
    }
}

extension HTTPCapture {
    /// nil in `out` where the status is not ok.
    package static func begin(
        _ engine: EngineBlock, _ request: cw_http_request, _ out: inout Handle?
    ) -> Int32 {
        unsafe begin(engine, request, &out) { unsafe Engine.of($0)?.makeHTTPRules() }
    }

    /// Those of the engine, made where its host said nothing; retained for the caller. nil: it is
    /// closed.
    static func rules(_ engine: EngineBlock) -> Unmanaged<AnyObject>? {
        if let rules = unsafe HTTPSwitch.rules(engine) { return unsafe rules }
        unsafe Engine.of(engine)?.makeHTTPRules()
        return unsafe HTTPSwitch.rules(engine)
    }
}

extension CurlTransfer {
    /// nil: no memory.
    package static func begin(_ engine: EngineBlock) -> Handle? {
        // Those that its exchanges will find.
        unsafe HTTPCapture.rules(engine)?.release()
        return unsafe make(engine)
    }
}
