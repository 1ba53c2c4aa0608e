// Application transactions (transaction.h): check, convert, call, return.
// SAFETY: a handle is a retained Transaction from begin or join to end; strings hold during the
// call; results are written as far as the host's size allows.

import CCordwood
import CShims
import CordwoodCore
import CordwoodEngine
import CordwoodFormats
import CordwoodShip
import CordwoodStore
import CordwoodTrace

private func transaction(_ handle: OpaquePointer?) -> Transaction? {
    guard let handle = unsafe handle else { return nil }
    return unsafe Unmanaged<Transaction>.fromOpaque(UnsafeRawPointer(handle)).takeUnretainedValue()
}

private func give(
    _ made: Transaction, _ out: UnsafeMutablePointer<OpaquePointer?>
) -> cw_status {
    unsafe out.pointee = OpaquePointer(Unmanaged.passRetained(made).toOpaque())
    return Status.ok
}

@_cdecl("cw_transaction_begin") @implementation
public func cw_transaction_begin(
    _ handle: OpaquePointer!, _ usecase: Int32, _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let out = unsafe out else {
            throw CordwoodError(Status.argument, "cw_transaction_begin: out is NULL")
        }
        return unsafe give(try engine(handle).transaction(usecase), out)
    }
}

@_cdecl("cw_transaction_join") @implementation
public func cw_transaction_join(
    _ handle: OpaquePointer!, _ id: UnsafePointer<CChar>!,
    _ out: UnsafeMutablePointer<OpaquePointer?>!
) -> cw_status {
    status { () throws(CordwoodError) in
        guard let id = unsafe id, let out = unsafe out else {
            throw CordwoodError(Status.argument, "cw_transaction_join: id or out is NULL")
        }
        return unsafe give(try engine(handle).joinTransaction(String(cString: id)), out)
    }
}

@_cdecl("cw_transaction_id") @implementation
public func cw_transaction_id(_ handle: OpaquePointer!) -> UnsafePointer<CChar>! {
    unsafe transaction(handle)?.idText
}

@_cdecl("cw_transaction_usecase") @implementation
public func cw_transaction_usecase(_ handle: OpaquePointer!) -> Int32 {
    unsafe transaction(handle)?.usecase ?? 0
}

@_cdecl("cw_transaction_event") @implementation
public func cw_transaction_event(
    _ handle: OpaquePointer!, _ event: Int32, _ code: UnsafePointer<CChar>!,
    _ text: UnsafePointer<CChar>!
) -> cw_status {
    guard let transaction = unsafe transaction(handle) else {
        return LastError.setWrite(Status.argument, 0, .transaction)
    }
    guard unsafe code != nil || text == nil else {
        return LastError.setWrite(Status.argument, 0, .errorCode)
    }
    func view(_ text: UnsafePointer<CChar>) -> UnsafeRawBufferPointer {
        unsafe UnsafeRawBufferPointer(start: text, count: CText.length(text))
    }
    let status = unsafe transaction.event(event, code: code.map(view), text: text.map(view))
    return status == Status.ok ? status : LastError.setWrite(status, 0)
}

@_cdecl("cw_transaction_traceparent") @implementation
public func cw_transaction_traceparent(
    _ handle: OpaquePointer!, _ out: UnsafeMutablePointer<CChar>!
) -> cw_status {
    guard let transaction = unsafe transaction(handle), let out = unsafe out else {
        return LastError.setWrite(Status.argument, 0, .transaction)
    }
    unsafe Traceparent.write(transaction.trace, to: out)
    return Status.ok
}

@_cdecl("cw_traceparent_parse") @implementation
public func cw_traceparent_parse(
    _ text: UnsafePointer<CChar>!, _ trace: UnsafeMutablePointer<UInt8>!,
    _ span: UnsafeMutablePointer<UInt8>!, _ flags: UnsafeMutablePointer<UInt8>!
) -> cw_status {
    guard let text = unsafe text, let trace = unsafe trace, let span = unsafe span,
        let flags = unsafe flags
    else { return LastError.setWrite(Status.argument, 0, .traceparent) }
    return unsafe withUnsafeTemporaryAllocation(byteCount: 32, alignment: 8) { room in
        let all = unsafe room.baseAddress.unsafelyUnwrapped
        guard unsafe Traceparent.parse(text, into: all) else {
            return LastError.setWrite(Status.argument, 0, .traceparent)
        }
        unsafe UnsafeMutableRawPointer(trace).copyMemory(from: all, byteCount: 16)
        unsafe UnsafeMutableRawPointer(span).copyMemory(from: all + 16, byteCount: 8)
        unsafe flags.pointee = all.load(fromByteOffset: 24, as: UInt8.self)
        return Status.ok
    }
}

