// A store that is followed: what is new in its lanes, and lanes and archives that are new. One
// thread at a time. Its records are merged like those of the start (StoreView).

import CordwoodCore

extension StoreView {
    /// Following: looks for new records, segments, lanes and archives.
    func poll() {
        do throws(ReadProblem) {
            try pollLanes()
        } catch {
            report(error)
        }
        // The archive exists before a file of its segments is reused.
        addRests(of: needed())
        for lane in lanes.values { unsafe lane.isPaused = false }
        hold()
    }

    private func pollLanes() throws(ReadProblem) {
        let listed = try LaneFiles.list(store: path)
        var present: Set<String> = []
        for files in listed where files.hasLaneFile {
            present.insert(files.lane)
            if let source = lanes[files.lane] {
                do throws(ReadProblem) { try source.refresh(files: files) } catch { report(error) }
            } else if knownLanes.insert(files.lane).inserted, let source = openLane(files) {
                follow(source)
            }
        }
        for (name, source) in lanes where !present.contains(name) {
            // Its files are gone: reads once more what the open descriptors still reach.
            if gone.insert(name).inserted {
                do throws(ReadProblem) {
                    try source.refresh(
                        files: LaneFiles(lane: name, directory: path + "/lanes"))
                } catch { report(error) }
            }
        }
    }

    /// A lane that began while the reader was following: all of it is new.
    private func follow(_ source: LaneSource) {
        guard let process = source.process else { return }
        merge.learn(process, lane: source.lane)
        lanes[source.lane] = source
        let feed = LaneFeed(source)
        feeds[source.laneID] = feed
        var input = MergeInput(lowerBound: 0, order: order(source.lane)) { feed }
        input.isFollowed = true
        merge.add(input)
    }

    /// Following: a lane may get records without a new name in the store's directories.
    var isGrowing: Bool {
        lanes.contains { !gone.contains($0.key) && $0.value.head?.closed == false }
    }

    /// Following: the time of the oldest record that waits for slower threads, on this process's
    /// clock; nil: none waits.
    var heldNs: UInt64? {
        lanes.values.compactMap(\.heldNs).min().map { Machine.own(monotonic: $0) }
    }

    /// Makes young records wait for those of slower threads.
    func hold() {
        guard options.follow else { return }
        let now = Machine.sharedMonotonicNs()
        let limit = now > StoreView.reorderWindowNs ? now - StoreView.reorderWindowNs : 0
        heldFrom = limit
        for source in lanes.values {
            let isOurs = source.process?.bootID == runningBoot && runningBoot != .zero
            unsafe source.holdAfter = isOurs && !gone.contains(source.lane) ? limit : nil
        }
    }
}
