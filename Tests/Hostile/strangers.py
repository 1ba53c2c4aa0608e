"""Stores of other users: which users a program obeys, and what root's programs do on a user's
store while its owner puts links in the place of what they work on. Cases of hostile.py; they need
root."""

import itertools
import os
import random
import shutil
import struct
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cases
from cases import Failed, Skipped, equal, holds, sized, until
from harness import CORDWOOD, run, tool

HERE = Path(__file__).resolve().parent
# The owner of the stores, and somebody else.
USER, STRANGER = 65534, 4711
AS_USER = ["setpriv", f"--reuid={USER}", f"--regid={USER}", "--clear-groups"]
# The user, but with rights that its other processes lack.
WITH_RIGHTS = [*AS_USER, "--inh-caps=+dac_override", "--ambient-caps=+dac_override"]
NO_CACHE = {"CORDWOOD_CACHE": "off"}


def needs_root():
    if os.geteuid() != 0:
        raise Skipped("other users need root")


def log(store, text, way=()):
    """Logs a line from a process that has ended."""
    return subprocess.run([*way, CORDWOOD, "log", "--store", store, "--logger", "app"],
                          input=f"{text}\n".encode(), capture_output=True, check=False)


def make(store, text):
    """A store with an archive, a dead lane, a target and its queue."""
    for turn in range(2):
        equal("log ends", log(store, f"{text} {turn}").returncode, 0)
        if turn == 0:
            tool("archive", store, codes=(0,))
    tool("http", "enable", store, codes=(0,))
    tool("upload", store, "--to", "http://127.0.0.1:1", "--timeout", "2", codes=(5,))
    equal("log ends", log(store, f"{text} 2").returncode, 0)


def own(path, user=USER):
    for each in (path, *path.rglob("*")):
        os.lchown(each, user, user)


def comes_soon(condition):
    """Whether what a program does that looks once a second is seen."""
    try:
        return until(condition, "", seconds=2.5)
    except Failed:
        return False


# ── The users that a program obeys ──

# What is not the user's own or root's, or may be changed by others, and its mode.
PLACES = {"": 0o700, "lanes": 0o700, "archives": 0o700, "queue": 0o700, "targets": 0o700,
          "store": 0o600, "control": 0o600, "policy": 0o600}


def strangers(suite):
    """A table of owners and modes: a program opens the store, or says what is wrong with what."""
    needs_root()
    store = suite.folder / "strangers"
    make(store, "mine")
    (store / "policy").write_text("cordwood policy\n\n{}")
    (store / "policy").chmod(0o600)
    own(store)
    suite.host.chmod(0o755)
    count = 0
    for name, mode in PLACES.items():
        path = store / name
        is_folder = path.is_dir()
        rows = [(USER, mode, None), (USER, 0o2750 if is_folder else 0o640, None),
                (0, mode | 0o055 if is_folder else 0o644, None),
                (STRANGER, mode | 0o055 if is_folder else 0o644, f"user {STRANGER}"),
                # Others lose the right to change what is the user's own.
                (USER, mode | 0o020, None), (USER, mode | 0o002, None),
                (USER, mode | (0o2070 if is_folder else 0o060), None),
                (0, mode | 0o077, f"(mode {mode | 0o077:o}): name a directory")]
        for owner, now, wrong in rows:
            # In root's own folders the user makes nothing, which is another refusal.
            if wrong is None and owner == 0 and is_folder:
                continue
            os.chown(path, owner, USER)
            path.chmod(now)
            done = log(store, "more", AS_USER)
            said = done.stderr.decode()
            asked = run(*AS_USER, suite.host, "look", store,
                        environment={"POLICY_URL": "http://127.0.0.1:1/policy"}).text
            what = f"{name or 'the store'} of {owner}, mode {now:o}: {said!r}, {asked!r}"
            # Only with a URL does the policy that was kept decide anything.
            holds((done.returncode == 0) == (wrong is None or name == "policy"), what)
            holds(("CW_E_PERMISSION" in asked) == (wrong is not None), what)
            holds(wrong or not path.stat().st_mode & 0o022, f"others may change it: {what}")
            if wrong:
                told = said if name != "policy" else asked
                holds(wrong in told and str(path) in told, what)
            count += 1
        os.chown(path, USER, USER)
        path.chmod(mode)
    equal("log ends", log(store, "last", AS_USER).returncode, 0)
    return f"{count} rows"


