"""Full disks: a small tmpfs, a loop-mounted ext4, a limit on file sizes, no descriptors; under each
overflow policy. RELIABILITY R10, R12, R14."""

import errno
import json
import os
import resource
import shutil
import subprocess
import time

from harness import (BLOCK, DROP, E_FULL, OK, SECONDS_MAX, TOOL, ballast, equal, exact, full, holds,
                     until)

# The limit for a refusal without a system call, with room for a loaded machine.
REFUSAL_NS_MAX = 2_000
RESUME_US_MAX = 1_000_000


def kernel_seconds(host):
    """The time that the thread which writes, the first, has spent in the kernel."""
    with open(f"/proc/{host.process.pid}/task/{host.process.pid}/stat") as file:
        return int(file.read().rsplit(")", 1)[1].split()[12]) / os.sysconf("SC_CLK_TCK")


def refusal_cost(host, count=200_000):
    """Processor time of a refused record, in ns. One system call per record would show in the
    kernel's share."""
    before = kernel_seconds(host)
    cost = host.write(count, 100)
    kernel = kernel_seconds(host) - before
    # The archiver may have made room for a few.
    holds(cost["refused"] > count * 0.8, f"only {cost['refused']} of {count} refused")
    each = cost["ns"] / count
    holds(each < REFUSAL_NS_MAX, f"a refused record costs {each:.0f} ns")
    holds(kernel < 0.03 + cost["ns"] / 1e9 / 3, f"{kernel:.2f} s in the kernel for {count}")
    return each


def says(host, *words):
    """The text of the last failure contains all of these words."""
    said = host.words()
    for word in words:
        holds(word in said, f"{word!r} is not in {said!r}")


def fill_and_resume(place, disk, rounds=2, cause="disk_full", **options):
    """Fills the disk, measures the cost of refusals, makes room, measures how long it takes to log
    again. One gap per round."""
    host = place.host(disk / "store").open(**options)
    held = reserves(disk, rounds)
    worst_resume = worst_cost = 0
    for path in held:
        sent, run = host.numbers("fill", 400, 100)
        equal("the last was refused", run, 1)
        if cause:
            says(host, "the disk is full (ENOSPC), in " + str(disk / "store/lanes"), "counted")
        worst_cost = max(worst_cost, refusal_cost(host))
        os.unlink(path)
        status, us = host.numbers("resume", 30_000, 100)
        equal("after space returned", status, OK)
        worst_resume = max(worst_resume, us)
        holds(us < RESUME_US_MAX, f"logging resumed after {us} us")
        equal("kept again", host.write(100, 100)["kept"], 100)
    total, read = exact(host, cause=cause)
    host.end()
    place.note(f"{total['kept']} kept, {total['refused']} refused at {worst_cost:.0f} ns each, "
               f"{read['gaps']} gaps, resumed within {worst_resume / 1000:.0f} ms")


def reserves(disk, count):
    """Takes two thirds of the room, in so many files of the same size."""
    spare = os.statvfs(disk)
    each_bytes = spare.f_bavail * spare.f_frsize * 2 // 3 // count
    return [ballast(disk, spare.f_bavail * spare.f_frsize - (n + 1) * each_bytes, f"held{n}")
            for n in range(count)]


def full_tmpfs(place):
    fill_and_resume(place, place.tmpfs(8))


def full_tmpfs_drop(place):
    # Some refusals find no segment ready before the disk is tried.
    fill_and_resume(place, place.tmpfs(8), cause=None, overflow=DROP, segment=1 << 20)


def full_ext4(place):
    fill_and_resume(place, place.ext4(24))


@full
def full_ext4_small_segments(place):
    fill_and_resume(place, place.ext4(24), segment=64 << 10)


