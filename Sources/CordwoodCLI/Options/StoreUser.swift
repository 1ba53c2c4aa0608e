// Root works on another user's store as that user: whatever the owner puts in the place of a file
// or a folder meanwhile, the verb can do no more than the owner could. Called before a verb opens a
// store, and after it has read the keys that its options name.

import Cordwood

enum StoreUser {
    /// Stays root for root's stores, and for those below a directory that their owner may not
    /// enter. Throws for stores of several users, and if the owner's rights do not suffice: what
    /// the owner does must not decide that root works there.
    /// A missing store that only root could put there is the verb's to report.
    /// - Parameter makes: a missing directory is made.
    static func become(ownerOf paths: [String], makes: Bool = false) throws(Failure) {
        guard Machine.userID() == 0 else { return }
        var ways: [Users.Way] = []
        for path in paths where path != ":memory:" {
            if let way = try way(path, makes: makes) { ways.append(way) }
        }
        guard let first = ways.first else { return }
        let owner = first.end.owner
        if let other = ways.first(where: { $0.end.owner != owner }) {
            throw Failure(
                .cannotOpen,
                "\(first.path) belongs to user \(owner), \(other.path) to user "
                    + "\(other.end.owner): root works on the stores of one user at a time; run it "
                    + "once for each")
        }
        guard owner != 0 else { return }
        switch Users.become(owner, group: first.end.group, reaching: ways) {
        case .done:
            if Machine.isTerminal(2) {
                Complaint.tell("works as user \(owner), who owns \(first.path)")
            }
        case .closed(let folder):
            Complaint.tell(
                "works as root: user \(owner), who owns \(first.path), may not enter \(folder)")
        case .failed(let problem):
            throw Failure(
                .cannotOpen,
                "\(first.path): root cannot act as its owner, user \(owner): \(problem)")
        }
    }

    private static func way(_ path: String, makes: Bool) throws(Failure) -> Users.Way? {
        switch Users.destination(of: path) {
        case .found(let way): return way
        case .strangeLink(let name):
            throw Failure(
                .cannotOpen,
                "\(path): root follows no link that belongs to another user than what it leads to: "
                    + "\(name); name what it leads to")
        case .missing(Errno.ENOENT, isRoots: true) where !makes: return nil
        case .missing(let error, _):
            guard makes, error == Errno.ENOENT else {
                throw Failure(.cannotOpen, "open \(path): \(Errno.text(error))")
            }
            do throws(CordwoodError) { try Directories.make(FilePath(path), lasts: true) } catch {
                throw Failure(.cannotOpen, error.text)
            }
            return try way(path, makes: false)
        }
    }
}