def strangers_control(suite):
    """A control file that somebody else wrote changes nothing in a program that runs."""
    needs_root()
    store = suite.folder / "obeying"
    store.mkdir()
    own(store)
    with subprocess.Popen([*AS_USER, CORDWOOD, "log", "--store", store, "--logger", "app"],
                          stdin=subprocess.PIPE, stderr=subprocess.PIPE) as host:
        try:
            until(lambda: list(store.glob("lanes/*.lane")), "the lane")
            new = suite.folder / "control"
            new.write_text("cordwood control\nformat 1\nlevel 255 \n")
            os.chown(new, STRANGER, STRANGER)
            new.rename(store / "control")
            until(lambda: "who does not own the store" in tool("cat", store).text, "the report")
            said = host.communicate(b"kept\n")[1]
        finally:
            host.kill()
    equal("log ends", (host.returncode, said), (0, b""))
    holds("app: kept" in tool("cat", store).text, "the record is missing")


def deleted(suite):
    """Hosts of root's go on in a user's store that was deleted, and make it for that user; one may
    find what the other has just made."""
    needs_root()
    for case, others in (("deleted", ["beside"] * 3), ("deleted_child", [])):
        store = suite.folder / case
        store.mkdir()
        own(store)
        hosts = [subprocess.Popen([suite.host, name, store], stdin=subprocess.PIPE)
                 for name in others]
        until(lambda: len(list((store / "lanes").glob("*.lane"))) == len(others), "lanes")
        (store / "deleted").touch()
        hosts.append(subprocess.Popen([suite.host, case, store], stdin=subprocess.PIPE))
        try:
            until(lambda: not (store / "deleted").exists()
                  and len(list((store / "lanes").glob("*.lane"))) >= len(hosts), case)
            until(lambda: "again" in tool("cat", store, environment=NO_CACHE).text, case)
            for host in hosts:
                host.communicate()
        finally:
            for host in hosts:
                host.kill()
        equal(f"{case} ends", [host.returncode for host in hosts], [0] * len(hosts))
        made = (store, *store.rglob("*"))
        equal("root's", [path for path in made if path.stat().st_uid == 0], [])


def given_late(suite):
    """Root's host finds a directory that another one has made in a user's store and not given to
    that user yet. Neither the directory nor a file in it is root's afterwards."""
    needs_root()
    for name in ("lanes", "archives", "queue", "targets"):
        store = suite.folder / f"late-{name}"
        store.mkdir()
        own(store)
        (store / name).mkdir(mode=0o700)
        run(suite.host, "log", store, codes=(0,))
        equal("root's", [path for path in store.rglob("*") if path.stat().st_uid == 0], [])
        # What is not empty is left as it is.
        shutil.rmtree(store / name)
        (store / name / "kept").mkdir(parents=True)
        (store / name).chmod(0o700)
        run(suite.host, "log", store, codes=(0,))
        equal("kept", (store / name).stat().st_uid, 0)


