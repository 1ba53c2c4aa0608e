// Captured HTTP exchanges (docs/HTTP.md): the interface for Swift hosts, and the basis of the C
// calls.
// SAFETY: a block is never unmapped.

import CCordwood
import CShims
import CordwoodCore
import CordwoodTrace

extension Engine {
    /// Sets how exchanges are captured from now on; exchanges under way keep their settings. Throws
    /// if an option is not valid, and changes nothing then.
    public func setHTTPCapture(_ options: HTTPCaptureOptions) throws(CordwoodError) {
        let services = try services()
        let rules = try unsafe HTTPRules(
            logger: services.logger(HTTPCapture.loggerName), options)
        unsafe HTTPSwitch.setRules(block, rules)
        services.setHTTP(host: options.isEnabled)
    }

    /// Costs one load.
    public var isHTTPCaptureEnabled: Bool { unsafe HTTPCapture.isOn(block) }

    /// Makes the default rules for an engine whose capture was switched on from outside and whose
    /// host set none.
    fileprivate func makeHTTPRules() {
        guard let services = try? services(),
            let logger = unsafe try? services.logger(HTTPCapture.loggerName),
            let rules = unsafe try? HTTPRules(logger: logger, HTTPCaptureOptions())
        else { return }
        unsafe HTTPSwitch.setFirstRules(block, rules)
    }
}

extension HTTPCapture {
    /// `out` gets nil unless the status is ok.
    package static func begin(
        _ engine: EngineBlock, _ request: cw_http_request, _ out: inout Handle?
    ) -> Int32 {
        unsafe begin(engine, request, &out) { unsafe Engine.of($0)?.makeHTTPRules() }
    }

    /// The engine's rules, retained for the caller. Makes the default ones if the host set none.
    /// nil: the engine is closed.
    static func rules(_ engine: EngineBlock) -> Unmanaged<AnyObject>? {
        if let rules = unsafe HTTPSwitch.rules(engine) { return unsafe rules }
        unsafe Engine.of(engine)?.makeHTTPRules()
        return unsafe HTTPSwitch.rules(engine)
    }
}

extension CurlTransfer {
    /// nil: no memory.
    package static func begin(_ engine: EngineBlock) -> Handle? {
        // Makes the rules now; the transfer's exchanges will look for them.
        unsafe HTTPCapture.rules(engine)?.release()
        return unsafe make(engine)
    }
}