def full_then_killed(place):
    """The count of refused records survives kill -9, and no byte of a kept record is lost."""
    disk = place.tmpfs(8)
    host = place.host(disk / "store").open()
    held = ballast(disk, 1 << 20)
    host.numbers("fill", 400, 120)
    total = host.totals()
    host.kill()
    os.unlink(held)
    reader = place.host(disk / "store")
    for adopted in (False, True):
        if adopted:  # another process takes the lane over
            reader.open()
            until(lambda: sum(1 for p in (disk / "store/lanes").glob("*.lane")) == 1, "adoption")
        read = reader.read()
        equal("records read", read["logs"], total["kept"])
        equal("records missing", read["missing"], total["refused"])
        equal("gap records", read["gaps"], total["runs"])
        equal("out of order or twice", read["bad"], 0)
    reader.close()
    reader.end()


def full_while_written(place):
    """Where records are written by pwrite(2), a full disk may take a second to refuse one, as btrfs
    does. It is asked a few times in a tenth of a second, however many records are refused. Once it
    has room, the counts are written without another record, and survive kill -9."""
    words = place.words()
    words.fail(errno.EOPNOTSUPP, "allocate")
    host = place.host(place.directory / "store", words).open()
    equal("kept", host.write(1000, 100)["kept"], 1000)
    words.fail(errno.ENOSPC, "write")
    before, begun = words.count("write"), time.monotonic()
    equal("refused", host.write(20_000, 100)["refused"], 20_000)
    asked, tenths = words.count("write") - before, (time.monotonic() - begun) * 10
    holds(asked <= 10 + 5 * tenths, f"{asked} writes in {tenths:.0f} tenths of a second")
    total = host.totals()
    words.fail(0, "write")
    until(lambda: not_kept(host.store) == total["refused"], "the count in the file")
    host.kill()
    reader = place.host(host.store)
    read = reader.read()
    equal("read, missing", (read["logs"], read["missing"]), (total["kept"], total["refused"]))
    reader.end()
    place.note(f"{asked} writes for {total['refused']} refusals")


def late_counts_hold_nobody(place):
    """While the disk takes its time to refuse the counts, no call of the host waits for that."""
    words = place.words()
    words.fail(errno.EOPNOTSUPP, "allocate")
    host = place.host(place.directory / "store", words).open()
    equal("kept", host.write(1000, 100)["kept"], 1000)
    words.fail(errno.ENOSPC, "write")
    host.write(20_000, 100)
    words.only(".lane")
    words.delay(10_000, "write")
    words.more(1, "write")
    longest = 0.0
    for _ in range(20):
        begun = time.monotonic()
        host.ask("roll")
        longest = max(longest, time.monotonic() - begun)
    words.delay(0, "write")
    words.fail(0, "write")
    host.close()
    host.end()
    place.note(f"longest roll {longest * 1000:.0f} ms")
    holds(longest < 5, f"a call waits {longest:.2f} s")


def not_kept(store):
    told = subprocess.run([TOOL, "stats", "--json", store], check=True, stdout=subprocess.PIPE)
    return json.loads(told.stdout)["not_kept"]