def deleted_behind_a_link(suite):
    """The way to a user's store that was deleted becomes a link: root's host makes the store again
    behind one that only root can have put there."""
    needs_root()
    folder = suite.folder / "ways"
    folder.mkdir(mode=0o755)
    for number, (case, by, among, mode, is_made) in enumerate((
            ("deleted", USER, USER, 0o755, False), ("deleted_child", USER, USER, 0o755, False),
            ("deleted_child", USER, 0, 0o755, False),
            # A link of root's that the user may have moved.
            ("deleted_child", 0, USER, 0o755, False), ("deleted_child", 0, 0, 0o777, False),
            ("deleted", 0, 0, 0o755, True), ("deleted_child", 0, 0, 0o755, True))):
        place = folder / f"{number}"
        way, aside, victim = (place / each for each in ("way", "aside", "victim"))
        store = way / "store"
        store.mkdir(parents=True)
        victim.mkdir()
        own(way)
        os.chown(place, among, among)
        place.chmod(mode)
        what = f"{case}, a link of {by} in a directory of {among}, mode {mode:o}"
        deletes = (f"mv '{way}' '{aside}' && ln -s '{victim}' '{way}' && "
                   f"chown -h {by} '{way}' && "
                   f"until rm -rf '{aside}' 2>/dev/null; do :; done")
        with subprocess.Popen([suite.host, case, store], stdin=subprocess.PIPE,
                              env={**os.environ, "DELETES": deletes}) as host:
            try:
                if is_made:
                    until(lambda: list((victim / "store/lanes").glob("*.lane")), what)
                else:
                    until(lambda: way.is_symlink() and not aside.exists(), "the link")
                    holds(not comes_soon((victim / "store").exists), f"made behind {what}")
                    way.unlink()
                    way.mkdir()
                    os.chown(way, USER, USER)
                    until(lambda: list((store / "lanes").glob("*.lane")), f"again after {what}")
                host.communicate()
            finally:
                host.kill()
        equal(what, (host.returncode, (victim / "store").exists()), (0, is_made))


def unreadable_consent(suite):
    """A store file that cannot be read, or a store of somebody else, stops what makes archives."""
    needs_root()
    store = suite.folder / "consent"
    make(store, "mine")
    own(store)
    (store / "store").write_text("cordwood store\nformat 1\n")
    before = seen(store / "archives")
    done = tool("compact", "--hours", "0", store, codes=(4,), environment=NO_CACHE)
    holds("no valid id" in done.text, done.text)
    equal("archives", seen(store / "archives"), before)
    store.chmod(0o755)
    for verb in (["archive"], ["compact", "--hours", "0"]):
        done = run("setpriv", f"--reuid={STRANGER}", f"--regid={STRANGER}", "--clear-groups",
                   CORDWOOD, *verb, store, codes=(4,), environment=NO_CACHE)
        holds(f"belongs to user {USER}" in done.text, done.text)


