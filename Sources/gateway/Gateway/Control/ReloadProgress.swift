import Services

/// Whether a reload runs, and the results of those before. Pure: see `Reloads` for the driver.
struct ReloadProgress {
    private enum Stage {
        /// Leaves to `running`.
        case none
        /// Files are being read. Leaves to `none`, `runningBeforeNext`.
        case running
        /// Another reload was requested meanwhile: the files may have changed since they were read.
        /// Leaves to `none`.
        case runningBeforeNext
    }

    private var stage = Stage.none
    /// The first configuration is 1; each accepted reload adds 1.
    private(set) var generation = 1
    /// When the configuration was last read, successfully or not.
    private var triedAt: Int64
    private var refusal: String?
    private var refusedCount: UInt64 = 0

    init(startedAt: Int64) { triedAt = startedAt }

    var isRunning: Bool { if case .none = stage { false } else { true } }

    /// A reload is requested. Those that are requested while one runs are merged into one, after
    /// it.
    ///
    /// - Returns: whether it begins now.
    mutating func requested() -> Bool {
        guard case .none = stage else {
            stage = .runningBeforeNext
            return false
        }
        stage = .running
        return true
    }

    /// The reload has ended.
    ///
    /// - Returns: whether another one was requested meanwhile.
    mutating func ended() -> Bool {
        guard case .runningBeforeNext = stage else {
            stage = .none
            return false
        }
        stage = .none
        return true
    }

    mutating func accepted(at time: Int64) {
        triedAt = time
        generation += 1
        refusal = nil
    }

    mutating func refused(_ why: String, at time: Int64) {
        triedAt = time
        refusal = why
        refusedCount += 1
    }

    /// The state of the configuration, for operators.
    var facts: ConfigurationFacts {
        ConfigurationFacts(
            generation: UInt64(generation),
            lastReloadAtSeconds: triedAt,
            lastReloadError: refusal,
            refusedReloads: refusedCount
        )
    }
}
