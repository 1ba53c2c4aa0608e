"""The mutations of stores of other users: see table.py."""

from entry import ENGINE, SHIMS, STORE, SYSTEM, mutation

CLI = "Sources/CordwoodCLI/"

mutation("users", "links-are-followed", SYSTEM + "FilePath.swift",
         "            base.isOurs\n", "            base.descriptor >= 0\n",
         "hostile swaps", "a store's owner leads root's program into root's own directories")
mutation("users", "open-to-others-is-ours", SYSTEM + "FileFacts.swift",
         "    var isOurs: Bool { !isOpenToOthers && (owner", "    var isOurs: Bool { (owner",
         "hostile swaps", "whoever may write to root's store leads root's program away")
mutation("users", "rights-do-not-count", SHIMS + "made.c",
         "        (held[0].permitted | held[1].permitted) == 0 && getresuid",
         "        getresuid",
         "hostile swaps_with_rights", "a user leads a process away that has rights of root's")
mutation("users", "any-store-follows", SYSTEM + "FilePath.swift",
         "        if let other = next, unsafe !other.facts.mayFollow("
         "owner: known.pointee.facts.owner) {\n",
         "        if let other = next, unsafe known.pointee.facts.inode == 0 {\n",
         "hostile led_away", "root's follower shows the store that a link leads to")
mutation("users", "memory-of-others", SYSTEM + "SegmentLink.swift",
         "let (text, user) = text(path), FileFacts(at: path)?.owner == user else",
         "let (text, _) = text(path) else",
         "hostile memory_links", "a user's link shows root's memory to root's reader")
mutation("users", "memory-by-others", STORE + "Lanes/ReadFile.swift",
         "            target.map({ SegmentLink.isTarget(facts, $0) }) ?? true\n",
         "            target.map({ SegmentLink.isTarget(facts, $0) }) != nil || target == nil\n",
         "hostile memory_links", "somebody else's file stands for a segment in memory")
mutation("users", "strangers-store", STORE + "Files/StoreOwner.swift",
         "        guard user == 0 || user == facts.owner else {\n",
         "        guard user == user else {\n",
         "hostile strangers", "an engine obeys a store that another user owns")
mutation("users", "strangers-files", STORE + "Files/StoreOwner.swift",
         "        guard file.owner == 0 || path.isInDirectory(of: file.owner) else {\n",
         "        guard file.owner == file.owner else {\n",
         "hostile strangers", "a file that another user wrote decides what an engine does")
mutation("users", "open-to-others", STORE + "Files/StoreOwner.swift",
         "        guard !file.isOpenToOthers || Files.closeToOthers(path, file) else {\n",
         "        guard file.mode <= 0o7777 else {\n",
         "hostile strangers", "an engine obeys what everybody may change")
mutation("users", "control-is-obeyed", STORE + "Files/ControlFile.swift",
         "StoreFiles.read(path, isObeyed: true)", "StoreFiles.read(path)",
         "hostile strangers_control", "somebody else's control file stops a user's records")
mutation("users", "opening-takes-any-control", ENGINE + "Services/ControlKeeper.swift",
         "            if case .notOurs = error, complain == nil { throw error }\n", "",
         "hostile strangers", "an engine opens beside a control file that it must not obey")
mutation("users", "verbs-stay-root", CLI + "Options/Selection.swift",
         "        try StoreUser.become(ownerOf: named, makes: makes)\n", "",
         "hostile verbs_as_owner", "root's verbs read for a user what only root may read")
mutation("users", "root-makes-for-root", SHIMS + "made.c",
         "    const struct stat model = {.st_uid = owner, .st_gid = group};\n",
         "    const struct stat model = {.st_uid = owner & 0, .st_gid = group & 0};\n",
         "hostile deleted", "root's host never goes on in a user's store that was deleted")
mutation("users", "what-is-given-late-stays-roots", SHIMS + "made.c",
         "    if (is_in_store && (error == 0 || error == EEXIST)) give",
         "    if (is_in_store && error == 0) give",
         "hostile given_late", "root's hosts that begin a user's store together keep its lanes/")
mutation("users", "full-directories-are-given", SHIMS + "made.c",
         "                    !is_empty(fd))) {\n", "                    is_empty(-1))) {\n",
         "hostile given_late", "root gives away a directory of its own that was put there")