def verbs_as_owner(suite):
    """Root's verbs act as the owner of the store; as root only where the owner cannot come."""
    needs_root()
    store, other = suite.folder / "owned", suite.folder / "other"
    closed = suite.folder / "closed"
    closed.mkdir(mode=0o700)
    for place, user in ((store, USER), (other, STRANGER)):
        make(place, "mine")
        own(place, user)
        for archive in (place / "archives").glob("*.cwa"):
            # As a link to a file of root's would.
            os.chown(archive, 0, 0)
    shutil.copytree(store, closed / "backup")
    own(closed / "backup")
    for archive in (closed / "backup/archives").glob("*.cwa"):
        os.chown(archive, 0, 0)
    for verb in ("cat", "tail", "stats", "verify"):
        tool(verb, store, environment=NO_CACHE, codes=(3, 4))
        said = tool(verb, closed / "backup", environment=NO_CACHE, codes=(0,)).text
        holds(f"works as root: user {USER}" in said and f"not enter {closed}" in said, said)
    # Root's verb archives no lane of root's for the owner, who could not read it.
    for user, count in ((0, 0), (USER, 1)):
        for path in (store / "lanes").iterdir():
            os.chown(path, user, user)
        tool("archive", store, codes=range(8))
        equal(f"archives of the user after lanes of {user}",
              sum(path.stat().st_uid == USER for path in (store / "archives").glob("*.cwa")),
              count)
    made = suite.folder / "made"
    equal("log ends", log(made, "root's").returncode, 0)
    equal("owner", made.stat().st_uid, 0)
    # The owner does not decide that root stays root.
    links = suite.folder / "links"
    links.mkdir()
    for name, target, user in (("own", store, USER), ("root's", made, USER), ("by", store, 0),
                               ("up", suite.folder, USER), ("kept", closed / "backup", USER),
                               ("kept by root", closed / "backup", 0)):
        (links / name).symlink_to(target)
        os.lchown(links / name, user, user)
    for path, told in ((links / "own", None), (links / "by", None),
                       (links / "root's", "follows no link"),
                       (links / "up/made", "follows no link"),
                       (links / "up/none", "follows no link"), (links / "none", "No such file")):
        said = tool("cat", path, environment=NO_CACHE, codes=(3, 4)).text
        holds(told in said if told else "follows" not in said, said)
    # Nor is the verb led away from where the owner cannot come.
    shut = suite.folder / "theirs/shut"
    shut.mkdir(parents=True)
    shutil.copytree(store, shut / "backup")
    own(shut.parent)
    os.chown(shut, 0, 0)
    shut.chmod(0o700)
    # A group may change the way there: with the sticky bit, too, as the store is the user's.
    teams = []
    for mode in (0o770, 0o1770):
        teams.append(suite.folder / f"team-{mode:o}")
        teams[-1].mkdir()
        teams[-1].chmod(mode)
        shutil.copytree(store, teams[-1] / "backup")
        own(teams[-1] / "backup")
    for path, told, code in ((links / "kept", "act as its owner", 4),
                             (links / "kept by root", "works as root", 0),
                             (shut / "backup", "act as its owner", 4),
                             *((team / "backup", "act as its owner", 4) for team in teams)):
        said = tool("cat", path, environment=NO_CACHE, codes=(code,)).text
        holds(told in said, said)
    said = tool("cat", store, closed / "backup", environment=NO_CACHE, codes=(4,)).text
    holds(f"may enter {store}, but not {closed}" in said, said)
    for first, second in ((store, other), (store, made), (made, store)):
        said = tool("cat", first, second, environment=NO_CACHE, codes=(4,)).text
        holds("one user at a time" in said, said)
    keeps = ["setpriv", "--securebits=+no_setuid_fixup"]
    lacks = ["setpriv", "--bounding-set=-setgid"]
    for way, told in ((keeps, "become root again"), (lacks, "not permitted")):
        said = run(*way, CORDWOOD, "cat", store, environment=NO_CACHE, codes=(4,)).text
        holds(f"act as its owner, user {USER}" in said and told in said, said)
    own(store)
    tool("cat", store, environment=NO_CACHE, codes=(0,))
    for each in (store, store.parent / "home"):
        if each != store:
            each.mkdir()
            store.rename(each / "store")
            own(each)
        each.chmod(0)
        said = tool("cat", each if each == store else each / "store", environment=NO_CACHE,
                    codes=(4,)).text
        holds("Permission denied" in said, said)
        each.chmod(0o700)


# ── What is put in the place of what root works on ──

VERBS = {
    "cat": ["cat", "{}"], "tail": ["tail", "-n", "5", "{}"], "grep": ["grep", "mine", "{}"],
    "stats": ["stats", "{}"], "verify": ["verify", "{}"], "http": ["http", "{}"],
    "export": ["export", "--format", "ndjson", "{}"], "archive": ["archive", "{}"],
    "compact": ["compact", "--hours", "0", "{}"], "queue": ["queue", "{}"],
    "transactions": ["transactions", "{}"], "retry": ["queue", "{}", "retry"],
    "targets": ["target", "{}", "list"], "remove": ["target", "{}", "remove", "nobody"],
    "level": ["level", "{}", "debug"], "granted": ["consent", "{}", "granted"],
    "denied": ["consent", "{}", "denied"], "policy": ["policy", "{}"],
    "upload": ["upload", "{}", "--to", "http://127.0.0.1:1", "--timeout", "2"],
}