def flush_on_full_disk(place):
    """A flush that finds no room for the journal fails, also if there is much to write."""
    # More than supply prepares: the journal has room once the ballast is gone.
    disk = place.tmpfs(32)
    for size in (100, 20_000):
        host = place.host(disk / f"store{size}").open(segment=4 << 20)
        host.write(2_000_000 // size, size)
        held = ballast(disk, 0)
        equal("cw_flush", int(host.ask("flush", 60_000)), E_FULL)
        says(host, "journal in " + str(disk / f"store{size}/lanes"), "No space left on device")
        os.unlink(held)
        equal("cw_flush with room", int(host.ask("flush", 60_000)), OK)
        host.close()
        host.end()
        shutil.rmtree(disk / f"store{size}")


def dense_without_room(place):
    """`cordwood archive --method dense` without disk space, then without memory: it says so, leaves
    no part of an archive, and loses nothing. A block that needs more memory is plain."""
    disk = place.tmpfs(24)
    store, source = disk / "store", place.directory / "lines"
    source.write_text("".join(
        f"2026-11-26 10:{n // 60 % 60:02}:{n % 60:02} took {n * 7919 % 1000} ms at node-{n % 7}\n"
        for n in range(60_000)))
    subprocess.run([TOOL, "log", "--store", store, "--logger", "lines", source], check=True,
                   stdout=subprocess.DEVNULL)

    def archive(data_bytes=resource.RLIM_INFINITY):
        return subprocess.run(
            [TOOL, "archive", "--method", "dense", store], capture_output=True, check=False,
            timeout=SECONDS_MAX, preexec_fn=lambda: resource.setrlimit(
                resource.RLIMIT_DATA, (data_bytes, data_bytes)))

    def archives():
        return sorted(path.name for path in (store / "archives").glob("*"))

    held = ballast(disk, 0)
    full = archive()
    equal("without space", (full.returncode, archives()), (4, []))
    holds(b"No space left" in full.stderr, full.stderr)
    os.unlink(held)
    refused = 0
    for mebibytes in range(6, 64):
        done = archive(mebibytes << 20)
        if done.returncode == 0:
            break
        equal(f"within {mebibytes} MiB: {done.stderr}", (done.returncode, archives()), (3, []))
        refused += 1
    holds(refused > 0, "memory was never short")
    equal("archives", len(archives()), 1)
    read = subprocess.run([TOOL, "export", "--format", "raw", store], capture_output=True,
                          check=True)
    holds(read.stdout == source.read_bytes(), "the lines are others")
    place.note(f"{refused} refused, {mebibytes} MiB suffice")


def store_quota(place):
    """The store's own quota, filled with data that no archive holds."""
    host = place.host(place.directory / "store").open(segment=64 << 10, quota=2 << 20, codec=2)
    sent = 0
    while host.write(1, 60_000)["refused"] == 0:
        sent += 1
        holds(sent < 100_000, "never refused")
    says(host, "the store's quota is reached: quota_bytes is 2097152, in ", "store/lanes; ")
    equal("causes", host.causes(), {"store_quota": host.totals()["refused"]})
    host.close()
    holds({"store_quota"} in host.gaps(), "no gap record names the quota")
    host.end()


def other_causes(place):
    """Other errors that the system may return, each with its name."""
    for error, cause, said in (
            (errno.EDQUOT, "disk_quota", "the user's disk quota is used up (EDQUOT), in "),
            (errno.ENFILE, "descriptors", "no file descriptor is free (ENFILE), in "),
            (errno.ENOMEM, "memory", "memory ran out (ENOMEM), in "),
            (errno.EROFS, "permission", "permission is denied (EROFS), in "),
            (errno.ENODEV, "other", f"the file system refuses (errno {errno.ENODEV}), in ")):
        words = place.words()
        host = place.host(place.directory / said[:30], words).open(segment=64 << 10)
        host.write(10, 100)
        words.fail(error, "open", "allocate")
        host.numbers("fill", 300, 100)
        says(host, said)
        words.fail(0, "open", "allocate")
        equal("resumed", host.numbers("resume", 30_000, 100)[0], OK)
        exact(host, cause=cause)
        host.end()


def waiting(host):
    """Returns when nothing was kept for half a second: the host's threads wait for room."""
    kept, since = -1, time.monotonic()

    def stands():
        nonlocal kept, since
        now = host.totals()["kept"]
        if now != kept:
            kept, since = now, time.monotonic()
        return now > 0 and time.monotonic() - since > 0.5
    until(stands, "the threads wait")


def blocked(place, disk, **options):
    """BLOCK: nothing is refused. Calls wait and resume when there is room."""
    host = place.host(disk / "store").open(overflow=BLOCK, **options)
    held = ballast(disk, 1 << 20)
    # 1 MiB of room, 4 MB to write.
    host.numbers("each", 4, 5000, 180)
    start = time.monotonic()
    waiting(host)
    os.unlink(held)
    longest = int(host.ask("join")) / 1e9
    took = time.monotonic() - start
    total, read = exact(host, threads=4)
    host.end()
    equal("refused", total["refused"], 0)
    holds(longest > 0.3, f"nobody waited: the longest call took {longest:.3f} s")
    holds(took < 30, f"four threads went on after {took:.1f} s")
    place.note(f"{total['kept']} kept by 4 threads, longest wait {longest:.2f} s")


def block_tmpfs(place):
    blocked(place, place.tmpfs(8))


def block_ends_with_close(place):
    """A call that waits for room does not delay close."""
    disk = place.tmpfs(8)
    host = place.host(disk / "store").open(overflow=BLOCK)
    ballast(disk, 1 << 20)
    host.tell("threads", 2, 100_000, 200)
    host.answer()
    waiting(host)
    start = time.monotonic()
    status = int(host.ask("close", 10_000))
    holds(status == OK, f"cw_close answers {status}")
    holds(time.monotonic() - start < 12, "close waits for blocked writers")
    host.kill()


@full
def threads_on_full_disk(place):
    """Eight threads on a disk that is full, has room, is full again: exact counts over all."""
    disk = place.tmpfs(10)
    host = place.host(disk / "store").open(segment=1 << 20)
    *held, last = reserves(disk, 4)
    for path in held:
        with host.writing(8, 150):
            host.grows("refused")
            os.unlink(path)
            host.grows("kept")
    os.unlink(last)
    equal("resumed", host.numbers("resume", 30_000, 100)[0], OK)
    with host.writing(8, 150):
        host.grows("kept")
    total, read = exact(host, threads=8)
    host.end()
    place.note(f"{total['kept']} kept, {total['refused']} refused, {read['gaps']} gap records")


def file_limit(place):
    """RLIMIT_FSIZE below a new segment: no SIGXFSZ; refused and counted; then it resumes."""
    host = place.host(place.directory / "store").open(segment=1 << 20)
    resumed = 0
    for _ in range(2):
        host.ask("limit", 60_000)
        host.numbers("fill", 400, 100)
        says(host, "the limit of file sizes is reached: RLIMIT_FSIZE is 60000 (EFBIG), in ")
        cost = refusal_cost(host)
        host.ask("limit", 0)
        status, us = host.numbers("resume", 30_000, 100)
        equal("after the limit was lifted", status, OK)
        holds(us < RESUME_US_MAX, f"resumed after {us} us")
        resumed = max(resumed, us)
    exact(host, cause="file_limit")
    host.end()
    place.note(f"{cost:.0f} ns a refusal, resumed within {resumed / 1000:.0f} ms")


def no_descriptors(place):
    """EMFILE: the host has used up its descriptors. No kept record is lost, and logging resumes
    when some are free."""
    host = place.host(place.directory / "store").open(segment=1 << 20)
    equal("kept", host.write(10_000, 100)["kept"], 10_000)
    holds(host.numbers("eat")[0] > 100, "no descriptors eaten")
    host.numbers("fill", 400, 100)
    says(host, "no file descriptor is free: RLIMIT_NOFILE is ", " (EMFILE), in ")
    cost = refusal_cost(host)
    host.ask("spew")
    status, us = host.numbers("resume", 30_000, 100)
    equal("with descriptors", status, OK)
    holds(us < RESUME_US_MAX, f"resumed after {us} us")
    equal("kept", host.write(50_000, 100)["kept"], 50_000)
    exact(host, cause="descriptors")
    host.end()
    place.note(f"{cost:.0f} ns a refusal, resumed within {us / 1000:.0f} ms")


CASES = {f.__name__: f for f in (
    full_tmpfs, full_tmpfs_drop, full_ext4, full_ext4_small_segments, full_then_killed,
    full_while_written, late_counts_hold_nobody,
    block_tmpfs, block_ends_with_close, threads_on_full_disk, file_limit, no_descriptors,
    flush_on_full_disk, dense_without_room, store_quota, other_causes)}
