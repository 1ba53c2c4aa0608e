// A path, and the open directory that it starts from: the calls of this folder give both to the
// kernel, so a file of an open store is found wherever the store has been moved. Where others may
// change the directory, a name is reached folder by folder, and no link is followed. Any thread.
// SAFETY: a name is lent to one call.

import CShims
import Glibc
import Synchronization

package struct FilePath: Sendable, CustomStringConvertible, ExpressibleByStringLiteral {
    /// nil: the path starts from the root, or from the working directory.
    private let directory: OpenDirectory?
    /// Relative to the directory; "" is the directory itself.
    private let name: String

    /// A path that a user chose, or one of the system's.
    package init(_ path: String) {
        self.init(nil, path)
    }

    package init(_ directory: OpenDirectory) {
        self.init(directory, "")
    }

    /// A directory stays open. One that cannot be opened stays closed: its owner may put it, or a
    /// link, there a moment later, and what is below it would be reached by links. Only a regular
    /// file is a plain path.
    package init(opening path: String) {
        if let directory = OpenDirectory(path) {
            self.init(directory)
            return
        }
        let refusal = errno
        if FileFacts(following: FilePath(path))?.isRegular == true {
            self.init(path)
        } else {
            self.init(OpenDirectory(closed: path, refusal: refusal))
        }
    }

    package init(stringLiteral path: StaticString) {
        self.init("\(path)")
    }

    private init(_ directory: OpenDirectory?, _ name: String) {
        (self.directory, self.name) = (directory, name)
    }

    /// As texts show it: below an open directory, with the path by which that was opened.
    package var description: String {
        guard let directory else { return name }
        return name.isEmpty ? directory.path : directory.path + "/" + name
    }

    /// What follows the last slash.
    package var lastName: Substring {
        let text = name.isEmpty ? directory?.path ?? "" : name
        return text[(text.lastIndex(of: "/").map(text.index(after:)) ?? text.startIndex)...]
    }

    /// The directory that has the last name. That of an open directory is itself.
    package var parent: FilePath {
        guard let slash = name.lastIndex(of: "/") else {
            return directory.map { FilePath($0) } ?? "."
        }
        return FilePath(directory, slash == name.startIndex ? "/" : String(name[..<slash]))
    }

    /// Adds text, as to a string: `store + "/lanes"`.
    package static func + (path: FilePath, more: String) -> FilePath {
        guard path.directory != nil, path.name.isEmpty else {
            return FilePath(path.directory, path.name + more)
        }
        return FilePath(path.directory, String(more.drop { $0 == "/" }))
    }

    /// Calls the body with a descriptor and a name, for the calls whose names end in `at`.
    func lend<Result>(_ body: (Int32, UnsafePointer<CChar>) -> Result) -> Result {
        guard let directory else {
            return unsafe name.withCString { unsafe body(AT_FDCWD, $0) }
        }
        let base = directory.base
        return unsafe (name.isEmpty ? "." : name).withCString { text in
            base.isOurs
                ? unsafe body(base.descriptor, text)
                : unsafe inside(base.descriptor, directory.refusal, text, body)
        }
    }

    /// Somebody else may put a link in the place of a folder at any moment.
    private func inside<Result>(
        _ base: Int32, _ refusal: Int32, _ text: UnsafePointer<CChar>,
        _ body: (Int32, UnsafePointer<CChar>) -> Result
    ) -> Result {
        guard base >= 0 else {
            let result = unsafe body(base, text)
            errno = refusal
            return result
        }
        var last = unsafe Optional(text)
        let folder = unsafe cwi_enter(base, text, &last)
        var problem = errno
        // If there is no such folder, the body's call fails, but not with the cause.
        let result = unsafe body(folder, last ?? text)
        if folder >= 0 { problem = errno }
        if folder != base { cwi_file_close(folder) }
        errno = problem
        return result
    }

    /// Whether that user owns the open directory that the path starts from; true: it starts from
    /// none.
    package func isInDirectory(of user: UInt32) -> Bool { directory?.isOwned(by: user) ?? true }

    /// For readdir(3) and closedir(3). Below an open directory no link is followed. nil:
    /// `Errno.last` says why.
    func openNames() -> OpaquePointer? {
        let follows = directory == nil ? 0 : O_NOFOLLOW
        let descriptor = unsafe lend {
            unsafe openat($0, $1, O_RDONLY | O_DIRECTORY | O_CLOEXEC | follows)
        }
        guard descriptor >= 0 else { return nil }
        if let names = unsafe fdopendir(descriptor) { return unsafe names }
        let problem = errno
        close(descriptor)
        errno = problem
        return nil
    }
}