def seen(folder):
    """Of root's own store, what nobody may change."""
    found = {}
    for path in (folder, *folder.rglob("*")):
        facts = path.lstat()
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_uid, facts.st_size,
                                                facts.st_mtime_ns, facts.st_nlink)
    return found


class Swaps:
    """Runs of one program on copies of a store, each with one swap."""

    def __init__(self, suite):
        needs_root()
        self.suite = suite
        # Closed to the owner, so verbs stay root.
        self.folder = Path(tempfile.mkdtemp(prefix="swaps-", dir=suite.folder))
        self.library = self.folder / "swap.so"
        subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-shared", "-fPIC", "-Wall",
                        "-Wextra", "-Werror", HERE / "swap.c", "-o", self.library, "-ldl"],
                       check=True)
        self.model = self.folder / "model"
        make(self.model, "mine")
        self.names = sorted(str(path.relative_to(self.model)) for path in self.model.rglob("*"))

    def run(self, verb, number, name="", is_link=True, owner=USER, way=(), is_open=False):
        """Returns how many calls the program made."""
        with tempfile.TemporaryDirectory(dir=self.folder) as place:
            store, victim, words = (Path(place) / each for each in ("store", "victim", "words"))
            # The same names, which the owner may choose.
            for each in (store, victim):
                shutil.copytree(self.model, each)
            before = seen(victim)
            own(store, owner)
            if owner == 0:
                store.chmod(0o777)
            words.write_bytes(bytes(16))
            if way or is_open:
                # The owner has to come there.
                for path in (self.folder, words.parent, words):
                    path.chmod(0o777)
                self.library.chmod(0o755)
            program = [CORDWOOD, *VERBS[verb]] if verb in VERBS else [self.suite.host, verb, "{}"]
            swap = {"LD_PRELOAD": self.library, "SWAP_WORDS": words, "SWAP_AT": number,
                    "SWAP_STORE": store, "SWAP_OWNER": owner, "SWAP_VICTIM": victim,
                    "SWAP_PATH": store / name,
                    "SWAP_TO": victim / name if is_link else ""}
            done = run(*way, "env", *(f"{key}={value}" for key, value in swap.items()),
                       *(str(word).replace("{}", str(store)) for word in program), seconds=20,
                       environment=NO_CACHE)
            count, led = struct.unpack("2Q", words.read_bytes())
            now = seen(victim)
            changed = [path for path in sorted(before | now) if before.get(path) != now.get(path)]
            if led or changed:
                raise Failed(f"{verb}, call {number}, {name}, {'link' if is_link else 'FIFO'}, "
                             f"store of {owner}: {led} of root's files opened, changed: "
                             f"{changed}\n{done.text[-500:]}")
            return count


def swaps(suite):
    """At each call by a name of each verb, and of a host, each directory and file becomes a link to
    root's or a FIFO: nothing of root's is opened or changed, and the program ends."""
    swaps_ = Swaps(suite)
    chance = random.Random(cases.seed())
    runs = []
    for verb in (*VERBS, "log"):
        calls = swaps_.run(verb, 0)
        holds(calls > 1, f"{verb} makes {calls} calls")
        runs += itertools.product([verb], range(1, calls + 1), swaps_.names,
                                  [True, True, True, False])

    def swap(verb, number, name, is_link):
        # A store of the user's, or one of root's that all may change.
        owner = chance.choice([USER, 0])
        swaps_.run(verb, number, name, is_link, owner)
    # All of them take an hour. Adopters wait.
    some = chance.sample(runs, min(len(runs), sized(150, 1500, 20000)))
    with ThreadPoolExecutor(8) as pool:
        for done in [pool.submit(swap, *each) for each in some]:
            done.result()
    return f"{len(some)} of {len(runs)} swaps"


