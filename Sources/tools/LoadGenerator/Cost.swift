import Glibc
import Lanes

/// What this process has used of the machine.
package struct Cost: Sendable {
    /// User and system time of all threads, nanoseconds.
    var cpu: UInt64
    /// On the monotonic clock, nanoseconds.
    var elapsed: UInt64

    /// Since the process began; `elapsed` since some moment before.
    static var now: Cost {
        var usage = rusage()
        let who = __rusage_who_t(RUSAGE_SELF.rawValue)
        guard getrusage(who, &usage) == 0 else {
            return Cost(cpu: 0, elapsed: MonotonicClock.nanoseconds)
        }
        let times = [usage.ru_utime, usage.ru_stime]
        let micros = times.reduce(0) { $0 + $1.tv_sec * 1_000_000 + Int($1.tv_usec) }
        return Cost(cpu: UInt64(micros) * 1_000, elapsed: MonotonicClock.nanoseconds)
    }

    static func - (later: Cost, earlier: Cost) -> Cost {
        Cost(cpu: later.cpu - earlier.cpu, elapsed: later.elapsed - earlier.elapsed)
    }

    /// Cores that were busy.
    var cores: Double { elapsed == 0 ? 0 : Double(cpu) / Double(elapsed) }

    /// The machine's memory in bytes.
    static var physicalMemory: Int {
        max(sysconf(Int32(_SC_PHYS_PAGES)), 0) * max(sysconf(Int32(_SC_PAGESIZE)), 0)
    }

    /// Allows as many open files as the system lets this process have: one for each connection.
    package static func raiseFileLimit() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        _ = setrlimit(resource, &limit)
    }
}