extension FilePath: Hashable {
    package static func == (one: FilePath, other: FilePath) -> Bool {
        one.directory === other.directory && one.name == other.name
    }

    package func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

/// A directory that stays open, wherever it is moved. If the host closes its descriptor, as daemons
/// do with all, the object opens it again: where it was, or where a lane file two levels below it
/// is mapped. If it is deleted, or not found, the object goes on with the directory that its path
/// leads to then. The user who deleted it may have left a link there, so a process with more rights
/// than its user accepts only a directory of the same owner. Forked children share it.
/// SAFETY: what `current` points to never changes, and is freed by deinit alone.
@safe package final class OpenDirectory: @unchecked Sendable {
    @safe private struct Opened {
        let descriptor: Int32
        let facts: FileFacts
        /// Threads may still use its number, so it is closed with the object.
        var previous: UnsafeMutablePointer<Opened>?
        /// The host closed the previous one: the number may be anybody's.
        var isPreviousLost = false
        /// How often another directory than the lost one was opened.
        var losses: UInt64 = 0

        init?(_ path: String) {
            // With the dot, a link of that name is followed: the user who names a store chose it.
            self.init(
                unsafe (path + "/.").withCString {
                    unsafe cwi_open_at(AT_FDCWD, $0, O_RDONLY | O_DIRECTORY, 0)
                })
        }

        /// None.
        init() { (descriptor, facts) = (-1, FileFacts()) }

        init?(_ descriptor: Int32) {
            guard descriptor >= 0, let facts = FileFacts(of: descriptor) else { return nil }
            (self.descriptor, self.facts) = (descriptor, facts)
        }

        /// What the descriptor leads to; nil: another file than the one that was opened.
        var now: FileFacts? {
            FileFacts(of: descriptor).flatMap { $0.isSameFile(as: facts) ? $0 : nil }
        }

        func close() {
            if now != nil { FileCalls.close(descriptor) }
        }
    }

    /// By which it was opened.
    package let path: String
    /// The errno of calls below it while it is closed.
    let refusal: Int32
    private let current: Atomic<UnsafeMutablePointer<Opened>>
    private let isClosed: Atomic<Bool>
    private let acknowledged = Atomic<UInt64>(0)
    /// Monotonic ns. Before that, a lost directory is not looked for again.
    private let nextLook = Atomic<UInt64>(0)

    /// nil: `Errno.last` says why.
    package init?(_ path: String) {
        guard let opened = Opened(path) else { return nil }
        (self.path, refusal) = (path, EBADF)
        isClosed = Atomic(false)
        unsafe current = Atomic(Self.kept(opened))
    }

    /// One that could not be opened, and never will be.
    init(closed path: String, refusal: Int32) {
        (self.path, self.refusal) = (path, refusal)
        isClosed = Atomic(true)
        unsafe current = Atomic(Self.kept(Opened()))
    }

    deinit {
        close()
        var next = unsafe Optional(current.load(ordering: .relaxed))
        while let opened = unsafe next {
            unsafe next = opened.pointee.previous
            unsafe opened.deallocate()
        }
    }

    /// Closes it before it is released. No thread may use it any more.
    package func close() {
        guard !isClosed.exchange(true, ordering: .acquiringAndReleasing) else { return }
        var next = unsafe Optional(current.load(ordering: .acquiring))
        var isLost = false
        while let opened = unsafe next {
            if !isLost { unsafe opened.pointee.close() }
            unsafe isLost = opened.pointee.isPreviousLost
            unsafe next = opened.pointee.previous
        }
    }

    /// -1: it was closed, by us or by the host, and the path leads nowhere.
    var descriptor: Int32 { base.descriptor }

    /// Also whether nobody else may change the names in it.
    var base: (descriptor: Int32, isOurs: Bool) {
        // ORDER: relaxed. A caller that comes too late gets no file either way.
        if isClosed.load(ordering: .relaxed) { return (-1, false) }
        // ORDER: acquire. Who sees the address sees what it points to.
        let known = unsafe current.load(ordering: .acquiring)
        let now = unsafe known.pointee.now
        if let now, !now.isNameless { return (unsafe known.pointee.descriptor, now.isOurs) }
        if let other = unsafe goOn(from: known, isHeld: now != nil) { return (other, false) }
        return (now == nil ? -1 : unsafe known.pointee.descriptor, false)
    }

    /// What the system said about it when it was opened.
    package var opened: FileFacts {
        // ORDER: acquire, as in `base`.
        unsafe current.load(ordering: .acquiring).pointee.facts
    }

    /// As it was opened, or as it is now.
    func isOwned(by user: UInt32) -> Bool {
        opened.owner == user || FileFacts(of: descriptor)?.owner == user
    }

    /// It was deleted, or the host closed it, and the path leads nowhere.
    package var isGone: Bool {
        let number = descriptor
        return number < 0 || FileCalls.isDeleted(number)
    }

    /// The host closed the descriptor, the directory was not found again, and so the path leads on
    /// to another one. What this process has in the former one is not known to be lost.
    package var isElsewhere: Bool {
        // ORDER: acquire. Who sees the acknowledgement sees what led to it.
        losses != acknowledged.load(ordering: .acquiring)
    }

    /// How often that has happened.
    package var losses: UInt64 {
        _ = descriptor
        // ORDER: acquire, as in `base`.
        return unsafe current.load(ordering: .acquiring).pointee.losses
    }

    /// From here on `isElsewhere` is false until the same happens once more.
    package func acknowledge(_ losses: UInt64) {
        // ORDER: release. Pairs with `isElsewhere`.
        acknowledged.store(losses, ordering: .releasing)
    }

    /// The path leads elsewhere, or nowhere: the directory was moved.
    package var isMoved: Bool {
        guard let held = FileFacts(of: descriptor) else { return false }
        return FileFacts(following: FilePath(path)).map { !$0.isSameFile(as: held) } ?? true
    }

    /// Where it lies now, as the system says; nil: it does not (there is no /proc).
    package var place: String? { Files.target(of: FilePath("/proc/self/fd/\(descriptor)")) }

    /// Allows the group to read what is made in it from now on. False: `Errno.last` says why.
    package func letGroupRead() -> Bool {
        let wanted = S_ISGID | S_IRGRP | S_IXGRP, number = descriptor
        guard let mode = FileFacts(of: number)?.mode else { return false }
        return mode & wanted == wanted || fchmod(number, mode | wanted) == 0
    }

    /// Makes one at its path again, for the same owner. True also if there is something.
    package func makeAgain() -> Bool {
        let former = opened
        var text = Array(path.utf8CString)
        let error = unsafe text.withUnsafeMutableBufferPointer {
            unsafe cwi_make_directory_again($0.baseAddress!, former.owner, former.group)
        }
        return error == 0 || error == EEXIST
    }

    /// Goes on with the directory that the path leads to now. False: it leads nowhere.
    package func beginAnew() -> Bool {
        let known = unsafe current.load(ordering: .acquiring)
        return unsafe goOn(from: known, isHeld: known.pointee.now != nil) != nil
    }

    /// The descriptor of the directory to go on with: a lost one that is found again, or that which
    /// the path leads to now.
    private func goOn(from known: UnsafeMutablePointer<Opened>, isHeld: Bool) -> Int32? {
        var next = Opened(path)
        if let other = next, unsafe !other.facts.mayFollow(owner: known.pointee.facts.owner) {
            other.close()
            next = nil
        }
        let lost = unsafe isHeld ? nil : known.pointee.facts
        var isOther = false
        if let lost, next?.facts.isSameFile(as: lost) != true {
            let found = lookFor(lost)
            if found != -1 { next?.close() }
            guard found != MappedFiles.notNow else { return nil }
            if found >= 0 { next = Opened(found) } else { isOther = true }
        }
        guard var new = next else { return nil }
        unsafe new.previous = known
        new.isPreviousLost = !isHeld
        // A count that is carried on: what opens it once more acknowledges nothing.
        unsafe new.losses = known.pointee.losses + (isOther ? 1 : 0)
        let made = unsafe Self.kept(new)
        // ORDER: acquire-release. Of the threads that found it lost, one replaces it.
        let (isFirst, now) = unsafe current.compareExchange(
            expected: known, desired: made, ordering: .acquiringAndReleasing)
        if isFirst { return new.descriptor }
        new.close()
        unsafe made.deallocate()
        return unsafe now.pointee.now.map { _ in unsafe now.pointee.descriptor }
    }

    /// As `MappedFiles.directory`, but for a while after a look in vain -1 without another one.
    private func lookFor(_ lost: FileFacts) -> Int32 {
        let now = cw_monotonic_ns()
        // ORDER: relaxed, here and below. A bound on work; it guards nothing.
        guard now >= nextLook.load(ordering: .relaxed) else { return -1 }
        let found = MappedFiles.directory(levels: 2, lost.device, lost.inode)
        if found == -1 { nextLook.store(now &+ MappedFiles.pauseNs, ordering: .relaxed) }
        return found
    }

    private static func kept(_ opened: Opened) -> UnsafeMutablePointer<Opened> {
        let place = UnsafeMutablePointer<Opened>.allocate(capacity: 1)
        unsafe place.initialize(to: opened)
        return unsafe place
    }
}