def swaps_with_rights(suite):
    """A process of the owner's own, but with rights that its other processes lack."""
    if subprocess.run([*WITH_RIGHTS, "true"], capture_output=True, check=False).returncode != 0:
        raise Skipped("setpriv passes no capabilities on")
    swaps_ = Swaps(suite)
    chance = random.Random(cases.seed())
    calls = swaps_.run("archive", 0, way=WITH_RIGHTS)
    for number in chance.sample(range(1, calls + 1), min(calls, sized(10, 100, 1000))):
        name = chance.choice(["archives", "lanes"])
        swaps_.run("archive", number, name, way=WITH_RIGHTS)


def swaps_of_the_store(suite):
    """The owner of a store puts a link to root's in its place: the verb acts as the owner."""
    swaps_ = Swaps(suite)
    chance = random.Random(cases.seed())
    for verb in ("upload", "archive", "cat", "level"):
        calls = swaps_.run(verb, 0, is_open=True)
        some = chance.sample(range(1, calls + 1), min(calls, sized(5, 100, 1000)))
        for number in {*range(1, min(calls, 20) + 1), *some}:
            swaps_.run(verb, number, is_open=True)


def memory_links(suite):
    """A link in lanes/ leads root's reader to a segment in root's memory only if it is root's."""
    needs_root()
    # Closed to the owner, so verbs stay root.
    folder = suite.folder / "memory"
    folder.mkdir(mode=0o700)
    store = folder / "store"
    run(suite.host, "segment", store, codes=(0,))
    lanes = store / "lanes"
    plain = tool("cat", store, environment=NO_CACHE).text
    lane = next(lanes.glob("*.lane")).stem
    # A segment of root's, whose name the owner has learnt.
    memory = Path("/dev/shm/cordwood-segments-0")
    memory.mkdir(mode=0o700, exist_ok=True)
    segment = next(iter([*lanes.glob("*.seg"), *lanes.glob("*.sealed")]), None)
    holds(segment is not None, f"no segment of {lane}: {os.listdir(lanes)}")
    target = memory / f"{random.getrandbits(64):016x}"
    try:
        shutil.copy(segment, target)
        segment.unlink()
        segment.symlink_to(target)
        equal("root's own", tool("cat", store, environment=NO_CACHE).text, plain)
        os.chown(target, STRANGER, STRANGER)
        holds(len(tool("cat", store, environment=NO_CACHE).text) < len(plain),
              "somebody else's file stands for root's segment")
        os.chown(target, 0, 0)
        own(store)
        holds(len(tool("cat", store, environment=NO_CACHE).text) < len(plain),
              "the owner's link leads to root's memory")
        tool("archive", store, codes=range(8))
        holds(target.exists(), "root's segment was removed by the owner's link")
    finally:
        target.unlink(missing_ok=True)


def led_away(suite):
    """A follower of root's goes on with the store that its owner made again, but with none that
    only a link of the owner's leads to."""
    needs_root()
    folder = suite.folder / "led"
    folder.mkdir(mode=0o700)
    store, victim, out = folder / "store", folder / "victim", folder / "out"
    equal("log ends", log(victim, "root's").returncode, 0)

    def begin(text):
        equal("log ends", log(store, text).returncode, 0)
        own(store)
    begin("first")
    with out.open("wb") as sink, subprocess.Popen(
            [CORDWOOD, "tail", "-f", store], stdout=sink, env={**os.environ, **NO_CACHE}) as tail:
        try:
            until(lambda: "first" in out.read_text(), "the first record")
            shutil.rmtree(store)
            store.symlink_to(victim)
            comes_soon(lambda: "root's" in out.read_text())
            store.unlink()
            begin("again")
            until(lambda: "again" in out.read_text(), "the record of the store made again")
            holds("root's" not in out.read_text(), "root's records were shown")
        finally:
            tail.kill()


CASES = [strangers, strangers_control, deleted, given_late, deleted_behind_a_link,
         unreadable_consent, verbs_as_owner, swaps, swaps_with_rights, swaps_of_the_store,
         memory_links, led_away]
