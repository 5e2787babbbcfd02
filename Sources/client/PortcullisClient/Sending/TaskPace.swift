/// Which of `suspend()` and `resume()` a task is told next.
///
/// Both are decided under a lock and called outside of it. Two threads may so decide in one order
/// and call in the other, and a task that is told to suspend last never goes on. Hence one caller
/// at a time tells the task, until it was told what was wanted last.
struct TaskPace: Sendable {
    /// What the task does.
    enum Pace: Sendable { case running, suspended }

    /// What was wanted last.
    private(set) var wanted = Pace.running
    private var told = Pace.running
    private var isTelling = false

    /// Wants another pace.
    ///
    /// - Returns: what the caller tells the task before it calls ``wasTold()``; `nil` where there
    ///   is nothing to tell, or another caller tells it.
    mutating func want(_ pace: Pace) -> Pace? {
        wanted = pace
        return isTelling ? nil : next()
    }

    /// The task was told.
    ///
    /// - Returns: what it is told next.
    mutating func wasTold() -> Pace? {
        isTelling = false
        return next()
    }

    private mutating func next() -> Pace? {
        guard told != wanted else { return nil }
        (told, isTelling) = (wanted, true)
        return wanted
    }
}
