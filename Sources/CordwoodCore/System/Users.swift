// Becoming another user for good, which only root can, and where a path that root was given leads.
// For programs with one thread, as they begin.
// SAFETY: lists of groups and texts of links are lent to one call.

import CShims
import Glibc

package enum Users {
    package enum Change {
        case done
        /// Still root: that user may not enter this directory.
        case closed(String)
        /// The process may have some of the user's rights, and must end.
        case failed(String)
    }

    /// A group without rights.
    private static let nobodysGroup: gid_t = 65_534

    /// Acts as that user from now on, with one group: that one, but never root's. What the ways
    /// lead to, which belongs to that user, must be readable then.
    package static func become(
        _ user: UInt32, group: UInt32, reaching ways: [Way]
    ) -> Change {
        let wanted = group == 0 ? nobodysGroup : group, formerGroup = getegid()
        var former = [gid_t](repeating: 0, count: 65_536)
        let count = unsafe getgroups(Int32(former.count), &former)
        // Only the effective ids, which can be taken back.
        guard count >= 0, setgroups(0, nil) == 0, setegid(wanted) == 0, seteuid(user) == 0 else {
            return .failed(Errno.text(errno))
        }
        var closed: String?, entered: String?
        for way in ways {
            guard let problem = problem(opening: way.path) else {
                entered = way.path
                continue
            }
            guard let folder = way.obstacle(to: user, wanted) else { return .failed(problem) }
            closed = folder
        }
        if let closed, let entered {
            return .failed("that user may enter \(entered), but not \(closed)")
        }
        guard seteuid(0) == 0 else { return .failed(Errno.text(errno)) }
        if let closed {
            guard setegid(formerGroup) == 0, unsafe setgroups(Int(count), former) == 0 else {
                return .failed(Errno.text(errno))
            }
            return .closed(closed)
        }
        guard setgid(wanted) == 0, setuid(user) == 0 else { return .failed(Errno.text(errno)) }
        guard setuid(0) != 0 else { return .failed("it could become root again") }
        return .done
    }

    /// nil: this user may read it.
    private static func problem(opening path: String) -> String? {
        let descriptor = Files.openFollowing(FilePath(path), [.read, .nonBlocking, .noTerminal])
        guard descriptor >= 0 else { return Errno.text(errno) }
        close(descriptor)
        return nil
    }

}

extension Users {
    /// A path, and what is on the way to what it leads to.
    package struct Way {
        package let path: String
        /// What it leads to.
        package fileprivate(set) var end: FileFacts
        /// The directories in which a name is looked up, and links.
        fileprivate var steps: [(name: String, facts: FileFacts)] = []

        /// The first directory that this user may not enter, if only root can change the way to it.
        fileprivate func obstacle(to user: UInt32, _ group: UInt32) -> String? {
            for (at, (name, facts)) in steps.enumerated() {
                guard isRoots(at) else { return nil }
                if facts.isLink { continue }
                let rights = facts.group == group ? facts.mode >> 3 : facts.mode
                if rights & 0o1 == 0 { return name }
            }
            return nil
        }

        /// Root alone may change this link, or what the name in this directory leads to.
        private func isRoots(_ at: Int) -> Bool {
            let facts = steps[at].facts
            if facts.owner != 0 || facts.isLink { return facts.owner == 0 }
            // In a directory with the sticky bit, others do not replace what is root's.
            let next = at + 1 < steps.count ? steps[at + 1].facts : end
            return facts.mode & 0o022 == 0 || facts.mode & 0o1000 != 0 && next.owner == 0
        }

        /// Root alone may make what is missing at its end.
        fileprivate var isRoots: Bool {
            steps.indices.dropLast().allSatisfy(isRoots)
                && steps.last.map { $0.facts.owner == 0 && $0.facts.mode & 0o022 == 0 } ?? false
        }
    }

    package enum Destination {
        case found(Way)
        /// This link belongs neither to root nor to the owner of what the path leads to.
        case strangeLink(String)
        /// An errno. `isRoots`: only root could put something there.
        case missing(Int32, isRoots: Bool = false)
    }

    private static let linksMax = 40

    /// What a path leads to now. Goes from one directory to the next by descriptors, so nobody
    /// changes the way behind it.
    package static func destination(of path: String) -> Destination {
        guard !path.isEmpty else { return .missing(ENOENT) }
        var place = path.hasPrefix("/") ? "/" : "."
        var folder = step(AT_FDCWD, place)
        defer { close(folder) }
        guard let start = FileFacts(of: folder) else { return .missing(errno) }
        var way = Way(path: path, end: start)
        var rest = parts(path)
        var linksCount = 0
        while let part = rest.popLast() {
            way.steps.append((place, way.end))
            let next = step(folder, part)
            guard next >= 0, let facts = FileFacts(of: next) else {
                let problem = errno
                close(next)
                return strangeLink(way) ?? .missing(problem, isRoots: way.isRoots)
            }
            let name = place == "/" ? "/" + part : place + "/" + part
            guard facts.isLink else {
                close(folder)
                (folder, place, way.end) = (next, name, facts)
                continue
            }
            linksCount += 1
            let text = target(next)
            close(next)
            guard let text, linksCount <= linksMax else { return .missing(ELOOP) }
            way.steps.append((name, facts))
            rest += parts(text)
            guard text.hasPrefix("/") else { continue }
            close(folder)
            (folder, place) = (step(AT_FDCWD, "/"), "/")
            guard let root = FileFacts(of: folder) else { return .missing(errno) }
            way.end = root
        }
        return strangeLink(way, but: way.end.owner) ?? .found(way)
    }

    private static func strangeLink(_ way: Way, but owner: UInt32 = 0) -> Destination? {
        way.steps.first { $0.facts.isLink && $0.facts.owner != 0 && $0.facts.owner != owner }
            .map { .strangeLink($0.name) }
    }

    private static func step(_ folder: Int32, _ name: String) -> Int32 {
        unsafe name.withCString { unsafe cwi_step(folder, $0) }
    }

    /// The last one first.
    private static func parts(_ path: String) -> [String] {
        path.split(separator: "/").reversed().map { String($0) }
    }

    private static func target(_ link: Int32) -> String? {
        unsafe withUnsafeTemporaryAllocation(byteCount: Int(PATH_MAX), alignment: 1) { buffer in
            let start = unsafe buffer.baseAddress!.assumingMemoryBound(to: CChar.self)
            let count = unsafe readlinkat(link, "", start, buffer.count)
            guard count > 0, count < buffer.count else { return nil }
            return unsafe String(
                decoding: UnsafeRawBufferPointer(rebasing: buffer[..<count]), as: UTF8.self)
        }
    }
}
