// A pass: runs each target once, all side by side, the first on the caller's thread; waits for all
// of them and adds up their results. Lives for the call.

import CordwoodCore

/// SAFETY: `sum` and `running` are guarded by `monitor`.
final class Pass: @unchecked Sendable {
    private let service: UploadService
    private let work: UploadWork
    private let explicit: Bool
    private let deadlineMonotonicMs: UInt64
    private let monitor = Monitor()
    private var sum = TargetRun.End()
    private var running = 0

    init(
        service: UploadService, work: UploadWork, explicit: Bool, deadlineMonotonicMs: UInt64
    ) {
        self.service = service
        self.work = work
        self.explicit = explicit
        self.deadlineMonotonicMs = deadlineMonotonicMs
    }

    func run(_ runners: [TargetRunner]) -> TargetRun.End {
        var here: [TargetRunner] = []
        for runner in runners.dropFirst() {
            monitor.locked { running += 1 }
            let isStarted = service.hooks.startThread { [self] in
                run(runner)
                monitor.locked {
                    running -= 1
                    monitor.notify()
                }
            }
            if isStarted { continue }
            monitor.locked { running -= 1 }
            here.append(runner)
        }
        for runner in [runners[0]] + here { run(runner) }
        return monitor.locked {
            while running > 0 { _ = monitor.wait(until: .never) }
            return sum
        }
    }

    private func run(_ runner: TargetRunner) {
        let end = runner.run(
            work, service, explicit: explicit, deadlineMonotonicMs: deadlineMonotonicMs)
        monitor.locked {
            sum.result.add(end.result)
            sum.waiting &+= end.waiting
            sum.attempts += end.attempts
            if end.isOutOfTime { sum.isOutOfTime = true }
            if sum.trouble == nil { sum.trouble = end.trouble }
        }
    }
}