@_cdecl("cw_transaction_attach") @implementation
public func cw_transaction_attach(_ handle: OpaquePointer!) -> cw_status {
    guard let transaction = unsafe transaction(handle) else {
        return failed(Status.argument, "cw_transaction_attach: transaction is NULL")
    }
    let status = transaction.attachThread()
    return status == Status.ok
        ? status
        : failed(
            status,
            "cw_transaction_attach: 16 are attached to the thread, its context would exceed "
                + "4,096 bytes, there is no memory, or the engine is closed")
}

@_cdecl("cw_transaction_detach") @implementation
public func cw_transaction_detach(_ handle: OpaquePointer!) -> cw_status {
    guard let transaction = unsafe transaction(handle) else {
        return failed(Status.argument, "cw_transaction_detach: transaction is NULL")
    }
    let status = transaction.detachThread()
    return status == Status.ok
        ? status
        : failed(
            status,
            "cw_transaction_detach: \(transaction.id) is not the one that the thread attached last")
}

@_cdecl("cw_transaction_end") @implementation
public func cw_transaction_end(
    _ handle: UnsafeMutablePointer<OpaquePointer?>!
) -> cw_status {
    guard let handle = unsafe handle else {
        return failed(Status.argument, "cw_transaction_end: transaction is NULL")
    }
    guard let given = unsafe handle.pointee else { return Status.ok }
    unsafe handle.pointee = nil
    let transaction = unsafe Unmanaged<Transaction>.fromOpaque(UnsafeRawPointer(given))
        .takeRetainedValue()
    let status = transaction.end()
    return status == Status.ok ? status : LastError.setWrite(status, 0)
}

@_cdecl("cw_transaction_names_set") @implementation
public func cw_transaction_names_set(
    _ handle: OpaquePointer!, _ names: UnsafePointer<cw_transaction_name>!, _ count: Int
) -> cw_status {
    status { () throws(CordwoodError) in
        let engine = try unsafe engine(handle)
        guard count >= 0, unsafe names != nil || count == 0 else {
            throw CordwoodError(
                Status.argument,
                "cw_transaction_names_set: names is NULL, or the count too large: "
                    + sizeText(count))
        }
        guard let names = unsafe names else { return Status.ok }
        for index in 0..<count {
            let one = unsafe names[index]
            try unsafe engine.setTransactionName(
                usecase: one.usecase, event: one.event == Int32.min ? nil : one.event,
                CText.string(one.name))
        }
        return Status.ok
    }
}

@_cdecl("cw_transactions_list") @implementation
public func cw_transactions_list(
    _ handle: OpaquePointer!, _ sink: cw_transaction_fn!, _ user: UnsafeMutableRawPointer!
) -> cw_status {
    status { () throws(CordwoodError) in
        let engine = try unsafe engine(handle)
        guard let sink = unsafe sink else {
            throw CordwoodError(Status.argument, "cw_transactions_list: sink is NULL")
        }
        var problem: CordwoodError?
        let all = try engine.transactions(problem: &problem)
        for one in all {
            let goesOn = unsafe one.id.withCString { id in
                unsafe one.usecaseName.withCString { name in
                    var view = unsafe cw_transaction_view()
                    unsafe view.struct_size = UInt32(MemoryLayout<cw_transaction_view>.size)
                    unsafe view.usecase = one.usecase
                    unsafe view.id = id
                    unsafe view.usecase_name = name
                    unsafe view.first_ns = one.firstNs
                    unsafe view.last_ns = one.lastNs
                    unsafe view.events = one.events
                    unsafe view.errors = one.errors
                    unsafe view.is_ended = one.isEnded
                    return unsafe sink(user, &view)
                }
            }
            if !goesOn { return Status.ok }
        }
        if let problem { throw problem }
        return all.isEmpty ? Status.end : Status.ok
    }
}

@_cdecl("cw_transactions_delete") @implementation
public func cw_transactions_delete(
    _ handle: OpaquePointer!, _ id: UnsafePointer<CChar>!
) -> cw_status {
    status { () throws(CordwoodError) in
        try unsafe engine(handle).deleteTransactions(CText.string(id))
        return Status.ok
    }
}

@_cdecl("cw_transactions_flush") @implementation
public func cw_transactions_flush(
    _ handle: OpaquePointer!, _ timeout: UInt32, _ out: UnsafeMutablePointer<cw_upload_result>!,
    _ size: Int
) -> cw_status {
    unsafe uploading("cw_transactions_flush", out, size) {
        (result: inout UploadResult) throws(CordwoodError) in
        try unsafe engine(handle).flushTransactions(timeout: Duration(ms: timeout), result: &result)
    }
}
