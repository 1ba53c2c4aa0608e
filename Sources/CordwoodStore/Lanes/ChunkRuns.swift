/// The chunk sequences of one thread, nearly always a single run: gaps are chunks of segments that
/// were archived before this reader saw them.
struct ChunkRuns {
    private var runs: [ClosedRange<UInt32>] = []

    mutating func insert(_ sequence: UInt32) {
        // The first run that ends at or after the previous sequence: nearly always the last run.
        var at = runs.count
        while at > 0, UInt64(runs[at - 1].upperBound) + 1 >= UInt64(sequence) { at -= 1 }
        guard at < runs.count else { return runs.append(sequence...sequence) }
        let run = runs[at]
        guard UInt64(sequence) + 1 >= UInt64(run.lowerBound) else {
            return runs.insert(sequence...sequence, at: at)
        }
        runs[at] = min(run.lowerBound, sequence)...max(run.upperBound, sequence)
        if at + 1 < runs.count,
            UInt64(runs[at].upperBound) + 1 >= UInt64(runs[at + 1].lowerBound)
        {
            runs[at] = runs[at].lowerBound...runs[at + 1].upperBound
            runs.remove(at: at + 1)
        }
    }

    func contains(_ sequence: UInt32) -> Bool {
        runs.last { $0.lowerBound <= sequence }?.contains(sequence) ?? false
    }
}