mutation("users", "a-link-leads-away-above", SHIMS + "made.c",
         "                     ? open_by_root(path)\n",
         "                     ? openat(AT_FDCWD, path, O_PATH | O_DIRECTORY | O_CLOEXEC)\n",
         "hostile deleted_behind_a_link", "a user has root make a directory anywhere")
mutation("users", "anybodys-link-above-is-followed", SHIMS + "made.c",
         "    if (found.st_uid == 0 && fstat(folder", "    if (fstat(folder",
         "hostile deleted_behind_a_link", "a user's link in a directory of root's leads root away")
mutation("users", "roots-link-may-be-moved", SHIMS + "made.c",
         "in.st_uid == 0 && !(in.st_mode & 0022))", "!(in.st_mode & 0022))",
         "hostile deleted_behind_a_link", "a user moves a link of root's into the way of root")
mutation("users", "roots-link-may-be-replaced", SHIMS + "made.c",
         "in.st_uid == 0 && !(in.st_mode & 0022))", "in.st_uid == 0)",
         "hostile deleted_behind_a_link", "the same in a directory of root's that all may change")
mutation("users", "others-keep-their-right", SYSTEM + "Files.swift",
         "        return fchmod(descriptor, facts.mode & ~0o022) == 0 || errno",
         "        return facts.mode != 0 || errno",
         "hostile strangers", "others go on changing what a program obeys")
mutation("users", "others-files-are-mended", SYSTEM + "Files.swift",
         "        guard known.owner == Machine.userID() else { return false }\n", "",
         "hostile strangers", "a program changes the mode of what another user owns, or obeys it")
mutation("users", "links-of-others", SYSTEM + "Users.swift",
         "        return strangeLink(way, but: way.end.owner) ?? .found(way)\n",
         "        return .found(way)\n",
         "hostile verbs_as_owner", "a user's link leads root's verb to root's store")
mutation("users", "several-users", CLI + "Options/StoreUser.swift",
         "        if let other = ways.first(where: { $0.end.owner != owner }) {\n",
         "        if let other = ways.first(where: { $0.path.isEmpty }) {\n",
         "hostile verbs_as_owner", "root's verb acts as one user on another one's store")
mutation("users", "own-closed-folder", SYSTEM + "Users.swift",
         "if facts.owner != 0 || facts.isLink {", "if facts.isLink {",
         "hostile verbs_as_owner", "a user makes root's verb stay root, and leads it away")
mutation("users", "the-group-leads-away", SYSTEM + "Users.swift",
         "return facts.mode & 0o022 == 0 ||", "return true || facts.mode & 0o022 == 0 ||",
         "hostile verbs_as_owner", "a group makes root's verb stay root, and leads it away")
mutation("users", "sticky-is-enough", SYSTEM + "Users.swift",
         "facts.mode & 0o1000 != 0 && next.owner == 0", "facts.mode & 0o1000 != 0",
         "hostile verbs_as_owner", "a user's own entry in a sticky directory leads root away")
mutation("users", "one-closed-path-opens-all", SYSTEM + "Users.swift",
         "        if let closed, let entered {\n",
         "        if let closed, let entered, closed.isEmpty {\n",
         "hostile verbs_as_owner", "root reads what the owner can lead elsewhere")
mutation("users", "root-again", SYSTEM + "Users.swift",
         "        guard setuid(0) != 0 else", "        guard setuid(user) == 0 else",
         "hostile verbs_as_owner", "a verb that acts as the owner can become root again")
mutation("users", "fails-open", STORE + "Keep/StoreCompactor.swift",
         "            if file?.consent == .denied { return summary }\n        } catch {\n"
         "            throw CordwoodError(error.status.rawValue, error.text)\n",
         "            if file?.consent == .denied { return summary }\n        } catch {\n",
         "hostile unreadable_consent", "archives are merged though nobody knows of a denial")
mutation("users", "archives-of-others", STORE + "Keep/StoreArchiver.swift",
         "        try StoreOwner.check(storeDirectory: directory)\n", "",
         "hostile unreadable_consent", "a verb works on a store that another user owns")
mutation("users", "opens-later", SYSTEM + "FilePath.swift",
         "            self.init(OpenDirectory(closed: path, refusal: refusal))\n",
         "            self.init(path)\n",
         "swift OpenedPathTests", "what a user puts at a path later is reached by links")
